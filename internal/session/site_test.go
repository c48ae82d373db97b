package session

import (
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// TestBoundsOfAHost: the peer timeout comes from the plan; the receive limit is the lower one of the site and its
// policy.
func TestBoundsOfAHost(t *testing.T) {
	const at = "/ip4/127.0.0.1/udp/4001/quic-v1"
	members := []identity.Member{{Name: "north"}, {Name: "south", Addrs: []string{at}}}
	terms := Terms{Rank: 1, PeerTimeout: 3 * time.Second, Members: identity.Roster{Members: members}}
	for _, c := range []struct{ site, policy, want int64 }{
		{0, 0, 0}, {5000, 0, 5000}, {0, 7000, 7000}, {5000, 7000, 5000}, {9000, 7000, 7000},
	} {
		k := &keeper{Policy: &admission.Policy{ReceiveLimit: c.policy}, terms: terms}
		got := k.config(Site{Network: p2p.Network{ReceiveLimit: c.site}})
		if got.MaxRate != c.want || got.PeerTimeout != 3*time.Second || got.Listen[0] != at {
			t.Errorf("%+v: rate %d, timeout %v, listening on %v", c, got.MaxRate, got.PeerTimeout, got.Listen)
		}
	}
}
