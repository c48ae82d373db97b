package infer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// read returns the plan of a text.
func read(t *testing.T, text string) plan.Plan {
	t.Helper()
	given := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		given[name] = strings.Trim(value, "[]")
	}
	p, err := plan.Read(nil, given, nil)
	if err != nil {
		t.Fatal(err)
	}
	return *p
}

// TestRecommend: a model of links between communities, trained at three peers, recommends new links within them; the
// links of one relation follow their scores, and none is there already.
func TestRecommend(t *testing.T) {
	g := graphtest.Communities(120, 3, 8, 0.95, rng.New(2))
	g.X = graph.Features{}
	group := make([]int, g.N())
	for u, id := range rng.New(2).FoldString("name").Perm(g.N()) {
		group[id] = u % 3
	}
	p := read(t, "method: full-batch\ntask: links\nmodel: gcn\nhidden: 16\nrounds: 60\npeers: 3\ntransport: memory")
	r, err := heddle.Train(t.Context(), g, p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Links == nil || r.Links.Test == nil || r.Links.Test.MRR != r.Test || !(r.Links.Test.AUC > 0.7) ||
		r.Figures != nil {
		t.Fatalf("links are %+v and test is %v, must be ranked, with an AUC above 0.7", *r.Links.Test, r.Test)
	}
	nodes := []int32{7, 50, 3}
	all, err := infer.Recommend(t.Context(), r.Model, g, nodes, "", 5)
	if err != nil || len(all) != 15 {
		t.Fatalf("%d links are recommended (%v), must be 15", len(all), err)
	}
	near := 0
	for k, one := range all {
		col, _ := g.Adj.Row(int(one.Node))
		if one.Node != nodes[k/5] || one.Other == one.Node || slices.Contains(col, one.Other) ||
			k%5 > 0 && one.Score > all[k-1].Score {
			t.Errorf("recommendation %d is %+v, must be a new link of node %d, best first", k, one, nodes[k/5])
		}
		if group[one.Node] == group[one.Other] {
			near++
		}
	}
	if _, err := heddle.Predict(r.Model, g); err == nil {
		t.Error("classes of nodes are predicted by a model of links, must be refused")
	}
	if z, err := heddle.Embed(r.Model, g); err != nil || z.Rows != g.N() || z.Cols != r.Model.Decoder.Spec.Width {
		t.Errorf("embeddings are %d×%d (%v), must be the rows that the decoder reads", z.Rows, z.Cols, err)
	}
	if near < 12 {
		t.Errorf("%d of 15 recommended links are within a community, must be 12 or more", near)
	}
	if _, err := infer.Recommend(t.Context(), r.Model, g, nodes, "likes", 5); err == nil {
		t.Errorf("a relation that the model does not know is taken (%v), must be refused", err)
	}
	spec, err := nn.Preset("gcn", "single", g.N(), 2, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	of, err := nn.New(spec, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := infer.Recommend(t.Context(), of, g, nodes, "", 5); err == nil {
		t.Errorf("a model of classes recommends links (%v), must be refused", err)
	}
}

// TestRecommendTyped: other ends are of the types that links of the relation have.
func TestRecommendTyped(t *testing.T) {
	g := graphtest.Typed(t)
	g.Types = graph.Types{Names: []string{"even", "odd"}, Of: make([]uint8, g.N())}
	for i := range g.Types.Of {
		g.Types.Of[i] = uint8(i % 2)
	}
	keep := make([]bool, g.Typed.Adj.NumEdges())
	for row := range g.Typed.Adj.NumDst {
		for k := g.Typed.Adj.RowPtr[row]; k < g.Typed.Adj.RowPtr[row+1]; k++ {
			keep[k] = row/g.N()%2 == 1 || (row+int(g.Typed.Adj.Col[k]))%2 == 1 // a joins even and odd nodes only
		}
	}
	g.Typed.Adj = *g.Typed.Adj.Keep(keep)
	r, err := heddle.Train(t.Context(), g, read(t, "method: full-batch\npeers: 1\ntask: links\nmodel: rgcn\n"+
		"hidden: 8\nrounds: 3\ndecoder: distmult\nlink_holdout: [0.1, 0.1]"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := infer.Recommend(t.Context(), r.Model, g, []int32{4}, "a", 30)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d links are recommended (%v), must be some", len(all), err)
	}
	for _, one := range all {
		if one.Relation != "a" || one.Other%2 == 0 {
			t.Errorf("%+v is recommended, must be to an odd node by a", one)
		}
	}
}
