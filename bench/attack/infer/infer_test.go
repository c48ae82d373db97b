package infer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

func planOf(t testing.TB, settings string) plan.Plan {
	t.Helper()
	given := map[string]string{"exchange": "halo"}
	for pair := range strings.FieldsSeq(settings) {
		name, value, _ := strings.Cut(pair, "=")
		given[name] = value
	}
	p, err := plan.Read(nil, given, nil)
	if err != nil {
		t.Fatal(err)
	}
	return *p
}

func cora(t testing.TB, parts int) []*shard.Shard {
	t.Helper()
	g, err := dataset.Read(testenv.DataDir(t, "cora"), 0)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := partition.ParsePolicy("random")
	if err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(g.Numbered(), policy, parts, 1)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// TestEnds: in a run of links the rows of ends distinguish a site's links from other pairs, if a model has learned
// anything. Among near nodes there are fewer such rows.
func TestEnds(t *testing.T) {
	g := graphtest.Communities(400, 40, 3, 0.95, rng.New(1))
	policy, err := partition.ParsePolicy("fennel")
	if err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(g, policy, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shards {
		s.X = graph.Features{Dense: mat.New(s.Owned, 12)}
		for i, id := range s.Global[:s.Owned] {
			for k := range s.X.Dense.Row(i) {
				s.X.Dense.Row(i)[k] = float32(rng.New(2).Fold(uint64(id)).Normal(uint64(k)))
			}
		}
	}
	tried := map[string]int{}
	for _, from := range []string{"all", "near", "layer by layer"} {
		of := "method=full-batch negatives_from=" + from
		if from == "layer by layer" {
			of = "method=layer-wise encoder=raw lr=0.02"
		}
		p := planOf(t, of+" exchange=auto task=links hidden=16 rounds=20 link_holdout=0.1,0.2 decoder=distmult")
		run, err := Train(t.Context(), p, shards, 0)
		if err != nil {
			t.Fatal(err)
		}
		all, err := run.All(t.Context(), 1, Effort{})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 3 || all[0].Value < 0.7 || from == "all" && all[1].Value < 0.6 {
			t.Errorf("negatives from %s: findings are %v, must be links that trained above 0.7, "+
				"held-out ones above 0.6", from, all)
		}
		nodes, rows, err := run.Run.Ends(1)
		if err != nil || len(nodes) != rows.Rows || slices.Max(nodes) >= int32(shards[1].Owned) {
			t.Fatalf("%d nodes have %d rows (%v), must be as many, of the victim's %d", len(nodes), rows.Rows, err,
				shards[1].Owned)
		}
		tried[from] = len(nodes)
	}
	if tried["layer by layer"] != len(shards[1].Boundary[0]) || tried["near"] > len(shards[1].Boundary[0]) ||
		tried["near"] > tried["all"] {
		t.Errorf("rows that were read are of %v nodes, must be of at most %d near ones", tried,
			len(shards[1].Boundary[0]))
	}
}

// TestArea: the area under the curve and the hits at few false alarms, of scores that are known.
func TestArea(t *testing.T) {
	for _, c := range []struct {
		with, without []float64
		want          float64
	}{
		{[]float64{3, 4}, []float64{1, 2}, 1},
		{[]float64{1, 2}, []float64{3, 4}, 0},
		{[]float64{1, 3}, []float64{2, 2}, 0.5},
		{[]float64{2}, []float64{2, 1}, 0.75},
		{nil, []float64{1}, 0.5},
	} {
		if got := Area(c.with, c.without); got != c.want {
			t.Errorf("the area of %v against %v must be %g (got %g)", c.with, c.without, c.want, got)
		}
	}
	without := make([]float64, 100)
	for i := range without {
		without[i] = float64(i)
	}
	if got := Caught([]float64{97, 98, 98.5, 200}, without, 0.01); got != 0.5 {
		t.Errorf("half must be found at one false alarm of 100 (got %g)", got)
	}
	if got := correlation([]float64{1, 5, 9, 9}, []float64{2, 3, 4, 4}); math.Abs(got-1) > 1e-12 {
		t.Errorf("the rank correlation must be 1 (got %g)", got)
	}
}

// TestRays: rows of zeros and ones are found in XᵀΔ for an unknown Δ, also if two of them share words that no other
// has.
func TestRays(t *testing.T) {
	rows := [][]int32{{0, 1, 2, 9, 10, 11}, {2, 3, 4, 9}, {5, 6, 7, 9, 10, 11}}
	g := mat.New(12, 20)
	for i, set := range rows {
		for _, j := range set {
			for c := range g.Cols {
				g.Row(int(j))[c] += float32(rng.New(uint64(i)).Normal(uint64(c)))
			}
		}
	}
	found := rays(g)
	for _, set := range rows {
		if !slices.ContainsFunc(found, func(f []int32) bool { return slices.Equal(f, set) }) {
			t.Errorf("%v must be found (got %v)", set, found)
		}
	}
	if len(found) != len(rows) {
		t.Errorf("%d rows must be found (got %v)", len(rows), found)
	}
}

// bounds limit what an attack may reveal: more is a new leak, and less an attack that no longer works.
type bounds struct {
	attack, measure string
	least, most     float64
}

// TestLeaks compares what each attack reveals about Cora with earlier figures, which are in
// docs/measurements/attacks.md. The short form trains no shadow models.
func TestLeaks(t *testing.T) {
	for settings, want := range map[string][]bounds{
		"method=class-means": {
			{"rows of features in rows", "rows found", 0, 0},
			{"columns of features in rows", "columns guessed", 0.2, 0.35},
			{"membership, by the margin", "AUC", 0.55, 0.64},
			{"membership, by shadow models", "AUC", 0.5, 0.66},
			{"edges among boundary nodes", "AUC", 0.88, 0.97}, // of six hops
			{"labels of training nodes off rows", "right, training against test nodes", 0.5, 0.8},
			{"degrees of boundary nodes", "rank correlation", 0.35, 0.75},
			{"degrees of boundary nodes", "exact", 0.15, 0.28},
			{"rows of training nodes in sums", "rows found", 0, 0},
			{"training labels of a site", "distance of the distribution", 0.04, 0.2},
			{"labels of a site", "distance of the distribution", 0.1, 0.3},
		},
		"method=layer-wise encoder=pca:128+classes rounds=30 exchange=halo": {
			{"membership, by the margin", "AUC", 0.5, 0.75},
			{"edges among boundary nodes", "AUC", 0.75, 0.97},
			{"degrees of boundary nodes", "exact", 0.95, 1},
			{"labels of training nodes off rows", "right, training against test nodes", 0.5, 0.9},
			{"labels of a site", "distance of the distribution", 0, 0.25},
		},
	} {
		t.Run(settings, func(t *testing.T) {
			if settings != "method=class-means" {
				testenv.OnlyLong(t)
			}
			p := planOf(t, settings)
			run, err := Train(t.Context(), p, cora(t, 3), 0)
			if err != nil {
				t.Fatal(err)
			}
			effort, every := Effort{Rows: 10, Tries: 200_000}, testenv.LongForm(t)
			if p.Method == plan.ClassMeans && every {
				effort.Shadows = 4
			}
			all, err := run.All(t.Context(), 1, effort)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range all {
				t.Log(f)
			}
			for _, f := range all {
				if p.Method == plan.ClassMeans && f.Attack == "membership, by the margin" && f.Value-f.Base > 0.1 {
					t.Errorf("%v: must be at most 0.1 above the baseline", f)
				}
			}
			for _, b := range want {
				k := slices.IndexFunc(all,
					func(f Finding) bool { return f.Attack == b.attack && f.Measure == b.measure })
				if k < 0 && strings.Contains(b.attack, "shadow") && !every {
					continue
				} else if k < 0 {
					t.Errorf("%s, %s: no finding", b.attack, b.measure)
				} else if v := all[k].Value; !(v >= b.least && v <= b.most) {
					t.Errorf("%v: must be %g to %g", all[k], b.least, b.most)
				}
			}
		})
	}
}

// TestRowsHideTrainingLabels: rows that are sent reveal the classes of training nodes at most 8 points better than the
// classes of test nodes. Two of eight members see them together, in the long form all eight. With own parts in, they
// reveal nearly all to one member.
func TestRowsHideTrainingLabels(t *testing.T) {
	every := testenv.LongForm(t)
	for out, most := range map[string]float64{"true": 0.08, "false": 1} {
		value, base, n, attackers := 0.0, 0.0, 0.0, 8
		if out == "false" {
			attackers = 1
		} else if !every {
			attackers = 2
		}
		for attacker := range attackers {
			run, err := Train(t.Context(), planOf(t, "method=class-means leave_one_out="+out), cora(t, 8), attacker)
			if err != nil {
				t.Fatal(err)
			}
			f, err := run.RowClasses()
			if err != nil {
				t.Fatal(err)
			}
			value, base, n = value+f.Value*float64(f.Tried), base+f.Base*float64(f.Tried), n+float64(f.Tried)
		}
		t.Logf("leave_one_out %s: %.2f of %.0f training nodes, of test nodes %.2f", out, value/n, n, base/n)
		if value/n-base/n > most || out == "false" && value/n < 0.9 {
			t.Errorf("leave_one_out %s: rows tell %.2f of the training nodes' classes, of test nodes %.2f", out,
				value/n, base/n)
		}
	}
}

// TestGradientsLeak: with two members, one finds rows of the other, which has few training nodes, in the sums of class
// means and of trained rounds of encoder mlp. With three members and secure sums, only encoder mlp still leaks them.
// The short form leaves the last and components out.
func TestGradientsLeak(t *testing.T) {
	every := testenv.LongForm(t)
	for _, c := range []struct {
		settings    string
		parts, n    int
		least, most float64
	}{
		{"method=class-means", 2, 1, 1, 1},
		{"method=class-means", 2, 5, 5, 5},
		{"method=class-means", 3, 5, 0, 0},
		{"method=layer-wise encoder=mlp layers=1 rounds=16", 2, 5, 3, 5},
		{"method=layer-wise encoder=mlp layers=1 rounds=16", 3, 20, 8, 20},
		{"method=layer-wise encoder=pca:128 layers=1 rounds=16", 2, 1, 1, 1},
	} {
		if !every && (strings.Contains(c.settings, "pca") || c.n == 20) ||
			testing.Short() && !strings.Contains(c.settings, "class-means") {
			continue
		}
		shards, err := Thinned(cora(t, c.parts), 1, c.n)
		if err != nil {
			t.Fatal(err)
		}
		run, err := Train(t.Context(), planOf(t, c.settings), shards, 0)
		if err != nil {
			t.Fatal(err)
		}
		f, err := run.Gradients(t.Context(), 1)
		if err != nil || f.Tried != c.n || f.Value < c.least || f.Value > c.most {
			t.Errorf("%s, %d members: %v, must be %g to %g: %v", c.settings, c.parts, f, c.least, c.most, err)
		}
	}
}

// TestLabelsInTheClear: the label counts of a site are exact for the other of two members, and for the member that sums
// in the clear.
func TestLabelsInTheClear(t *testing.T) {
	for parts, settings := range map[int]string{2: "method=class-means", 3: "method=class-means secure_sums=off"} {
		run, err := Train(t.Context(), planOf(t, settings), cora(t, parts), 0)
		if err != nil {
			t.Fatal(err)
		}
		all, err := run.Labels(1)
		if err != nil || all[0].Value > 1e-12 || all[0].Base < 0.01 {
			t.Errorf("%d members: %v, must be exact: %v", parts, all, err)
		}
	}
}

// TestPlanted: one member decides the first weights of encoder mlp; no check refuses it, even if sums are secure.
func TestPlanted(t *testing.T) {
	run, err := Planted(t.Context(), planOf(t, "method=layer-wise encoder=mlp layers=1 rounds=30"), cora(t, 3), 0)
	if err != nil {
		t.Fatal(err)
	}
	w, opposite := run.Model.Encoder.Layer.Params()[0].Value, 0
	for j := range w.Rows {
		if w.At(j, 0)*w.At(j, 1) < 0 {
			opposite++
		}
	}
	if share := float64(opposite) / float64(w.Rows); share < 0.9 {
		t.Errorf("of planted weights nine of ten pairs must have opposite signs (got %.2f)", share)
	}
	if _, err := Planted(t.Context(), planOf(t, "method=class-means"), cora(t, 3), 0); err != ErrNothing {
		t.Errorf("class-means trains no weights to plant: %v", err)
	}
}

// TestThinned: a site keeps n training nodes, of as many classes as it can.
func TestThinned(t *testing.T) {
	before := cora(t, 3)
	for _, n := range []int{1, 5, 20} {
		shards, err := Thinned(before, 1, n)
		if err != nil {
			t.Fatal(err)
		}
		nodes, classes := shards[1].NodesIn(graph.Train), map[int32]bool{}
		for _, i := range nodes {
			classes[shards[1].Labels.Class[i]] = true
		}
		if len(nodes) != n || len(classes) != min(n, 7) {
			t.Errorf("%d training nodes of %d classes must be left (got %d of %d)", n, min(n, 7), len(nodes),
				len(classes))
		}
	}
	if _, err := Thinned(before, 1, 1e6); err == nil || !strings.Contains(fmt.Sprint(err), "must have at least") {
		t.Errorf("more training nodes than there are: %v", err)
	}
}

// TestRowsHideTrainingTargets: rows of a numeric target reveal more about training nodes' targets than about test
// nodes' if a node's own part stays in the means, and hardly more by default. Few nodes with many columns train, so
// that each node's part is large. The test takes few features, whose rows have residuals and directions, and then more.
func TestRowsHideTrainingTargets(t *testing.T) {
	rowsHideTrainingTargets(t, 60)
	if testenv.LongForm(t) {
		rowsHideTrainingTargets(t, 90)
	}
}

func rowsHideTrainingTargets(t *testing.T, columns int) {
	const n = 900
	key := rng.New(5)
	var src, dst []int32
	for i := range 3 * n {
		src, dst = append(src, int32(key.Fold(1).Uint64(uint64(i))%n)),
			append(dst, int32(key.Fold(2).Uint64(uint64(i))%n))
	}
	g := &graph.Graph{Name: "prices", X: graph.Features{Dense: mat.New(n, columns)}, Labels: graph.Labels{Classes: 1}}
	var err error
	if g.Adj, err = graph.FromEdges(n, src, dst, nil, graph.Build{}); err != nil {
		t.Fatal(err)
	}
	for i := range g.X.Dense.Data {
		g.X.Dense.Data[i] = float32(key.Fold(3).Normal(uint64(i)))
	}
	for i := range n {
		v := float64(g.X.Dense.At(i, 0)) + 2*key.Fold(4).Normal(uint64(i))
		g.Labels.Values = append(g.Labels.Values, float32(100+9*v))
		g.Split = append(g.Split, []graph.Split{graph.Train, graph.Val, graph.Test}[i%3])
	}
	policy, err := partition.ParsePolicy("random")
	if err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(g, policy, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	excess := func(settings string, amongAll bool) float64 {
		run, err := Train(t.Context(), planOf(t, settings), shards, 0)
		if err != nil {
			t.Fatal(err)
		}
		f, err := run.RowTargets()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d columns, %s: %v", columns, settings, f)
		if !amongAll {
			return f.Value - f.Base
		}
		all, err := run.All(t.Context(), 1, Effort{Rows: 1, Tries: 1})
		if err != nil || !slices.ContainsFunc(all, func(one Finding) bool { return one == f }) {
			t.Errorf("all attacks are %v (%v), must have %v", all, err, f)
		}
		return f.Value - f.Base
	}
	kept, left := excess("method=class-means leave_one_out=false rows=float32", false),
		excess("method=class-means rows=float32", true)
	if kept < 0.15 || left > kept/2 {
		t.Errorf("of %d columns the excess is %.3f with a node's own part and %.3f without, must be 0.15 at least "+
			"and half of it at most", columns, kept, left)
	}
}

// TestPrivateRowsHideEdges: rows that are sent with epsilon reveal edges hardly better than rows that no edge has
// entered; rows without epsilon reveal them far better.
func TestPrivateRowsHideEdges(t *testing.T) {
	for settings, bound := range map[string][2]float64{"method=class-means": {0.15, 1},
		"method=class-means epsilon=4": {-0.1, 0.1}} {
		run, err := Train(t.Context(), planOf(t, settings), cora(t, 3), 0)
		if err != nil {
			t.Fatal(err)
		}
		f, err := run.Links(1)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v", settings, f)
		if more := f.Value - f.Base; more < bound[0] || more > bound[1] || f.Tried < 200 {
			t.Errorf("%s: AUC is %.3f over %d pairs, %.3f before any edge: the difference must be %g to %g", settings,
				f.Value, f.Tried, f.Base, bound[0], bound[1])
		}
	}
}

// rareWords returns 4,000 nodes of three classes with some 18 of that many words each; about 13 nodes have each of the
// last 15.
func rareWords(words int) *graph.Graph {
	const n = 4000
	g := graphtest.Communities(n, 3, 4, 0.8, rng.New(4))
	x := &mat.Sparse{Rows: n, Cols: words, RowPtr: make([]int64, n+1)}
	g.Labels = graph.Labels{Classes: 3, Class: make([]int32, n)}
	for i := range n {
		key, row := rng.New(5).Fold(uint64(i)), []int32{}
		g.Labels.Class[i], g.Split[i] = int32(i%3), graph.Test
		if i < 120 {
			g.Split[i] = []graph.Split{graph.Train, graph.Val}[i/60]
		}
		for k := range uint64(18) {
			if at := key.Uint64(k); key.Fold(1).Float64(k) < 0.2 {
				row = append(row, int32(at%5)*3+int32(i%3))
			} else {
				row = append(row, 15+int32(at%uint64(words-30)))
			}
		}
		if i%20 == 0 {
			row = append(row, int32(words)-1-int32(key.Uint64(18)%15))
		}
		slices.Sort(row)
		x.Col = append(x.Col, slices.Compact(row)...)
		x.RowPtr[i+1] = int64(len(x.Col))
	}
	x.Val = slices.Repeat([]float32{1}, len(x.Col))
	g.X = graph.Features{Sparse: x}
	return g
}

// TestPlanting: a member that gives its nodes in each class one rare column learns hardly anything about which nodes of
// others have it. With few columns rows contain only what the regression on own columns leaves; with more columns the
// maps are limited.
func TestPlanting(t *testing.T) {
	policy, err := partition.ParsePolicy("random")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words       int
		least, most float64
	}{{64, 0, 0.65}, {1000, 0, 0.65}} {
		shards, err := partition.Partition(rareWords(c.words), policy, 3, 1)
		if err != nil {
			t.Fatal(err)
		}
		var number, all, holders float64
		const plantings = 6
		for k := range uint64(plantings) {
			planted, err := Plant(shards, 0, 20, false, rng.New(k))
			if err != nil {
				t.Fatal(err)
			}
			found, err := planted.Train(t.Context(), planOf(t, "class_target=labels hops=2"), 0)
			if err != nil {
				t.Fatal(err)
			}
			number, all, holders = number+found.Number/plantings, all+found.All/plantings,
				holders+float64(found.Holders)
		}
		if v := max(number, all); v < c.least || v > c.most || holders < 80 {
			t.Errorf("%d words: AUC is %.3f by a number, %.3f by all of %g nodes, must be %g to %g of at least 80",
				c.words, number, all, holders, c.least, c.most)
		}
	}
}
