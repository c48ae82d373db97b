package figures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

// example is a graph of n nodes and logits for them, of classes; a quarter of the nodes validates, or none does.
func example(t *testing.T, n, classes int, multi, validated bool) (*graph.Graph, mat.Dense) {
	t.Helper()
	key, logits := rng.New(5), mat.New(n, classes)
	g := &graph.Graph{Name: "example", Labels: graph.Labels{Classes: classes}}
	var src, dst []int32
	x := mat.New(n, 1)
	for i := range n {
		at := key.Fold(uint64(i))
		class := int(at.Uint64(0) % uint64(classes))
		for k := range classes {
			v := at.Normal(uint64(k) + 1)
			if k == class {
				v++
			}
			logits.Set(i, k, float32(v/5))
			if multi {
				g.Labels.Bits = append(g.Labels.Bits, uint8(at.Uint64(uint64(k)+50)%2))
			}
		}
		if !multi {
			g.Labels.Class = append(g.Labels.Class, int32(class))
		}
		split := []graph.Split{graph.Train, graph.Val, graph.Test, graph.Test}[i%4]
		if split == graph.Val && !validated {
			split = graph.Train
		}
		g.Split = append(g.Split, split)
		src, dst = append(src, int32(i)), append(dst, int32((i+1)%n))
	}
	g.X = graph.Features{Dense: x}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	g.Adj = adj
	return g, logits
}

// parts cuts g.
func parts(t *testing.T, g *graph.Graph, k int) []*shard.Shard {
	t.Helper()
	if k == 1 {
		return []*shard.Shard{shard.Whole(g)}
	}
	all, err := partition.Partition(g, partition.Random{}, k, 1)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// modelOf returns a model of a number of classes.
func modelOf(t *testing.T, classes int) *nn.Model {
	t.Helper()
	model, err := nn.New(nn.Spec{Task: "single", Features: 1, Classes: classes, LayerOutput: "hidden",
		Encoder: nn.EncoderSpec{Kind: "raw", Out: 1},
		Layers:  []nn.LayerSpec{{Conv: "gcn", In: 1, Out: classes, Hops: 1}}}, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// together runs the exchanges of all peers. logits are of all nodes; a peer without has none.
func together(t *testing.T, all []*Exchange, logits mat.Dense, without int) {
	t.Helper()
	model := modelOf(t, logits.Cols)
	net, errs := netsim.New(len(all), netsim.Config{}), make([]error, len(all))
	var tasks sync.WaitGroup
	for r, e := range all {
		tasks.Go(func() {
			g := comm.NewGroup(net.Transport(r), r, len(all))
			defer g.Close()
			own := mat.Dense{}
			if r != without {
				own = mat.New(e.Shard.Owned, logits.Cols)
				for i := range e.Shard.Owned {
					copy(own.Row(i), logits.Row(int(e.Shard.Global[i])))
				}
			}
			if errs[r] = e.Run(context.Background(), g, g, model, own,
				comm.Counts{Halo: 1 << 40, Reduce: int64(r)}); errs[r] == nil {
				errs[r] = g.Barrier(context.Background())
			}
		})
	}
	tasks.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func exchanges(shards []*shard.Shard, metric eval.Metric, goal eval.Goal) (all []*Exchange) {
	for _, s := range shards {
		all = append(all, &Exchange{Metric: metric, Goal: goal, Draw: train.Draw{Seed: 3}, Shard: s})
	}
	return all
}

// read returns the figures of e without those of its site.
func read(t *testing.T, e *Exchange) *Figures {
	t.Helper()
	f, err := e.figures(e.sums)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// text is f without the bytes that were sent.
func text(t *testing.T, f *Figures) string {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSameForAnyPeers: the same logits have the same figures whoever holds them, at every peer.
func TestSameForAnyPeers(t *testing.T) {
	for _, c := range []struct {
		classes          int
		multi, validated bool
		metric           eval.Metric
		goal             string
	}{{3, false, true, "accuracy", ""}, {2, false, true, "macro-f1", "f1"},
		{2, false, false, "auc", "recall@precision=0.7"}, {60, false, true, "accuracy", ""},
		{4, true, true, "micro-f1", ""}, {4, true, true, "macro-f1", "f1"}} {
		g, logits := example(t, 900, c.classes, c.multi, c.validated)
		goal, err := eval.ParseGoal(c.goal)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for _, k := range []int{1, 2, 4} {
			all := exchanges(parts(t, g, k), c.metric, goal)
			together(t, all, logits, -1)
			for r, e := range all {
				f := read(t, e)
				if f.Sent.Halo != int64(k)<<40 || f.Sent.Reduce != int64(k*(k-1)/2) || f.Edges != 1800 {
					t.Errorf("%d peers sent %+v and have %d edges", k, f.Sent, f.Edges)
				}
				if got := text(t, f); want == "" {
					want = got
				} else if got != want {
					t.Fatalf("%+v: peer %d of %d has\n%s\nand one peer alone\n%s", c, r, k, got, want)
				}
			}
			f := read(t, all[0])
			rows := f.Val.Rows + f.Test.Rows
			if want := int64(3 * 900 / 4); c.validated && rows != want ||
				!c.validated && (rows <= 450 || rows >= want) {
				t.Errorf("%+v: %d rows", c, rows)
			}
			if f.Val.ECE <= f.Val.Calibrated && !c.multi {
				t.Errorf("%+v: calibration error %v, then %v", c, f.Val.ECE, f.Val.Calibrated)
			}
			if one := f.Threshold; one != nil && one.Goal != c.goal || (one != nil) != (c.goal != "" && !c.multi) {
				t.Errorf("%+v: threshold %+v", c, one)
			}
			if n := len(f.Temperatures); n != map[bool]int{true: c.classes}[c.multi] {
				t.Errorf("%+v: %d temperatures", c, n)
			}
			if all := f.Thresholds; len(all) > 0 != (c.goal != "" && c.multi) ||
				len(all) > 0 && (len(all) != c.classes || all[0].Goal != c.goal || !all[0].Reached) {
				t.Errorf("%+v: thresholds %+v", c, all)
			}
		}
	}
}

// TestBytes: a peer sends the numbers that are disclosed before.
func TestBytes(t *testing.T) {
	for _, c := range []struct {
		classes int
		multi   bool
		most    int64 // bytes of four peers
	}{{7, false, 7_000}, {2, false, 10_000}, {4, true, 19_000}} {
		g, logits := example(t, 400, c.classes, c.multi, true)
		all := exchanges(parts(t, g, 4), "accuracy", eval.Goal{})
		together(t, all, logits, -1)
		numbers, wide := Numbers(g.Labels.Kind(), c.classes, eval.Goal{})
		want, sent := int64(0), int64(0)
		for k, n := range numbers {
			want += 2 * 3 * comm.CountBytes(n, wide[k], 16, 4)
		}
		for _, e := range all {
			used := e.Used()
			sent += used.Reduce
		}
		if sent != want || sent > c.most {
			t.Errorf("%d classes: %d bytes, must be %d, and at most %d", c.classes, sent, want, c.most)
		}
	}
}

// TestHeldSums: peers that have the sums give them to those that do not, whose own logits add nothing then; a process
// that was restarted has them from its directory, for this model only.
func TestHeldSums(t *testing.T) {
	g, logits := example(t, 300, 3, false, true)
	shards := parts(t, g, 3)
	all := exchanges(shards, "accuracy", eval.Goal{})
	for _, e := range all {
		e.Store = &checkpoint.Store{Dir: t.TempDir()}
	}
	together(t, all, logits, -1)
	want := text(t, read(t, all[0]))
	again := exchanges(shards, "accuracy", eval.Goal{})
	again[1].Store, again[2].sums = all[1].Store, all[2].sums
	together(t, again, logits, 0)
	for r, e := range again {
		if got := text(t, read(t, e)); got != want {
			t.Errorf("peer %d has other figures", r)
		}
	}
	other := &Exchange{Metric: "accuracy", Shard: shards[1], Store: all[1].Store}
	if err := other.recall(again[1].sums.Digest + 1); err != nil || other.sums != nil {
		t.Errorf("sums of another model must not be taken (%v)", err)
	}
}

// TestWithoutLogits: a peer that has the model from another one adds nothing, and nobody waits for it.
func TestWithoutLogits(t *testing.T) {
	g, logits := example(t, 300, 3, false, true)
	all := exchanges(parts(t, g, 3), "accuracy", eval.Goal{})
	together(t, all, logits, 1)
	f := read(t, all[1])
	if rows := f.Val.Rows + f.Test.Rows; rows >= 225 || rows < 120 || text(t, f) != text(t, read(t, all[0])) {
		t.Errorf("%d rows", rows)
	}
}

// TestAPeerFails: if a peer is gone the others soon have an error, and no figures; together again they have them.
func TestAPeerFails(t *testing.T) {
	g, logits := example(t, 300, 3, false, true)
	all := exchanges(parts(t, g, 3), "accuracy", eval.Goal{})
	net, errs := netsim.New(3, netsim.Config{}), make([]error, 3)
	groups := make([]*comm.Group, 3)
	for r := range groups {
		groups[r] = comm.NewGroup(net.Transport(r), r, 3)
	}
	groups[1].Close()
	var tasks sync.WaitGroup
	for _, r := range []int{0, 2} {
		tasks.Go(func() {
			errs[r] = all[r].Run(context.Background(), groups[r], groups[r], modelOf(t, logits.Cols), mat.Dense{},
				comm.Counts{})
			groups[r].Close()
		})
	}
	tasks.Wait()
	for _, r := range []int{0, 2} {
		f, err := all[r].Figures("north", modelOf(t, logits.Cols))
		var failed *comm.PeerError
		if !errors.As(errs[r], &failed) || all[r].Fault() == nil || f != nil || err != nil {
			t.Errorf("peer %d: %v, figures %v, %v", r, errs[r], f, err)
		}
	}
	together(t, all, logits, -1)
	if f := read(t, all[2]); f.Val.Rows+f.Test.Rows != 225 || all[2].Fault() != nil {
		t.Errorf("%d rows, fault %v", f.Val.Rows+f.Test.Rows, all[2].Fault())
	}
}

// liar changes what a peer adds to the sheets.
type liar struct {
	comm.Reducer
	lie func(counts []int64)
}

func (l liar) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	if c.ID.Kind == ofSheets {
		l.lie(c.Counts)
	}
	return l.Reducer.Reduce(ctx, c)
}

// TestLies: counts that no nodes have are refused by every other peer, and there are no figures.
func TestLies(t *testing.T) {
	g, logits := example(t, 300, 3, false, true)
	for want, lie := range map[string]func([]int64){
		"must be at most 200 (got 4000)": func(v []int64) { v[2] = 4000 },
		"a confusion matrix must have":   func(v []int64) { v[0]++ },
	} {
		all := exchanges(parts(t, g, 3), "accuracy", eval.Goal{})
		net, errs := netsim.New(3, netsim.Config{}), make([]error, 3)
		var tasks sync.WaitGroup
		for r, e := range all {
			tasks.Go(func() {
				g := comm.NewGroup(net.Transport(r), r, 3)
				defer g.Close()
				sums := comm.Reducer(g)
				if r == 2 {
					sums = liar{g, lie}
				}
				errs[r] = e.Run(context.Background(), g, sums, modelOf(t, logits.Cols), mat.Dense{}, comm.Counts{})
			})
		}
		tasks.Wait()
		for r := range 2 {
			if !errors.Is(errs[r], comm.ErrRefused) || !strings.Contains(errs[r].Error(), want) {
				t.Errorf("peer %d must refuse with %q (got %v)", r, want, errs[r])
			}
			if f, err := all[r].Figures("north", modelOf(t, logits.Cols)); f != nil || err != nil {
				t.Errorf("peer %d: figures %v, %v", r, f, err)
			}
		}
	}
}

// TestWarnings: one class for all, and no better than the baseline.
func TestWarnings(t *testing.T) {
	g, logits := example(t, 600, 2, false, true)
	shards := parts(t, g, 2)
	all := exchanges(shards, "accuracy", eval.Goal{})
	together(t, all, logits, -1)
	f := read(t, all[0])
	if got := f.Warnings(); len(got) > 0 {
		t.Errorf("warnings %q of a model that is better", got)
	}
	for i := range logits.Rows {
		logits.Set(i, f.Majority, logits.At(i, 1-f.Majority)+1)
	}
	all = exchanges(shards, "accuracy", eval.Goal{})
	together(t, all, logits, -1)
	got := strings.Join(read(t, all[0]).Warnings(), "\n")
	for _, want := range []string{fmt.Sprintf("the model predicts one class only, %d, for all 300 test nodes",
		f.Majority), "test accuracy is not better than the baseline of"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q must contain %q", got, want)
		}
	}
	if !strings.Contains(got, "; try metric: auc, class_weights: balanced or threshold: f1") {
		t.Errorf("%q must end with what to try", got)
	}
	// A class that only test nodes have is named.
	g, logits = example(t, 600, 3, false, true)
	for i, c := range g.Labels.Class {
		if c == 2 && g.Split[i] != graph.Test {
			g.Split[i] = graph.None
		}
	}
	all = exchanges(parts(t, g, 2), "accuracy", eval.Goal{})
	together(t, all, logits, -1)
	must := "no training node has a class that the data have, so the model cannot predict it: 2"
	if got := read(t, all[1]).Warnings(); !slices.Contains(got, must) {
		t.Errorf("warnings are %q, must have %q", got, must)
	}
}
