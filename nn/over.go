package nn

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// What a step holds decides how large a graph fits, so that a gradient takes the place of what nobody reads any more, and
// what is cheap is computed again: of a layer h = Act(Norm(y)) training keeps y, not h, and y's memory is the gradient's
// in the end. Of attention it does not keep y either, but the aggregate, which is y without its bias.

// overLen is how many values are worked on at a time where a gradient takes the place of what it is computed from.
const overLen = 1 << 16

// Again is how a layer's rows can be made again from what its Forward kept. The zero value: they cannot.
type Again struct {
	layer *Layer
	at    int // of the tape's entries, that of the norm
}

// Possible reports whether the rows can be made again.
func (a Again) Possible() bool { return a.layer != nil }

// sums reports whether what the norm took in is made again, of what the aggregator keeps.
func (l *Layer) sums() bool {
	_, ok := l.Norm.(*LayerNorm)
	return ok && !l.Spec.Residual && l.Conv.keepsSum()
}

// took writes to y rows lo, lo+1, … of what the norm took in.
func (l *Layer) took(y mat.Dense, e entry, lo int) {
	if e.acc == nil {
		y.CopyFrom(e.x.RowRange(lo, lo+y.Rows))
		return
	}
	y.CopyFrom(e.acc.sum.RowRange(lo, lo+y.Rows))
	addBias(y, l.Conv.Post.(*Bias).B)
}

// Remakes reports whether the rows that Forward puts out in training can be made again.
func (l *Layer) Remakes() bool {
	switch l.Norm.(type) {
	case *LayerNorm, *BatchNorm:
		return !l.Spec.Residual
	}
	return false
}

// Again returns how the rows of the last Forward on t can be made again until t is reset or their Backward has begun.
func (l *Layer) Again(t *Tape) Again {
	if !l.Remakes() || !t.training() {
		return Again{}
	}
	at := len(t.kept) - 2 // the layer's own entry is the last one
	if l.Act != nil {
		at--
	}
	return Again{l, at}
}

// rows writes the rows to h.
func (a Again) rows(h mat.Dense, t *Tape) { a.layer.tail(h, t.kept[a.at], 0) }

// tail writes to h rows lo, lo+1, … of Act(Norm(y)), of which e is what the norm kept.
func (l *Layer) tail(h mat.Dense, e entry, lo int) {
	y := e.x.RowRange(lo, lo+h.Rows)
	if e.acc != nil {
		l.took(h, e, lo)
		y = h
	}
	switch n := l.Norm.(type) {
	case *LayerNorm:
		stats := e.y.RowRange(lo, lo+h.Rows)
		kernels.LayerNorm(h.Rows, normEps, y.Data, y.Stride, n.Gain.Value.Row(0), n.Bias.Value.Row(0), h.Data, h.Stride, stats.Data)
	case *BatchNorm:
		n.again(h, y)
	}
	if l.Act != nil {
		l.Act.Forward(h, h, nil)
	}
}

// tailGrad returns the gradient of what the convolution put out, from dh, which is used up.
func (l *Layer) tailGrad(dh mat.Dense, t *Tape) mat.Dense {
	var act, e entry
	if l.Act != nil {
		act = t.pop()
		if l.Norm != nil {
			e = t.kept[len(t.kept)-1]
		}
		inBands(dh, t, func(lo, hi int, h, d mat.Dense) { // dh becomes the gradient of what the norm put out
			to := dh.RowRange(lo, hi)
			d.CopyFrom(to)
			to.Zero()
			if l.Norm != nil {
				l.tail(h, e, lo)
			} else {
				h = act.y.RowRange(lo, hi)
			}
			actGrad(l.Act, h, d, to)
		})
	}
	if l.Norm == nil {
		return dh
	}
	e = t.pop()
	batch, _ := l.Norm.(*BatchNorm)
	if batch != nil {
		batch.sumGrads(e.x, dh, t)
	}
	place := e.x // of the gradient of what the norm took in
	if e.acc != nil {
		place = dh
	}
	inBands(dh, t, func(lo, hi int, x, d mat.Dense) {
		dx := place.RowRange(lo, hi)
		l.took(x, e, lo)
		d.CopyFrom(dh.RowRange(lo, hi))
		dx.Zero()
		if batch != nil {
			batch.grad(dx, x, d)
		} else {
			l.Norm.(*LayerNorm).grad(dx, x, e.y.RowRange(lo, hi), d)
		}
	})
	return place
}

// inBands calls f for bands of the rows of d, with two matrices of a band's shape.
func inBands(d mat.Dense, t *Tape, f func(lo, hi int, x, y mat.Dense)) {
	if d.Empty() {
		return
	}
	m := t.arena.at
	band := min(max(1, overLen/d.Cols), d.Rows)
	x, y := t.raw(band, d.Cols), t.raw(band, d.Cols)
	for lo := 0; lo < d.Rows; lo += band {
		hi := min(lo+band, d.Rows)
		f(lo, hi, x.RowRange(0, hi-lo), y.RowRange(0, hi-lo))
	}
	t.arena.release(m)
}
