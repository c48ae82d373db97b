package nn

import (
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// newGATv2 is dynamic graph attention, y_i = Σ_j α_ij z_j + b for each head, z_j = x_j·W + c, over a
// graph with self-loops: x R×In. y is R×Out: the heads side by side, or their mean (Brody, Alon and
// Yahav, ICLR 2022, arXiv 2105.14491). α reads x_i·W' + c' of a destination and, if the graph's edges
// have columns e_ij, e_ij·U; the columns of a self-loop are zeros.
func newGATv2(name string, s LayerSpec, key rng.Key) Conv {
	attention := func(name string, heads, dim int, dropout float32, key rng.Key) aggregate.Aggregator {
		return aggregate.NewDynamicAttention(name, heads, dim, s.EdgeColumns, dropout, key)
	}
	c := newAttentionConv(name, s, true, key, attention)
	_, width := c.Pre.Dims()
	c.Dst = tape.NewLinear(name+".dst", s.In, width, true, key)
	return c
}

// weightsOfGATv2 has the matrices of attention twice, of sources and of destinations, and of columns of edges.
func weightsOfGATv2(s LayerSpec, matrix func(rows, cols int)) {
	weightsOfHeads(s, matrix)
	weightsOfHeads(s, matrix)
	s.In = s.EdgeColumns
	weightsOfHeads(s, matrix)
}
