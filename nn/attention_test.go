package nn

import (
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

// TestAttentionKeepsNoEdges holds that both passes of a graph need the same memory however many
// edges it has, but for the graph's transpose.
func TestAttentionKeepsNoEdges(t *testing.T) {
	const n, heads, dim = 40, 8, 4
	memory := func(degree int) (floats int) {
		g := &graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}
		for i := range n {
			for k := range degree {
				g.Col = append(g.Col, int32(i*k%n))
			}
			g.RowPtr[i+1] = int64(len(g.Col))
		}
		a := newAttention("attention", heads, dim, 0.5, rng.New(1))
		var acc, dacc Acc
		acc.Train = true
		z, dz := mat.New(n, heads*dim), mat.New(n, heads*dim)
		a.Begin(&acc, z)
		a.Add(&acc, g, z)
		a.End(mat.New(n, heads*dim), &acc)
		a.EndGrad(&dacc, z, &acc)
		a.AddGrad(dz, g, z, &acc, &dacc)
		a.BeginGrad(dz, z, &acc, &dacc)
		for _, acc := range []*Acc{&acc, &dacc} {
			floats += cap(acc.edge) + cap(acc.arg) + cap(acc.argNow)
			for _, b := range acc.buf {
				floats += cap(b)
			}
		}
		return floats
	}
	few, many := memory(2), memory(500)
	if few != many || few > 3*n*heads*dim+12*n*heads {
		t.Errorf("%d values for 2 edges a node and %d for 500, want the same and at most those of three rows", few, many)
	}
}
