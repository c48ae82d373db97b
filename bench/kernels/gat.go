package kernels

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

func attention() (all []measure.Case) {
	for _, g := range []*measure.Graph{measure.Uniform(18_333, 9), measure.Uniform(13_752, 36),
		measure.Skewed(50_000, 20)} {
		for _, d := range [][2]int{{4, 16}, {8, 8}, {8, 32}} {
			all = append(all, gat(g, d[0], d[1]))
		}
	}
	return all
}

// gat is both passes of a layer of graph attention on rows of 64, with dropout of the attention.
func gat(g *measure.Graph, heads, dim int) measure.Case {
	const in = 64
	return measure.Case{
		Name: fmt.Sprintf("GAT %s, %d×%d", g.Name, heads, dim), Unit: "Medge/s", Work: 1e3 * float64(len(g.Col)),
		Baseline: fmt.Sprintf("gat %s %d %d", g.Seed, heads, dim),
		Prepare: func() func() {
			layer, err := nn.NewLayer("gat", nn.LayerSpec{Conv: "gat", In: in, Out: heads * dim, Heads: heads,
				AttentionDropout: 0.6}, rng.New(1))
			if err != nil {
				panic(err) // the widths above are valid
			}
			csr := &graph.CSR{NumDst: g.Nodes, NumSrc: g.Nodes, RowPtr: g.RowPtr, Col: g.Col}
			x := mat.View(g.Nodes, in, measure.Values(g.Nodes*in))
			y, dx, dy := mat.New(g.Nodes, heads*dim), mat.New(g.Nodes, in), mat.New(g.Nodes, heads*dim)
			for i := range dy.Data {
				dy.Data[i] = 1
			}
			t := tape.New()
			return func() {
				t.Reset()
				layer.Forward(y, nn.Input{G: csr, X: graph.Features{Dense: x}}, t)
				layer.Backward(dx, dy, t)
			}
		},
	}
}
