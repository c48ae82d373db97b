package heddle

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// patients is a graph of n nodes. One in oneOf is of class alive, which comes before dead in the alphabet. Their
// feature has few values, so that many scores are equal.
func patients(t *testing.T, n, oneOf int) *graph.Graph {
	t.Helper()
	key, x := rng.New(7), mat.New(n, 2)
	g := &graph.Graph{Name: "patients", Labels: graph.Labels{Classes: 2, Names: []string{"alive", "dead"}}}
	var src, dst []int32
	for i := range n {
		at := key.Fold(uint64(i))
		class := int32(1)
		if i%oneOf == 0 {
			class = 0
		}
		g.Labels.Class = append(g.Labels.Class, class)
		x.Set(i, 0, float32(math.Round(2*at.Normal(1)+2*float64(1-class)))/2)
		x.Set(i, 1, 1)
		src, dst = append(src, int32(i)), append(dst, int32((i+oneOf)%n))
		g.Split = append(g.Split, []graph.Split{graph.Train, graph.Train, graph.Val, graph.Test}[at.Uint64(2)%4])
	}
	g.X = graph.Features{Dense: x}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	g.Adj = adj
	return g
}

// byPairs returns AUC and AP of class positive over the rows of a split of all parts, one pair of nodes after the
// other.
func byPairs(r *Result, shards []*shard.Shard, split graph.Split, positive int) (auc, ap float64) {
	var odds []float64
	var is []bool
	for k, s := range shards {
		for _, i := range s.NodesIn(split) {
			row := r.Own[k].Logits.Row(int(i))
			odds = append(odds, float64(row[positive])-float64(row[1-positive]))
			is = append(is, int(s.Labels.Class[i]) == positive)
		}
	}
	pairs, positives := 0.0, 0.0
	for i, a := range odds {
		if !is[i] {
			continue
		}
		positives++
		above, right := 0.0, 0.0 // nodes that score as high, and positives among them
		for j, b := range odds {
			if b >= a {
				above++
				if is[j] {
					right++
				}
			}
			if !is[j] {
				pairs++
				switch {
				case a > b:
					auc++
				case a == b:
					auc += 0.5
				}
			}
		}
		ap += right / above
	}
	return auc / pairs, ap / positives
}

// TestRareClass: the rarer class of two is the positive one, whatever its name; AUC chooses if it has under a quarter
// of the training labels. AUC, AP, the threshold and the model file are of this class, exactly.
func TestRareClass(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, must be %v", what, got, want)
		}
	}
	for _, c := range []struct {
		method, positive, metric string
		class                    int
		chosen                   string
	}{
		{"class-means", "", "", 0, "auc"},
		{"class-means", "dead", "ap", 1, "ap"},
		{"full-batch", "", "ap", 0, "ap"},
		{"layer-wise", "alive", "", 0, "auc"},
		{"mini-batch", "", "", 0, "auc"},
	} {
		t.Run(c.method+" "+c.positive+" "+c.metric, func(t *testing.T) {
			g := patients(t, 900, 9)
			p := Defaults(c.method, "")
			p.Peers, p.Policy, p.Transport, p.Positive, p.Metric, p.Threshold = 3, "random", "memory",
				c.positive, c.metric, "f1"
			p.Gradient().Rounds, p.Gradient().Hidden = 3, 8
			if c.method == "layer-wise" {
				p.LayerWise.Encoder = plan.Encoder{Kind: "raw"}
			}
			shards, err := Split(g, p)
			if err != nil {
				t.Fatal(err)
			}
			said, ended := "", map[int]Event{}
			r, err := Local{Plan: p, Shards: shards, OnEvent: func(e Event) {
				if said += e.Text + "\n"; e.Kind == train.StageEnd {
					ended[e.Stage] = e
				}
			}}.Train(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if string(r.Metric) != c.chosen || r.Card.Metric != c.chosen ||
				r.Card.Positive != g.Labels.Names[c.class] || r.Figures.Positive != c.class {
				t.Errorf("metric %s, positive %q", r.Metric, r.Card.Positive)
			}
			if auto := strings.Contains(said,
				"the metric is AUC, not accuracy: always naming dead is right for 8"); auto != (c.metric == "") {
				t.Errorf("said %q", said)
			}
			for k, set := range []struct {
				x   float64
				set *float64
				of  graph.Split
			}{{float64(r.Figures.Val.AP), &r.Val, graph.Val}, {float64(r.Figures.Test.AP), &r.Test, graph.Test}} {
				auc, ap := byPairs(r, shards, set.of, c.class)
				near("AP", set.x, ap)
				near("AUC", []float64{float64(r.Figures.Val.AUC), float64(r.Figures.Test.AUC)}[k], auc)
				bins := ended[r.Ends] // with class-means the metric of a candidate, perhaps another one
				x, bound := []float64{bins.Val, bins.Test}[k], []float64{bins.ValBound, bins.TestBound}[k]
				if off := math.Abs(x - *set.set); c.method != "class-means" && (!(off <= bound+1e-9) ||
					bound > 0.05 || bound == 0) {
					t.Errorf("from bins %v within %v, by the scores %v", x, bound, *set.set)
				}
				near("the metric", *set.set, map[string]float64{"auc": auc, "ap": ap}[c.chosen])
			}
			f := r.Figures.Threshold
			if f.Class != r.Card.Positive {
				t.Errorf("threshold of class %q", f.Class)
			}
			named := int64(0)
			for k, s := range shards {
				for _, i := range s.NodesIn(graph.Test) {
					if r.Own[k].Classes(int(i))[0] == c.class {
						named++
					}
					if p := r.Own[k].Probabilities(int(i))[c.class]; math.Abs(p-f.Probability) > 1e-6 &&
						(p > f.Probability) != (r.Own[k].Classes(int(i))[0] == c.class) {
						t.Fatalf("probability %v of class %s, named from %v on: %v", p, f.Class, f.Probability,
							r.Own[k].Classes(int(i)))
					}
				}
			}
			if of := r.Figures.Test.Classes[c.class]; of.Predicted != named || named == 0 {
				t.Errorf("%d test nodes are named %s, the figures have %d", named, of.Name, of.Predicted)
			}
			path := filepath.Join(t.TempDir(), "m.safetensors")
			if err := r.Save(path); err != nil {
				t.Fatal(err)
			}
			m, card, err := modelfile.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			a, err := Predict(m, g)
			if err != nil {
				t.Fatal(err)
			}
			x, _, err := a.By(card).Score("ap", g)
			// logits of the whole graph may round apart, and so break ties
			if math.Abs(x-float64(r.Figures.Test.AP)) > 0.02 || err != nil {
				t.Errorf("the model file has AP %v, the run %v (%v)", x, r.Figures.Test.AP, err)
			}
		})
	}
}

// TestNoRareClass: accuracy stays the metric of even classes; among two equally frequent ones the second is positive.
func TestNoRareClass(t *testing.T) {
	g := patients(t, 360, 2)
	for i := range g.Split { // as many of each train
		g.Split[i] = []graph.Split{graph.Train, graph.Val, graph.Test}[i/2%3]
	}
	p := Defaults("", "")
	p.Peers, p.Policy, p.Transport = 2, "random", "memory"
	r, err := Train(t.Context(), g, p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Metric != "accuracy" || r.Card.Positive != "dead" {
		t.Errorf("metric %s, positive %q", r.Metric, r.Card.Positive)
	}
	p.Positive = "gone"
	if _, err := Train(t.Context(), g, p); err == nil || !strings.Contains(err.Error(),
		`positive must be ["alive" "dead"], the classes of the data (got "gone")`) {
		t.Errorf("an unknown class: %v", err)
	}
}

// TestUndefinedAUC: validation nodes of one class choose nothing, and the figures are undefined, not 0.
func TestUndefinedAUC(t *testing.T) {
	for _, method := range []string{"class-means", "full-batch"} {
		g := patients(t, 600, 6)
		for i, class := range g.Labels.Class {
			if class == 0 && g.Split[i] == graph.Val {
				g.Split[i] = graph.Train
			}
		}
		p := Defaults(method, "")
		p.Peers, p.Policy, p.Transport = 2, "random", "memory"
		if method == "full-batch" {
			p.FullBatch.Rounds, p.FullBatch.Hidden = 3, 8
		}
		r, err := Train(t.Context(), g, p)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if r.Metric != "auc" || r.Val == r.Val || !(r.Test > 0.5) || r.Figures.Val.AUC == r.Figures.Val.AUC {
			t.Errorf("%s: %s %v validation, %v test", method, r.Metric, r.Val, r.Test)
		}
		said := strings.Join(r.Warnings(), "\n")
		if !strings.Contains(said, "validation auc is undefined, since all") ||
			!strings.Contains(said, "it chose nothing") {
			t.Errorf("%s: warnings %q", method, said)
		}
	}
}
