package heddle

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// priced is a graph of n nodes with a target far from 0, of two columns if several is set. It follows from their own
// features and their neighbours' features. Every eleventh node has none.
func priced(t *testing.T, n int, several bool) *graph.Graph {
	t.Helper()
	key := rng.New(17)
	var src, dst []int32
	for i := range 4 * n {
		a, b := int32(key.Fold(1).Uint64(uint64(i))%uint64(n)), int32(key.Fold(2).Uint64(uint64(i))%uint64(n))
		src, dst = append(src, a), append(dst, b)
	}
	g := &graph.Graph{Name: "prices", Split: make([]graph.Split, n), X: graph.Features{Dense: mat.New(n, 6)}}
	var err error
	if g.Adj, err = graph.FromEdges(n, src, dst, nil, graph.Build{}); err != nil {
		t.Fatal(err)
	}
	for i := range g.X.Dense.Data {
		g.X.Dense.Data[i] = float32(key.Fold(3).Normal(uint64(i)))
	}
	if g.Labels.Classes = 1; several {
		g.Labels.Classes, g.Labels.Names = 2, []string{"price", "share"}
	}
	for i := range n {
		near, col := 0.0, []int32(nil)
		col, _ = g.Adj.Row(i)
		for _, j := range col {
			near += float64(g.X.Dense.At(int(j), 2)) / float64(len(col))
		}
		x := g.X.Dense.Row(i)
		v := float64(x[0]) - 0.5*float64(x[1]) + 2*near + 0.2*key.Fold(4).Normal(uint64(i))
		row := []float32{float32(5000 + 250*v), float32(0.01 * float64(x[3]))}[:g.Labels.Classes]
		if i%11 == 5 {
			for c := range row {
				row[c] = float32(math.NaN())
			}
		}
		g.Labels.Values = append(g.Labels.Values, row...)
		g.Split[i] = []graph.Split{graph.Train, graph.Train, graph.Val, graph.Test, graph.Train}[i%5]
		if i%11 == 5 {
			g.Split[i] = graph.None
		}
	}
	return g
}

// dealt returns the parts of g for several peers, and the place of each node.
func dealt(t *testing.T, g *graph.Graph, peers int) []*shard.Shard {
	t.Helper()
	owner := make([]int32, g.N())
	for i := range owner {
		owner[i] = int32(rng.New(uint64(peers)).Uint64(uint64(i)) % uint64(peers))
	}
	shards, err := shard.Cut(g, owner, peers)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// byNode are the predictions of a run, node by node.
func byNode(r *Result, shards []*shard.Shard, n int) mat.Dense {
	all := mat.New(n, r.Own[0].Logits.Cols)
	for k, s := range shards {
		for i := range s.Owned {
			copy(all.Row(int(s.Global[i])), r.Own[k].Logits.Row(i))
		}
	}
	return all
}

// TestRegression: with every method and for 1, 2 and 7 peers a model predicts numbers in their own units, far better
// than the mean and, if sums are exact, the same for any number of peers. The figures are those of the predictions, and
// the model file gives the same predictions again.
func TestRegression(t *testing.T) {
	for _, c := range []struct {
		settings string
		several  bool
		least    float64 // R²
		apart    float64 // most that predictions of other numbers of peers differ, in deviations
	}{
		{"method: full-batch\nmodel: sage\nrounds: 60\ndropout: 0", false, 0.85, 2e-2},
		{"method: full-batch\nmodel: sage\nrounds: 60\ndropout: 0\nmetric: rmse", true, 0.6, 2e-2},
		{"method: layer-wise\nmodel: sage\nencoder: raw\nrounds: 40\ndropout: 0", false, 0.8, 2e-2},
		// directions follow edges inside sites,
		{"sums: float32\nrows: float32\nclass_rounds: 2\nrandom_features: 0", false, 0.6, 1},
		{"class_rounds: 3\ninductive: true\nleave_one_out: false", true, 0.5, math.Inf(1)},
		{"method: mini-batch\nmodel: sage\nrounds: 12\nbatch_size: 64\nfanouts: [-1]\ndropout: 0\nlr: 0.005", false,
			0.8, math.Inf(1)},
		{"method: full-batch\npeers: 1\nmodel: sage\nrounds: 60\ndropout: 0", true, 0.85, 0},
	} {
		t.Run(strings.ReplaceAll(c.settings, "\n", " "), func(t *testing.T) {
			t.Parallel()
			g := priced(t, 700, c.several)
			p := read(t, c.settings+"\ntransport: memory\npolicy: random")
			var first mat.Dense
			for _, peers := range []int{1, 7} {
				if p.Peers == 1 && peers > 1 {
					break
				}
				shards := dealt(t, g, peers)
				r, err := Local{Plan: p, Shards: shards}.Train(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				all := byNode(r, shards, g.N())
				checkNumbers(t, g, r, all, c.least)
				if peers == 1 {
					first = all
					savedAgain(t, g, r, all)
				}
				for i, v := range all.Data {
					u := r.Model.Spec.Units[i%all.Cols]
					if d := math.Abs(float64(v)-float64(first.Data[i])) / u.Deviation; !(d <= c.apart) {
						t.Fatalf("%d peers: node %d has %v, with one peer %v", peers, i/all.Cols, v, first.Data[i])
					}
				}
			}
		})
	}
}

// checkNumbers checks that the figures of a run are those of its predictions over the test nodes, and better than the
// mean.
func checkNumbers(t *testing.T, g *graph.Graph, r *Result, all mat.Dense, least float64) {
	t.Helper()
	test := g.InSplit(graph.Test)
	f := r.Figures
	if f == nil || f.Test.Rows != int64(len(test)) || len(f.Test.Targets) != all.Cols || len(f.Units) != all.Cols {
		t.Fatalf("figures %+v", f)
	}
	for c, one := range f.Test.Targets {
		mean, sum, squares, off, apart := 0.0, 0.0, 0.0, 0.0, 0.0
		for _, i := range test {
			mean += float64(g.Labels.Values[int(i)*all.Cols+c]) / float64(len(test))
		}
		for _, i := range test {
			y := float64(g.Labels.Values[int(i)*all.Cols+c])
			e := y - float64(all.At(int(i), c))
			squares, off, apart = squares+e*e, off+math.Abs(e), apart+(y-mean)*(y-mean)
			sum += math.Abs(y - f.Units[c].Mean)
		}
		n := float64(len(test))
		for what, x := range map[string][2]float64{"R²": {float64(one.R2), 1 - squares/apart},
			"MAE": {float64(one.MAE), off / n}, "RMSE": {float64(one.RMSE), math.Sqrt(squares / n)},
			"MAE of the mean": {float64(one.BaselineMAE), sum / n}} {
			if math.Abs(x[0]-x[1]) > 2e-3*math.Abs(x[1]) {
				t.Errorf("column %d: %s of the figures is %v, of the predictions %v", c, what, x[0], x[1])
			}
		}
		if float64(one.R2) < least || one.BaselineR2 > 0.01 || one.MAE > 0.7*one.BaselineMAE {
			t.Errorf("column %d: %+v", c, one)
		}
	}
	if f.Majority != -1 || f.Test.Classes != nil || f.Test.Accuracy == f.Test.Accuracy {
		t.Errorf("figures of classes: %+v", f.Test)
	}
	if want := map[bool]string{true: "rmse", false: "r2"}[r.Plan.Metric != ""]; string(r.Metric) != want {
		t.Errorf("metric %s, must be %s", r.Metric, want)
	}
}

// savedAgain checks that the model file of a run predicts what the run did.
func savedAgain(t *testing.T, g *graph.Graph, r *Result, all mat.Dense) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := r.Save(path); err != nil {
		t.Fatal(err)
	}
	m, card, err := modelfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Predict(m, g)
	if err != nil {
		t.Fatal(err)
	}
	p = p.By(card)
	inductive := m.Spec.Closed != nil && m.Spec.Closed.Inductive
	for i, v := range p.Logits.Data {
		if u := m.Spec.Units[i%all.Cols]; !inductive && math.Abs(float64(v)-float64(all.Data[i])) > 1e-3*u.Deviation {
			t.Fatalf("node %d: the file predicts %v, the run %v", i/all.Cols, v, all.Data[i])
		}
	}
	score, nodes, err := p.Score(r.Metric, g)
	if err != nil || nodes != int(r.Figures.Test.Rows) || math.Abs(score-r.Test) > 1e-2*math.Abs(r.Test) {
		t.Errorf("%s %v over %d nodes, the run has %v: %v", r.Metric, score, nodes, r.Test, err)
	}
}

// TestUnitsOfAFinishedRun: a peer that takes up a finished run, in which it counts no labels, predicts in the same
// units.
func TestUnitsOfAFinishedRun(t *testing.T) {
	s := shard.Whole(priced(t, 300, true))
	for _, method := range []string{plan.FullBatch, plan.MiniBatch} {
		p := read(t, "method: "+method+"\nmodel: sage\nrounds: 3")
		store := &checkpoint.Store{Dir: t.TempDir()}
		var units [2][]graph.Unit
		m, err := p.Configure(s)
		if err != nil {
			t.Fatal(err)
		}
		for k := range units {
			at := &train.Place{Checkpoints: store}
			if k == 0 {
				at.Group = comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
				at.Sums = at.Group
				defer at.Group.Close()
			}
			got, err := m.Train(t.Context(), at, s)
			if err != nil || got == nil {
				t.Fatalf("%s: %v, %v", method, got, err)
			}
			units[k] = got.Model.Spec.Units
		}
		if len(units[0]) != 2 || !slices.Equal(units[0], units[1]) {
			t.Errorf("%s: units %v of the run, %v when it is taken up", method, units[0], units[1])
		}
	}
}
