package nn

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

const normEps = 1e-5

// layerNorm is y = (x − mean)/√(variance + 1e-5) · gain + bias over each row (Ba, Kiros and Hinton,
// arXiv 1607.06450).
type layerNorm struct{ Gain, Bias *Param } // 1×width

// newLayerNorm returns a LayerNorm of gain 1 and bias 0.
func newLayerNorm(name string, width int) *layerNorm {
	return &layerNorm{Gain: newParam(name+".gain", 1, width, 1), Bias: newParam(name+".bias", 1, width, 0)}
}

// Params returns gain and bias.
func (l *layerNorm) Params() []*Param { return []*Param{l.Gain, l.Bias} }

// Dims returns the width twice.
func (l *layerNorm) Dims() (in, out int) { return l.Gain.Value.Cols, l.Gain.Value.Cols }

// Forward writes y, which in inference may be x, and keeps x and each row's mean and deviation.
func (l *layerNorm) Forward(y, x mat.Dense, t *Tape) {
	stats := t.raw(x.Rows, 2)
	l.again(y, x, stats)
	t.push(entry{x: x, y: stats})
}

// Backward adds to dx and to the gradients of gain and bias.
func (l *layerNorm) Backward(dx, dy mat.Dense, t *Tape) {
	e := t.pop()
	l.grad(dx, e.x, e.y, dy)
}

// again writes to y what Forward makes of rows x, and to stats their means and deviations.
func (l *layerNorm) again(y, x, stats mat.Dense) {
	kernels.LayerNorm(x.Rows, normEps, x.Data, x.Stride, l.Gain.Value.Row(0), l.Bias.Value.Row(0), y.Data, y.Stride, stats.Data)
}

// grad is Backward of rows x, whose statistics Forward left.
func (l *layerNorm) grad(dx, x, stats, dy mat.Dense) {
	var d []float32
	if !dx.Empty() {
		d = dx.Data
	}
	kernels.LayerNormGrad(dy.Rows, x.Data, x.Stride, stats.Data, l.Gain.Value.Row(0), dy.Data, dy.Stride,
		d, dx.Stride, l.Gain.Grad.Row(0), l.Bias.Grad.Row(0))
}
