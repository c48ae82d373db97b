package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// TestSilentMember: a member that stays connected and sends nothing ends the session. It is named at once and in the
// end, even if others have left since then.
func TestSilentMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := netsim.New(2, netsim.Config{})
		silent := comm.NewGroup(mem.Transport(1), 1, 2)
		defer silent.Close()
		var waited []string
		meetings := 0
		m := &session.Session{Names: []string{"a", "b"}, Wait: time.Minute, Progress: 5 * time.Minute,
			Rejoin: time.Hour, Place: train.Place{Checkpoints: &checkpoint.Store{Dir: t.TempDir()}},
			Event: func(e train.Event) {
				if e.Kind == train.Connection && e.Peer == 1 && e.Text != "" {
					waited = append(waited, e.Text)
				}
			}}
		m.Meet = func(context.Context) (comm.Transport, error) {
			if meetings++; meetings == 1 {
				return mem.Transport(0), nil
			}
			return nil, fmt.Errorf("waiting for c: %w", context.DeadlineExceeded)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		begun := time.Now()
		_, _, err := m.Run(ctx, func(ctx context.Context, s *session.Session) (*train.Trained, error) {
			if s.Group == nil {
				return nil, nil
			}
			return nil, s.Group.Barrier(ctx) // for which it needs all others
		})
		const want = "peer 1 (b): barrier 1: still waiting for 1: no progress for 5m0s, " +
			"and it did not come back within 1h0m0s"
		if took := time.Since(begun); meetings != 2 || took > 10*time.Minute || err == nil || err.Error() != want {
			t.Errorf("%d meetings, after %v: %v, must be %s", meetings, took, err, want)
		}
		if len(waited) != 1 || !strings.HasPrefix(waited[0], "waiting for b, which failed: ") {
			t.Errorf("events: %q", waited)
		}
	})
}

// TestWhoHasTheModel: a member with its model waits for the others as long as for a failed peer, unless it was
// restarted after it had written and measured the model: then it only looks whether they are still there. It ends with
// its model, unless one of them refuses.
func TestWhoHasTheModel(t *testing.T) {
	full := errors.New("disk full")
	for name, test := range map[string]struct {
		written  string
		more     bool
		sessions []error // of the trainer, one after the other; then nobody is there
		waits    []time.Duration
		fails    bool
	}{
		"restarted, not written":     {"", true, nil, []time.Duration{time.Hour}, false},
		"restarted, written":         {"here", true, nil, []time.Duration{5 * time.Second}, false},
		"restarted, written by all":  {"by all", false, nil, []time.Duration{5 * time.Second}, false},
		"the others are at the next": {"by all", true, nil, nil, false},
		"another fails at the end":   {"", false, []error{lostPeer(t)}, []time.Duration{time.Hour, time.Hour}, false},
		"a fault at home":            {"", false, []error{full}, []time.Duration{time.Hour}, true},
		"the others are still there": {"here", false, []error{nil}, []time.Duration{5 * time.Second}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, final := &checkpoint.Store{Dir: t.TempDir()}, 0
			if test.written != "" {
				if err := store.KeepNote("written", []byte(test.written)); err != nil {
					t.Fatal(err)
				}
			}
			var waits []time.Duration
			m := &session.Session{Names: []string{"a", "b"}, Wait: time.Minute, Rejoin: time.Hour, More: test.more,
				Place: train.Place{Checkpoints: store}, Event: func(train.Event) {},
				Final: func(*train.Trained, session.Usage) error { final++; return nil }}
			training := func(context.Context, *session.Session) (_ *train.Trained, err error) {
				if k := len(waits) - 1; k >= 0 && k < len(test.sessions) {
					err = test.sessions[k]
				}
				return &train.Trained{}, err
			}
			m.Meet = func(ctx context.Context) (comm.Transport, error) {
				until, _ := ctx.Deadline()
				if waits = append(waits, time.Until(until)); len(waits) > len(test.sessions) {
					return nil, context.DeadlineExceeded
				}
				mem := netsim.New(2, netsim.Config{})
				go func() {
					g := comm.NewGroup(mem.Transport(1), 1, 2)
					g.Barrier(t.Context())
					g.Close()
				}()
				return mem.Transport(0), nil
			}
			begun := time.Now()
			_, _, err := m.Run(t.Context(), training)
			took := time.Since(begun)
			if (err != nil) != test.fails || errors.Is(err, comm.ErrRefused) != test.fails || final != 1 ||
				took > time.Minute {
				t.Errorf("%s: %d models written after %v: %v", name, final, took, err)
			}
			near := func(a, b time.Duration) bool { return a <= b && a > b-time.Minute }
			if !slices.EqualFunc(waits, test.waits, near) {
				t.Errorf("%s: waits %v, must be %v", name, waits, test.waits)
			}
			want := test.written
			if test.sessions != nil && test.sessions[0] == nil {
				want = "by all"
			}
			if written, err := store.Note("written"); err != nil || string(written) != want {
				t.Errorf("%s: a note %q, %v, must be %q", name, written, err, want)
			}
		})
	}
}

// lostPeer is the loss of peer 1, as an operation returns it.
func lostPeer(t *testing.T) error {
	mem := netsim.New(2, netsim.Config{})
	mem.Transport(1).Close()
	return comm.NewGroup(mem.Transport(0), 0, 2).Barrier(t.Context())
}
