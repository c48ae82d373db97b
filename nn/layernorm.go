package nn

import (
	"math"

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

// Forward writes y and keeps x and each row's mean and deviation.
func (l *LayerNorm) Forward(y, x mat.Dense, t *Tape) {
	gain, bias := l.Gain.Value.Row(0), l.Bias.Value.Row(0)
	stats := t.raw(x.Rows, 2)
	for i := range x.Rows {
		xi, yi := x.Row(i), y.Row(i)
		mean, inv := moments(xi)
		stats.Row(i)[0], stats.Row(i)[1] = mean, inv
		for c, v := range xi {
			yi[c] = float32(float32((v-mean)*inv)*gain[c]) + bias[c]
		}
	}
	t.push(entry{x: x, y: stats})
}

// moments returns the mean and 1/√(variance + eps) of x.
func moments(x []float32) (mean, inv float32) {
	var sum, sq float64
	for _, v := range x {
		sum += float64(v)
	}
	m := sum / float64(len(x))
	for _, v := range x {
		d := float64(v) - m
		sq += float64(d * d)
	}
	return float32(m), float32(1 / math.Sqrt(sq/float64(len(x))+normEps))
}

// Backward adds to dx and to the gradients of gain and bias.
func (l *LayerNorm) Backward(dx, dy mat.Dense, t *Tape) {
	e := t.pop()
	gain, dgain, dbias := l.Gain.Value.Row(0), l.Gain.Grad.Row(0), l.Bias.Grad.Row(0)
	n := float64(dy.Cols)
	for i := range dy.Rows {
		xi, gi := e.x.Row(i), dy.Row(i)
		mean, inv := e.y.Row(i)[0], e.y.Row(i)[1]
		var a, b float64 // means of g·gain and of g·gain·x̂
		for c, g := range gi {
			xhat := float32((xi[c] - mean) * inv)
			dbias[c] += g
			dgain[c] += float32(g * xhat)
			w := float32(g * gain[c])
			a += float64(w)
			b += float64(w) * float64(xhat)
		}
		if dx.Empty() {
			continue
		}
		ma, mb := float32(a/n), float32(b/n)
		di := dx.Row(i)
		for c, g := range gi {
			xhat := float32((xi[c] - mean) * inv)
			w := float32(g * gain[c])
			di[c] += float32(inv * (w - ma - float32(xhat*mb)))
		}
	}
}
