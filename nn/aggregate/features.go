package aggregate

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// sparseLimit is the share of non-zeros up to which an aggregate of sparse rows stays sparse; above it a dense row is
// both smaller and faster.
const sparseLimit = 0.25

// Features returns one hop of a parameterless aggregator over the rows x of g's sources: g.NumDst rows. A sum of sparse
// rows is sparse if at most a quarter of it is non-zero.
func Features(agg Aggregator, g *graph.CSR, x graph.Features) graph.Features {
	if x.Sparse != nil && agg.Properties().Sum {
		return sumSparse(g, x.Sparse)
	}
	h := mat.New(g.NumDst, x.Cols())
	Into(h, agg, g, x.Matrix())
	return graph.Features{Dense: h}
}

// Into writes the result of Features for dense rows x to h.
func Into(h mat.Dense, agg Aggregator, g *graph.CSR, x mat.Dense) {
	hop := Hop{Agg: agg, H: h, G: g, Rows: x}
	hop.Begin(nil)
	hop.Near()
	hop.End()
}

// sumSparse returns the sums as sparse rows, or as dense rows if they exceed sparseLimit.
func sumSparse(g *graph.CSR, x *mat.Sparse) graph.Features {
	if g.NumSrc != x.Rows {
		panic(shapeFault("rows of sources for Sum", x.Rows, g.NumSrc))
	}
	limit := int64(sparseLimit * float64(g.NumDst) * float64(x.Cols))
	rowPtr := make([]int64, g.NumDst+1)
	seen := make([]int32, x.Cols) // last destination with the column, plus one
	for i := range g.NumDst {
		n := rowPtr[i]
		col, _ := g.Row(i)
		for _, j := range col {
			cols, _ := x.Row(int(j))
			for _, c := range cols {
				if seen[c] != int32(i)+1 {
					seen[c] = int32(i) + 1
					n++
				}
			}
		}
		if n > limit {
			return sumDense(g, x)
		}
		rowPtr[i+1] = n
	}
	nnz := rowPtr[g.NumDst]
	out := &mat.Sparse{Rows: g.NumDst, Cols: x.Cols, RowPtr: rowPtr, Col: make([]int32, nnz), Val: make([]float32, nnz)}
	clear(seen)
	row := make([]float32, x.Cols)
	for i := range g.NumDst {
		at := out.Col[rowPtr[i]:rowPtr[i]:rowPtr[i+1]]
		eachTerm(g, x, i, func(c int32, v float32) {
			if seen[c] != int32(i)+1 {
				seen[c] = int32(i) + 1
				row[c] = 0
				at = append(at, c)
			}
			row[c] += v
		})
		slices.Sort(at)
		val := out.Val[rowPtr[i]:rowPtr[i+1]]
		for k, c := range at {
			val[k] = row[c]
		}
	}
	return graph.Features{Sparse: out}
}

// sumDense returns the sums of sparse rows as dense rows.
func sumDense(g *graph.CSR, x *mat.Sparse) graph.Features {
	h := mat.New(g.NumDst, x.Cols)
	for i := range g.NumDst {
		row := h.Row(i)
		eachTerm(g, x, i, func(c int32, v float32) { row[c] += v })
	}
	return graph.Features{Dense: h}
}

// eachTerm yields w_ij·x_jc for every source j of destination i and every stored column c.
func eachTerm(g *graph.CSR, x *mat.Sparse, i int, yield func(c int32, v float32)) {
	sources, weight := g.Row(i)
	for k, j := range sources {
		w := float32(1)
		if weight != nil {
			w = weight[k]
		}
		cols, vals := x.Row(int(j))
		for n, c := range cols {
			yield(c, float32(w*vals[n]))
		}
	}
}
