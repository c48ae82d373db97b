package tape

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// Stack applies operators one after another.
type Stack []Operator

// Params returns the operators' parameters in order.
func (s Stack) Params() []*Param {
	var all []*Param
	for _, op := range s {
		all = append(all, op.Params()...)
	}
	return all
}

// Dims returns the width that the first operator with one takes and that the last one gives.
func (s Stack) Dims() (in, out int) {
	for _, op := range s {
		i, o := op.Dims()
		if in == 0 {
			in = i
		}
		if o != 0 {
			out = o
		}
	}
	return in, out
}

// Forward writes the last operator's rows to y.
func (s Stack) Forward(y, x mat.Dense, t *Tape) { s.forward(y, graph.Features{Dense: x}, t) }

func (s Stack) forwardSparse(y mat.Dense, x *mat.Sparse, t *Tape) {
	s.forward(y, graph.Features{Sparse: x}, t)
}

// forward is Forward for dense or sparse rows.
func (s Stack) forward(y mat.Dense, x graph.Features, t *Tape) {
	if len(s) == 0 {
		CopyTo(y, x.Dense)
		return
	}
	for _, op := range s[:len(s)-1] {
		out := OutWidth(op, x.Cols())
		if d, ok := op.(*Dropout); ok {
			x = d.Features(x, t)
			continue
		}
		next := t.Raw(y.Rows, out)
		Forward(op, next, x, t)
		x = graph.Features{Dense: next}
	}
	Forward(s[len(s)-1], y, x, t)
}

// Backward runs the operators' backward passes in reverse. If dx is not wanted, gradients go no
// further down than the first operator with parameters.
func (s Stack) Backward(dx, dy mat.Dense, t *Tape) {
	if len(s) == 0 {
		AddTo(dx, dy)
		return
	}
	last := 0 // the lowest operator whose dx is read
	for dx.Empty() && last < len(s)-1 && keepsWidth(s[last]) {
		last++
	}
	m := t.Mark()
	for k := len(s) - 1; k > 0; k-- {
		var d mat.Dense
		if k > last {
			d = t.Scratch(dy.Rows, s.width(k, dy.Cols))
		}
		s[k].Backward(d, dy, t)
		dy = d
	}
	s[0].Backward(dx, dy, t)
	t.Release(m)
}

// keepsWidth reports whether op takes rows of any width, and so has no parameters.
func keepsWidth(op Operator) bool {
	in, _ := op.Dims()
	return in == 0
}

// width returns the width of operator k's input, given the width of its output.
func (s Stack) width(k, out int) int {
	if in, _ := s[k].Dims(); in != 0 {
		return in
	}
	return out
}

// Forward runs op on dense or sparse rows. Sparse rows reach only what begins with a Linear or a
// Dropout.
func Forward(op Operator, y mat.Dense, x graph.Features, t *Tape) {
	if x.Sparse == nil {
		op.Forward(y, x.Dense, t)
		return
	}
	op.(interface {
		forwardSparse(y mat.Dense, x *mat.Sparse, t *Tape)
	}).forwardSparse(y, x.Sparse, t)
}

// OutWidth returns the width of op's output for inputs of width in.
func OutWidth(op Operator, in int) int {
	if op != nil {
		if _, out := op.Dims(); out != 0 {
			return out
		}
	}
	return in
}

// CopyTo writes x to y, unless they are the same memory.
func CopyTo(y, x mat.Dense) {
	if !y.Empty() && &y.Data[0] != &x.Data[0] {
		y.CopyFrom(x)
	}
}

// AddTo adds x to y, unless y is empty, which means that it is not needed.
func AddTo(y, x mat.Dense) {
	if y.Empty() {
		return
	}
	if x.Compact() && y.Compact() {
		n := x.Rows * x.Cols
		kernels.Add(x.Data[:n], y.Data[:n])
		return
	}
	for i := range x.Rows {
		kernels.Add(x.Row(i), y.Row(i))
	}
}

// Operator is an operator that acts on each row by itself: Linear, LayerNorm, ReLU, Dropout, or a Stack
// of them. Only BatchNorm, while it trains, sees all rows together.
type Operator interface {
	Params() []*Param
	Dims() (in, out int) // 0, 0 = keeps any width
	// Forward writes y (R×out) from x (R×in). t is nil in inference: no dropout, nothing kept.
	Forward(y, x mat.Dense, t *Tape)
	// Backward takes what Forward kept, last in first out. It adds to dx, R×in, unless dx is empty, and
	// to each Param's Grad.
	Backward(dx, dy mat.Dense, t *Tape)
}

// NewHead returns Linear, then ReLU, dropout of probability p and Linear for each further width: a
// classifier of rows of width in.
func NewHead(name string, in int, widths []int, p float32, key rng.Key) Operator {
	var s Stack
	for k, out := range widths {
		at := fmt.Sprintf("%s.%d", name, k)
		if k > 0 {
			s = append(s, NewActivation("relu"), &Dropout{at + ".dropout", p})
		}
		s = append(s, NewLinear(at, in, out, true, key))
		in = out
	}
	return s
}
