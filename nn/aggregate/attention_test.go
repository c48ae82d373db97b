package aggregate

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
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
		a := NewAttention("attention", heads, dim, 0.5, rng.New(1))
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
	if few != many || few > n*heads*dim+9*n*heads {
		t.Errorf("%d values for 2 edges a node and %d for 500, must be the same, and at most those of one "+
			"row and of logits", few, many)
	}
}

// TestAttentionDropoutIsPerEdgeAndHead: of many edges with equal logits, about the share P is
// dropped for each head, whatever the destination or the source have in common.
func TestAttentionDropoutIsPerEdgeAndHead(t *testing.T) {
	const n, p = 60, 0.5
	a := NewAttention("a", 2, 1, p, rng.New(1)).(*attention)
	g := &graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}
	z := mat.New(n, 2)
	for i := range n {
		for j := range n {
			g.Col = append(g.Col, int32(j))
		}
		g.RowPtr[i+1] = int64(len(g.Col))
		z.Row(i)[0], z.Row(i)[1] = 1, 1
	}
	a.Src.Value.Zero()
	a.Dst.Value.Zero()
	acc := &Acc{Train: true, Key: rng.New(3)}
	h := mat.New(n, 2)
	a.Begin(acc, z)
	a.Add(acc, g, z)
	a.End(h, acc)
	// Each of the 120 is the mean of 60 masks of mean 1 and deviation 1: within 5/√60 of 1, and no
	// two rows alike.
	equal := 0
	for i := range n {
		for k := range 2 {
			if v := h.At(i, k); math.Abs(float64(v)-1) > 5/math.Sqrt(n) {
				t.Errorf("head %d of destination %d keeps %v of its weight", k, i, v)
			}
		}
		if h.At(i, 0) == h.At(i, 1) || h.At(i, 0) == h.At(0, 0) {
			equal++
		}
	}
	if equal > 30 {
		t.Errorf("%d of %d rows are equal to another", equal, n)
	}
}
