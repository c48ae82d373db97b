package comm_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// ops are operations of a group of 4, the messages that follow one another in each, and those that all members send.
var ops = []struct {
	name            string
	trips, messages int64
	do              func(t *testing.T, g *comm.Group) error
}{
	{"a short sum, over one owner", 2, 3 + 3, reduction(100, 0, 0)},
	{"a long sum, over all", 2, 2 * 12, reduction(50_000, 0, 0)},
	{"counts and meta with the sum", 2, 2*12 + 3 + 3 + 12, reduction(50_000, 7, 4)},
	{"counts and meta", 2, 3 + 3 + 12, reduction(0, 7, 4)},
	{"a sum in fixed point", 4, 3 + 3 + 2*12, func(t *testing.T, g *comm.Group) error {
		_, err := g.Reduce(t.Context(), &comm.Contribution{Update: make([]float32, 50_000), Bits: 8})
		return err
	}},
	{"meta alone", 1, 12, reduction(0, 0, 4)},
	{"a sum of nothing", 0, 0, reduction(0, 0, 0)},
	{"rows", 1, 12, exchange(func(int, int) bool { return true })},
	{"rows for the next alone", 1, 4, exchange(func(from, to int) bool { return to == (from+1)%4 })},
	{"no rows", 0, 0, exchange(func(int, int) bool { return false })},
	{"messages", 1, 12, func(t *testing.T, g *comm.Group) error {
		_, err := g.SendRecv(t.Context(), comm.Halo, "messages", make([][]byte, 4), 0)
		return err
	}},
	{"broadcast", 1, 3, func(t *testing.T, g *comm.Group) error {
		return g.Broadcast(t.Context(), comm.Control, 2, make([]float32, 9))
	}},
	{"barrier", 1, 12, func(t *testing.T, g *comm.Group) error { return g.Barrier(t.Context()) }},
	{"a stream, asked at once", 2, 24, stream(func(s *comm.Stream, from []int) {
		for _, q := range from {
			s.Ask(0, q)
		}
	})},
	{"a stream, asked one after another", 6, 24, stream(func(s *comm.Stream, from []int) { s.AskInTurn(0, from) })},
	{"a stream, asked when another has come", 4, 24, stream(func(s *comm.Stream, from []int) {
		s.Ask(0, from[0])
		s.Next(0)
		s.Ask(0, from[1])
		s.Ask(0, from[2])
	})},
}

func reduction(update, counts, meta int) func(*testing.T, *comm.Group) error {
	return func(t *testing.T, g *comm.Group) error {
		_, err := g.Reduce(t.Context(), &comm.Contribution{Update: make([]float32, update),
			Counts: make([]int64, counts), Meta: make([]byte, meta)})
		return err
	}
}

func exchange(goes func(from, to int) bool) func(*testing.T, *comm.Group) error {
	return func(t *testing.T, g *comm.Group) error {
		out, in := make([][]float32, 4), make([][]float32, 4)
		for q := range 4 {
			if q == g.Rank() {
				continue
			}
			if goes(g.Rank(), q) {
				out[q] = make([]float32, 1000)
			}
			if goes(q, g.Rank()) {
				in[q] = make([]float32, 1000)
			}
		}
		return g.Exchange(t.Context(), comm.Halo, "rows", out, in)
	}
}

func stream(ask func(s *comm.Stream, from []int)) func(*testing.T, *comm.Group) error {
	return func(t *testing.T, g *comm.Group) error {
		n, others := []int{800_000, 800_000, 800_000, 800_000}, []int{} // four pieces each
		n[g.Rank()] = 0
		for k := 1; k < 4; k++ {
			others = append(others, (g.Rank()+k)%4)
		}
		s, err := g.Stream(t.Context(), comm.Halo, "rows", comm.Lane{Out: n, In: n, Unit: 4,
			Fill: func(_, _ int, dst []byte) []byte { return dst },
			Take: func(int, int, int, []byte) error { return nil }})
		if err != nil {
			return err
		}
		for _, q := range others {
			s.Give(0, q)
		}
		ask(s, others)
		return s.End()
	}
}

// TestWaits compares Trips, the messages that a member waits for one after another, with the time that operations take
// over links that only add latency, and Messages with those that the network carried.
func TestWaits(t *testing.T) {
	const latency = 30 * time.Millisecond
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, gs := groups(4, netsim.Config{Links: netsim.Table{All: netsim.Model{Latency: latency}}})
				begun := time.Now()
				must(t, each(gs, func(g *comm.Group) error { return op.do(t, g) }))
				took := time.Since(begun)
				var trips, messages int64
				for _, g := range gs {
					n, spent := g.Waits()
					if spent > took {
						t.Errorf("a call took %v of %v", spent, took)
					}
					trips, messages = max(trips, n), messages+g.Messages()
					g.Close()
				}
				if trips != op.trips || took != time.Duration(trips)*latency {
					t.Errorf("%d trips, must be %d; the operation took %v", trips, op.trips, took)
				}
				if messages != op.messages {
					t.Errorf("%d messages were sent, must be %d", messages, op.messages)
				}
			})
		})
	}
}

// TestPath: operations one after another take their trips times the latency and at most the time of all their bytes
// over one link.
func TestPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := netsim.Model{Latency: 50 * time.Millisecond, Rate: 5e6 / 8}
		_, gs := groups(4, netsim.Config{Links: netsim.Table{All: m}})
		begun := time.Now()
		must(t, each(gs, func(g *comm.Group) error {
			for range 3 {
				for _, op := range ops {
					if err := op.do(t, g); err != nil {
						return err
					}
				}
			}
			return nil
		}))
		took := time.Since(begun)
		var all int64
		for _, g := range gs {
			all += g.Bytes().Total()
			g.Close()
		}
		for r, g := range gs {
			trips, _ := g.Waits()
			least := time.Duration(trips) * m.Latency
			if most := least + time.Duration(float64(all)/m.Rate*float64(time.Second)); took < least || took > most {
				t.Errorf("member %d: %d trips took %v, must be %v to %v", r, trips, took, least, most)
			}
		}
	})
}

// TestDupBeside: what the second group of Dup sends is counted; its waits are not, as they run in parallel.
func TestDupBeside(t *testing.T) {
	_, gs := groups(2, netsim.Config{})
	must(t, each(gs, func(g *comm.Group) error {
		both, dup := [2]error{}, g.Dup()
		var done sync.WaitGroup
		for k, g := range []*comm.Group{g, dup} {
			done.Go(func() { both[k] = g.AllReduce(t.Context(), comm.Reduce, make([]float32, 10)) })
		}
		done.Wait()
		for _, err := range both {
			if err != nil {
				return err
			}
		}
		return nil
	}))
	for r, g := range gs {
		if trips, _ := g.Waits(); trips != 2 || g.Messages() != 2 {
			t.Errorf("member %d: %d trips and %d messages, must be 2 and 2", r, trips, g.Messages())
		}
		g.Close()
	}
}
