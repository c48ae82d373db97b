package heddle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/comm"
)

// TestBoundsOfAHost: the peer timeout comes from the plan, the receive limit from the site and its policy, of which the lower
// holds.
func TestBoundsOfAHost(t *testing.T) {
	p := Defaults(Plan{})
	p.PeerTimeout = 3 * time.Second
	p.Members = []Member{{Name: "north"}, {Name: "south", Addresses: []string{"/ip4/127.0.0.1/udp/4001/quic-v1"}}}
	for _, c := range []struct{ site, policy, want int64 }{{0, 0, 0}, {5000, 0, 5000}, {0, 7000, 7000}, {5000, 7000, 5000}, {9000, 7000, 7000}} {
		k := &gatekeeper{policy: &admission.Policy{ReceiveLimit: c.policy}}
		got := k.host(Site{ReceiveLimit: c.site}, p, 1)
		if got.MaxRate != c.want || got.PeerTimeout != 3*time.Second || got.Listen[0] != p.Members[1].Addresses[0] {
			t.Errorf("%+v: rate %d, timeout %v, listening on %v", c, got.MaxRate, got.PeerTimeout, got.Listen)
		}
	}
}

// swallow is a transport that takes everything.
type swallow struct{ comm.Transport }

func (swallow) Send(context.Context, int, []byte, []byte) error { return nil }

// TestMaxBytesOfARun: the bound of a policy holds for all sessions of a run together, also where the process is restarted,
// and is not passed where it is killed.
func TestMaxBytesOfARun(t *testing.T) {
	dir := t.TempDir()
	begin := func() *gatekeeper {
		k := &gatekeeper{policy: &admission.Policy{MaxBytes: 6400}}
		if err := k.recall(dir); err != nil {
			t.Fatal(err)
		}
		return k
	}
	send := func(k *gatekeeper, n int) error {
		return k.within(swallow{}).Send(t.Context(), 1, nil, make([]byte, n))
	}
	first := begin()
	if err := errors.Join(send(first, 1000), send(first, 2000)); err != nil { // two sessions
		t.Fatal(err)
	}
	var refused *admission.Refusal
	if err := send(first, 3500); !errors.As(err, &refused) || !strings.Contains(err.Error(), "(got 3000, and 3500 more to send)") {
		t.Errorf("%v, want that both sessions count", err)
	}
	if err := first.end(nil); err != nil {
		t.Fatal(err)
	}
	second := begin()
	if err := send(second, 3401); !errors.As(err, &refused) || !strings.Contains(err.Error(), "(got 3000, and 3401 more to send)") {
		t.Errorf("%v, want that the earlier process counts", err)
	}
	if err := send(second, 1000); err != nil { // and is killed
		t.Fatal(err)
	}
	third := begin()
	if err := send(third, 2401); !errors.As(err, &refused) {
		t.Errorf("%v, want that the killed process counts", err)
	}
	if err := send(third, 2300); err != nil {
		t.Errorf("%v, want that a killed process costs one step of %d at most", err, 6400/64)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy", sentNote), []byte("-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&gatekeeper{}).recall(dir); err == nil || !strings.Contains(err.Error(), "number of bytes") || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v, want an error that names the file", err)
	}
}
