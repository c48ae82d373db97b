package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Linear is y = x·W + b: x R×in, dense or sparse, y R×out.
type Linear struct {
	W *tape.Param // in×out
	B *tape.Param // 1×out, or nil: no bias
}

// newLinear returns a Linear whose weight is drawn from key and its name (Glorot, uniform) and
// whose bias is 0.
func newLinear(name string, in, out int, bias bool, key rng.Key) *Linear {
	l := &Linear{W: tape.Glorot(name+".weight", in, out, in, out, key)}
	if bias {
		l.B = tape.NewParam(name+".bias", 1, out, 0)
	}
	return l
}

// Params returns the weight and, where there is one, the bias.
func (l *Linear) Params() []*tape.Param {
	if l.B == nil {
		return []*tape.Param{l.W}
	}
	return []*tape.Param{l.W, l.B}
}

// Dims returns the widths of x and y.
func (l *Linear) Dims() (in, out int) { return l.W.Value.Rows, l.W.Value.Cols }

// Forward writes y = x·W + b and keeps x, which must stay as it is until Backward.
func (l *Linear) Forward(y, x mat.Dense, t *tape.Tape) {
	l.product(y, graph.Features{Dense: x}, false, l.B, t)
}

// forwardSparse is Forward of a sparse x. Its Backward takes an empty dx.
func (l *Linear) forwardSparse(y mat.Dense, x *mat.Sparse, t *tape.Tape) {
	l.product(y, graph.Features{Sparse: x}, false, l.B, t)
}

// Backward adds dy·Wᵀ to dx, xᵀ·dy to the weight's gradient and the column sums of dy to the
// bias's.
func (l *Linear) Backward(dx, dy mat.Dense, t *tape.Tape) {
	biasGrad(l.B, dy)
	l.productGrad(dx, dy, t)
}

// product writes y = x·W, or adds it where add, and adds b, if there is one.
func (l *Linear) product(y mat.Dense, x graph.Features, add bool, b *tape.Param, t *tape.Tape) {
	in, out := l.Dims()
	checkShape("Linear", y, x.Rows(), out)
	if x.Cols() != in {
		panic(shapeFault("columns of Linear's input", x.Cols(), in))
	}
	w := l.W.Value
	if s := x.Sparse; s != nil {
		kernels.SpMM(s.RowPtr, s.Col, s.Val, out, w.Data, w.Stride, y.Data, y.Stride, add)
		addBias(y, b)
		t.Push(tape.Entry{Sparse: s})
		return
	}
	kernels.GemmNNBias(y.Rows, out, in, x.Dense.Data, x.Dense.Stride, w.Data, w.Stride,
		y.Data, y.Stride, add, biasRow(b))
	t.Push(tape.Entry{X: x.Dense})
}

func (l *Linear) weights() (w, b *tape.Param) { return l.W, l.B }

// productGrad is the backward pass of product.
func (l *Linear) productGrad(dx, dy mat.Dense, t *tape.Tape) {
	if l.weightGrad(dy, t).Empty() || dx.Empty() {
		return
	}
	l.inputGrad(dx, dy, true)
}

// weightGrad adds xᵀ·dy to the weight's gradient and returns x, empty where it is sparse.
func (l *Linear) weightGrad(dy mat.Dense, t *tape.Tape) mat.Dense {
	in, out := l.Dims()
	e := t.Pop()
	dw := l.W.Grad
	if e.Sparse != nil {
		t.SparseGrad(dw, &e, 1, dy)
		return mat.Dense{}
	}
	kernels.GemmTN(in, out, dy.Rows, e.X.Data, e.X.Stride, dy.Data, dy.Stride, dw.Data, dw.Stride, true)
	return e.X
}

// inputGrad makes dy·Wᵀ of dx, or adds it.
func (l *Linear) inputGrad(dx, dy mat.Dense, add bool) {
	in, out := l.Dims()
	w := l.W.Value
	kernels.GemmNT(dy.Rows, in, out, dy.Data, dy.Stride, w.Data, w.Stride, dx.Data, dx.Stride, add)
}

// backwardOver is Backward with the gradient of x in the memory of x, which nobody else may read
// any more.
func (l *Linear) backwardOver(dy mat.Dense, t *tape.Tape) mat.Dense {
	biasGrad(l.B, dy)
	x := l.weightGrad(dy, t)
	l.inputGrad(x, dy, false)
	return x
}

// biasRow returns the values of a bias, nil where there is none.
func biasRow(b *tape.Param) []float32 {
	if b == nil {
		return nil
	}
	return b.Value.Row(0)
}

func addBias(y mat.Dense, b *tape.Param) {
	if b == nil {
		return
	}
	row := b.Value.Row(0)
	for i := range y.Rows {
		kernels.Add(row, y.Row(i))
	}
}

func biasGrad(b *tape.Param, dy mat.Dense) {
	if b != nil {
		kernels.SumColumns(dy.Rows, dy.Data, dy.Stride, b.Grad.Row(0), true)
	}
}
