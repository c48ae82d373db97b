package nn

import (
	"math"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

const normEps = 1e-5

// LayerNorm is y = (x − mean)/√(variance + 1e-5) · gain + bias over each row (Ba, Kiros and Hinton, arXiv 1607.06450).
type LayerNorm struct{ Gain, Bias *Param } // 1×width

// NewLayerNorm returns a LayerNorm of gain 1 and bias 0.
func NewLayerNorm(name string, width int) *LayerNorm {
	return &LayerNorm{Gain: newParam(name+".gain", 1, width, 1), Bias: newParam(name+".bias", 1, width, 0)}
}

// Params returns gain and bias.
func (l *LayerNorm) Params() []*Param { return []*Param{l.Gain, l.Bias} }

// Dims returns the width twice.
func (l *LayerNorm) Dims() (in, out int) { return l.Gain.Value.Cols, l.Gain.Value.Cols }

// Forward writes y, which in inference may be x, and keeps x and each row's mean and deviation.
func (l *LayerNorm) Forward(y, x mat.Dense, t *Tape) {
	stats := t.raw(x.Rows, 2)
	each(loop{body: normRows, rows: x.Rows, width: x.Cols, x: x, y: y, stats: stats, norm: l})
	t.push(entry{x: x, y: stats})
}

func normRows(w *loop, _, lo, hi int) {
	gain, bias := w.norm.Gain.Value.Row(0), w.norm.Bias.Value.Row(0)
	for i := lo; i < hi; i++ {
		xi, yi := w.x.Row(i), w.y.Row(i)
		mean, inv := moments(xi)
		w.stats.Row(i)[0], w.stats.Row(i)[1] = mean, inv
		gain, bias, yi := gain[:len(xi)], bias[:len(xi)], yi[:len(xi)]
		for c, v := range xi {
			yi[c] = float32(float32((v-mean)*inv)*gain[c]) + bias[c]
		}
	}
}

// moments returns the mean and 1/√(variance + eps) of x. Four sums at once: one alone waits for each addition.
func moments(x []float32) (mean, inv float32) {
	var s0, s1, s2, s3 float64
	r := x
	for ; len(r) >= 4; r = r[4:] {
		s0 += float64(r[0])
		s1 += float64(r[1])
		s2 += float64(r[2])
		s3 += float64(r[3])
	}
	for _, v := range r {
		s0 += float64(v)
	}
	m := ((s0 + s1) + (s2 + s3)) / float64(len(x))
	s0, s1, s2, s3 = 0, 0, 0, 0
	for r = x; len(r) >= 4; r = r[4:] {
		d0, d1, d2, d3 := float64(r[0])-m, float64(r[1])-m, float64(r[2])-m, float64(r[3])-m
		s0 += float64(d0 * d0)
		s1 += float64(d1 * d1)
		s2 += float64(d2 * d2)
		s3 += float64(d3 * d3)
	}
	for _, v := range r {
		d := float64(v) - m
		s0 += float64(d * d)
	}
	sq := (s0 + s1) + (s2 + s3)
	return float32(m), float32(1 / math.Sqrt(sq/float64(len(x))+normEps))
}

// Backward adds to dx and to the gradients of gain and bias.
func (l *LayerNorm) Backward(dx, dy mat.Dense, t *Tape) {
	e := t.pop()
	m := t.arena.at
	w := loop{body: normGrads, rows: dy.Rows, width: dy.Cols, x: e.x, stats: e.y, d: dy, y: dx, norm: l}
	w.sums = t.Scratch(w.bands(), 2*dy.Cols) // of each band: its part of the gradients of gain and bias
	each(w)
	for i := range w.sums.Rows {
		kernels.Add(w.sums.Row(i)[:dy.Cols], l.Gain.Grad.Row(0))
		kernels.Add(w.sums.Row(i)[dy.Cols:], l.Bias.Grad.Row(0))
	}
	t.arena.release(m)
}

func normGrads(w *loop, band, lo, hi int) {
	n := w.d.Cols
	gain := w.norm.Gain.Value.Row(0)[:n]
	dgain, dbias := w.sums.Row(band)[:n], w.sums.Row(band)[n:][:n]
	for i := lo; i < hi; i++ {
		xi, gi := w.x.Row(i)[:n], w.d.Row(i)[:n]
		mean, inv := w.stats.Row(i)[0], w.stats.Row(i)[1]
		var a, b float64 // means of g·gain and of g·gain·x̂
		for c, g := range gi {
			xhat := float32((xi[c] - mean) * inv)
			dbias[c] += g
			dgain[c] += float32(g * xhat)
			v := float32(g * gain[c])
			a += float64(v)
			b += float64(float64(v) * float64(xhat))
		}
		if w.y.Empty() {
			continue
		}
		ma, mb := float32(a/float64(n)), float32(b/float64(n))
		di := w.y.Row(i)[:n]
		for c, g := range gi {
			xhat := float32((xi[c] - mean) * inv)
			v := float32(g * gain[c])
			di[c] += float32(inv * (v - ma - float32(xhat*mb)))
		}
	}
}
