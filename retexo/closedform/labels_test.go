package closedform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/privacy/dp"
)

// untold returns a configuration that keeps labels private.
func untold(g *graph.Graph, target string) Config {
	c := plain(g)
	c.Target, c.LabelEpsilon, c.Delta = target, 60, 1e-5
	return c
}

// withLabels gives every peer the mechanism of a run over secure sums.
func withLabels(t testing.TB, c Config, peers int, secret byte) func(int, *Trainer) {
	return func(rank int, tr *Trainer) {
		var err error
		if tr.Labels, err = c.Labels(peers, peers > 2, [32]byte{secret, byte(rank)}); err != nil {
			t.Error(err)
		}
	}
}

// TestPrivateLabels: runs of any number of peers find a model that predicts, the same at all peers, and each draws other noise.
func TestPrivateLabels(t *testing.T) {
	g := communities(900, 3)
	for _, target := range []string{"labels", "residual"} {
		c := untold(g, target)
		var models [][]float32
		for _, parts := range []int{1, 3, 3} {
			r := mustRun(t, c, cut(t, g, parts), options{setup: withLabels(t, c, parts, byte(len(models)))})
			result := r.trainers[0].Result().Final()
			if result.Test < 0.6 || math.Abs(result.Test-result.Val) > 0.15 || len(result.Curve) != c.usualRounds(target == "residual") {
				t.Errorf("%s, %d peers: test metric %.3f, validation %.3f after %d rounds", target, parts, result.Test, result.Val, len(result.Curve))
			}
			for k := range r.trainers {
				if !sameBits(r.flat(k), r.flat(0)) {
					t.Errorf("%s, %d peers: peer %d has other parameters than peer 0", target, parts, k)
				}
			}
			models = append(models, r.flat(0))
		}
		if sameBits(models[1], models[2]) {
			t.Errorf("%s: another secret gives the same model, must give another by its noise", target)
		}
	}
}

// TestLabelsEnterByReleasesAlone: of two runs over other classes of all nodes, but with the same releases, all that leaves and
// the model are the same bits.
func TestLabelsEnterByReleasesAlone(t *testing.T) {
	for _, target := range []string{"labels", "residual"} {
		g := communities(900, 3)
		c := untold(g, target)
		var sums [2][]float32
		record := func(at int) func(int, *comm.Group) comm.Reducer {
			return func(_ int, group *comm.Group) comm.Reducer { return recording{group, &sums[at]} }
		}
		with := mustRun(t, c, []*shard.Shard{shard.Whole(g)}, options{setup: withLabels(t, c, 1, 1), reducer: record(0)})
		other := *g
		other.Labels.Class = slices.Clone(g.Labels.Class)
		for i, class := range other.Labels.Class {
			if class >= 0 {
				other.Labels.Class[i] = (class + int32(i)) % 3
			}
		}
		without := mustRun(t, c, []*shard.Shard{shard.Whole(&other)}, options{reducer: record(1), setup: func(rank int, tr *Trainer) {
			withLabels(t, c, 1, 9)(rank, tr)
			for name, sums := range with.trainers[0].Labels.Releases() {
				tr.Labels.Restore(name, sums)
			}
		}})
		if len(sums[0]) == 0 || !sameBits(sums[0], sums[1]) || !sameBits(with.flat(0), without.flat(0)) {
			t.Errorf("%s: labels enter sums or model in another way than by releases", target)
		}
		if a, b := with.trainers[0].Logits(), without.trainers[0].Logits(); !sameBits(a.Data, b.Data) {
			t.Errorf("%s: labels enter logits in another way than by releases", target)
		}
	}
}

// TestPrivateLabelsResume: a run that is stopped after any release goes on with those that it has made, though its process has
// another secret by then, and spends once.
func TestPrivateLabelsResume(t *testing.T) {
	g := communities(900, 3)
	c := untold(g, "labels")
	shards, all := cut(t, g, 3), 0
	for stop := 1; ; stop++ {
		dir, spent := t.TempDir(), make([]int, 3)
		ctx, cancel := context.WithCancel(context.Background())
		setup := func(secret byte) func(int, *Trainer) {
			return func(rank int, tr *Trainer) {
				withLabels(t, c, 3, secret)(rank, tr)
				tr.Labels.Spend = func(dp.Statement) error { spent[rank]++; return nil }
				tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, rank)}
			}
		}
		first := start(ctx, c, shards, options{setup: setup(1), reducer: func(rank int, group *comm.Group) comm.Reducer {
			return stopping{group, func(id comm.ReduceID) {
				if rank == 0 && stop == 1+slices.Index(releasing, fmt.Sprint(id.Kind, id.Round)) {
					cancel()
				}
			}}
		}})
		cancel()
		if errors.Join(first.errs...) == nil {
			break
		}
		again := mustRun(t, c, shards, options{setup: setup(2)})
		for rank := range shards {
			have := first.trainers[rank].Labels.Releases()
			for name, sums := range have {
				if got, ok := again.trainers[rank].Labels.Releases()[name]; !ok || !slices.Equal(got, sums) {
					t.Errorf("stopped at release %d: peer %d drew %s again", stop, rank, name)
				}
			}
			if all = max(all, len(have)); spent[rank] != 1 {
				t.Errorf("stopped at release %d: peer %d spent %d times", stop, rank, spent[rank])
			}
		}
	}
	if all != 7 {
		t.Errorf("the last stopped run had made %d releases, must be 7", all)
	}
}

// releasing are the sums by which a run releases labels.
var releasing = []string{"sums of features over each class0", "validation0", "validation1", "products with the labels2", "validation2",
	"finished model: validation0", "finished model: test0"}

// stopping calls before before each sum.
type stopping struct {
	comm.Reducer
	before func(comm.ReduceID)
}

func (r stopping) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	r.before(c.ID)
	return r.Reducer.Reduce(ctx, c)
}

// TestFewLabelsAreRefused: before a sum with labels in it leaves, with what it would cost.
func TestFewLabelsAreRefused(t *testing.T) {
	g := communities(900, 3)
	c := untold(g, "labels")
	c.LabelEpsilon = 1
	var kinds []string
	r := start(t.Context(), c, []*shard.Shard{shard.Whole(g)}, options{setup: withLabels(t, c, 1, 1), reducer: func(_ int, group *comm.Group) comm.Reducer {
		return stopping{group, func(id comm.ReduceID) { kinds = append(kinds, id.Kind) }}
	}})
	if err := r.errs[0]; err == nil || !strings.Contains(err.Error(), "label_epsilon 1 needs about") || !strings.Contains(err.Error(), "points of accuracy") {
		t.Errorf("few labels: %v", err)
	}
	if !slices.Equal(kinds, []string{"labelled nodes"}) || len(r.trainers[0].Labels.Releases()) != 0 {
		t.Errorf("before the run is refused it sums %q and makes %d releases; must be labelled nodes, and 0", kinds, len(r.trainers[0].Labels.Releases()))
	}
}

func TestPrivateLabelsRefuse(t *testing.T) {
	g := communities(60, 3)
	for text, change := range map[string]func(*Config){
		"epsilon must be above 0 and at most 100 (got 101)":      func(c *Config) { c.LabelEpsilon = 101 },
		"label_epsilon is too small for":                         func(c *Config) { c.LabelEpsilon = 0.0001 },
		"label_epsilon must be 0 with epsilon":                   func(c *Config) { c.Epsilon = 1 },
		"label_epsilon must be 0 unless each node has one class": func(c *Config) { c.Task, c.Metric = "multi", "micro-f1" },
		"metric must be accuracy with label_epsilon":             func(c *Config) { c.Metric = "macro-f1" },
		"row_norm must be l2 with label_epsilon":                 func(c *Config) { c.RowNorm = "none" },
		"leave_one_out must be auto or false with label_epsilon": func(c *Config) { c.LeaveOut = "true" },
		"random_features must be -1 or 0 with label_epsilon":     func(c *Config) { c.Random = 8 },
		"balanced must be false, and no class_weights given":     func(c *Config) { c.Balanced = true },
		"clip_means must be false with label_epsilon":            func(c *Config) { c.ClipMeans = true },
	} {
		c := untold(g, "labels")
		if change(&c); c.Validate() == nil || !strings.Contains(c.Validate().Error(), text) {
			t.Errorf("%v, must be %q", c.Validate(), text)
		}
	}
	c := untold(g, "labels")
	if c.Colluding = 3; true {
		if _, err := c.Labels(3, true, [32]byte{}); err == nil || !strings.Contains(err.Error(), "colluding must be below the 3 peers (got 3)") {
			t.Errorf("all collude: %v", err)
		}
	}
	if r := start(t.Context(), c, []*shard.Shard{shard.Whole(g)}, options{}); r.errs[0] == nil || !strings.Contains(r.errs[0].Error(), "must have a mechanism") {
		t.Errorf("a run without mechanism: %v", r.errs[0])
	}
}
