package retexo

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// TestColumnsOfEdges: layers that read the columns of edges train layer by layer to the same model whatever the parts:
// an edge's columns are at the owner of its destination.
func TestColumnsOfEdges(t *testing.T) {
	g := toy{}.graph(t)
	for i := range g.N() {
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			g.Adj.Edge = append(g.Adj.Edge, int32(i)*j%50-1)
		}
	}
	g.EdgeX = mat.New(50, 2)
	for k := range g.EdgeX.Data {
		g.EdgeX.Data[k] = float32(rng.New(6).Normal(uint64(k)))
	}
	for _, d := range []Design{
		{Model: "gine", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 1, Dropout: 0.3,
			EdgeColumns: 2},
		{Model: "gine", Encoder: "pca", Components: 4, LayerOutput: "logits", Layers: 1, Hidden: 8, Hops: 1,
			EdgeColumns: 2},
		{Model: "gatv2", Encoder: "pca", Components: 4, LayerOutput: "hidden", Layers: 2, Hidden: 8, Heads: 2, Hops: 1,
			EdgeColumns: 2},
	} {
		t.Run(d.name(), func(t *testing.T) {
			c := configOf(t, g, d)
			want := mustTrain(t, c, cut(t, g, "random", 1), nil).models[0].Params()
			got := mustTrain(t, c, cut(t, g, "random", 3), nil).models[0].Params()
			for k, p := range want {
				for i, v := range p.Value.Data {
					if d := math.Abs(float64(got[k].Value.Data[i] - v)); !(d <= 2e-3*max(1, math.Abs(float64(v)))) {
						t.Fatalf("%s: value %d must be %g (got %g)", p.Name, i, v, got[k].Value.Data[i])
					}
				}
			}
			g := *g
			g.EdgeX = mat.Dense{}
			g.Adj.Edge = nil
			if _, err := runAll(t.Context(), c, cut(t, &g, "random", 2), nil); err == nil {
				t.Fatal("a graph without columns must be refused")
			}
		})
	}
}
