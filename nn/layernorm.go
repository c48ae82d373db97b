package nn

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

const eps = 1e-5

// LayerNorm is y = (x − mean)/√(variance + 1e-5) · gain + bias over each row (Ba, Kiros and Hinton,
// arXiv 1607.06450).
type LayerNorm struct{ Gain, Bias *tape.Param } // 1×width

// NewLayerNorm returns a LayerNorm of gain 1 and bias 0.
func NewLayerNorm(name string, width int) *LayerNorm {
	return &LayerNorm{Gain: tape.NewParam(name+".gain", 1, width, 1), Bias: tape.NewParam(name+".bias", 1, width, 0)}
}

// Params returns gain and bias.
func (l *LayerNorm) Params() []*tape.Param { return []*tape.Param{l.Gain, l.Bias} }

// Dims returns the width twice.
func (l *LayerNorm) Dims() (in, out int) { return l.Gain.Value.Cols, l.Gain.Value.Cols }

// Forward writes y, which in inference may be x, and keeps x and each row's mean and deviation.
func (l *LayerNorm) Forward(y, x mat.Dense, t *tape.Tape) {
	stats := t.Raw(x.Rows, 2)
	l.Again(y, x, stats)
	t.Push(tape.Entry{X: x, Y: stats})
}

// Backward adds to dx and to the gradients of gain and bias.
func (l *LayerNorm) Backward(dx, dy mat.Dense, t *tape.Tape) {
	e := t.Pop()
	l.Grad(dx, e.X, e.Y, dy)
}

// Again writes to y what Forward makes of rows x, and to stats their means and deviations.
func (l *LayerNorm) Again(y, x, stats mat.Dense) {
	gain, bias := l.Gain.Value.Row(0), l.Bias.Value.Row(0)
	kernels.LayerNorm(x.Rows, eps, x.Data, x.Stride, gain, bias, y.Data, y.Stride, stats.Data)
}

// Grad is Backward of rows x, whose statistics Forward left.
func (l *LayerNorm) Grad(dx, x, stats, dy mat.Dense) {
	var d []float32
	if !dx.Empty() {
		d = dx.Data
	}
	kernels.LayerNormGrad(dy.Rows, x.Data, x.Stride, stats.Data, l.Gain.Value.Row(0), dy.Data, dy.Stride,
		d, dx.Stride, l.Gain.Grad.Row(0), l.Bias.Grad.Row(0))
}
