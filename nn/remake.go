package nn

import (
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// The memory of a step limits the size of a graph. So a gradient overwrites values that are not read any more, and
// cheap values are computed again. For a layer h = Act(Norm(y)) training keeps y, not h, and the gradient finally uses
// y's memory. For attention it does not keep y either, but the aggregate, which is y without its bias.

// overLen is how many values are processed at a time if a gradient overwrites its own inputs.
const overLen = 1 << 16

// Again describes how to recompute a layer's rows from what its Forward kept (zero value = impossible).
type Again struct {
	layer *Layer
	at    int // index of the norm's entry on the tape
}

// Possible reports whether the rows can be made again.
func (a Again) Possible() bool { return a.layer != nil }

// sums reports whether the norm's input is recomputed from the aggregate.
func (l *Layer) sums() bool {
	return l.Norm != nil && l.batch == nil && !l.Spec.Residual && l.Conv.keepsSum()
}

// took writes rows lo, lo+1, … of the norm's input to y.
func (l *Layer) took(y mat.Dense, e *tape.Entry, lo int) {
	if e.State == nil {
		y.CopyFrom(e.X.RowRange(lo, lo+y.Rows))
		return
	}
	y.CopyFrom(e.State.(*aggregate.Acc).Aggregate().RowRange(lo, lo+y.Rows))
	tape.AddBias(y, l.Conv.Bias, false)
}

// Remakes reports whether Forward's output in training can be recomputed.
func (l *Layer) Remakes() bool {
	return l.Norm != nil && !l.Spec.Residual
}

// Again returns how to recompute the rows of the last Forward on t, until t is reset or their Backward has begun.
func (l *Layer) Again(t *tape.Tape) Again {
	if !l.Remakes() || !t.Training() {
		return Again{}
	}
	at := t.Len() - 2 // the layer's own entry is the last one
	if l.Act != nil {
		at--
	}
	return Again{l, at}
}

// againOf returns the Again in a layer's entry.
func againOf(e tape.Entry) Again {
	l, _ := e.State.(*Layer)
	return Again{l, e.At}
}

// rows writes the rows to h.
func (a Again) rows(h mat.Dense, t *tape.Tape) { a.layer.tail(h, t.Entry(a.at), 0) }

// tail writes rows lo, lo+1, … of Act(Norm(y)) to h; e is the norm's entry for y.
func (l *Layer) tail(h mat.Dense, e *tape.Entry, lo int) {
	y := e.X.RowRange(lo, lo+h.Rows)
	if e.State != nil {
		l.took(h, e, lo)
		y = h
	}
	var stats mat.Dense
	if l.batch == nil {
		stats = e.Y.RowRange(lo, lo+h.Rows)
	}
	l.Norm.Again(h, y, stats)
	if l.Act != nil {
		l.Act.Forward(h, h, nil)
	}
}

// takesOver reports whether the gradient of the layer's input can overwrite it.
func (l *Layer) takesOver() bool { return !l.Spec.Residual && l.Conv.fitsOver() }

// actGrad turns dh, the gradient of the activation's output, into the gradient of its input.
func (l *Layer) actGrad(dh mat.Dense, t *tape.Tape) {
	act := t.Pop()
	if l.Norm == nil {
		l.Act.Grad(dh, act.Y, dh)
		return
	}
	e := t.Last(0)
	inBands(dh, t, func(lo, hi int, h, _ mat.Dense) {
		l.tail(h, e, lo)
		d := dh.RowRange(lo, hi)
		l.Act.Grad(d, h, d)
	})
}

// normGrad returns the gradient of the norm's input. It overwrites the input in e, or dh.
func (l *Layer) normGrad(e *tape.Entry, dh mat.Dense, t *tape.Tape) mat.Dense {
	place := e.X
	if e.State != nil {
		place = dh
	}
	if l.batch != nil {
		l.batch.PrepareGrad()
	}
	inBands(dh, t, func(lo, hi int, x, d mat.Dense) {
		dx := place.RowRange(lo, hi)
		l.took(x, e, lo)
		d.CopyFrom(dh.RowRange(lo, hi))
		dx.Zero()
		var stats mat.Dense
		if l.batch == nil {
			stats = e.Y.RowRange(lo, hi)
		}
		l.Norm.Grad(dx, x, stats, d)
	})
	return place
}

// inBands calls f for bands of the rows of d, with two matrices of a band's shape.
func inBands(d mat.Dense, t *tape.Tape, f func(lo, hi int, x, y mat.Dense)) {
	if d.Empty() {
		return
	}
	m := t.Mark()
	band := min(max(1, overLen/d.Cols), d.Rows)
	x, y := t.Raw(band, d.Cols), t.Raw(band, d.Cols)
	for lo := 0; lo < d.Rows; lo += band {
		hi := min(lo+band, d.Rows)
		f(lo, hi, x.RowRange(0, hi-lo), y.RowRange(0, hi-lo))
	}
	t.Release(m)
}
