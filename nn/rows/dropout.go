package rows

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Dropout sets elements to 0 with probability P and divides the others by 1−P (Srivastava et al.,
// JMLR 2014). Which ones is a function of (tape's key, Name, global node ID, column): the same for
// any number of peers and any block, and nothing is stored.
type Dropout struct {
	Name string
	P    float32 // in [0, 1)
}

// Params returns nil.
func (d *Dropout) Params() []*tape.Param { return nil }

// Dims returns 0, 0: any width.
func (d *Dropout) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x. In inference y = x.
func (d *Dropout) Forward(y, x mat.Dense, t *tape.Tape) {
	if d.P == 0 || !t.Training() {
		CopyTo(y, x)
	}
	if !t.Training() {
		return
	}
	e := d.entry(t)
	if d.P > 0 {
		tape.DropRows(y, x, false, d.P, e.Key, e.Nodes)
	}
	t.Push(e)
}

func (d *Dropout) entry(t *tape.Tape) tape.Entry {
	return tape.Entry{Key: t.Key.FoldString(d.Name), Nodes: t.Nodes}
}

// Backward adds dy times the mask to dx.
func (d *Dropout) Backward(dx, dy mat.Dense, t *tape.Tape) {
	e := t.Pop()
	switch {
	case dx.Empty():
	case d.P == 0:
		AddTo(dx, dy)
	default:
		tape.DropRows(dx, dy, true, d.P, e.Key, e.Nodes)
	}
}

// BackwardTo writes to dx dy times the mask.
func (d *Dropout) BackwardTo(dx, dy mat.Dense, t *tape.Tape) {
	e := t.Pop()
	if !dx.Empty() {
		tape.DropRows(dx, dy, false, d.P, e.Key, e.Nodes)
	}
}

// Features is Forward into the tape's own memory, dense or sparse; x itself in inference. Of a
// sparse matrix the stored values are dropped as Forward would drop them, and the pattern stays.
func (d *Dropout) Features(x graph.Features, t *tape.Tape) graph.Features {
	if !t.Training() || d.P == 0 {
		t.Push(tape.Entry{})
		return x
	}
	if x.Sparse == nil {
		y := t.Raw(x.Dense.Rows, x.Dense.Cols)
		d.Forward(y, x.Dense, t)
		return graph.Features{Dense: y}
	}
	e := d.entry(t)
	t.Push(e)
	return graph.Features{Sparse: t.DropSparse(x.Sparse, d.P, e.Key, e.Nodes)}
}
