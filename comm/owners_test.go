package comm_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestOwnersAndTrees: among many members short integers are summed by some of them in less time than over trees of
// any fan-out, on lines of 100 Mbit/s and 20 ms, and a member sends no more than a few messages to each of the others.
func TestOwnersAndTrees(t *testing.T) {
	links, err := netsim.ParseTable("latency=20ms,rate=100Mbit")
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{64, 128}
	if testenv.LongForm(t) {
		sizes = append(sizes, 256)
	} else if testing.Short() {
		sizes = sizes[:1]
	}
	for _, size := range sizes {
		for _, n := range []int{1000, 4095} {
			line := func(do func(member comm.Transport, rank int) error) (took time.Duration, messages, most int) {
				synctest.Test(t, func(t *testing.T) {
					net, start := netsim.New(size, netsim.Config{Links: links}), time.Now()
					errs, sent := make([]error, size), make([]counted, size)
					var all sync.WaitGroup
					for r := range size {
						sent[r].Transport = net.Transport(r)
						all.Go(func() { errs[r] = do(&sent[r], r) })
					}
					all.Wait()
					took = time.Since(start)
					if err := errors.Join(errs...); err != nil {
						t.Fatal(err)
					}
					for r := range sent {
						messages, most = messages+sent[r].n, max(most, sent[r].n)
					}
				})
				return took, messages, most
			}
			owned, messages, most := line(func(member comm.Transport, rank int) error {
				g := comm.NewGroup(member, rank, size)
				defer g.Close()
				x := comm.NewIntegers(32, n)
				x.Add(slices.Repeat([]byte{1, 0, 0, 0}, n))
				_, err := g.SumIntegers(context.Background(), comm.ReduceID{}, nil, func(int, int, int, int) {}, x)
				if want := slices.Repeat([]byte{byte(size), byte(size >> 8), 0, 0}, n); err == nil &&
					!slices.Equal(x.B, want) {
					err = errors.New("the sum is not the number of members")
				}
				return err
			})
			t.Logf("%d members, %d integers: owners %v, %d messages, of one member at most %d", size, n, owned,
				messages, most)
			if most > 2*size {
				t.Errorf("%d members, %d integers: a member must send few messages (got %d)", size, n, most)
			}
			for _, arity := range []int{2, 4, 8, 16} {
				took, messages, most := line(func(member comm.Transport, rank int) error {
					return overTree(member, rank, size, arity, 4*n)
				})
				t.Logf("%d members, %d integers: a tree of fan-out %d %v, %d messages, of one member at most %d", size,
					n, arity, took, messages, most)
				if took < owned {
					t.Errorf("%d members, %d integers: owners must be faster than a tree (got %v, fan-out %d %v)", size,
						n, owned, arity, took)
				}
			}
		}
	}
}

// counted counts the frames of one member, whose sends run at the same time.
type counted struct {
	comm.Transport
	mu sync.Mutex
	n  int
}

func (c *counted) Send(ctx context.Context, to int, head, body []byte) error {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.Transport.Send(ctx, to, head, body)
}

// overTree sends what a sum over a tree does: vectors of n bytes, in one frame, to the root and back.
func overTree(t comm.Transport, rank, size, arity, n int) error {
	ctx, head, vector := context.Background(), make([]byte, comm.HeaderLen), make([]byte, n)
	above, first := (rank-1)/arity, arity*rank+1
	below := min(first+arity, size)
	for q := first; q < below; q++ {
		if _, err := t.Recv(ctx, q); err != nil {
			return err
		}
	}
	if rank > 0 {
		if err := t.Send(ctx, above, head, vector); err != nil {
			return err
		}
		if _, err := t.Recv(ctx, above); err != nil {
			return err
		}
	}
	for q := first; q < below; q++ {
		if err := t.Send(ctx, q, head, vector); err != nil {
			return err
		}
	}
	return nil
}
