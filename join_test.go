package heddle

import (
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/session"
)

// TestBoundsOfAHost: the peer timeout comes from the plan, the receive limit from the site and its policy, of which the lower
// holds.
func TestBoundsOfAHost(t *testing.T) {
	p := Defaults(Plan{})
	p.PeerTimeout = 3 * time.Second
	p.Members = []Member{{Name: "north"}, {Name: "south", Addresses: []string{"/ip4/127.0.0.1/udp/4001/quic-v1"}}}
	for _, c := range []struct{ site, policy, want int64 }{{0, 0, 0}, {5000, 0, 5000}, {0, 7000, 7000}, {5000, 7000, 5000}, {9000, 7000, 7000}} {
		k := &gatekeeper{Keeper: &session.Keeper{Policy: &admission.Policy{ReceiveLimit: c.policy}}}
		got := k.host(Site{ReceiveLimit: c.site}, p, 1)
		if got.MaxRate != c.want || got.PeerTimeout != 3*time.Second || got.Listen[0] != p.Members[1].Addresses[0] {
			t.Errorf("%+v: rate %d, timeout %v, listening on %v", c, got.MaxRate, got.PeerTimeout, got.Listen)
		}
	}
}
