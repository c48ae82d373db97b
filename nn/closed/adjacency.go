package closed

import (
	"cmp"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// MostAdjacent is the greatest number of columns for neighbours: more columns make the sums of class means larger. If
// there are fewer nodes than columns, each node has its own column.
const MostAdjacent = 8192

// AdjacencyRows returns features for nodes that have none: their neighbourhood. Row i has a one for destination i of
// adj and for each of its in-neighbours, in the column of their number; numbers[j] is the number of source j. If there
// are more nodes than columns, a number is hashed to a column and a sign. The products of two rows are then in
// expectation the products of unhashed rows (Weinberger et al., ICML 2009).
func AdjacencyRows(adj *graph.CSR, numbers []int64, nodes, columns int) graph.Features {
	x := &mat.Sparse{Rows: adj.NumDst, Cols: columns, RowPtr: make([]int64, adj.NumDst+1)}
	key := rng.New(0).FoldString("columns of neighbours") // a fixed key: the columns are part of the model
	at := func(number int64) one {
		if nodes <= columns {
			return one{int32(number), 1}
		}
		h := key.Uint64(uint64(number))
		return one{int32(h >> 1 % uint64(columns)), 1 - 2*float32(h&1)}
	}
	var row []one
	for i := range adj.NumDst {
		row = append(row[:0], at(numbers[i])) // destinations are the first sources
		near, _ := adj.Row(i)
		for _, j := range near {
			row = append(row, at(numbers[j]))
		}
		slices.SortFunc(row, func(a, b one) int { return cmp.Compare(a.column, b.column) })
		for k := 0; k < len(row); {
			column, sum := row[k].column, float32(0)
			for ; k < len(row) && row[k].column == column; k++ {
				sum += row[k].value
			}
			if sum != 0 {
				x.Col, x.Val = append(x.Col, column), append(x.Val, sum)
			}
		}
		x.RowPtr[i+1] = int64(len(x.Col))
	}
	return graph.Features{Sparse: x}
}

// one is a value of a row.
type one struct {
	column int32
	value  float32
}
