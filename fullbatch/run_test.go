package fullbatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/train/traintest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// trained runs c over the shards and returns the trainers.
func trained(t testing.TB, c Config, shards []*shard.Shard) []*Trainer {
	t.Helper()
	return workers(t, c, shards, func(tr *Trainer, g *comm.Group) error { return tr.Run(context.Background(), g, g) })
}

func within(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Abs(want)) && got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Fatalf("%s: %g, want %g within %g of it", what, got, want, tol)
	}
}

// TestCurvesDoNotDependOnTheNumberOfWorkers trains for 30 epochs with 1, 2 and 4 workers: losses, validation losses and
// the tests of the best state agree.
func TestCurvesDoNotDependOnTheNumberOfWorkers(t *testing.T) {
	dense := toy(rng.New(2), 120, 9)
	few := *dense // few training and validation nodes, so that a step computes a part of the graph
	few.Split = slices.Clone(dense.Split)
	for i := range few.Split {
		if i%30 != 0 && few.Split[i] != graph.Test {
			few.Split[i] = graph.None
		} else if i%60 == 0 {
			few.Split[i] = graph.Train
		}
	}
	unvalidated := withoutValidation(dense) // some of its training nodes validate
	all := models(9)
	for _, k := range []struct {
		name, model string
		g           *graph.Graph
		set         func(c *Config)
	}{
		{"gcn", "gcn", dense, nil},
		{"gcn, sparse features", "gcn", traintest.Sparsed(dense), nil},
		{"gcn, no validation nodes, balanced", "gcn", unvalidated, func(c *Config) { c.Balanced = true }},
		{"gin, no validation nodes, inductive", "gin", unvalidated, func(c *Config) { c.Inductive = true }},
		{"gcn, no validation nodes, labels given", "gcn", unvalidated, labelsGiven},
		{"gcn of 3 hops, sparse features", "gcn of 3 hops", traintest.Sparsed(dense), nil},
		{"sage, blocks", "sage", &few, nil},
		{"sage, aggregated once, blocks", "sage, aggregated once", &few, nil},
		{"sage, inductive, balanced", "sage, aggregated once", dense,
			func(c *Config) { c.Inductive, c.Balanced = true, true }},
		{"gat, sparse, blocks", "gat", traintest.Sparsed(&few), nil},
		{"gat, features fetched at every step", "gat", dense, func(c *Config) { c.Memory = 1 }},
		{"gatv2", "gatv2", dense, nil},
		// By SGD: with few labels some gradients of its columns are nothing but rounding, which Adam would scale up to
		// whole steps.
		{"gatv2, blocks", "gatv2", &few,
			func(c *Config) { c.Optimizer = optim.Config{Name: "sgd", LR: 0.05, Momentum: 0.9} }},
		{"gine", "gine", traintest.Columned(dense), nil},
		{"gine, sparse, inductive", "gine", traintest.Columned(traintest.Sparsed(dense)),
			func(c *Config) { c.Inductive = true }},
		{"gatv2, edges, inductive", "gatv2, edges", traintest.Columned(dense), func(c *Config) { c.Inductive = true }},
		{"rgat, sparse", "rgat", traintest.Typed(traintest.Sparsed(dense)), nil},
		{"rsage, inductive, blocks", "rsage", traintest.Typed(&few), func(c *Config) { c.Inductive = true }},
		{"gin, inductive", "gin", dense, func(c *Config) { c.Inductive = true }},
		{"gat of scores, encoder mlp", "gat of scores, encoder mlp", dense, nil},
		{"rgcn, inductive, blocks", "rgcn", traintest.Typed(&few), func(c *Config) { c.Inductive = true }},
		{"rgcn, sparse", "rgcn", traintest.Typed(traintest.Sparsed(dense)), nil},
		{"appnp, corrected and smoothed", "appnp", dense,
			func(c *Config) { c.Spec.CorrectSmooth = &nn.CorrectSmooth{Steps: 5, Correct: 0.9, Smooth: 0.8} }},
		{"sign, inductive, sparse", "sign", traintest.Sparsed(dense), func(c *Config) { c.Inductive = true }},
		{"sage, batch norm", "sage, batch norm", dense, nil},
		{"sage, batch norm, sparse, few labels", "sage, batch norm", traintest.Sparsed(&few), nil},
		{"gcn, labels given", "gcn", traintest.Sparsed(dense), labelsGiven},
		{"sage, labels given, blocks, no dropout", "sage, aggregated once", &few, labelsGiven},
		{"gat, labels given, features fetched at every step", "gat", dense,
			func(c *Config) { labelsGiven(c); c.Memory = 1 }},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := Defaults(all[k.model])
			c.Rounds, c.EvalEvery = 15, 5
			if testing.Short() { // for the race detector, which learns nothing from more epochs
				c.Rounds = 10
			}
			if k.set != nil {
				k.set(&c)
			}
			want := trained(t, c, cut(t, k.g, "", 1))[0].Result().Final()
			if k.g == unvalidated && want.Val != want.Val {
				t.Fatal("nothing validates")
			}
			for _, parts := range []int{2, 4} {
				for r, tr := range trained(t, c, cut(t, k.g, "uneven", parts)) {
					got := tr.Result().Final()
					if len(got.Curve) != len(want.Curve) {
						t.Fatalf("%d epochs, want %d", len(got.Curve), len(want.Curve))
					}
					for i, w := range want.Curve {
						at := fmt.Sprintf("worker %d of %d, epoch %d: ", r, parts, i)
						within(t, at+"loss", got.Curve[i].Loss, w.Loss, 1e-4)
						within(t, at+"validation loss", got.Curve[i].ValLoss, w.ValLoss, 1e-4)
					}
					within(t, "test loss", got.TestLoss, want.TestLoss, 1e-4)
					within(t, "test", got.Test, want.Test, 1e-9)
				}
			}
		})
	}
}

// labelsGiven makes labels of training nodes inputs.
func labelsGiven(c *Config) {
	s := &c.Spec
	s.Layers = slices.Clone(s.Layers)
	s.Encoder.Labels, s.Encoder.Out = 0.4, s.Features+s.Classes
	s.Layers[0].In = s.Encoder.Out
}

// TestLabelsThatAreGivenAreNotLearned: at a step each training node is either an input or learned, the same at its
// owner as wherever it is halo, and at about the share that was asked for.
func TestLabelsThatAreGivenAreNotLearned(t *testing.T) {
	for name, g := range map[string]*graph.Graph{"dense": toy(rng.New(2), 120, 9),
		"sparse": traintest.Sparsed(toy(rng.New(2), 120, 9))} {
		c := Defaults(models(9)["sage"])
		labelsGiven(&c)
		shards := cut(t, g, "uneven", 3)
		for epoch := range 3 {
			var mu sync.Mutex
			learned, given, inputs := make(map[int64]bool), make(map[int64]bool), 0
			workers(t, c, shards, func(tr *Trainer, group *comm.Group) error {
				tr.line = &haloLine{ctx: context.Background(), group: group,
					sender: train.NewSender(group, tr.shard, comm.Coding{})}
				if err := errors.Join(tr.Begin(context.Background(), group, group),
					tr.prepare(context.Background(), group)); err != nil {
					return err
				}
				tr.At.Round = epoch
				tr.drawLabelInputs()
				mu.Lock()
				defer mu.Unlock()
				for k, i := range tr.split[graph.Train] {
					if tr.train.labels.Class[k] >= 0 {
						learned[tr.shard.Global[i]] = true
					}
				}
				x := tr.train.input.Dense
				if s := tr.train.input.Sparse; s != nil {
					x = s.Dense()
				}
				for i, node := range tr.train.parts[0].nodes {
					for k, v := range x.Row(i)[9:] {
						if v == 0 {
							continue
						}
						inputs++
						given[node] = true
						if v != 1 || int32(k) != g.Labels.Class[node] || g.Split[node] != graph.Train {
							return fmt.Errorf("node %d is given column %d with %v", node, k, v)
						}
					}
				}
				return nil
			})
			for node := range given {
				if learned[node] {
					t.Errorf("%s, epoch %d: node %d is given and learned", name, epoch, node)
				}
			}
			train := 0
			for i, s := range g.Split {
				if s == graph.Train {
					train++
					if !given[int64(i)] && !learned[int64(i)] {
						t.Errorf("%s, epoch %d: training node %d is neither given nor learned", name, epoch, i)
					}
				}
			}
			if n := len(given); n < train/5 || n > train*3/5 || inputs <= n {
				t.Errorf("%s, epoch %d: %d of %d training labels are given, %d times in all; "+
					"want some 0.4 of them, also as halo", name, epoch, n, train, inputs)
			}
		}
	}
}

// TestTraffic holds the bytes of an epoch to the formulas of Mostafa, MLSys 2022: a layer whose gradient does not read
// the rows sends them and their gradient, 2·d·ΣH values; one whose does, and drops them, sends them again: 3·d·ΣH. The
// first layer sends nothing after the run's begin.
func TestTraffic(t *testing.T) {
	g := toy(rng.New(4), 150, 9)
	for i := range g.Split {
		g.Split[i] = graph.Train // every node is wanted: no blocks, and nothing to validate
	}
	for _, k := range []struct {
		model, fetch string
		times        [3]int // rows sent of each layer, 4 bytes a value
	}{
		{"gcn", "sar", [3]int{0, 2 * 8, 2 * 3}},
		{"gcn", "oneshot", [3]int{0, 2 * 8, 2 * 3}},
		{"sage", "sa", [3]int{0, 2 * 8, 2 * 3}},
		{"gin", "sar", [3]int{0, 2 * 8, 2 * 3}},
		{"sage, aggregated once", "sar", [3]int{0, 2 * 8, 2 * 3}},
		{"sage-pool", "sar", [3]int{0, 2 * 12, 2 * 3}},
		{"gat", "sar", [3]int{0, 3 * 12, 3 * 6}},
		{"gat", "sa", [3]int{0, 2 * 12, 2 * 6}},
		{"gat", "oneshot", [3]int{0, 2 * 12, 2 * 6}},
		{"gat", "auto", [3]int{0, 2 * 12, 2 * 6}},
	} {
		t.Run(k.model+" "+k.fetch, func(t *testing.T) {
			c := Defaults(models(9)[k.model])
			c.Rounds, c.EvalEvery, c.Fetch, c.Exchange = 4, 1000, k.fetch, "halo"
			shards := cut(t, g, "uneven", 3)
			halo, values := 0, 0
			for _, s := range shards {
				halo += s.Halo()
			}
			for _, n := range k.times {
				values += n
			}
			sent := make([]int64, c.Rounds)
			for _, tr := range trained(t, c, shards) {
				for i, e := range tr.Result().Curve() {
					sent[i] += e.Sent.Halo
				}
			}
			for i := 1; i < len(sent); i++ {
				if got, want := sent[i]-sent[i-1], int64(4*halo*values); got != want {
					t.Errorf("epoch %d sent %d bytes of rows and gradients, want %d: 4 bytes of %d values for "+
						"each of %d halo rows", i, got, want, values, halo)
				}
			}
		})
	}
}

// TestRowsHeld holds the halo rows that a worker has at a time to what the way to fetch promises: some blocks, or all.
func TestRowsHeld(t *testing.T) {
	g := toy(rng.New(4), 400, 9)
	shards := cut(t, g, "training in one", 8)
	peak := make(map[string]int)
	for _, fetch := range []string{"sar", "sa", "oneshot"} {
		c := Defaults(models(9)["gat"])
		c.Rounds, c.Fetch, c.Prefetch = 2, fetch, 1
		for r, tr := range trained(t, c, shards) {
			peak[fetch] = max(peak[fetch], tr.line.peak)
			s, largest := shards[r], 0
			for q := range shards {
				largest = max(largest, s.HaloPtr[q+1]-s.HaloPtr[q])
			}
			// two blocks of rows, two of gradients
			if bound := 4 * largest * 12; fetch == "sar" && tr.line.peak > bound {
				t.Errorf("worker %d held %d values, want at most %d", r, tr.line.peak, bound)
			}
			if all := s.Halo() * (12 + 6); fetch != "sar" && tr.line.peak < all {
				t.Errorf("worker %d held %d values by %s, want the %d of both layers", r, tr.line.peak, fetch, all)
			}
		}
	}
	if 2*peak["sar"] > peak["oneshot"] {
		t.Errorf("sar held %d values, oneshot %d: want at most half", peak["sar"], peak["oneshot"])
	}
}

// TestFixedOrderRepeatsBits runs the same training twice.
func TestFixedOrderRepeatsBits(t *testing.T) {
	g := toy(rng.New(6), 120, 9)
	for _, fetch := range []string{"sar", "auto"} {
		c := Defaults(models(9)["gat"])
		c.Rounds, c.Fetch, c.Order, c.Prefetch = 10, fetch, "fixed", 0
		shards := cut(t, g, "uneven", 4)
		want := trained(t, c, shards)[0].Params.Value
		c.Prefetch = 2
		if !slices.Equal(trained(t, c, shards)[3].Params.Value, want) {
			t.Errorf("%s: another run gave other bits", fetch)
		}
	}
}

// TestResume interrupts a run, takes one worker's checkpoints and another's newest away, and goes on: the bits are
// those of a run that was not interrupted, and everybody has measured every epoch.
func TestResume(t *testing.T) {
	g := toy(rng.New(6), 120, 9)
	c := Defaults(models(9)["sage, batch norm"]) // whose running statistics are a part of the state
	c.Rounds, c.Order, c.Checkpoint = 20, "fixed", 4
	shards := cut(t, g, "uneven", 3)
	whole := trained(t, c, shards)

	dir := t.TempDir()
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
		tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, tr.shard.Rank)}
		tr.OnEvent = func(e train.Event) {
			if e.Kind == train.RoundEnd && e.Round == 10 && tr.shard.Rank == 1 {
				cancel(stop)
			}
		}
		if err := tr.Run(ctx, g, g); err == nil {
			return errors.New("it was not interrupted")
		}
		return nil
	})
	var own, first [3]int // epochs that each worker's own checkpoint has measured, and where it went on
	again := workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
		r := tr.shard.Rank
		tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, r)}
		if r == 2 {
			tr.Checkpoints = &checkpoint.Store{Dir: dir + "/new"}
		}
		if r == 1 {
			states, err := filepath.Glob(tr.Checkpoints.Dir + "/state-*") // by number
			if err != nil || len(states) != 2 {
				return fmt.Errorf("%v, %v, want two checkpoints", states, err)
			}
			if err := os.Remove(states[1]); err != nil {
				return err
			}
		}
		seqs, err := tr.Checkpoints.List()
		if err != nil || (len(seqs) == 0) != (r == 2) {
			return fmt.Errorf("checkpoints %v, %v", seqs, err)
		}
		if len(seqs) > 0 {
			own[r] = int(uint32(seqs[0])) - 1
		}
		tr.OnEvent = func(e train.Event) {
			if e.Kind == train.Restored {
				first[r] = e.Round
			}
		}
		if err := tr.Run(context.Background(), g, g); err != nil {
			return err
		}
		if first[r] < 8 {
			return fmt.Errorf("went on from epoch %d, want one after 8", first[r])
		}
		return nil
	})
	for r, tr := range again {
		if !slices.Equal(tr.Params.Value, whole[r].Params.Value) {
			t.Errorf("worker %d has other bits than a run without interruption", r)
		}
		want, sent := whole[r].Result().Curve(), int64(0)
		got := tr.Result().Curve()
		if len(got) != len(want) {
			t.Fatalf("worker %d reports %d epochs, want %d", r, len(got), len(want))
		}
		for i, w := range want {
			at := got[i]
			if at.Round != w.Round || at.Loss != w.Loss || at.Val != w.Val || w.Round < own[r] && at.Sent != w.Sent ||
				at.Sent.Halo < sent {
				t.Errorf("worker %d reports %+v, want %+v as without an interruption", r, at, w)
			}
			sent = at.Sent.Halo
		}
	}
	if own[1] >= first[1] || own[2] != 0 {
		t.Errorf("checkpoints of epochs %v, went on from %v: no worker had to be told of an epoch", own, first)
	}
	t.Run("at the end", func(t *testing.T) { resumeAtTheEnd(t, c, shards, dir, whole[0]) })
}

// resumeAtTheEnd goes on with a run that has ended: a worker that lost its model gets it from the others, nothing is
// trained, and a worker by itself needs nobody.
func resumeAtTheEnd(t *testing.T, c Config, shards []*shard.Shard, dir string, whole *Trainer) {
	again := workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
		tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, tr.shard.Rank)}
		if tr.shard.Rank == 2 {
			tr.Checkpoints = &checkpoint.Store{Dir: t.TempDir()}
		}
		tr.OnEvent = func(e train.Event) {
			if e.Kind == train.RoundEnd {
				t.Errorf("worker %d trained epoch %d", tr.shard.Rank, e.Round)
			}
		}
		return tr.Run(context.Background(), g, g)
	})
	m, err := c.NewModel()
	if err != nil {
		t.Fatal(err)
	}
	alone, err := New(c, shards[0], m)
	if err != nil {
		t.Fatal(err)
	}
	alone.Checkpoints = &checkpoint.Store{Dir: dir + "/0"}
	if done, err := alone.Resume(alone); err != nil || !done || !alone.Done() {
		t.Fatalf("a final model is not taken up: %v", err)
	}
	for r, tr := range append(again, alone) {
		got, want := tr.Result().Final(), whole.Result().Final()
		if !tr.Done() || !slices.Equal(tr.Params.Value, whole.Params.Value) || got.Test != want.Test ||
			got.Val != want.Val || got.BestRound != want.BestRound {
			t.Errorf("trainer %d has another model or result: %+v, want %+v", r, got, want)
		}
	}
}

// TestBatchNormOfAllNodes: what a model infers on the whole graph, from the running statistics, is what its workers
// found with theirs; the statistics are those of all of them; and held-out nodes, which would be among them, are
// refused.
func TestBatchNormOfAllNodes(t *testing.T) {
	g := toy(rng.New(6), 120, 9)
	c := Defaults(models(9)["sage, batch norm"])
	c.Rounds = 15
	one := trained(t, c, cut(t, g, "", 1))[0]
	for _, how := range []string{"uneven", "empty"} {
		tr := trained(t, c, cut(t, g, how, 3))[1]
		scores, err := infer.Graph(tr.Model, g)
		if err != nil {
			t.Fatal(err)
		}
		test := g.InSplit(graph.Test)
		loss, count := nn.Loss(mat.Dense{}, scores.Select(test), g.Labels.Select(test), nil)
		within(t, how+": test loss", tr.Result().Final().TestLoss, loss/count, 1e-5)
		for k, u := range tr.units {
			for i, p := range u.layer.Running() {
				near(t, how+": "+p.Name, p.Value.Data, one.units[k].layer.Running()[i].Value.Data)
			}
		}
	}
	c.Inductive = true
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "batch_norm") {
		t.Errorf("inductive: %v", err)
	}
}

// withoutValidation returns g with its validation nodes for training.
func withoutValidation(g *graph.Graph) *graph.Graph {
	some := *g
	some.Split = slices.Clone(g.Split)
	for i, split := range some.Split {
		if split == graph.Val {
			some.Split[i] = graph.Train
		}
	}
	return &some
}

// TestHeldOutLabelsAreNoInput: without validation nodes some training nodes validate, which a warning says; their
// labels are neither learned nor given.
func TestHeldOutLabelsAreNoInput(t *testing.T) {
	g := withoutValidation(toy(rng.New(6), 120, 9))
	c := Defaults(models(9)["gcn"])
	c.Rounds = 2
	labelsGiven(&c)
	held := 0
	for _, tr := range workers(t, c, cut(t, g, "uneven", 3), func(tr *Trainer, g *comm.Group) error {
		said := ""
		tr.OnEvent = func(e train.Event) {
			if e.Kind == train.Warning {
				said += e.Text
			}
		}
		err := tr.Run(t.Context(), g, g)
		if !strings.Contains(said, "sampled by the seed, validate") {
			return fmt.Errorf("said %q", said)
		}
		return err
	}) {
		for _, i := range tr.split[graph.Val] {
			if held++; g.Split[tr.shard.Global[i]] != graph.Train {
				t.Errorf("node %d validates, of split %d", tr.shard.Global[i], g.Split[tr.shard.Global[i]])
			}
			if row := tr.input.Dense.Row(int(i))[9:]; slices.Max(row) != 0 {
				t.Errorf("the label of node %d, which validates, is an input: %v", tr.shard.Global[i], row)
			}
		}
	}
	if held == 0 {
		t.Error("nothing validates")
	}
}

// TestLostWorker ends a run in which a worker disappears: everybody else is told who it was.
func TestLostWorker(t *testing.T) {
	g := toy(rng.New(6), 120, 9)
	c := Defaults(models(9)["gat"])
	c.Rounds = 50
	var told sync.WaitGroup // before a worker goes, and is taken for the one that was lost
	told.Add(3)
	workers(t, c, cut(t, g, "uneven", 3), func(tr *Trainer, g *comm.Group) error {
		tr.OnEvent = func(e train.Event) {
			if e.Kind == train.RoundEnd && e.Round == 3 && tr.shard.Rank == 1 {
				g.Close()
			}
		}
		err := tr.Run(context.Background(), g, g)
		told.Done()
		told.Wait()
		if tr.shard.Rank == 1 {
			return nil
		}
		var at *comm.PeerError
		if !errors.As(err, &at) || at.Rank != 1 {
			return fmt.Errorf("error %v, want one that names peer 1", err)
		}
		return nil
	})
}

// TestOtherPlan refuses to train with a worker that means another run.
func TestOtherPlan(t *testing.T) {
	g := toy(rng.New(6), 60, 9)
	shards := cut(t, g, "uneven", 2)
	c := Defaults(models(9)["gcn"])
	workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
		if other := c; tr.shard.Rank == 1 {
			other.Seed++
			var err error
			if tr, err = New(other, tr.Whole, tr.Model); err != nil {
				return err
			}
		}
		want := fmt.Sprintf("peer %d has another plan", 1-tr.shard.Rank)
		if err := tr.Run(context.Background(), g, g); err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("error %v, want that %s", err, want)
		}
		return nil
	})
}
