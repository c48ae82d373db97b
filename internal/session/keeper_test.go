package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// swallow is a transport that takes everything.
type swallow struct{ comm.Transport }

func (swallow) Send(context.Context, int, []byte, []byte) error { return nil }
func (swallow) Close() error                                    { return nil }

// TestMaxBytesOfARun: the bound of a policy applies to all sessions of a run together, even if the process is
// restarted, and is not exceeded if it is killed.
func TestMaxBytesOfARun(t *testing.T) {
	dir := t.TempDir()
	begin := func() *keeper {
		k := &keeper{Policy: &admission.Policy{MaxBytes: 6400 + 1024},
			terms: Terms{Members: identity.Roster{Members: make([]identity.Member, 2)}}}
		if err := k.recall(dir); err != nil {
			t.Fatal(err)
		}
		return k
	}
	send := func(k *keeper, n int) error {
		over := k.met(swallow{})
		defer over.Close()
		return over.Send(t.Context(), 1, nil, make([]byte, n))
	}
	first := begin()
	if err := errors.Join(send(first, 1000), send(first, 2000)); err != nil { // two sessions
		t.Fatal(err)
	}
	var refused *admission.Refusal
	if err := send(first, 3500); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "(got 3000, and 3500 more to send)") {
		t.Errorf("%v, want that both sessions count", err)
	}
	if err := first.end(nil); err != nil {
		t.Fatal(err)
	}
	second := begin()
	if first.spent > 0 || second.spent == 0 {
		t.Error("only the second process must go on")
	}
	if err := send(second, 3401); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "(got 3000, and 3401 more to send)") {
		t.Errorf("%v, want that the earlier process counts", err)
	}
	if err := send(second, 1000); err != nil { // and is killed
		t.Fatal(err)
	}
	third := begin()
	if err := send(third, 2401); !errors.As(err, &refused) {
		t.Errorf("%v, want that the killed process counts", err)
	}
	if err := send(third, 2200); err != nil {
		t.Errorf("%v, want that a killed process costs one step of %d at most", err, (6400+1024)/64)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy", sentNote), []byte("-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&keeper{}).recall(dir); err == nil || !strings.Contains(err.Error(), "number of bytes") ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("%v, want an error that names the file", err)
	}
}
