package predict_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/predict"
	"github.com/heddle-gnn/heddle/rng"
)

const (
	features = 6
	classes  = 3
)

// world is what a graph is made of, so that it can be made again after changes.
type world struct {
	kind     kind
	from, to []int32
	weight   []float32
	relation []int     // of each edge
	oneWay   []bool    // likewise
	columns  []float32 // two of each edge
	rows     [][]float32
	class    []int32
	split    []graph.Split
	draws    rng.Key
	used     uint64
}

type kind struct{ sparse, directed, weighted, typed, columns bool }

// relations are one whose edges have their reverses, and one whose reverse is another.
var relations = []string{"near", "cites", "cites (inverse)"}

func newWorld(k kind, n int, key rng.Key) *world {
	w := &world{kind: k, draws: key}
	for range n {
		w.rows = append(w.rows, w.row())
		w.class = append(w.class, int32(w.upTo(classes+1))-1)
		w.split = append(w.split, graph.Split(w.upTo(4)))
	}
	for range 2 * n {
		if e, ok := w.edge(); ok {
			w.add(e)
		}
	}
	return w
}

func (w *world) next() rng.Key { w.used++; return w.draws.Fold(w.used) }

func (w *world) upTo(n int) int { return int(w.next().Uint64(0) % uint64(n)) }

func (w *world) row() []float32 {
	row := make([]float32, features)
	for j := range row {
		if !w.kind.sparse || w.upTo(3) == 0 {
			row[j] = float32(w.next().Normal(0))
		}
	}
	return row
}

// edge returns an edge that the graph lacks, if the one it thought of is.
func (w *world) edge() (e predict.Edge, ok bool) {
	n := len(w.rows)
	if n < 2 {
		return e, false
	}
	e.From, e.To = w.upTo(n), w.upTo(n)
	relation := w.upTo(2)
	if w.kind.weighted {
		e.Weight = float32(1+w.upTo(9)) / 4
	}
	if w.kind.typed {
		e.Relation = relations[relation]
	}
	if w.kind.columns {
		e.Columns = []float32{float32(w.next().Normal(0)), float32(w.next().Normal(0))}
	}
	for k := range w.from {
		a, b := int(w.from[k]), int(w.to[k])
		same := a == e.From && b == e.To || a == e.To && b == e.From && !w.kind.directed &&
			(!w.kind.typed || relation == 0)
		if same && (!w.kind.typed || w.relation[k] == relation) {
			return e, false
		}
	}
	return e, e.From != e.To
}

func (w *world) add(e predict.Edge) {
	w.from, w.to = append(w.from, int32(e.From)), append(w.to, int32(e.To))
	w.weight, w.oneWay = append(w.weight, e.Weight), append(w.oneWay, e.OneWay)
	w.relation = append(w.relation, slices.Index(relations, e.Relation))
	w.columns = append(w.columns, e.Columns...)
}

// graph makes the graph.
func (w *world) graph(t testing.TB) *graph.Graph {
	t.Helper()
	n := len(w.rows)
	g := &graph.Graph{Name: "world", Split: slices.Clone(w.split)}
	g.Labels = graph.Labels{Classes: classes, Class: slices.Clone(w.class)}
	x := mat.New(n, features)
	for i, row := range w.rows {
		copy(x.Row(i), row)
	}
	if g.X.Dense = x; w.kind.sparse {
		g.X = graph.Features{Sparse: &mat.Sparse{Rows: n, Cols: features, RowPtr: []int64{0}}}
		for i := range n {
			for j, v := range x.Row(i) {
				if v != 0 {
					g.X.Sparse.Col, g.X.Sparse.Val = append(g.X.Sparse.Col, int32(j)), append(g.X.Sparse.Val, v)
				}
			}
			g.X.Sparse.RowPtr = append(g.X.Sparse.RowPtr, int64(len(g.X.Sparse.Col)))
		}
	}
	weight, edge := w.weight, []int32(nil)
	if !w.kind.weighted {
		weight = nil
	}
	if w.kind.columns {
		edge = mat.EveryRow(len(w.from))
		g.EdgeX = mat.View(len(w.from), 2, slices.Clone(w.columns))
	}
	make := func(of func(k int) bool, turn, directed bool) graph.CSR {
		var src, dst, rows []int32
		var weights []float32
		for k := range w.from {
			for _, back := range []bool{false, true} {
				if !of(k) || back != turn && (directed || back && w.oneWay[k]) || back && turn && w.oneWay[k] {
					continue
				}
				if src, dst = append(src, w.from[k]), append(dst, w.to[k]); back {
					src[len(src)-1], dst[len(dst)-1] = w.to[k], w.from[k]
				}
				if weight != nil {
					weights = append(weights, weight[k])
				}
				if edge != nil {
					rows = append(rows, edge[k])
				}
			}
		}
		if edge != nil && rows == nil {
			rows = []int32{}
		}
		adj, err := graph.FromEdges(n, src, dst, weights, graph.Build{Directed: true, Edge: rows})
		if err != nil {
			t.Fatal(err)
		}
		return adj
	}
	g.Adj = make(func(int) bool { return true }, false, w.kind.directed)
	if w.kind.typed {
		near := make(func(k int) bool { return w.relation[k] == 0 }, false, false)
		cites := make(func(k int) bool { return w.relation[k] == 1 }, false, true)
		back := make(func(k int) bool { return w.relation[k] == 1 }, true, true)
		g.Typed = graph.Relations{Names: relations, Adj: graph.Stack([]*graph.CSR{&near, &cites, &back})}
	}
	return g
}

// specs are models of every convolution, with what may surround it, and in closed form.
func specs(t testing.TB) map[string]nn.Spec {
	t.Helper()
	all := map[string]nn.Spec{}
	put := func(name string, a nn.Architecture) {
		s, err := a.Spec()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = s
	}
	for _, conv := range nn.Convolutions(nil) {
		a := nn.Architecture{Model: conv, Task: "single", Features: features, Classes: classes, Layers: 2, Hidden: 8,
			Residual: conv != "sign"}
		c, _ := nn.ConvolutionNamed(conv)
		a.Heads, a.Hops, a.Alpha = min(2, c.Recipe.Heads), c.Recipe.Hops, c.Recipe.Alpha
		if c.Typed {
			a.Relations = len(relations)
		}
		for _, norm := range []string{"none", "layer", "batch"} {
			a.Norm, a.EdgeColumns = norm, 0
			put(conv+" "+norm, a)
			if a.EdgeColumns = 2; c.EdgeColumns {
				put(conv+" "+norm+" with columns", a)
			}
		}
		a.Norm = "none"
		a.Layers = 3
		put(conv+" of 3 layers", a)
		if a.Layers, a.Hops = 1, 3; c.Hops && c.Aggregates {
			put(conv+" of 3 hops", a)
		}
	}
	labels := all["gcn none"]
	labels.Layers = slices.Clone(labels.Layers)
	labels.Encoder.Labels, labels.Encoder.Out, labels.Layers[0].In = 0.5, features+classes, features+classes
	all["gcn with labels"] = labels
	shares := all["sage none"]
	shares.SiteShares = &eval.Shares{Scale: 1, Temperature: 2}
	all["sage with shares"] = shares
	scaled := all["sage-sum none"]
	scaled.Encoder.L2Norm = true
	all["sage-sum of unit rows"] = scaled
	layer := nn.LayerSpec{Conv: "gcn", In: 4, Out: 6, Hops: 2, Norm: true, Act: "relu", Head: []int{3}}
	next := layer
	next.In = 6
	raw := nn.Spec{Task: "single", Features: features, Classes: classes, LayerOutput: nn.Hidden}
	pca := raw
	pca.Encoder, pca.Layers = nn.EncoderSpec{Kind: "pca", Out: 4}, []nn.LayerSpec{layer, next}
	all["layers on pca"] = pca
	with := layer
	with.In = 4 + classes
	pca.Encoder = nn.EncoderSpec{Kind: "pca", Out: 4 + classes,
		Classes: &closed.Layout{Rounds: 3, Hops: 2, AllHops: true, Degree: true, LeaveOut: true, Random: 5}}
	pca.Layers = []nn.LayerSpec{with, next}
	all["layers on pca and classes"] = pca
	layer.In, next.In = 3, 3
	mlp := raw
	mlp.LayerOutput = nn.Logits
	mlp.Encoder, mlp.Layers = nn.EncoderSpec{Kind: "mlp", Out: 3, Hidden: 7}, []nn.LayerSpec{layer, next}
	all["logits of mlp"] = mlp
	only := raw
	only.Encoder = nn.EncoderSpec{Kind: "mlp", Out: 7, Hidden: 7}
	all["only mlp"] = only
	for name, form := range map[string]closed.Layout{
		"class means": {Rounds: 3, Hops: 2, LeaveOut: true},
		"residuals": {Rounds: 3, Hops: 2, AllHops: true, Degree: true, Mean: true, LogitHops: 2, Residual: true,
			Random: 9},
		"left out":     {Rounds: 2, Hops: 1, Residual: true, LeaveOut: true},
		"features":     {Rounds: 1},
		"coarse means": {Rounds: 2, Hops: 2, Coarse: 6},
		"own exact":    {Rounds: 2, Hops: 2, AllHops: true, Coarse: 6, OwnExact: true, LeaveOut: true},
		"first rounds without hops": {Rounds: 4, Hops: 2, AllHops: true, Mean: true, LogitHops: 2, Residual: true,
			Coarse: 6, Alone: 2},
		"directions": {Rounds: 3, Hops: 2, AllHops: true, Directions: 2, DirectionsOnly: true, Alone: 1,
			LeaveOut: true, Residual: true},
		"private": {Rounds: 3, Own: 2},
	} {
		one := raw
		one.Closed, one.Encoder = &form, nn.EncoderSpec{Kind: "closed", Out: classes, L2Norm: true}
		all[name] = one
	}
	return all
}

// model returns a model whose every parameter differs from zero and one.
func model(t testing.TB, spec nn.Spec) *nn.Model {
	t.Helper()
	m, err := nn.New(spec, rng.New(7))
	if err != nil {
		t.Fatal(err)
	}
	key := rng.New(8)
	for i, p := range m.Params() {
		for k := range p.Value.Data {
			p.Value.Data[k] += float32(0.2 * key.Fold(uint64(i)).Normal(uint64(k)))
			if strings.Contains(p.Name, "var") || strings.Contains(p.Name, "counts") ||
				strings.Contains(p.Name, "inverse") {
				p.Value.Data[k] = 3 + float32(math.Abs(float64(p.Value.Data[k])))
			}
		}
	}
	return m
}

// same compares predictions for some nodes with the whole graph's, by bits.
func same(got []predict.Prediction, want heddle.Predictions, nodes []int) error {
	for k, i := range nodes {
		for c, v := range got[k].Logits {
			if must := want.Logits.At(i, c); math.Float32bits(v) != math.Float32bits(must) {
				return fmt.Errorf("logit %d of node %d is %v, must be %v as on the whole graph", c, i, v, must)
			}
		}
		if p := want.Probabilities(i); !slices.Equal(got[k].Probabilities, p) {
			return fmt.Errorf("probabilities of node %d are %v, must be %v", i, got[k].Probabilities, p)
		}
		if !slices.Equal(got[k].Classes, want.Classes(i)) {
			return fmt.Errorf("classes of node %d are %v, must be %v", i, got[k].Classes, want.Classes(i))
		}
	}
	return nil
}

// TestAsOnTheWholeGraph: after any sequence of changes each prediction is the whole graph's, made anew.
func TestAsOnTheWholeGraph(t *testing.T) {
	steps := 12
	if testing.Short() {
		steps = 5
	}
	for name, spec := range specs(t) {
		for seed := range 6 {
			k := kind{sparse: seed%2 == 1, directed: seed%3 == 1, weighted: seed >= 3}
			for _, l := range spec.Layers {
				k.typed = k.typed || l.Relations > 0
				k.columns = k.columns || l.EdgeColumns > 0
			}
			if k.typed {
				k.directed, k.weighted = false, false
			}
			if spec.Encoder.Kind == "sign" {
				k.sparse = false
			}
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				w := newWorld(k, 3+5*seed, rng.New(uint64(seed)))
				changes(t, model(t, spec), w, steps)
			})
		}
	}
}

func changes(t *testing.T, m *nn.Model, w *world, steps int) {
	p, err := predict.New(m, modelfile.Card{}, w.graph(t))
	if err != nil {
		t.Fatal(err)
	}
	for step := range steps {
		whole, err := heddle.Predict(m, w.graph(t))
		if err != nil {
			t.Fatal(err)
		}
		nodes := []int{w.upTo(len(w.rows))} // one, and in the end all
		if step == steps-1 {
			nodes = nil
			for i := range w.rows {
				nodes = append(nodes, len(w.rows)-1-i)
			}
		}
		got, err := p.Predict(nodes...)
		if err == nil {
			err = same(got, whole, nodes)
		}
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		for range w.upTo(4) {
			if err := w.change(p); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
		}
	}
}

// changer is a Predictor or a Change.
type changer interface {
	AddNode(features []float32) (int, error)
	AddEdge(e predict.Edge) error
	SetRow(node int, features []float32) error
}

// change makes a change of both.
func (w *world) change(p changer) error {
	switch w.upTo(4) {
	case 0:
		row := w.row()
		node, err := p.AddNode(row)
		if err == nil && node != len(w.rows) {
			err = fmt.Errorf("the new node is %d, must be %d", node, len(w.rows))
		}
		w.rows, w.class, w.split = append(w.rows, row), append(w.class, -1), append(w.split, graph.None)
		return err
	case 1:
		node, row := w.upTo(len(w.rows)), w.row()
		w.rows[node] = row
		return p.SetRow(node, row)
	}
	e, ok := w.edge()
	if !ok {
		return nil
	}
	e.OneWay = w.upTo(4) == 0
	w.add(e)
	return p.AddEdge(e)
}

// TestUpdateTakesBack: an Update that fails, or keeps nothing, leaves all as it was.
func TestUpdateTakesBack(t *testing.T) {
	all := specs(t)
	for _, name := range []string{"gcn none", "class means", "gatv2 none with columns", "rgcn none"} {
		k := kind{typed: strings.HasPrefix(name, "rgcn"), columns: strings.HasSuffix(name, "columns")}
		w, m := newWorld(k, 20, rng.New(3)), model(t, all[name])
		g := w.graph(t)
		p, err := predict.New(m, modelfile.Card{}, g)
		if err != nil {
			t.Fatal(err)
		}
		before, err := heddle.Predict(m, g)
		if err != nil {
			t.Fatal(err)
		}
		for round := range 4 {
			shadow := *w
			shadow.rows = slices.Clone(w.rows)
			err := p.Update(false, func(c *predict.Change) error {
				for range 6 {
					if err := shadow.change(c); err != nil {
						return err
					}
				}
				whole, err := heddle.Predict(m, shadow.graph(t))
				if err != nil {
					return err
				}
				nodes := []int{0, len(shadow.rows) - 1}
				got, err := c.Predict(nodes...)
				if err == nil {
					err = same(got, whole, nodes)
				}
				if err == nil && round%2 == 1 {
					err = errWanted
				}
				return err
			})
			if err != nil && (round%2 == 0 || !errors.Is(err, errWanted)) {
				t.Fatalf("%s: %v", name, err)
			}
			w.used = shadow.used
			nodes := make([]int, p.Nodes())
			for i := range nodes {
				nodes[i] = i
			}
			if len(nodes) != g.N() {
				t.Fatalf("%s: %d nodes stayed, must be %d", name, len(nodes), g.N())
			}
			got, err := p.Predict(nodes...)
			if err == nil {
				err = same(got, before, nodes)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

var errWanted = errors.New("wanted")

// TestAtTheSameTime: predictions and changes of several goroutines; in the end all are the whole graph's.
func TestAtTheSameTime(t *testing.T) {
	for _, name := range []string{"gcn none", "gat layer", "class means"} {
		w, m := newWorld(kind{}, 60, rng.New(5)), model(t, specs(t)[name])
		p, err := predict.New(m, modelfile.Card{}, w.graph(t))
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for k := range 4 {
			all.Go(func() {
				for i := range 60 {
					if _, err := p.Predict((i*7+k)%60, k); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 30 {
			if err := w.change(p); err != nil {
				t.Error(err)
			}
		}
		all.Wait()
		whole, err := heddle.Predict(m, w.graph(t))
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.rows {
			got, err := p.Predict(i)
			if err == nil {
				err = same(got, whole, []int{i})
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// with returns the edges of g and one more.
func with(t testing.TB, g *graph.Graph, from, to int32) graph.CSR {
	t.Helper()
	src, dst := []int32{from}, []int32{to}
	for i := range g.N() {
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			src, dst = append(src, j), append(dst, int32(i))
		}
	}
	adj, err := graph.FromEdges(g.N(), src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	return adj
}
