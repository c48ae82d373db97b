package comm_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// reach is who reaches whom: all, but for the pairs given, whose lines are broken.
func reach(size int, broken ...[2]int) [][]bool {
	here := make([][]bool, size)
	for p := range here {
		here[p] = make([]bool, size)
		for q := range here[p] {
			here[p][q] = !slices.Contains(broken, [2]int{min(p, q), max(p, q)})
		}
	}
	return here
}

// gone is the broken lines of a rank that nobody reaches.
func gone(rank, size int) (broken [][2]int) {
	for q := range size {
		if q != rank {
			broken = append(broken, [2]int{min(rank, q), max(rank, q)})
		}
	}
	return broken
}

func TestAgree(t *testing.T) {
	for _, test := range []struct {
		name    string
		here    [][]bool
		without map[int]int // this rank will not go on with that one
		least   int
		want    []int // members; nil: too few
	}{
		{"all", reach(4), nil, 4, []int{0, 1, 2, 3}},
		{"one is gone", reach(4, gone(2, 4)...), nil, 3, []int{0, 1, 3}},
		{"the first is gone", reach(4, gone(0, 4)...), nil, 3, []int{1, 2, 3}},
		{"a line is broken", reach(4, [2]int{1, 3}), nil, 3, []int{0, 1, 2}},
		{"one is slow", reach(4), map[int]int{3: 1}, 3, []int{0, 2, 3}},
		{"the coordinator is slow", reach(4), map[int]int{3: 0}, 3, []int{1, 2, 3}},
		{"two are slow", reach(5), map[int]int{4: 1, 3: 2}, 3, []int{0, 3, 4}},
		{"too few", reach(4, gone(3, 4)...), map[int]int{0: 2}, 3, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			size := len(test.here)
			_, gs := groups(size, netsim.Config{})
			isolated := func(r int) bool { return !slices.Contains(slices.Concat(test.here[r][:r], test.here[r][r+1:]), true) }
			errs := each(gs, func(g *comm.Group) error {
				r := g.Rank()
				if isolated(r) {
					return nil
				}
				without := make([]bool, size)
				if q, ok := test.without[r]; ok {
					without[q] = true
				}
				return g.Agree(t.Context(), test.here[r], without, test.least, uint64(10+r))
			})
			highest := uint64(0)
			for r, err := range errs {
				if isolated(r) {
					continue
				}
				highest = max(highest, uint64(10+r))
				var few *comm.TooFewError
				switch in := slices.Contains(test.want, r); {
				case test.want == nil && errors.As(err, &few) && few.Least == test.least:
				case test.want != nil && !in && errors.Is(err, comm.ErrLeftOut):
				case in && err == nil && slices.Equal(gs[r].Members(), test.want):
				default:
					t.Errorf("rank %d: members %v, %v", r, gs[r].Members(), err)
				}
			}
			for r, g := range gs {
				if slices.Contains(test.want, r) && g.Generation() != highest+1 {
					t.Errorf("rank %d: generation %d, must be %d", r, g.Generation(), highest+1)
				}
			}
		})
	}
}

// A sum over some members is that of a group of just these, to the bit, short or long, and the rest of the operations
// leave the others alone.
func TestGroupOfSome(t *testing.T) {
	members := []int{1, 2, 4}
	_, gs := groups(5, netsim.Config{})
	_, small := groups(3, netsim.Config{})
	here := reach(5, slices.Concat(gone(0, 5), gone(3, 5))...)
	each(gs, func(g *comm.Group) error {
		k := slices.Index(members, g.Rank())
		if k < 0 {
			return nil
		}
		if err := g.Agree(t.Context(), here[g.Rank()], nil, 3, 0); err != nil {
			t.Error(err)
			return err
		}
		for _, n := range []int{1, 100, 4096, 70_001} {
			x, y := make([]float32, n), make([]float32, n)
			for i := range x {
				x[i] = float32(rng.New(uint64(k)).Normal(uint64(i)))
			}
			copy(y, x)
			r, err := g.Reduce(t.Context(), &comm.Contribution{Update: x, Meta: []byte{byte(g.Rank())}})
			_, err2 := small[k].Reduce(t.Context(), &comm.Contribution{Update: y, Meta: []byte{byte(k)}})
			if err := errors.Join(err, err2); err != nil {
				t.Errorf("rank %d: %v", g.Rank(), err)
			}
			for q, m := range r.Meta {
				if g.Has(q) != (m != nil) || m != nil && !slices.Equal(m, []byte{byte(q)}) {
					t.Errorf("rank %d: meta of rank %d is %v", g.Rank(), q, m)
				}
			}
			if !slices.EqualFunc(x, y, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
				t.Errorf("rank %d, %d floats: another sum than that of three", g.Rank(), n)
			}
		}
		out := make([][]byte, 5)
		for q := range out {
			out[q] = []byte{byte(g.Rank()), byte(q)}
		}
		in, err := g.SendRecv(t.Context(), comm.Halo, "rows", out, 2)
		for q := range in {
			want := []byte{byte(q), byte(g.Rank())}
			if q == g.Rank() || !g.Has(q) {
				want = nil
			}
			if !slices.Equal(in[q], want) {
				t.Errorf("rank %d: %v from %d, must be %v", g.Rank(), in[q], q, want)
			}
		}
		x := []float32{float32(g.Rank())}
		if err := errors.Join(err, g.Broadcast(t.Context(), comm.Control, 2, x), g.Barrier(t.Context())); err != nil || x[0] != 2 {
			t.Errorf("rank %d: %v from 2, %v", g.Rank(), x, err)
		}
		return nil
	})
}

// Whoever is lost at whatever frame: all that agree, agree on the same, the others' errors are typed, and nobody hangs.
func TestAgreeWhileMembersAreLost(t *testing.T) {
	count := uint64(150)
	if testing.Short() {
		count = 60
	}
	agreed := 0
	for seed := range count {
		synctest.Test(t, func(t *testing.T) {
			key := rng.New(seed)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			const size = 4
			net := netsim.New(size, netsim.Config{Seed: seed, Links: netsim.Table{All: netsim.Model{Latency: time.Millisecond}}, Spread: 29 * time.Millisecond})
			victim, at := int(key.Uint64(0)%size), int64(key.Uint64(1)%8)
			var sent atomic.Int64
			var gs []*comm.Group
			for r, tr := range net.Transports() {
				gs = append(gs, comm.NewGroup(&fuse{tr, func() {
					if sent.Add(1) > at {
						net.Lose(victim)
					}
				}}, r, size))
			}
			here := reach(size)
			errs := each(gs, func(g *comm.Group) error {
				err := g.Agree(ctx, here[g.Rank()], nil, 3, 7)
				if err != nil {
					g.Close()
				}
				return err
			})
			first := -1
			for r, err := range errs {
				var lost *comm.PeerError
				switch {
				case err == nil && first < 0:
					first = r
					agreed++
				case err == nil && (!slices.Equal(gs[r].Members(), gs[first].Members()) || gs[r].Generation() != gs[first].Generation()):
					t.Errorf("seed %d: rank %d agreed to %v, rank %d to %v", seed, r, gs[r].Members(), first, gs[first].Members())
				case err != nil && !errors.As(err, &lost):
					t.Errorf("seed %d: rank %d: %v, must be a PeerError", seed, r, err)
				}
			}
		})
	}
	if agreed == 0 || agreed == int(count) {
		t.Errorf("%d of %d came about: the faults prove nothing", agreed, count)
	}
}

// fuse calls burn before every frame.
type fuse struct {
	comm.Transport
	burn func()
}

func (f *fuse) Send(ctx context.Context, to int, head, body []byte) error {
	f.burn()
	return f.Transport.Send(ctx, to, head, body)
}

// What a peer sends in place of a view is refused by its name.
func TestAgreeRefusesWhatIsNoView(t *testing.T) {
	for _, bytes := range [][]byte{nil, make([]byte, 8), make([]byte, 10), {0, 0, 0, 0, 0, 0, 0, 0, 0b1000}} {
		net, gs := groups(3, netsim.Config{})
		go func() {
			head := make([]byte, comm.HeaderLen)
			head[0], head[1], head[2], head[4], head[8] = 2, 6, byte(comm.Control), 1, byte(len(bytes))
			net.Transport(1).Send(context.Background(), 0, head, bytes)
			net.Transport(2).Send(context.Background(), 0, head, bytes)
		}()
		err := gs[0].Agree(t.Context(), []bool{true, true, true}, nil, 2, 0)
		if lost, ok := errors.AsType[*comm.PeerError](err); !ok || lost.Rank == 0 {
			t.Errorf("%v: %v, must be a PeerError of rank 1 or 2", bytes, err)
		}
	}
}
