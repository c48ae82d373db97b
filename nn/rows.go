package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// stack applies operators one after another.
type stack []Rows

// Params returns the operators' parameters in order.
func (s stack) Params() []*tape.Param {
	var all []*tape.Param
	for _, op := range s {
		all = append(all, op.Params()...)
	}
	return all
}

// Dims returns the width that the first operator with one takes and that the last one gives.
func (s stack) Dims() (in, out int) {
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
func (s stack) Forward(y, x mat.Dense, t *tape.Tape) { s.forward(y, graph.Features{Dense: x}, t) }

func (s stack) forwardSparse(y mat.Dense, x *mat.Sparse, t *tape.Tape) {
	s.forward(y, graph.Features{Sparse: x}, t)
}

func (s stack) forward(y mat.Dense, x graph.Features, t *tape.Tape) {
	if len(s) == 0 {
		copyRows(y, x.Dense)
		return
	}
	for _, op := range s[:len(s)-1] {
		out := outWidth(op, x.Cols())
		if d, ok := op.(*dropout); ok {
			x = d.features(x, t)
			continue
		}
		next := t.Raw(y.Rows, out)
		forward(op, next, x, t)
		x = graph.Features{Dense: next}
	}
	forward(s[len(s)-1], y, x, t)
}

// Backward runs the operators' backward passes in reverse. Where dx is not wanted, gradients go no
// further down than the first operator with parameters.
func (s stack) Backward(dx, dy mat.Dense, t *tape.Tape) {
	if len(s) == 0 {
		addRows(dx, dy)
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
func keepsWidth(op Rows) bool {
	in, _ := op.Dims()
	return in == 0
}

// width returns the width of operator k's input, given that of its output.
func (s stack) width(k, out int) int {
	if in, _ := s[k].Dims(); in != 0 {
		return in
	}
	return out
}

// forward runs op on dense or sparse rows. Sparse rows reach only what begins with a Linear or a
// Dropout.
func forward(op Rows, y mat.Dense, x graph.Features, t *tape.Tape) {
	if x.Sparse == nil {
		op.Forward(y, x.Dense, t)
		return
	}
	op.(interface {
		forwardSparse(y mat.Dense, x *mat.Sparse, t *tape.Tape)
	}).forwardSparse(y, x.Sparse, t)
}

// outWidth returns the width that op makes of in.
func outWidth(op Rows, in int) int {
	if op != nil {
		if _, out := op.Dims(); out != 0 {
			return out
		}
	}
	return in
}

func copyRows(y, x mat.Dense) {
	if !y.Empty() && &y.Data[0] != &x.Data[0] {
		y.CopyFrom(x)
	}
}

// addRows adds x to y, unless y is empty, which means that it is not needed.
func addRows(y, x mat.Dense) {
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
