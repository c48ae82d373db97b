package aggregate

import (
	"math"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

const attentionSlope = 0.2 // slope of LeakyReLU below 0 (Veličković et al., ICLR 2018, §2.2)

// softmax is the common part of all graph attention: for each head, h_i = Σ_j α_ij z_j, where α is a softmax over the
// in-edges (j, i). z has the heads side by side: R×(heads·dim). The softmax is streamed with a running maximum and sum,
// so blocks of sources may come one by one. No value of an edge is kept: the backward pass computes α again. Weights
// are not read; a destination without edges gets zeros.
type softmax struct {
	heads, dim int
	dropout    float32 // dropout of α, keyed by destination, source and head
	key        string  // of dropout, unique in the model
}

// Dims returns the width of all heads twice.
func (s *softmax) Dims() (in, out int) { return s.width(), s.width() }

func (s *softmax) width() int { return s.heads * s.dim }

// Properties returns that the gradient of α reads z, and that the aggregate is kept.
func (s *softmax) Properties() Properties { return Properties{NeedsSource: true, KeepsAggregate: true} }

// begin makes the running state for the rows z of destinations; a row of values by head has pad values.
func (s *softmax) begin(acc *Acc, z mat.Dense, pad int) {
	s.room(acc, z, pad)
	s.clear(acc)
}

// room is begin without initial values: its first block is written.
func (s *softmax) room(acc *Acc, z mat.Dense, pad int) {
	if z.Cols != s.width() {
		panic(shapeFault("columns of attention's input", z.Cols, s.width()))
	}
	s.take(acc, z.Rows, pad)
	acc.fresh = true
}

// start is begin for the given number of destinations.
func (s *softmax) start(acc *Acc, rows, pad int) {
	s.take(acc, rows, pad)
	s.clear(acc)
}

func (s *softmax) take(acc *Acc, rows, pad int) {
	acc.room(rows, s.width())
	if acc.Train {
		acc.key = acc.Key.FoldString(s.key)
	}
	acc.stat = acc.take(1, rows, pad) // running maximum, then m + ln s
	acc.norm = acc.take(2, rows, pad) // running sum
}

// clear resets the state to a softmax over no edges.
func (s *softmax) clear(acc *Acc) {
	acc.sum.Zero()
	for i := range acc.stat.Data {
		acc.stat.Data[i] = float32(math.Inf(-1))
	}
	acc.norm.Zero()
	acc.fresh = false
}

// End writes the aggregate to h and keeps in acc what the gradient needs.
func (s *softmax) End(h mat.Dense, acc *Acc) {
	w := &acc.loop
	*w = loop{softmax: s, acc: acc, h: h, rows: h.Rows, band: max(1, tape.BandLen/max(2*h.Cols+16*s.heads, 1))}
	w.each((*loop).end)
}

// end divides the sums of destination i by the sums of its softmax.
func (w *loop) end(i, _ int) {
	acc, dim := w.acc, w.softmax.dim
	out, stat, norm := acc.sum.Row(i), acc.stat.Row(i), acc.norm.Row(i)
	for k, s := range norm[:w.softmax.heads] {
		if s <= 0 {
			continue
		}
		stat[k] += float32(math.Log(float64(s)))
		scale(1/s, out[k*dim:(k+1)*dim])
	}
	copy(w.h.Row(i), out)
}

// endGrad keeps dh, which must not change until the last AddGrad. It computes dh_i·h_i, which the softmax's gradient
// subtracts.
func (s *softmax) endGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	dacc.sum = dh
	dacc.stat = dacc.take(1, dh.Rows, acc.stat.Cols)
	w := &acc.loop
	*w = loop{softmax: s, acc: acc, dacc: dacc, rows: dh.Rows, band: max(1, tape.BandLen/max(4*dh.Cols, 1))}
	w.each((*loop).endGrad)
}

// endGrad computes dh·h of destination i.
func (w *loop) endGrad(i, _ int) {
	dim := w.softmax.dim
	dh, h, base := w.dacc.sum.Row(i), w.acc.sum.Row(i), w.dacc.stat.Row(i)
	clear(base)
	for k := range w.softmax.heads {
		base[k] = dot(dh[k*dim:(k+1)*dim], h[k*dim:(k+1)*dim])
	}
}

// loop is a loop over destinations, or over the edges of a block grouped by destination or by source, whose bands of
// rows cores share. An Acc keeps it from step to step.
type loop struct {
	do         func(w *loop, i, band int) // processes one row
	rows, band int

	softmax   *softmax
	acc, dacc *Acc
	h         mat.Dense
	vector    *tape.Param
	rowPtr    []int64
	col       []int32
	z, dz     mat.Dense
	vectors   []float32
	edgeOf    []int32 // [edge of the block] its row of the mapped columns (nil = not read)
	places    []int32 // [entry of col] its index in the block (nil = its own index)
	uses      *edgeUses
}

func (w *loop) bands() int { return (w.rows + w.band - 1) / w.band }

func (w *loop) each(do func(w *loop, i, band int)) {
	w.do = do
	kernels.Parallel(w, w.bands())
}

// Run processes one band of rows.
func (w *loop) Run(part int) {
	for i := part * w.band; i < min((part+1)*w.band, w.rows); i++ {
		w.do(w, i, part)
	}
}

// dot and scale are for the columns of one head. With few columns, a call of the kernels takes longer than the work.
const few = 24

func dot(x, y []float32) float32 {
	if len(x) >= few {
		return kernels.Dot(x, y)
	}
	y = y[:len(x)]
	var s float32
	for c, v := range x {
		s += float32(v * y[c])
	}
	return s
}

func scale(a float32, x []float32) {
	if len(x) >= few {
		kernels.Scale(a, x)
		return
	}
	for c := range x {
		x[c] *= a
	}
}
