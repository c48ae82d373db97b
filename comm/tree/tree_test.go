package tree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leak"
	"github.com/heddle-gnn/heddle/internal/rng"
)

func TestMain(m *testing.M) { leak.Main(m) }

// all has every member do something, and returns its errors by rank.
func all(groups []*comm.Group, do func(g *comm.Group) error) []error {
	errs := make([]error, len(groups))
	var each sync.WaitGroup
	for r, g := range groups {
		each.Go(func() { errs[r] = do(g) })
	}
	each.Wait()
	return errs
}

func groupsOf(size int, c netsim.Config) (*netsim.Network, []*comm.Group) {
	net := netsim.New(size, c)
	groups := make([]*comm.Group, size)
	for r := range groups {
		groups[r] = comm.NewGroup(net.Transport(r), r, size)
	}
	return net, groups
}

// vectorsOf are a member's: of several widths and lengths, one of them empty.
func vectorsOf(rank, numbers int) []comm.Integers {
	v := []comm.Integers{comm.NewIntegers(8, numbers), comm.NewIntegers(64, numbers/2), comm.NewIntegers(32, 0), comm.NewIntegers(16, 3)}
	for k := range v {
		for i := range v[k].B {
			v[k].B[i] = byte(rng.New(7).Fold(uint64(rank)).Fold(uint64(k)).Uint64(uint64(i)))
		}
	}
	return v
}

// TestSumIsThatOfOwners: over a tree a sum has the bits that owners of chunks give it, for any number of members; messages,
// bytes and the longest path are as the formulas say, and no member sends to more than FanOut + 1 others.
func TestSumIsThatOfOwners(t *testing.T) {
	for _, size := range []int{2, 17, 18, 65, 130, 200} {
		for _, numbers := range []int{1, 301} {
			_, groups := groupsOf(size, netsim.Config{})
			sums := make([][]comm.Integers, size)
			hidden := make([][4]int, size)
			bytes := 0
			errs := all(groups, func(g *comm.Group) error {
				direct := vectorsOf(g.Rank(), numbers)
				for k := 0; k < len(direct); k += 2 { // it takes two at most
					if _, err := g.SumIntegers(t.Context(), comm.ReduceID{}, nil, func(int, int, int) {}, direct[k:k+2]...); err != nil {
						return err
					}
				}
				sent, messages := g.Bytes().Reduce, g.Messages()
				trips, _ := g.Waits()
				v := vectorsOf(g.Rank(), numbers)
				said, err := Sum(t.Context(), g, comm.ReduceID{Kind: "test"}, []byte{byte(g.Rank())},
					func(k, lo, hi int) { hidden[g.Rank()][k] += hi - lo }, v...)
				if err != nil {
					return err
				}
				for k := range v {
					if !slices.Equal(v[k].B, direct[k].B) {
						return fmt.Errorf("vector %d is not the sum that owners take", k)
					}
				}
				for q, b := range said.Meta {
					if len(b) != 1 || b[0] != byte(q) {
						return fmt.Errorf("member %d says %v", q, b)
					}
				}
				if now, _ := g.Waits(); now-trips != 1+Trips(size) {
					return fmt.Errorf("%d messages follow one another, must be %d and one of meta", now-trips, Trips(size))
				}
				tree := g.Messages() - messages - int64(size-1) // less meta
				if tree > FanOut+1 {
					return fmt.Errorf("it sends %d messages, must be at most %d", tree, FanOut+1)
				}
				sums[g.Rank()] = v
				if g.Rank() == 0 {
					for _, x := range v {
						bytes += len(x.B)
					}
				}
				if below := g.Bytes().Reduce - sent; below%int64(max(len(v[0].B)+len(v[1].B)+len(v[3].B), 1)) != 0 {
					return fmt.Errorf("it sends %d bytes, which is not a multiple of the vectors'", below)
				}
				return nil
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatalf("%d members, %d numbers: %v", size, numbers, err)
			}
			for r, h := range hidden {
				if h != [4]int{numbers, numbers / 2, 0, 3} {
					t.Errorf("%d members: member %d hides %v numbers", size, r, h)
				}
			}
			for _, g := range groups {
				g.Close()
			}
		}
	}
}

// TestFormulas: of M members 2·(M−1) messages are sent, and 2·(M−1) times the bytes.
func TestFormulas(t *testing.T) {
	const size, numbers = 150, 40
	_, groups := groupsOf(size, netsim.Config{})
	errs := all(groups, func(g *comm.Group) error {
		_, err := Sum(t.Context(), g, comm.ReduceID{}, nil, func(int, int, int) {}, comm.NewIntegers(32, numbers))
		return err
	})
	var messages, bytes int64
	for _, g := range groups {
		messages, bytes = messages+g.Messages(), bytes+g.Bytes().Reduce
		g.Close()
	}
	if err := errors.Join(errs...); err != nil || messages != 2*(size-1) || bytes != 2*(size-1)*4*numbers {
		t.Errorf("%d messages and %d bytes, must be %d and %d: %v", messages, bytes, 2*(size-1), 2*(size-1)*4*numbers, err)
	}
	for members, trips := range map[int]int64{1: 0, 2: 2, 17: 2, 18: 4, 273: 4, 274: 6, 1000: 6} {
		if got := Trips(members); got != trips {
			t.Errorf("%d messages follow one another among %d members, must be %d", got, members, trips)
		}
	}
}

// TestLostMember: where a member is lost, or says nothing, no member gets a sum, and the one above it names it.
func TestLostMember(t *testing.T) {
	const size, lost = 70, 23 // handed up by member 1
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net, groups := groupsOf(size, netsim.Config{})
			errs := all(groups, func(g *comm.Group) error {
				g.LimitSilence(time.Minute)
				defer g.Close()
				if g.Rank() == lost {
					if silent {
						time.Sleep(time.Hour)
					} else {
						net.Lose(lost)
					}
					return errors.New("lost")
				}
				_, err := Sum(context.Background(), g, comm.ReduceID{Kind: "test"}, nil, func(int, int, int) {}, comm.NewIntegers(32, 10))
				return err
			})
			for r, err := range errs {
				if err == nil {
					t.Errorf("silent %t: member %d has a sum without member %d", silent, r, lost)
				}
			}
			if at, ok := errors.AsType[*comm.PeerError](errs[1]); !ok || at.Rank != lost || silent && !errors.Is(errs[1], comm.ErrSilent) {
				t.Errorf("silent %t: member 1 must name member %d: %v", silent, lost, errs[1])
			}
		})
	}
}
