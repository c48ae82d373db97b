package tape

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// BF16 names the precision of a tape whose operands are Half.
const BF16 = "bf16"

// Operand is a matrix as products and sums read it: its float32 values, or these rounded to
// bfloat16, which take half the bytes and, where the processor multiplies them in pairs, less time.
// What products and sums put out is float32 in any case.
type Operand struct {
	x      mat.Dense
	half   []uint16 // nil: x is read
	stride int      // of half
}

// Operand returns x in the precision of t, which stays valid until the memory is released: x itself,
// or what it is rounded to now.
func (t *Tape) Operand(x mat.Dense) Operand {
	if t == nil || !t.Half || x.Empty() {
		return Operand{x: x}
	}
	n := x.Rows * x.Cols
	half := kernels.Halves(t.arena.take((n + 1) / 2))[:n]
	if x.Compact() {
		kernels.ToBF16(x.Data[:n], half)
	} else {
		each(loop{body: roundRows, rows: x.Rows, width: x.Cols, x: x, half: half})
	}
	return Operand{x, half, x.Cols}
}

func roundRows(w *loop, lo, hi int) {
	for i := lo; i < hi; i++ {
		kernels.ToBF16(w.x.Row(i), w.half[i*w.x.Cols:][:w.x.Cols])
	}
}

// RowRange returns the view of rows [lo, hi).
func (o Operand) RowRange(lo, hi int) Operand {
	o.x = o.x.RowRange(lo, hi)
	return o.from(lo * o.stride)
}

// ColRange returns the view of columns [lo, hi).
func (o Operand) ColRange(lo, hi int) Operand {
	o.x = o.x.ColRange(lo, hi)
	return o.from(lo)
}

// from returns o with the first values of half left out.
func (o Operand) from(at int) Operand {
	if o.half != nil && !o.x.Empty() {
		o.half = o.half[at:]
	}
	return o
}

// Product writes y = x·w + bias, or adds it to y. bias is that of each column, or nil.
func Product(y mat.Dense, x, w Operand, add bool, bias []float32) {
	if x.half != nil && w.half != nil {
		kernels.GemmNNBiasBF16(y.Rows, y.Cols, w.x.Rows, x.half, x.stride, w.half, w.stride, y.Data, y.Stride, add, bias)
		return
	}
	kernels.GemmNNBias(y.Rows, y.Cols, w.x.Rows, x.x.Data, x.x.Stride, w.x.Data, w.x.Stride, y.Data, y.Stride, add, bias)
}

// AddWeightGrad adds xᵀ·dy to dw.
func AddWeightGrad(dw mat.Dense, x, dy Operand) {
	if x.half != nil && dy.half != nil {
		kernels.GemmTNBF16(dw.Rows, dw.Cols, dy.x.Rows, x.half, x.stride, dy.half, dy.stride, dw.Data, dw.Stride, true)
		return
	}
	kernels.GemmTN(dw.Rows, dw.Cols, dy.x.Rows, x.x.Data, x.x.Stride, dy.x.Data, dy.x.Stride, dw.Data, dw.Stride, true)
}

// InputGrad writes dx = dy·wᵀ, or adds it to dx.
func InputGrad(dx mat.Dense, dy, w Operand, add bool) {
	if dy.half != nil && w.half != nil {
		kernels.GemmNTBF16(dx.Rows, dx.Cols, w.x.Cols, dy.half, dy.stride, w.half, w.stride, dx.Data, dx.Stride, add)
		return
	}
	kernels.GemmNT(dx.Rows, dx.Cols, w.x.Cols, dy.x.Data, dy.x.Stride, w.x.Data, w.x.Stride, dx.Data, dx.Stride, add)
}

// WeightedSum writes y = S·x, or adds it to y: S is a CSR of values val (nil: all 1), which are float32
// in either precision.
func WeightedSum(y mat.Dense, rowPtr []int64, col []int32, val []float32, x Operand, add bool) {
	if x.half != nil {
		kernels.SpMMBF16(rowPtr, col, val, x.x.Cols, x.half, x.stride, y.Data, y.Stride, add)
		return
	}
	kernels.SpMM(rowPtr, col, val, x.x.Cols, x.x.Data, x.x.Stride, y.Data, y.Stride, add)
}
