package comm_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/rng"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // most tests wait for peers and limits
	testenv.MainWithoutLeaks(m)
}

// groups returns the members of a group over a simulated network.
func groups(size int, cfg netsim.Config) (*netsim.Network, []*comm.Group) {
	net, gs := netsim.New(size, cfg), make([]*comm.Group, size)
	for r := range gs {
		gs[r] = comm.NewGroup(net.Transport(r), r, size)
	}
	return net, gs
}

// each runs f as every member at once and returns their errors.
func each(gs []*comm.Group, f func(g *comm.Group) error) []error {
	errs := make([]error, len(gs))
	var all sync.WaitGroup
	for r, g := range gs {
		all.Go(func() { errs[r] = f(g) })
	}
	all.Wait()
	return errs
}

func must(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// AllReduce of n floats over W members sends 2·4·n·(W−1) bytes in all in its traffic class, and 16 a frame under
// Control. What the members count is what the network carried.
func TestBytesOfAllReduce(t *testing.T) {
	for size := 1; size <= 7; size++ {
		for _, n := range []int{0, 1, 4095, 4096, 5003, 65_536 * 7, 375_000} {
			net, gs := groups(size, netsim.Config{})
			must(t,
				each(gs, func(g *comm.Group) error { return g.AllReduce(t.Context(), comm.Halo, make([]float32, n)) }))
			var got comm.Counts
			var frames, carried int64
			for _, g := range gs {
				b := g.Bytes()
				got.Halo, got.Reduce, got.Control = got.Halo+b.Halo, got.Reduce+b.Reduce, got.Control+b.Control
				for to := range size {
					f, c := net.Stats(g.Rank(), to)
					frames, carried = frames+f, carried+c
				}
			}
			want := comm.Counts{Halo: int64(2 * 4 * n * (size - 1)), Control: frames * comm.HeaderLen}
			if got != want || carried != got.Halo+got.Control {
				t.Errorf("%d floats, %d members: sent %+v, must be %+v; the network carried %d", n, size, got, want,
					carried)
			}
		}
	}
}

func TestBytesByDoor(t *testing.T) {
	_, gs := groups(3, netsim.Config{})
	must(t, each(gs, func(g *comm.Group) error {
		part := comm.Contribution{Update: make([]float32, 10), Counts: make([]int64, 7), Meta: make([]byte, 9)}
		if _, err := g.Reduce(t.Context(), &part); err != nil {
			return err
		}
		out, in := make([][]float32, 3), make([][]float32, 3)
		if g.Rank() == 0 {
			out[2] = make([]float32, 5)
		} else if g.Rank() == 2 {
			in[0] = make([]float32, 5)
		}
		if err := g.Exchange(t.Context(), comm.Halo, "rows", out, in); err != nil {
			return err
		}
		return g.Barrier(t.Context())
	}))
	for r, want := range []comm.Counts{
		// it owns the chunk of a short vector; frames carry the update, the counts and the meta for each other member
		{Halo: 20, Reduce: 2 * (4*10 + 8*7), Control: 2*9 + (2*3+1+2)*comm.HeaderLen},
		{Reduce: 4*10 + 8*7, Control: 2*9 + (2+2+2)*comm.HeaderLen},
		{Reduce: 4*10 + 8*7, Control: 2*9 + (2+2+2)*comm.HeaderLen},
	} {
		if got := gs[r].Bytes(); got != want {
			t.Errorf("member %d sent %+v, must be %+v", r, got, want)
		}
	}
}

// In steady state a Group takes no memory for payload: only the transport's frames are new.
func TestAllReduceKeepsItsBuffers(t *testing.T) {
	const runs, n = 10, 300_000
	net, gs := groups(3, netsim.Config{})
	run := func() {
		must(t,
			each(gs,
				func(g *comm.Group) error { return g.AllReduce(t.Context(), comm.Reduce, make([]float32, 0, n)[:n]) }))
	}
	carried := func() (sum int64) {
		for from := range gs {
			for to := range gs {
				_, b := net.Stats(from, to)
				sum += b
			}
		}
		return sum
	}
	run()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	was := carried()
	for range runs {
		run()
	}
	runtime.ReadMemStats(&after)
	own := int64(after.TotalAlloc-before.TotalAlloc) - (carried() - was) - runs*3*4*n // frames, and x itself
	if limit := int64(runs * 200_000); own > limit {
		t.Errorf("%d runs took %d bytes beyond frames and vectors, must be at most %d", runs, own, limit)
	}
}

// The sum is that of rank order in float64, rounded once, whatever the vector's length; zeros keep their sign.
func TestSumOrder(t *testing.T) {
	zero := float32(math.Copysign(0, -1))
	columns := []struct {
		parts [4]float32
		want  float32
	}{
		{[4]float32{1e8, 1, -1e8, 1}, 2},   // 1 in float32
		{[4]float32{1e17, 1, -1e17, 1}, 1}, // 0 in the reverse order, 2 if summed exactly
		{[4]float32{zero, zero, zero, zero}, zero},
	}
	for _, n := range []int{len(columns), 2000 * len(columns)} {
		_, gs := groups(4, netsim.Config{})
		must(t, each(gs, func(g *comm.Group) error {
			x := make([]float32, n)
			for i := range x {
				x[i] = columns[i%len(columns)].parts[g.Rank()]
			}
			if err := g.AllReduce(t.Context(), comm.Reduce, x); err != nil {
				return err
			}
			for i, v := range x {
				if want := columns[i%len(columns)].want; math.Float32bits(v) != math.Float32bits(want) {
					return fmt.Errorf("[%d] of %d is %v, want %v", i, n, v, want)
				}
			}
			return nil
		}))
	}
}

// A step of a random program, and the lengths that it needs.
type step struct {
	kind, length, root int
	bits, columns      int     // of a sum
	pairs              [][]int // pairs[from][to]: lengths of what goes there
}

func drawStep(t *rapid.T, size int) step {
	lengths := rapid.OneOf(rapid.IntRange(0, 50), rapid.IntRange(4000, 4200), rapid.IntRange(60_000, 140_000))
	s := step{kind: rapid.IntRange(0, 4).Draw(t, "kind"), root: rapid.IntRange(0, size-1).Draw(t, "root")}
	s.length, s.bits = lengths.Draw(t, "length"), rapid.SampledFrom([]int{0, 0, 8, 16, 32}).Draw(t, "bits")
	if s.columns = rapid.IntRange(0, 3).Draw(t, "columns"); s.columns > 0 {
		s.length -= s.length % s.columns
	}
	for from := range size {
		s.pairs = append(s.pairs, make([]int, size))
		for to := range size {
			if from != to {
				s.pairs[from][to] = lengths.Draw(t, "pair")
			}
		}
	}
	return s
}

func value(place ...int) float32 {
	key := rng.New(3)
	for _, p := range place {
		key = key.Fold(uint64(p))
	}
	return float32(key.Normal(0))
}

// run does the step as one member and compares with what a plain reading of the documentation gives. Vectors are
// constant except in a few places, which keeps the twin simple and quick.
func (s step) run(ctx context.Context, g *comm.Group, at int) error {
	me, size := g.Rank(), g.Size()
	vector := func(n int, place ...int) []float32 {
		x := slices.Repeat([]float32{value(append(place, 0)...)}, n)
		if n > 0 {
			x[n/3] = value(append(place, 1)...)
		}
		return x
	}
	same := func(got, want []float32) error {
		if !slices.Equal(got, want) {
			return fmt.Errorf("step %d, member %d: %d floats differ from the plain result", at, me, len(want))
		}
		return nil
	}
	switch s.kind {
	case 0:
		x, want := vector(s.length, at, me), make([]float32, s.length)
		var parts [][]float32
		wide := make([]float64, s.length)
		for r := range size {
			parts = append(parts, vector(s.length, at, r))
			for i, v := range parts[r] {
				wide[i] += float64(v)
			}
		}
		for i, v := range wide {
			want[i] = float32(v)
		}
		if s.bits > 0 && size > 1 {
			want, _, _ = plainFixed(parts, s.bits, s.columns)
		}
		counts, meta := make([]int64, s.length/2), make([]byte, 1+s.length%comm.MaxMeta)
		for i := range counts {
			counts[i] = int64(i)<<40 + int64(me)
		}
		meta[0] = byte(me)
		got, err := g.Reduce(ctx, &comm.Contribution{ID: comm.ReduceID{Round: at, Kind: "test"}, Update: x,
			Bits: s.bits, Columns: s.columns, Counts: counts, Meta: meta})
		if err != nil {
			return err
		}
		for i, n := range counts {
			if want := int64(size)*int64(i)<<40 + int64(size*(size-1)/2); n != want {
				return fmt.Errorf("step %d, member %d: count %d is %d, want %d", at, me, i, n, want)
			}
		}
		for q, m := range got.Meta {
			if len(m) != len(meta) || m[0] != byte(q) {
				return fmt.Errorf("step %d, member %d: meta of member %d is %d bytes that begin with %d", at, me, q,
					len(m), m[0])
			}
		}
		return same(x, want)
	case 1:
		out, in := make([][]float32, size), make([][]float32, size)
		for q := range size {
			out[q], in[q] = vector(s.pairs[me][q], at, me, q), make([]float32, s.pairs[q][me])
		}
		if err := g.Exchange(ctx, comm.Halo, "rows", out, in); err != nil {
			return err
		}
		for q := range size {
			if err := same(in[q], vector(s.pairs[q][me], at, q, me)); err != nil {
				return err
			}
		}
	case 2:
		out := make([][]byte, size)
		for q := range size {
			if n := s.pairs[me][q]; n > 0 {
				out[q] = slices.Repeat([]byte{byte(me), byte(q)}, n)
			}
		}
		in, err := g.SendRecv(ctx, comm.Control, "bytes", out, 1<<20)
		if err != nil {
			return err
		}
		for q := range size {
			if want := slices.Repeat([]byte{byte(q), byte(me)}, s.pairs[q][me]); q != me &&
				string(in[q]) != string(want) {
				return fmt.Errorf("step %d, member %d: %d bytes from %d, want %d", at, me, len(in[q]), q, len(want))
			}
		}
	case 3:
		x := vector(s.length, at, me)
		if err := g.Broadcast(ctx, comm.Control, s.root, x); err != nil {
			return err
		}
		return same(x, vector(s.length, at, s.root))
	case 4:
		return g.Barrier(ctx)
	}
	return nil
}

// Any program of operations over any network gives what plain loops give.
func TestProgramsAgreeWithPlainLoops(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(rt, "size")
		cfg := netsim.Config{Seed: rapid.Uint64().Draw(rt, "seed"),
			Queue: rapid.SampledFrom([]int{0, 1, 300_000}).Draw(rt, "queue")}
		if rapid.Bool().Draw(rt, "timed") {
			cfg.Spread = 50 * time.Millisecond
			cfg.Links.All.Rate = 1e6
			cfg.Links.All.Loss = rapid.Float64Range(0, 0.5).Draw(rt, "loss")
			cfg.Partitions = []netsim.Partition{{Ranks: []int{0}, Start: 100 * time.Millisecond, End: time.Second}}
		}
		var program []step
		for range rapid.IntRange(1, 4).Draw(rt, "steps") {
			program = append(program, drawStep(rt, size))
		}
		var errs []error
		synctest.Test(t, func(t *testing.T) {
			_, gs := groups(size, cfg)
			errs = each(gs, func(g *comm.Group) error {
				for at, s := range program {
					if err := s.run(t.Context(), g, at); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err := errors.Join(errs...); err != nil {
			rt.Fatal(err)
		}
	})
}
