package closed

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Sums reports whether round r, from 0, adds the sum of the neighbours' class rows to its columns
// (Layout.Own).
func (s Layout) Sums(r int) bool { return s.Own > 0 && r >= s.Own }

// sumColumns returns how many columns such a round adds to the columns of its map.
func sumColumns(classes int) int { return 3 * classes }

// ClassRows returns the rows that nodes send their neighbours in a round that sums rows: the soft labels of the logits
// minus their mean, scaled to length 1. One edge more or less changes the sums of its two ends by one such row each.
// With Coarse the rows of nodes with few values among the features x are rounded, as in Coarsen; they may then be
// slightly longer.
func (s Layout) ClassRows(x graph.Features, logits mat.Dense) mat.Dense {
	rows := mat.New(logits.Rows, logits.Cols)
	for i := range rows.Rows {
		row := rows.Row(i)
		softmax(row, logits.Row(i))
		for c := range row {
			row[c] -= 1 / float32(len(row))
		}
		unitRow(row)
	}
	s.coarsen(x, rows, 1/math.Sqrt(float64(rows.Cols)), finest)
	return rows
}

// SumColumns returns the columns that a round adds for the sums of the neighbours' class rows: the sums, the sums
// scaled to length 1, and the node's own logits.
func (s Layout) SumColumns(sums, logits mat.Dense) mat.Dense {
	directions := sums.Clone()
	for i := range directions.Rows {
		unitRow(directions.Row(i))
	}
	return graph.Columns([]graph.Features{{Dense: sums}, {Dense: directions}, {Dense: logits}}).Dense
}

// unitRow scales a row to length 1, unless it is zero.
func unitRow(row []float32) {
	square := 0.0
	for _, v := range row {
		square += float64(v) * float64(v)
	}
	if square == 0 {
		return
	}
	for k, v := range row {
		row[k] = float32(float64(v) / math.Sqrt(square))
	}
}

// neighbours returns the edges of adj without weights, loops and repetitions.
func neighbours(adj *graph.CSR) *graph.CSR {
	out := &graph.CSR{NumDst: adj.NumDst, NumSrc: adj.NumSrc, RowPtr: make([]int64, adj.NumDst+1)}
	for i := range adj.NumDst {
		col, _ := adj.Row(i)
		last := int32(-1)
		for _, j := range col { // ascending
			if int(j) != i && j != last {
				out.Col = append(out.Col, j)
			}
			last = j
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return out
}
