package nn_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/nntest"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

func preset(t testing.TB, model string) nn.Spec {
	t.Helper()
	s, err := nn.Preset(model, "single", 20, 3, 16, 2)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// layerwise is a model of every part that end-to-end presets lack.
func layerwise(encoder, carry string) nn.Spec {
	s := nn.Spec{Task: "single", Features: 20, Classes: 3, LayerOutput: carry, Encoder: nn.EncoderSpec{Kind: encoder}}
	width := 20
	switch encoder {
	case "pca":
		width = 5
	case "mlp":
		s.Encoder.Hidden, s.Encoder.Dropout, width = 8, 0.5, 8
		if carry == "scores" {
			width = 3
		}
	}
	s.Encoder.Out = width
	for k := range 2 {
		l := nn.LayerSpec{Conv: "sage", In: width, Out: 6, Hops: 1 + k, Norm: true, Act: "relu", Head: []int{4, 3}}
		if carry == "hidden" && k == 0 {
			l.Head = nil
		}
		s.Layers = append(s.Layers, l)
		width = 6
		if carry == "scores" {
			width = 3
		}
	}
	return s
}

func allSpecs(t testing.TB) map[string]nn.Spec {
	all := map[string]nn.Spec{}
	for _, m := range []string{"gcn", "sage", "sage-sum", "sage-pool", "gat", "gatv2", "gin", "appnp", "sign"} {
		all[m] = preset(t, m)
	}
	for _, e := range []string{"raw", "pca", "mlp"} {
		for _, c := range []string{"hidden", "scores"} {
			all[e+" "+c] = layerwise(e, c)
		}
	}
	batch := preset(t, "gcn")
	batch.Layers[0].BatchNorm = true
	all["batch norm"] = batch
	alone := layerwise("mlp", "hidden")
	alone.Layers = nil
	all["mlp alone"] = alone
	alone = layerwise("mlp", "scores")
	alone.Layers = nil
	all["mlp alone, scores"] = alone
	return all
}

// TestSpecAndParametersMakeTheModel: a model made again from its Spec, through JSON, and its named
// parameters gives the same scores.
func TestSpecAndParametersMakeTheModel(t *testing.T) {
	g := synthetic(40, 4, 20, 5, 3)
	for name, spec := range allSpecs(t) {
		t.Run(name, func(t *testing.T) {
			m, err := nn.New(spec, rng.New(1))
			if err != nil {
				t.Fatal(err)
			}
			slab := tape.NewFlatParams(m.Params())
			seen := map[string]bool{}
			for i, p := range slab.Params {
				if p.Name == "" || seen[p.Name] {
					t.Errorf("parameter %q is not unique", p.Name)
				}
				seen[p.Name] = true
				for k := range p.Value.Data {
					p.Value.Data[k] += float32(rng.New(uint64(i)).Normal(uint64(k))) / 4
				}
			}
			text, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			var again nn.Spec
			if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, spec) {
				t.Fatalf("spec comes back as %+v, %v", again, err)
			}
			m2, err := nn.New(again, rng.New(2))
			if err != nil {
				t.Fatal(err)
			}
			copy(tape.NewFlatParams(m2.Params()).Value, slab.Value)
			s1, err1 := infer.Graph(m, g)
			s2, err2 := infer.Graph(m2, g)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if s1.Rows != 40 || s1.Cols != 3 || !reflect.DeepEqual(s1, s2) {
				t.Fatalf("scores are %d×%d; equal: %t", s1.Rows, s1.Cols, reflect.DeepEqual(s1, s2))
			}
			varied := false
			for i, v := range s1.Data {
				if math.IsNaN(float64(v)) {
					t.Fatalf("score %d is NaN", i)
				}
				varied = varied || v != s1.Data[i%3]
			}
			if !varied {
				t.Fatal("all nodes have the same scores")
			}
		})
	}
}

func TestInferRefusesAnotherGraph(t *testing.T) {
	m, err := nn.New(preset(t, "gcn"), rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := infer.Graph(m, synthetic(10, 2, 19, 3, 3)); err == nil ||
		!strings.Contains(err.Error(), "20 features, as the model has (got 19)") {
		t.Fatalf("error is %v, want one that names the 19 features", err)
	}
}

// TestFaults: every fault is named, all at once, and none panics.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		change func(*nn.Spec)
		want   []string
	}{
		{func(s *nn.Spec) { s.Task, s.LayerOutput = "many", "" },
			[]string{`task must be "single", "multi", "regression" or "links" (got "many")`,
				`layer output (carry) must be "hidden" or "scores" (got "")`}},
		{func(s *nn.Spec) { s.Features = 0 }, []string{"(got 0)", "encoder.out must be the 0 features"}},
		{func(s *nn.Spec) { s.Classes = -1 }, []string{"(got -1)", "layers[1].out must be the -1 classes"}},
		{func(s *nn.Spec) { s.Encoder.Kind = "cnn" }, []string{`or "closed" (got "cnn")`}},
		{func(s *nn.Spec) { s.Encoder.Dropout = 1 },
			[]string{"encoder.dropout must be at least 0 and less than 1 (got 1)"}},
		{func(s *nn.Spec) { s.Encoder = nn.EncoderSpec{Kind: "mlp", Out: 20} },
			[]string{"encoder.hidden must be 1 to 16777216 (got 0)",
				`encoder.out must be 0 where the layer output is "hidden" (got 20)`}},
		{func(s *nn.Spec) { s.Encoder = nn.EncoderSpec{Kind: "pca", Out: 21} },
			[]string{"encoder.out must be 1 to the 20 features (got 21)",
				"layers[0].in must be 21, the width before it (got 20)"}},
		{func(s *nn.Spec) { s.Layers = nil }, []string{"layers must have at least one layer"}},
		{func(s *nn.Spec) { s.Layers[0].Conv, s.Layers[1].Act = "cheb", "tanh" },
			[]string{`(got "cheb")`, `layers[1].act must be "", "relu" or "elu" (got "tanh")`}},
		{func(s *nn.Spec) { s.Layers[0].Dropout = float32(math.NaN()) },
			[]string{"layers[0].dropout must be at least 0 and less than 1 (got NaN)"}},
		{func(s *nn.Spec) { s.Layers[0].Norm, s.Layers[0].BatchNorm = true, true },
			[]string{"layers[0].norm and batch_norm"}},
		{func(s *nn.Spec) { s.Layers[0].Hops = -1 },
			[]string{"(got -1)", "layers[0].hops must be 1, or up to 1000 for gcn, sage, sage-sum, gin, appnp, sign"}},
		{func(s *nn.Spec) { s.Layers[0].Conv, s.Layers[0].Hops = "sage-pool", 2 },
			[]string{"layers[0].hops must be 1, or up to 1000 for gcn, sage, sage-sum, gin, appnp, sign (got 2)"}},
		{func(s *nn.Spec) { s.Layers[0].Heads = 2 },
			[]string{"layers[0].heads, average and attention_dropout do not belong to gcn"}},
		{func(s *nn.Spec) { s.Layers[0].Conv, s.Layers[0].Heads = "gat", 5 },
			[]string{"layers[0].out must be a multiple of the 5 heads (got 16)"}},
		{func(s *nn.Spec) { s.Layers[0].Conv = "gat" }, []string{"layers[0].heads must be 1 to 1024 (got 0)"}},
		{func(s *nn.Spec) { s.Layers[0].Out, s.Layers[1].In = 1<<40, 1<<40 },
			[]string{"layers[0].out must be 1 to 16777216 (got 1099511627776)", "layers[1].in"}},
		{func(s *nn.Spec) { s.Layers[0].Alpha = 0.1 }, []string{"layers[0].alpha (teleport) does not belong to gcn"}},
		{func(s *nn.Spec) { s.Layers[0].Conv = "appnp" },
			[]string{"layers[0].alpha (teleport) must be above 0 and at most 1 (got 0)"}},
		{func(s *nn.Spec) { s.Layers[0].Bases = 1 }, []string{"layers[0].relations and bases do not belong to gcn"}},
		{func(s *nn.Spec) { s.Layers[0].Conv = "rgcn" }, []string{"layers[0].relations must be 1 to"}},
		{func(s *nn.Spec) { s.Layers[1].Conv = "sign" }, []string{"layers[1].conv is sign, which must be the first"}},
		{func(s *nn.Spec) { s.Layers[1].In = 7 }, []string{"layers[1].in must be 16, the width before it (got 7)"}},
		{func(s *nn.Spec) { s.Layers[1].Out = 4 },
			[]string{"layers[1].out must be the 3 classes, or the layer must have a head (got 4)"}},
		{func(s *nn.Spec) { s.Layers[1].Head = []int{0, 4} },
			[]string{"layers[1].head[0] must be 1 to 16777216 (got 0)",
				"layers[1].head must end in the 3 classes (got 4)"}},
		{func(s *nn.Spec) { s.LayerOutput = nn.Logits },
			[]string{"layers[0].out must be the 3 classes, or the layer must have a head (got 16)"}},
	} {
		s := preset(t, "gcn")
		c.change(&s)
		_, err := nn.New(s, rng.New(1))
		if err == nil {
			t.Errorf("no fault found, want %q", c.want)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("error is %q, want it to say %q", err, w)
			}
		}
	}
	for name, s := range allSpecs(t) {
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := nn.NewLayer("layer1", nn.LayerSpec{Conv: "gcn", In: 0, Out: 0}, rng.New(1)); err == nil ||
		!strings.Contains(err.Error(), "layer1: in must be 1 to 16777216 (got 0)") ||
		!strings.Contains(err.Error(), "out must be 1 to 16777216 (got 0)") {
		t.Errorf("error is %v", err)
	}
	if _, err := nn.Preset("gcn", "single", 5, 2, 4, 0); err == nil {
		t.Error("a preset of 0 layers")
	}
}

func TestPCARowsHaveUnitLength(t *testing.T) {
	e, err := nn.NewEncoder(layerwise("pca", "hidden"), rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	e.Proj.W.Value.CopyFrom(nntest.Random(rng.New(2), 20, 5))
	x := nntest.Random(rng.New(3), 6, 20)
	clear(x.Row(4))
	for _, in := range []graph.Features{{Dense: x}, {Sparse: sparsify(x)}} {
		y := e.Encode(in).Dense
		for i := range 6 {
			sq := 0.0
			for _, v := range y.Row(i) {
				sq += float64(v) * float64(v)
			}
			want := 1.0
			if i == 4 {
				want = 0
			}
			if math.Abs(sq-want) > 1e-6 {
				t.Errorf("row %d has squared length %v", i, sq)
			}
		}
	}
}

func TestSlab(t *testing.T) {
	m, err := nn.New(preset(t, "gat"), rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	var before []mat.Dense
	n := 0
	for _, p := range m.Params() {
		before = append(before, p.Value.Clone())
		n += len(p.Value.Data)
	}
	s := tape.NewFlatParams(m.Params())
	if len(s.Value) != n || len(s.Grad) != n {
		t.Fatalf("slab has %d values and %d gradients, want %d", len(s.Value), len(s.Grad), n)
	}
	at := 0
	for k, p := range m.Params() {
		if !reflect.DeepEqual(p.Value.Clone(), before[k]) || !p.Value.Compact() {
			t.Errorf("%s changed or is not compact", p.Name)
		}
		s.Value[at], s.Grad[at] = 7, 8
		if p.Value.At(0, 0) != 7 || p.Grad.At(0, 0) != 8 {
			t.Errorf("%s is not a view of the slab at %d", p.Name, at)
		}
		at += len(p.Value.Data)
	}
	s.ZeroGrad()
	for i, v := range s.Grad {
		if v != 0 {
			t.Fatalf("gradient %d is %v", i, v)
		}
	}
}

// TestAggregateOfSparseRows: sparse while a quarter is stored at most, dense above, the same values
// and the columns ascending.
func TestAggregateOfSparseRows(t *testing.T) {
	for _, c := range []struct {
		nnz    int
		sparse bool
	}{{0, true}, {2, true}, {60, false}} {
		g := synthetic(50, 4, 80, c.nnz, 3)
		adj := graph.Normalise(&g.Adj, g.Adj.Degrees(), graph.GCN)
		z := aggregate.Features(aggregate.Sum{}, adj, g.X)
		want := aggregate.Features(aggregate.Sum{}, adj, graph.Features{Dense: g.X.Sparse.Dense()}).Dense
		if (z.Sparse != nil) != c.sparse {
			t.Fatalf("%d non-zeros a row: sparse is %t", c.nnz, z.Sparse != nil)
		}
		got := z.Dense
		if z.Sparse != nil {
			if err := z.Sparse.Valid(); err != nil {
				t.Fatal(err)
			}
			got = z.Sparse.Dense()
		}
		compare(t, "aggregate", got, want)
		pooled := aggregate.Features(aggregate.Max{}, adj, g.X).Dense
		compare(t, "maximum", pooled,
			aggregate.Features(aggregate.Max{}, adj, graph.Features{Dense: g.X.Sparse.Dense()}).Dense)
	}
}

func TestL1Norm(t *testing.T) {
	spec := layerwise("raw", "hidden")
	spec.Encoder.L1Norm = true
	e, err := nn.NewEncoder(spec, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	x := mat.View(3, 3, []float32{1, -3, 0, 0, 0, 0, 0.5, 0, 0})
	want := mat.View(3, 3, []float32{0.25, -0.75, 0, 0, 0, 0, 1, 0, 0})
	keep, s := x.Clone(), sparsify(x)
	compare(t, "dense rows", e.Encode(graph.Features{Dense: x}).Dense, want)
	compare(t, "sparse rows", e.Encode(graph.Features{Sparse: s}).Sparse.Dense(), want)
	if !reflect.DeepEqual(x, keep) || !reflect.DeepEqual(s, sparsify(keep)) {
		t.Error("the features were written")
	}
}

// TestInitialValues: a function of key and name alone, uniform within Glorot's limit.
func TestInitialValues(t *testing.T) {
	value := func(name string, seed uint64) []float32 {
		return tape.NewLinear(name, 90, 60, false, rng.New(seed)).W.Value.Data
	}
	w := value("a", 1)
	if !reflect.DeepEqual(w, value("a", 1)) || reflect.DeepEqual(w, value("b", 1)) ||
		reflect.DeepEqual(w, value("a", 2)) {
		t.Error("initial values do not depend on key and name alone")
	}
	limit := math.Sqrt(6.0 / 150)
	sum, sq := 0.0, 0.0
	for _, v := range w {
		if math.Abs(float64(v)) > limit {
			t.Fatalf("%v is beyond %v", v, limit)
		}
		sum += float64(v)
		sq += float64(v) * float64(v)
	}
	n := float64(len(w))
	if mean, variance := sum/n, sq/n; math.Abs(mean) > 5*limit/math.Sqrt(3*n) ||
		math.Abs(variance/(limit*limit/3)-1) > 0.07 {
		t.Errorf("mean %v and variance %v, want 0 and %v", mean, variance, limit*limit/3)
	}
}
