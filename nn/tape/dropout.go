package tape

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Dropout sets elements to 0 with probability P and divides the others by 1−P (Srivastava et al.,
// JMLR 2014). Which ones is a function of (tape's key, Name, global node ID, column): the same for
// any number of peers and any block, and nothing is stored.
type Dropout struct {
	Name string
	P    float32 // in [0, 1)
}

// Params returns nil.
func (d *Dropout) Params() []*Param { return nil }

// Dims returns 0, 0, because any width is kept.
func (d *Dropout) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x. In inference y = x.
func (d *Dropout) Forward(y, x mat.Dense, t *Tape) {
	if d.P == 0 || !t.Training() {
		CopyTo(y, x)
	}
	if !t.Training() {
		return
	}
	e := d.entry(t)
	if d.P > 0 {
		DropRows(y, x, false, d.P, e.Key, e.Nodes)
	}
	t.Push(e)
}

// entry returns what the mask depends on in this step.
func (d *Dropout) entry(t *Tape) Entry {
	return Entry{Key: t.Key.FoldString(d.Name), Nodes: t.Nodes}
}

// Backward adds dy times the mask to dx.
func (d *Dropout) Backward(dx, dy mat.Dense, t *Tape) {
	e := t.Pop()
	switch {
	case dx.Empty():
	case d.P == 0:
		AddTo(dx, dy)
	default:
		DropRows(dx, dy, true, d.P, e.Key, e.Nodes)
	}
}

// BackwardTo writes to dx dy times the mask.
func (d *Dropout) BackwardTo(dx, dy mat.Dense, t *Tape) {
	e := t.Pop()
	if !dx.Empty() {
		DropRows(dx, dy, false, d.P, e.Key, e.Nodes)
	}
}

// Features is Forward into the tape's own memory, dense or sparse. In inference it returns x
// itself. It drops the stored values of a sparse matrix as Forward would drop them, and the pattern
// stays.
func (d *Dropout) Features(x graph.Features, t *Tape) graph.Features {
	if !t.Training() || d.P == 0 {
		t.Push(Entry{})
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
