package secagg

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
)

// dying is the transport of a member that is lost when it has sent so many frames.
type dying struct {
	comm.Transport
	left *atomic.Int64
	lose func()
}

func (d dying) Send(ctx context.Context, to int, head, body []byte) error {
	if d.left.Add(-1) < 0 {
		d.lose()
		return errors.New("lost")
	}
	return d.Transport.Send(ctx, to, head, body)
}

// generation runs one sum over the members that are here, of which dead is lost after so many frames; −1: none is.
func generation(t *testing.T, here []bool, ledgers []*Ledger, number uint64, dead int, frames int64) (sums [][]float32, errs []error) {
	t.Helper()
	size := len(here)
	net := netsim.New(size, netsim.Config{})
	left := new(atomic.Int64)
	left.Store(1 << 40)
	sums, errs = make([][]float32, size), make([]error, size)
	var all sync.WaitGroup
	for r := range size {
		if !here[r] {
			continue
		}
		transport := comm.Transport(net.Transport(r))
		if r == dead {
			transport = dying{transport, left, func() { net.Lose(r) }}
		}
		g := comm.NewGroup(transport, r, size)
		t.Cleanup(func() { g.Close() })
		all.Go(func() {
			defer func() { // as a session does: who waits for this member notices
				if errs[r] != nil {
					g.Close()
				}
			}()
			ctx := context.Background()
			errs[r] = g.Agree(ctx, here, nil, 2, number)
			var s *Reducer
			if errs[r] == nil {
				s, errs[r] = New(ctx, Terms{Least: 2, Ledger: ledgers[r]}, g)
			}
			if errs[r] == nil {
				errs[r] = g.Barrier(ctx)
			}
			if errs[r] != nil {
				return
			}
			if r == dead {
				left.Store(frames)
			}
			c := &comm.Contribution{ID: comm.ReduceID{Generation: g.Generation(), Stage: 1, Round: 4, Kind: "round"},
				Update: []float32{float32(int(1) << r), 0.5}, Counts: []int64{1}, Meta: []byte{byte(r)}}
			if _, errs[r] = s.Reduce(ctx, c); errs[r] == nil {
				sums[r] = append(c.Update, float32(c.Counts[0]))
			}
			if errs[r] == nil {
				errs[r] = g.Barrier(ctx)
			}
		})
	}
	all.Wait()
	return sums, errs
}

// TestLostMember loses a member of four after each number of frames of a sum, and lets the others continue:
// all of them end with the same sum, of all members or of the three, and where one had seen the sum of all
// nobody sees another.
func TestLostMember(t *testing.T) {
	const size, dead = 4, 1
	outcomes := map[float32]int{}
	for frames := range int64(40) {
		ledgers := make([]*Ledger, size)
		for r := range ledgers {
			ledgers[r] = new(Ledger)
		}
		here := slices.Repeat([]bool{true}, size)
		before, _ := generation(t, here, ledgers, 1, dead, frames)
		here[dead] = false
		after, errs := generation(t, here, ledgers, 2, -1, 0)
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("after %d frames: %v", frames, err)
		}
		for r := range size {
			if r == dead {
				continue
			}
			if !slices.Equal(after[r], after[0]) {
				t.Fatalf("after %d frames: members have %v and %v", frames, after[r], after[0])
			}
			if before[r] != nil && !slices.Equal(before[r], after[r]) {
				t.Fatalf("after %d frames: member %d saw %v, and then %v", frames, r, before[r], after[r])
			}
		}
		outcomes[after[0][0]]++
		// The one that was lost comes back without its memory, and is given what is final.
		here[dead], ledgers[dead] = true, new(Ledger)
		back, errs := generation(t, here, ledgers, 3, -1, 0)
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("after %d frames, all back: %v", frames, err)
		}
		for r := range size {
			if !slices.Equal(back[r], after[0]) {
				t.Fatalf("after %d frames, all back: member %d has %v, the others had %v", frames, r, back[r], after[0])
			}
		}
	}
	if outcomes[15] == 0 || outcomes[13] == 0 || len(outcomes) != 2 {
		t.Errorf("sums %v, must be some of all members (15), some of three (13), and no other", outcomes)
	}
}

// TestAllRestarted: members without memory continue with the members of the last generation alone.
func TestAllRestarted(t *testing.T) {
	for _, test := range []struct {
		here []bool
		want string
	}{{[]bool{true, true, true, false}, ""}, {[]bool{true, true, false, true}, "taken again without it"}, {[]bool{true, true, true, true}, "must first continue"}} {
		ledgers := make([]*Ledger, 4)
		for r := range ledgers {
			ledgers[r] = &Ledger{Kept: func() ([]int, error) {
				if r == 3 {
					return nil, nil
				}
				return []int{0, 1, 2}, nil
			}}
		}
		_, errs := generation(t, test.here, ledgers, 1, -1, 0)
		if err := errors.Join(errs...); test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%v: %v, must be %q", test.here, err, test.want)
		}
	}
}
