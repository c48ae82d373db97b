package classmeans

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// private returns a configuration that keeps edges private.
func private(g *graph.Graph, target string, epsilon float64) Config {
	c := plain(g)
	c.Target, c.Epsilon, c.Delta = target, epsilon, 1e-5
	return c
}

// secretly gives every peer the same secret, so that the noise of a node does not depend on who has it.
func secretly(t testing.TB, c Config, secret byte) func(int, *Trainer) {
	return func(_ int, tr *Trainer) {
		edges, err := c.mechanism([32]byte{secret})
		if err != nil {
			t.Error(err)
		}
		tr.edges = edges
	}
}

// TestPrivateForAnyPeers: with one noise, any number of peers find about the same model: the sums are of whole
// numbers, and a validation node that another order of sums gives another class counts in the mean of solutions. Rows
// cross in every hop, as whole numbers in float32.
func TestPrivateForAnyPeers(t *testing.T) {
	for _, target := range []string{"labels", "residual"} {
		g := communities(300, 3)
		c := private(g, target, 8)
		one := mustRun(t, c, cut(t, g, 1), options{setup: secretly(t, c, 1)})
		want := one.trainers[0].Result().Final()
		if want.Test < 0.7 || len(want.Curve) != c.usualRounds() {
			t.Errorf("%s: test metric %.3f after %d rounds", target, want.Test, len(want.Curve))
		}
		for _, parts := range []int{2, 7} {
			shards := cut(t, g, parts)
			r := mustRun(t, c, shards, options{setup: secretly(t, c, 1)})
			got, halo := r.trainers[0].Result().Final(), 0
			for k := range r.trainers {
				halo += shards[k].Halo()
				if !sameBits(r.flat(k), r.flat(0)) {
					t.Errorf("%s, %d peers: peer %d has other parameters than peer 0", target, parts, k)
				}
			}
			if want.BestRound != got.BestRound || math.Abs(want.Val-got.Val) > 0.02 ||
				math.Abs(want.TestLoss-got.TestLoss) > 0.03 {
				t.Errorf("%s, %d peers: %+v, of one peer %+v", target, parts, got, want)
			}
			if sent := r.sent().Halo; sent < int64(2*4*3*halo) || sent > int64(2*4*3*halo+200*parts*parts) {
				t.Errorf("%s, %d peers: %d bytes of %d halo rows of 3 numbers, twice", target, parts, sent, halo)
			}
		}
		other := mustRun(t, c, cut(t, g, 1), options{setup: secretly(t, c, 2)})
		if sameBits(other.flat(0), one.flat(0)) {
			t.Errorf("%s: another secret gives the same model, must give another by its noise", target)
		}
	}
}

// TestEdgesEnterBySumsAlone: of two runs over other edges, but with the same releases, all sums and the
// model are the same bits. So what leaves a site follows from releases and from what has no edge in it.
func TestEdgesEnterBySumsAlone(t *testing.T) {
	for _, target := range []string{"labels", "residual"} {
		g := communities(300, 3)
		c := private(g, target, 4)
		var sums [2][]float32
		record := func(at int) func(int, *comm.Group) comm.Reducer {
			return func(_ int, group *comm.Group) comm.Reducer { return recording{group, &sums[at]} }
		}
		with := mustRun(t, c, []*shard.Shard{shard.Whole(g)}, options{setup: secretly(t, c, 1), reducer: record(0)})
		bare := *g
		bare.Adj = graph.CSR{NumDst: g.N(), NumSrc: g.N(), RowPtr: make([]int64, g.N()+1)}
		without := mustRun(t, c, []*shard.Shard{shard.Whole(&bare)},
			options{reducer: record(1), setup: func(rank int, tr *Trainer) {
				secretly(t, c, 9)(rank, tr)
				for name, sums := range with.trainers[0].edges.Releases() {
					tr.edges.Restore(name, sums)
				}
			}})
		if len(sums[0]) == 0 || !sameBits(sums[0], sums[1]) || !sameBits(with.flat(0), without.flat(0)) {
			t.Errorf("%s: edges enter sums or model in another way than by releases", target)
		}
	}
}

// recording keeps what its peer adds to sums.
type recording struct {
	comm.Reducer
	to *[]float32
}

func (r recording) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	*r.to = append(*r.to, c.Update...)
	for _, n := range c.Counts {
		*r.to = append(*r.to, float32(n))
	}
	return r.Reducer.Reduce(ctx, c)
}

// TestPrivateResume: a run that is stopped at any checkpoint goes on with the releases that it has made,
// though its process has another secret by then, and spends once.
func TestPrivateResume(t *testing.T) {
	g := communities(300, 3)
	c := private(g, "labels", 4)
	shards := cut(t, g, 3)
	var seen []int // releases at hand when the run was stopped
	for stop := 1; ; stop++ {
		dir := t.TempDir()
		spent := make([]int, len(shards))
		setup := func(secret byte) func(int, *Trainer) {
			return func(rank int, tr *Trainer) {
				secretly(t, c, secret)(rank, tr)
				tr.edges.Spend = func(train.Privacy) error { spent[rank]++; return nil }
				tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, rank)}
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		first := start(ctx, c, shards, options{setup: func(rank int, tr *Trainer) {
			setup(1)(rank, tr)
			saved := 0
			tr.OnEvent = func(e train.Event) {
				if e.Kind == train.Saved {
					if saved++; saved == stop && rank == 0 {
						cancel()
					}
				}
			}
		}})
		cancel()
		if errors.Join(first.errs...) == nil {
			break
		}
		again := mustRun(t, c, shards, options{setup: setup(2)})
		have := first.trainers[0].edges.Releases()
		seen = append(seen, len(have))
		for name, sums := range have {
			// A run that had only to save its model makes no release, and takes none up.
			if got, ok := again.trainers[0].edges.Releases()[name]; ok && !sameBits(got.Data, sums.Data) {
				t.Errorf("stopped after checkpoint %d: %s was drawn again", stop, name)
			}
		}
		for rank, n := range spent {
			if n != 1 {
				t.Errorf("stopped after checkpoint %d: peer %d spent %d times", stop, rank, n)
			}
		}
	}
	slices.Sort(seen)
	if len(seen) < 5 || !slices.Equal(slices.Compact(seen), []int{0, 1, 2}) {
		t.Errorf("the run must have been stopped with no, one and two releases made (got %v)", seen)
	}
}

// TestPrivateInference: for new edges the model sums exactly, each neighbour once and no node itself.
func TestPrivateInference(t *testing.T) {
	g := communities(300, 3)
	c := private(g, "residual", 4)
	m := mustRun(t, c, cut(t, g, 1), options{setup: secretly(t, c, 1)}).trainers[0].Model()
	form := m.Closed
	if form.Spec.Rounds <= form.Spec.Own {
		t.Fatalf("the best of the rounds has no sums: %+v", form.Spec)
	}
	n, x := g.N(), m.Encoder.Input(g.X)
	near := make([]map[int32]bool, n)
	for i := range n {
		near[i] = map[int32]bool{}
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			near[i][j] = true
		}
		delete(near[i], int32(i))
	}
	var columns []graph.Features
	var logits mat.Dense
	for r, head := range form.Heads {
		z := closed.Times(x, form.Means[r].Value)
		columns = append(columns, graph.Features{Dense: z})
		if r >= form.Spec.Own {
			rows, sums := form.Spec.ClassRows(x, logits), mat.New(n, logits.Cols)
			for i := range n {
				for _, j := range slices.Sorted(maps.Keys(near[i])) {
					for k, v := range rows.Row(int(j)) {
						sums.Set(i, k, sums.At(i, k)+v)
					}
				}
			}
			columns = append(columns, graph.Features{Dense: form.Spec.SumColumns(sums, logits)})
		}
		logits = head.Logits(graph.Columns(columns).Dense)
	}
	got, err := infer.Graph(m, g)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got.Data {
		if math.Abs(float64(v-logits.Data[i])) > 1e-4 {
			t.Fatalf("logit %d is %g, expected %g", i, v, logits.Data[i])
		}
	}
}

func TestPrivateRefuses(t *testing.T) {
	g := communities(60, 3)
	for want, change := range map[string]func(*Config){
		"epsilon must be above 0 and at most 100 (got 101)":              func(c *Config) { c.Epsilon = 101 },
		"delta must be above 0 and below 1 (got 0)":                      func(c *Config) { c.Delta = 0 },
		"epsilon is too small for 2 sums of neighbours' rows (got 0.001": func(c *Config) { c.Epsilon = 0.001 },
		"epsilon must be 0 without hops (got 4): no edge is used":        func(c *Config) { c.Hops = 0 },
		"hops must be at most 16 with epsilon (got 17)":                  func(c *Config) { c.Hops = 17 },
		"class_rounds must be more than the 2 hops with epsilon (got 2)": func(c *Config) { c.ClassRounds = 2 },
		"epsilon must be 0 with inductive (got 4)":                       func(c *Config) { c.Inductive = true },
		"epsilon must be 0 where a node may have several classes (got 4)": func(c *Config) {
			c.Task, c.Target, c.Metric = "multi", Auto, "micro-f1"
		},
	} {
		c := private(g, "labels", 4)
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := private(g, "labels", 4)
	if r := start(t.Context(), c, []*shard.Shard{shard.Whole(g)}, options{}); r.errs[0] == nil ||
		!strings.Contains(r.errs[0].Error(), "must have a mechanism") {
		t.Errorf("a run without mechanism: %v", r.errs[0])
	}
	// A peer whose rows are too long is named.
	wide, narrow := private(g, "labels", 4), private(g, "labels", 4)
	wide.Epsilon = 100
	r := start(t.Context(), c, cut(t, g, 2), options{setup: func(rank int, tr *Trainer) {
		secretly(t, []Config{narrow, wide}[rank], 1)(rank, tr)
	}})
	if failed, ok := errors.AsType[*comm.PeerError](r.errs[0]); !ok || failed.Rank != 1 ||
		!strings.Contains(failed.Error(), "of a length that the plan's epsilon sets") {
		t.Errorf("rows too long: %v", r.errs[0])
	}
}
