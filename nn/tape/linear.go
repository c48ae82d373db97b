package tape

import (
	"fmt"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// Linear is y = x·W + b: x R×in, dense or sparse, y R×out. In pieces it is y = [x₀·W₀ | x₁·W₁ | …] +
// b: x and y are cut into as many pieces of columns, of one width each, and each piece has a matrix
// of its own. A nil Linear has no parameters.
type Linear struct {
	W *Param // in×out; in pieces in×(out/pieces), the matrices one below another
	B *Param // 1×out (nil = no bias)

	pieces int // ≥ 1
}

// NewLinear returns a Linear with a random weight by key and its name (Glorot, uniform). Its bias
// is 0.
func NewLinear(name string, in, out int, bias bool, key rng.Key) *Linear {
	return NewBlockLinear(name, in, out, 1, bias, key)
}

// NewBlockLinear returns a Linear in pieces; in and out are the widths of all together.
func NewBlockLinear(name string, in, out, pieces int, bias bool, key rng.Key) *Linear {
	l := &Linear{W: Glorot(name+".weight", in, out/pieces, in/pieces, out/pieces, key), pieces: pieces}
	if bias {
		l.B = NewParam(name+".bias", 1, out, 0)
	}
	return l
}

// NewProjection returns a Linear without bias whose weight is 0.
func NewProjection(name string, in, out int) *Linear {
	return &Linear{W: NewParam(name+".weight", in, out, 0), pieces: 1}
}

// Params returns the weight and the bias, if there is one.
func (l *Linear) Params() []*Param {
	switch {
	case l == nil:
		return nil
	case l.B == nil:
		return []*Param{l.W}
	}
	return []*Param{l.W, l.B}
}

// Dims returns the widths of x and y.
func (l *Linear) Dims() (in, out int) { return l.W.Value.Rows, l.pieces * l.W.Value.Cols }

// Forward writes y = x·W + b and keeps x, which must not change until Backward.
func (l *Linear) Forward(y, x mat.Dense, t *Tape) {
	l.Product(y, graph.Features{Dense: x}, false, l.B, false, t)
}

// forwardSparse is Forward of a sparse x. Its Backward takes an empty dx.
func (l *Linear) forwardSparse(y mat.Dense, x *mat.Sparse, t *Tape) {
	l.Product(y, graph.Features{Sparse: x}, false, l.B, false, t)
}

// Backward adds dy·Wᵀ to dx, xᵀ·dy to the weight's gradient and the column sums of dy to the
// bias's.
func (l *Linear) Backward(dx, dy mat.Dense, t *Tape) {
	BiasGrad(l.B, dy)
	l.ProductGrad(dx, dy, t)
}

// Product writes y = x·W, or adds it if add, adds b, if there is one, and applies ReLU if relu.
func (l *Linear) Product(y mat.Dense, x graph.Features, add bool, b *Param, relu bool, t *Tape) {
	in, out := l.Dims()
	if y.Rows != x.Rows() || y.Cols != out {
		panic(fmt.Sprintf("nn: output of Linear must be %d×%d (got %d×%d)", x.Rows(), out, y.Rows, y.Cols))
	}
	if x.Cols() != in {
		panic(fmt.Sprintf("nn: columns of Linear's input must be %d (got %d)", in, x.Cols()))
	}
	if x.Sparse != nil {
		l.sparseProduct(y, x.Sparse, add, t)
		AddBias(y, b, relu)
		return
	}
	product := kernels.GemmNNBias
	if t.rounds() {
		product = kernels.GemmNNBF16
	}
	for k := range l.pieces {
		var bias []float32
		if b != nil {
			bias = piece(b.Value.ColRange, out, l.pieces, k).Row(0)
		}
		y, x, w := piece(y.ColRange, out, l.pieces, k), piece(x.Dense.ColRange, in, l.pieces, k), l.weight(k)
		product(y.Rows, y.Cols, w.Rows, x.Data, x.Stride, w.Data, w.Stride, y.Data, y.Stride, add, bias, relu)
	}
	t.Push(Entry{X: x.Dense})
}

// sparseProduct is Product of sparse rows, without a bias: a row of each piece of a row.
func (l *Linear) sparseProduct(y mat.Dense, x *mat.Sparse, add bool, t *Tape) {
	w, into, stride := l.W.Value, y, y.Stride
	if d := t.lost(x); d != nil && &x.RowPtr[0] == &d.ends[0] {
		d.first = min(d.first, x.Rows)
	}
	if l.pieces > 1 {
		x = t.View(mat.Sparse{
			Rows: x.Rows * l.pieces, Cols: x.Cols, RowPtr: pieceRows(x, l.pieces, t), Col: x.Col, Val: x.Val,
		})
		if !y.Compact() {
			into = t.Raw(y.Rows, y.Cols)
			into.CopyFrom(y)
		}
		stride = w.Cols
	}
	SparseProduct(mat.Dense{Rows: x.Rows, Cols: w.Cols, Stride: stride, Data: into.Data}, x, w, add)
	CopyTo(y, into)
	t.Push(Entry{Sparse: x})
}

// weight returns the matrix of piece k.
func (l *Linear) weight(k int) mat.Dense {
	return piece(l.W.Value.RowRange, l.W.Value.Rows, l.pieces, k)
}

// piece returns piece k of n columns or rows; cut returns a range of them.
func piece[T any](cut func(lo, hi int) T, n, pieces, k int) T {
	return cut(k*n/pieces, (k+1)*n/pieces)
}

// ProductGrad is the backward pass of Product.
func (l *Linear) ProductGrad(dx, dy mat.Dense, t *Tape) {
	if x := l.WeightGrad(dy, t); !x.Empty() && !dx.Empty() {
		l.InputGrad(dx, dy, true, t)
	}
}

// WeightGrad adds xᵀ·dy to the weight's gradient and returns x, or an empty matrix if x is sparse.
func (l *Linear) WeightGrad(dy mat.Dense, t *Tape) mat.Dense {
	e := t.Pop()
	if e.Sparse != nil {
		m := t.Mark()
		defer t.Release(m)
		if l.pieces > 1 {
			if !dy.Compact() {
				d := t.Raw(dy.Rows, dy.Cols)
				d.CopyFrom(dy)
				dy = d
			}
			dy = mat.View(e.Sparse.Rows, l.W.Value.Cols, dy.Data)
		}
		t.sparseGrad(l.W.Grad, e.Sparse, dy, true)
		return mat.Dense{}
	}
	in, out := l.Dims()
	for k := range l.pieces {
		addWeightGrad(piece(l.W.Grad.RowRange, in, l.pieces, k), piece(e.X.ColRange, in, l.pieces, k),
			piece(dy.ColRange, out, l.pieces, k), t.rounds())
	}
	return e.X
}

// InputGrad writes dy·Wᵀ to dx, or adds it.
func (l *Linear) InputGrad(dx, dy mat.Dense, add bool, t *Tape) {
	product := kernels.GemmNT
	if t.rounds() {
		product = kernels.GemmNTBF16
	}
	in, out := l.Dims()
	for k := range l.pieces {
		dx, dy, w := piece(dx.ColRange, in, l.pieces, k), piece(dy.ColRange, out, l.pieces, k), l.weight(k)
		product(dx.Rows, dx.Cols, w.Cols, dy.Data, dy.Stride, w.Data, w.Stride, dx.Data, dx.Stride, add)
	}
}

// BackwardOver is Backward with the gradient of x in the memory of x, which must not be read any more.
func (l *Linear) BackwardOver(dy mat.Dense, t *Tape) mat.Dense {
	BiasGrad(l.B, dy)
	x := l.WeightGrad(dy, t)
	l.InputGrad(x, dy, false, t)
	return x
}

// pieceRows returns the row pointers of x with each row cut into pieces of one width: row i's piece
// k is row i·pieces+k. A tape remembers them, unless dropout has left x.
func pieceRows(x *mat.Sparse, pieces int, t *Tape) []int64 {
	cut := func() *pieceRowPtr {
		ptr, width := make(pieceRowPtr, 1, x.Rows*pieces+1), x.Cols/pieces
		for i := range x.Rows {
			col, _ := x.Row(i)
			for k := range pieces {
				end, _ := slices.BinarySearch(col, int32((k+1)*width))
				ptr = append(ptr, x.RowPtr[i]+int64(end))
			}
		}
		return &ptr
	}
	if len(x.Col) == 0 || t.Lost(x) {
		return *cut()
	}
	return *Remember(t.Patterns(), x.RowPtr, x.Col, x.Cols, cut)
}

type pieceRowPtr []int64

// AddBias adds b, unless it is nil, to every row of y, and applies ReLU if relu.
func AddBias(y mat.Dense, b *Param, relu bool) {
	if b == nil && !relu {
		return
	}
	w := biases.Get().(*bias)
	w.y, w.b, w.relu = y, b, relu
	kernels.Parallel(w, (y.Rows+w.band()-1)/w.band())
	*w = bias{}
	biases.Put(w)
}

// bias is a call of AddBias, in bands of rows.
type bias struct {
	y    mat.Dense
	b    *Param
	relu bool
}

var biases = sync.Pool{New: func() any { return new(bias) }}

func (w *bias) band() int { return max(1, BandLen/max(w.y.Cols, 1)) }

// Run does one band.
func (w *bias) Run(part int) {
	lo, hi := part*w.band(), min((part+1)*w.band(), w.y.Rows)
	var b []float32
	if w.b != nil {
		b = w.b.Value.Row(0)
	}
	y := w.y.RowRange(lo, hi)
	kernels.AddBias(y.Rows, y.Cols, y.Data, y.Stride, b, w.relu)
}

// BiasGrad adds the column sums of dy to the gradient of b, unless that is nil.
func BiasGrad(b *Param, dy mat.Dense) {
	if b != nil {
		kernels.SumColumns(dy.Rows, dy.Data, dy.Stride, b.Grad.Row(0), true)
	}
}

// addWeightGrad adds xᵀ·dy to dw. With bf16 both factors are rounded to bfloat16.
func addWeightGrad(dw, x, dy mat.Dense, bf16 bool) {
	product := kernels.GemmTN
	if bf16 {
		product = kernels.GemmTNBF16
	}
	product(dw.Rows, dw.Cols, dy.Rows, x.Data, x.Stride, dy.Data, dy.Stride, dw.Data, dw.Stride, true)
}

// WeightedSum writes y = S·x, or adds it to y. S is a CSR matrix of values val (nil = all 1).
func WeightedSum(y mat.Dense, rowPtr []int64, col []int32, val []float32, x mat.Dense, add bool) {
	kernels.SpMM(rowPtr, col, val, x.Cols, x.Data, x.Stride, y.Data, y.Stride, add)
}

// SparseProduct writes y = x·w, or adds it to y, of sparse rows x.
func SparseProduct(y mat.Dense, x *mat.Sparse, w mat.Dense, add bool) {
	kernels.SpMMPanels(x.RowPtr, x.Col, x.Val, w.Cols, w.Data, w.Stride, y.Data, y.Stride, add)
}
