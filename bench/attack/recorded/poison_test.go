package recorded

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// topics returns a graph of three groups, whose edges and words reveal the group; a third each trains, validates and
// tests.
func topics(t *testing.T) *graph.Graph {
	t.Helper()
	const n, words, each = 900, 90, 6
	key := rng.New(4)
	var src, dst []int32
	x := mat.New(n, words)
	g := &graph.Graph{Name: "topics", Split: make([]graph.Split, n),
		Labels: graph.Labels{Classes: 3, Class: make([]int32, n)}}
	for i := range n {
		class := i % 3
		g.Labels.Class[i] = int32(class)
		g.Split[i] = []graph.Split{graph.Train, graph.Val, graph.Test}[i/3%3]
		for k := range each {
			at := uint64(i*each + k)
			word := int(key.FoldString("word").Uint64(at) % words)
			if key.FoldString("of the topic").Float64(at) < 0.3 {
				word = word%30 + 30*class
			}
			x.Set(i, word, 1)
		}
		for k := range 3 {
			at := uint64(i*3 + k)
			j := int(key.FoldString("edge").Uint64(at)%(n/3))*3 + class
			if key.FoldString("across").Float64(at) < 0.3 {
				j = int(key.FoldString("any").Uint64(at) % n)
			}
			if i != j {
				src, dst = append(src, int32(i), int32(j)), append(dst, int32(j), int32(i))
			}
		}
	}
	var err error
	if g.Adj, err = graph.FromEdges(n, src, dst, nil, graph.Build{}); err != nil {
		t.Fatal(err)
	}
	g.X = graph.Features{Dense: x}
	return g
}

// TestPoison: a lie that no data can produce ends the run; others reduce accuracy about as much as in
// docs/measurements/faults.md.
func TestPoison(t *testing.T) {
	ends, groups := math.Inf(1), [][2]int{{4, 1}, {8, 2}} // sites, and those that lie
	if !testenv.LongForm(t) {
		groups = groups[:1]
	}
	for _, test := range []struct {
		given map[string]string
		most  map[string]float64 // that a lie costs; ends: it ends the run
		least map[string]float64 // that it costs, so that there is something to keep it from
	}{
		{map[string]string{"class_target": "labels"}, map[string]float64{
			"labels of the next class": 0.05, "random labels": 0.03, "class means × 10": ends, "class means × -4": 0.1,
			"class means × -1": 0.05, "class means of the next class": 0.03, "normal equations × 10": ends,
			"normal equations × -1": ends, "products with labels × -1": ends,
			"products with labels of the next class": ends}, map[string]float64{"class means × -4": 0.02}},
		{map[string]string{"method": "layer-wise", "encoder": "raw", "layers": "1", "hidden": "16", "rounds": "40",
			"lr": "0.03"}, map[string]float64{
			"labels of the next class": 0.1, "random labels": 0.1, "updates × 1e+06": 0.2, "updates × 10": 0.1,
			"updates × -1": 0.3, "updates × -2": 0.6, "updates × -4": 0.9},
			map[string]float64{"updates × -4": 0.3}},
	} {
		for _, at := range groups {
			test.given["secure_sums"] = "off"
			shards, p := split(t, topics(t), at[0], test.given)
			honest, err := Poison(t.Context(), p, shards, at[1], Lie{})
			if err != nil {
				t.Fatal(err)
			}
			if v := honest.Final().Test; v < 0.85 {
				t.Errorf("%v: accuracy without a lie must be that of a trained model (got %.3f)", test.given, v)
			}
			lies := Lies(p)
			if len(lies) != len(test.most) {
				t.Errorf("this test must know all %d lies (got %d)", len(lies), len(test.most))
			}
			for _, lie := range lies {
				r, err := Poison(t.Context(), p, shards, at[1], lie)
				refused := errors.Is(err, comm.ErrRefused)
				if err != nil && !refused || refused != math.IsInf(test.most[lie.Name], 1) {
					t.Errorf("%v, %v, %s: %v, must end the run: %t", test.given, at, lie.Name, err, !refused)
				} else if !refused {
					cost := honest.Final().Test - r.Final().Test
					t.Logf("%v, %v, %s: costs %.3f", test.given, at, lie.Name, cost)
					if least, ok := test.least[lie.Name]; cost > test.most[lie.Name] || ok && cost < least {
						t.Errorf("%v, %v, %s: costs %.3f, must be %.3f to %.3f", test.given, at, lie.Name, cost, least,
							test.most[lie.Name])
					}
				}
			}
		}
	}
}

// TestPoisonRefuses: somebody must be honest.
func TestPoisonRefuses(t *testing.T) {
	shards, p := split(t, topics(t), 3, nil)
	if _, err := Poison(t.Context(), p, shards, 3, Lie{}); err == nil ||
		!strings.Contains(err.Error(), "liars must be 0 to 2 of 3 peers (got 3)") {
		t.Error(err)
	}
}
