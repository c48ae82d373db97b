package linear

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Design returns so many rows of a regression: the columns of parts side by side, and the constant 1.
func Design(rows int, parts ...graph.Features) mat.Dense {
	d := 1
	for _, p := range parts {
		d += p.Cols()
	}
	z := mat.New(rows, d)
	for i := range rows {
		row := z.Row(i)
		row[d-1] = 1
		for _, p := range parts {
			if p.Sparse != nil {
				col, val := p.Sparse.Row(i)
				for k, j := range col {
					row[j] = val[k]
				}
			} else {
				copy(row, p.Dense.Row(i))
			}
			row = row[p.Cols():]
		}
	}
	return z
}
