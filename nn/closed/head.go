package closed

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// Head computes logits from the D columns of all rounds so far.
type Head struct {
	Mean, Scale *tape.Param // 1×D: random features read (column − mean)·scale; nil without them
	Freq, Phase *tape.Param // D×R, 1×R: √2·cos(x·Freq + Phase) (Rahimi and Recht, NIPS 2007); nil
	Weight      *tape.Param // (D+R)×C
	Bias        *tape.Param // 1×C
}

// Inputs returns how many columns h reads, D.
func (h *Head) Inputs() int {
	if h.Freq != nil {
		return h.Freq.Value.Rows
	}
	return h.Weight.Value.Rows
}

// RandomOf returns the number of random features of a head with the given number of columns.
func (s Layout) RandomOf(columns int) int {
	if s.RandomEach == 0 {
		return s.Random
	}
	return min(s.Random, s.RandomEach*columns)
}

// drawFrequencies sets frequencies whose kernel has the width of the median distance of two rows, √(2D) for D columns
// of deviation 1. The frequencies of columns [lo, hi) are 0.
func (h *Head) drawFrequencies(key rng.Key, lo, hi int) {
	w, phase := h.Freq.Value, h.Phase.Value
	width := 1 / math.Sqrt(2*float64(max(w.Rows-(hi-lo), 1)))
	for i := range w.Data {
		if j := i / w.Cols; j < lo || j >= hi {
			w.Data[i] = float32(width * key.Normal(uint64(i)))
		}
	}
	for j := range phase.Data {
		phase.Data[j] = float32(2 * math.Pi * key.Fold(1).Float64(uint64(j)))
	}
}

// Standardise replaces columns x, N×D, by the inputs of random features.
func (h *Head) Standardise(x mat.Dense) {
	mean, scale := h.Mean.Value.Data, h.Scale.Value.Data
	for i := range x.Rows {
		row := x.Row(i)
		for j := range row {
			row[j] = (row[j] - mean[j]) * scale[j]
		}
	}
}

// rowsAtOnce is how many rows have random features in memory at a time: a megabyte.
const rowsAtOnce = 1024

// RandomFeatures writes the random features of columns to y, N×R.
func (h *Head) RandomFeatures(y, cols mat.Dense) {
	var space Columns
	for lo := 0; lo < cols.Rows; lo += rowsAtOnce {
		hi := min(lo+rowsAtOnce, cols.Rows)
		h.random(&space, y.RowRange(lo, hi), cols.RowRange(lo, hi))
	}
}

// random is RandomFeatures for a few rows, which it standardises in space.
func (h *Head) random(space *Columns, y, cols mat.Dense) {
	x, w := space.Clear(cols.Rows, cols.Cols).Add(cols), h.Freq.Value
	h.Standardise(x)
	kernels.GemmNN(x.Rows, w.Cols, x.Cols, x.Data, x.Stride, w.Data, w.Stride, y.Data, y.Stride, false)
	for i := range y.Rows {
		kernels.Waves(h.Phase.Value.Data, y.Row(i))
	}
}

// Logits returns the head's logits for columns, N×C.
func (h *Head) Logits(cols mat.Dense) mat.Dense {
	d := cols.Cols
	y := Times(graph.Features{Dense: cols}, h.Weight.Value.RowRange(0, d))
	var space, features Columns
	for lo := 0; lo < cols.Rows && h.Freq != nil; lo += rowsAtOnce {
		hi := min(lo+rowsAtOnce, cols.Rows)
		z, some := features.Clear(hi-lo, h.Freq.Value.Cols).Next(h.Freq.Value.Cols), y.RowRange(lo, hi)
		h.random(&space, z, cols.RowRange(lo, hi))
		w := h.Weight.Value.RowRange(d, h.Weight.Value.Rows)
		kernels.GemmNN(z.Rows, w.Cols, z.Cols, z.Data, z.Stride, w.Data, w.Stride, some.Data, some.Stride, true)
	}
	for i := range y.Rows {
		kernels.Add(h.Bias.Value.Data, y.Row(i))
	}
	return y
}

// Average sets the weights of h to the mean of the weights of several regressions, weighted by counts. Row k of
// weights[i] belongs to column columns[i][k], from 1; its last row is the constant. A regression has weight 0 for
// columns that it lacks.
func (h *Head) Average(columns [][]int, weights []mat.Dense, counts []float64) {
	w, bias := h.Weight.Value, h.Bias.Value.Row(0)
	sums := make([]float64, (w.Rows+1)*w.Cols) // the constant last
	total := 0.0
	for i, of := range columns {
		for k := 0; counts[i] > 0 && k <= len(of); k++ {
			row := w.Rows
			if k < len(of) {
				row = of[k] - 1
			}
			for j, v := range weights[i].Row(k) {
				sums[row*w.Cols+j] += float64(counts[i] * float64(v)) // rounded twice: the same bits on every processor
			}
		}
		total += counts[i]
	}
	for i := range w.Rows {
		for j := range w.Cols {
			w.Set(i, j, float32(sums[i*w.Cols+j]/total))
		}
	}
	for j := range bias {
		bias[j] = float32(sums[w.Rows*w.Cols+j] / total)
	}
}
