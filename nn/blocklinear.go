package nn

import (
	"slices"

	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// blockLinear is y = [x₀·W₀ | x₁·W₁ | …] + b: x and y are cut into as many pieces of columns, of
// one width each, and each piece has a matrix of its own.
type blockLinear struct {
	Pieces int
	W      *tape.Param // in×(out/pieces): the matrices one below another
	B      *tape.Param // 1×out, or nil: no bias
}

// newBlockLinear returns a BlockLinear of so many pieces; in and out are the widths of all
// together.
func newBlockLinear(name string, in, out, pieces int, bias bool, key rng.Key) *blockLinear {
	b := &blockLinear{Pieces: pieces, W: tape.Glorot(name+".weight", in, out/pieces, in/pieces, out/pieces, key)}
	if bias {
		b.B = tape.NewParam(name+".bias", 1, out, 0)
	}
	return b
}

// Params returns the matrices and, where there is one, the bias.
func (b *blockLinear) Params() []*tape.Param {
	if b.B == nil {
		return []*tape.Param{b.W}
	}
	return []*tape.Param{b.W, b.B}
}

// Dims returns the widths of all pieces together.
func (b *blockLinear) Dims() (in, out int) { return b.W.Value.Rows, b.Pieces * b.W.Value.Cols }

// Forward writes y and keeps x, which must stay as it is until Backward.
func (b *blockLinear) Forward(y, x mat.Dense, t *tape.Tape) {
	in, out := b.Dims()
	checkShape("BlockLinear", y, x.Rows, out)
	in, out = in/b.Pieces, out/b.Pieces
	for k := range b.Pieces {
		xk, yk, w := x.ColRange(k*in, (k+1)*in), y.ColRange(k*out, (k+1)*out), b.W.Value.RowRange(k*in, (k+1)*in)
		kernels.GemmNN(y.Rows, out, in, xk.Data, xk.Stride, w.Data, w.Stride, yk.Data, yk.Stride, false)
	}
	t.Push(tape.Entry{X: x})
	addBias(y, b.B)
}

// forwardSparse is Forward of a sparse x, one product: a row of each piece of a row. Its Backward
// takes an empty dx.
func (b *blockLinear) forwardSparse(y mat.Dense, x *mat.Sparse, t *tape.Tape) {
	_, out := b.Dims()
	checkShape("BlockLinear", y, x.Rows, out)
	out /= b.Pieces
	pieces := t.View(mat.Sparse{
		Rows: x.Rows * b.Pieces, Cols: x.Cols, RowPtr: pieceRows(x, b.Pieces, t), Col: x.Col, Val: x.Val,
	})
	into := y
	if !y.Compact() {
		into = t.Raw(y.Rows, y.Cols)
	}
	kernels.SpMM(pieces.RowPtr, pieces.Col, pieces.Val, out, b.W.Value.Data, b.W.Value.Stride, into.Data, out, false)
	copyRows(y, into)
	t.Push(tape.Entry{Sparse: pieces})
	addBias(y, b.B)
}

func (b *blockLinear) weights() (w, bias *tape.Param) { return b.W, b.B }

// Backward adds to dx, piece by piece, and to the parameters' gradients.
func (b *blockLinear) Backward(dx, dy mat.Dense, t *tape.Tape) {
	biasGrad(b.B, dy)
	if b.weightGrad(dy, t).Empty() || dx.Empty() {
		return
	}
	b.inputGrad(dx, dy, true)
}

// weightGrad adds to the gradient of the matrices and returns x, empty where it is sparse.
func (b *blockLinear) weightGrad(dy mat.Dense, t *tape.Tape) mat.Dense {
	in, out := b.Dims()
	in, out = in/b.Pieces, out/b.Pieces
	e := t.Pop()
	if e.Sparse != nil {
		m := t.Mark()
		if !dy.Compact() {
			d := t.Raw(dy.Rows, dy.Cols)
			d.CopyFrom(dy)
			dy = d
		}
		t.SparseGrad(b.W.Grad, &e, b.Pieces, mat.View(e.Sparse.Rows, out, dy.Data))
		t.Release(m)
		return mat.Dense{}
	}
	for k := range b.Pieces {
		xk, d, dw := e.X.ColRange(k*in, (k+1)*in), dy.ColRange(k*out, (k+1)*out), b.W.Grad.RowRange(k*in, (k+1)*in)
		kernels.GemmTN(in, out, dy.Rows, xk.Data, xk.Stride, d.Data, d.Stride, dw.Data, dw.Stride, true)
	}
	return e.X
}

// inputGrad makes of dx the gradient of x, or adds it.
func (b *blockLinear) inputGrad(dx, dy mat.Dense, add bool) {
	in, out := b.Dims()
	in, out = in/b.Pieces, out/b.Pieces
	for k := range b.Pieces {
		d, w, dxk := dy.ColRange(k*out, (k+1)*out), b.W.Value.RowRange(k*in, (k+1)*in), dx.ColRange(k*in, (k+1)*in)
		kernels.GemmNT(dy.Rows, in, out, d.Data, d.Stride, w.Data, w.Stride, dxk.Data, dxk.Stride, add)
	}
}

// pieceRows returns the row pointers of x with each row cut into pieces of one width: row i's piece
// k is row i·pieces+k. A tape remembers them.
func pieceRows(x *mat.Sparse, pieces int, t *tape.Tape) []int64 {
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
	if len(x.Col) == 0 {
		return *cut()
	}
	return *tape.Remember(t.Patterns(), x.RowPtr, x.Col, x.Cols, cut)
}

type pieceRowPtr []int64
