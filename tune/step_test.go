package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
)

// worker is a trainer that does nothing, or fails.
type worker struct {
	err error
	ran bool
}

func (w *worker) Resume() (bool, error) { return true, nil }
func (w *worker) Done() bool            { return w.ran }
func (w *worker) Run(context.Context, *comm.Group, comm.Reducer) error {
	w.ran = true
	return w.err
}

// TestStep: members at the same step do it and know its sum; others go where the last one is.
func TestStep(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		steps [2]Step
		fails [2]error
		want  [2]string // "sum ..." or the error
	}{
		{"the same", [2]Step{{Index: 3}, {Index: 3}}, [2]error{}, [2]string{"sum [3 30]", "sum [3 30]"}},
		{"one has the sum", [2]Step{{Index: 3, Known: []int64{7, 8}}, {Index: 3}}, [2]error{}, [2]string{"sum [7 8]", "sum [7 8]"}},
		{"one is behind", [2]Step{{Index: 4}, {Index: 2}}, [2]error{}, [2]string{"a member is at step 2", ErrAgain.Error()}},
		{"one failed and went on", [2]Step{{Index: 4, Failed: 1 << 3}, {Index: 3}}, [2]error{}, [2]string{ErrAgain.Error(), "failed: " + ErrElsewhere.Error()}},
		{"one failed before", [2]Step{{Index: 4, Failed: 1 << 1}, {Index: 4}}, [2]error{}, [2]string{"sum [3 30]", "sum [3 30]"}},
		{"all fail", [2]Step{{}, {}}, [2]error{broken, broken}, [2]string{"failed: broken", "failed: broken"}},
	} {
		network := netsim.New(2, netsim.Config{})
		var wait sync.WaitGroup
		for rank := range 2 {
			w := &worker{err: c.fails[rank]}
			s := c.steps[rank]
			s.Trainer, s.Values = w, func(compared int64) []int64 {
				if want := int64(comm.HeaderLen + len(place{known: s.Known}.encode())); compared != want {
					t.Errorf("%s: %d bytes for the comparison, want %d", c.name, compared, want)
				}
				return []int64{int64(1 + rank), int64(10 + 10*rank)}
			}
			wait.Go(func() {
				g := comm.NewGroup(network.Transport(rank), rank, 2)
				defer g.Close()
				if done, err := s.Resume(); done || err != nil {
					t.Errorf("%s: a step without its sum is done: %t, %v", c.name, done, err)
				}
				err := s.Run(t.Context(), g, g)
				got := fmt.Sprintf("sum %v", s.Sum())
				if _, failed := errors.AsType[*FailedError](err); failed {
					got = "failed: " + err.Error()
				} else if err != nil {
					got = err.Error()
				}
				if got != c.want[rank] || s.Done() != (err == nil) || w.ran != (strings.HasPrefix(got, "sum") || c.fails[rank] != nil) {
					t.Errorf("%s: member %d gets %q, want %q; ran %t", c.name, rank, got, c.want[rank], w.ran)
				}
			})
		}
		wait.Wait()
	}
}

// FuzzPlace: what parses is encoded to the same bytes.
func FuzzPlace(f *testing.F) {
	f.Add(place{3, 5, []int64{-1, 9}}.encode())
	f.Add([]byte{64, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePlace(b)
		if err == nil && !slices.Equal(p.encode(), b) {
			t.Errorf("% x becomes % x", b, p.encode())
		}
	})
}
