package nn

import (
	"math"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// batchMomentum is how far a step moves the running statistics of a BatchNorm, as a fraction.
const batchMomentum = 0.1

// BatchNorm is y = (x − mean)/√(variance + 1e-5) · gain + bias of each column (Ioffe and Szegedy, ICML 2015). In
// training, mean and variance are over the given rows and, if workers share a step (nn.Forward.Statistics), over all
// workers' rows: it does not act on each row by itself. Inference uses the running statistics, which Settle moves.
type BatchNorm struct {
	Gain, Bias     *tape.Param // 1×width
	Mean, Variance *tape.Param // 1×width, Running

	// State of the last Forward in training, over all workers.
	rows              float64
	mean, square, inv []float64 // square: the sum of squared deviations
	sums              []float64 // [2·width] buffer
	factors           []float32 // [3·width] buffer
	travel            []float32 // buffer for the sums over workers
	shared            bool      // the moments are merged from the workers' buffer
	sharedGrad        bool      // the sums are in the workers' buffer
}

// NewBatchNorm returns a BatchNorm of gain 1, bias 0, and running mean 0 and variance 1.
func NewBatchNorm(name string, width int) *BatchNorm {
	b := &BatchNorm{
		Gain: tape.NewParam(name+".gain", 1, width, 1), Bias: tape.NewParam(name+".bias", 1, width, 0),
		Mean: tape.NewParam(name+".mean", 1, width, 0), Variance: tape.NewParam(name+".variance", 1, width, 1),
		mean: make([]float64, width), square: make([]float64, width), inv: make([]float64, width),
		sums: make([]float64, 2*width), factors: make([]float32, 3*width),
	}
	b.Mean.Running, b.Variance.Running = true, true
	return b
}

// Params returns gain and bias.
func (b *BatchNorm) Params() []*tape.Param { return []*tape.Param{b.Gain, b.Bias} }

// Running returns mean and variance of inference.
func (b *BatchNorm) Running() []*tape.Param { return []*tape.Param{b.Mean, b.Variance} }

// Dims returns the width twice.
func (b *BatchNorm) Dims() (in, out int) { return b.Gain.Value.Cols, b.Gain.Value.Cols }

// Forward writes y and keeps x. In inference y may be x.
func (b *BatchNorm) Forward(y, x mat.Dense, t *tape.Tape) {
	gain, bias := b.Gain.Value.Row(0), b.Bias.Value.Row(0)
	if !t.Training() {
		scale, shift := t.Raw(1, x.Cols).Row(0), t.Raw(1, x.Cols).Row(0)
		for j, v := range b.Variance.Value.Row(0) {
			s := float64(gain[j]) / math.Sqrt(max(0, float64(v))+eps)
			scale[j], shift[j] = float32(s), float32(float64(bias[j])-float64(float64(b.Mean.Value.At(0, j))*s))
		}
		kernels.BatchNorm(x.Rows, x.Data, x.Stride, scale, shift, y.Data, y.Stride)
		return
	}
	b.Moments(x)
	b.Normalise(y, x, t)
}

// Moments computes the moments of the given rows.
func (b *BatchNorm) Moments(x mat.Dense) {
	kernels.ColumnMoments(x.Rows, x.Data, x.Stride, b.mean, b.square)
	b.rows, b.shared = float64(x.Rows), false
}

// Normalise normalises x by the moments, after it merges all workers' moments, and keeps x.
func (b *BatchNorm) Normalise(y, x mat.Dense, t *tape.Tape) {
	if b.shared {
		b.merge()
	}
	scale, shift := b.factors[:x.Cols], b.factors[x.Cols:2*x.Cols]
	for j, gain := range b.Gain.Value.Row(0) {
		b.inv[j] = 1 / math.Sqrt(b.square[j]/max(b.rows, 1)+eps)
		s := float64(gain) * b.inv[j]
		scale[j], shift[j] = float32(s), float32(float64(b.Bias.Value.At(0, j))-float64(b.mean[j]*s))
	}
	b.Again(y, x, mat.Dense{})
	t.Push(tape.Entry{X: x})
}

// Contribution returns a buffer for the moments of all workers, with this worker's in its part. Each number is sent as
// two float32, the second one the remainder of the first. The other workers' numbers are zero there, so the sum is
// exact.
func (b *BatchNorm) Contribution(rank, workers int) []float32 {
	width := len(b.mean)
	each := 2 * (1 + 2*width)
	if len(b.travel) != each*workers {
		b.travel = make([]float32, each*workers)
	}
	clear(b.travel)
	own := b.travel[each*rank:][:each]
	split(own, 0, b.rows)
	for j := range width {
		split(own, 1+j, b.mean[j])
		split(own, 1+width+j, b.square[j])
	}
	b.shared = true
	return b.travel
}

// merge computes the moments of the rows of all workers, merged in the order of their ranks: the
// same bits at each.
func (b *BatchNorm) merge() {
	width := len(b.mean)
	each := 2 * (1 + 2*width)
	clear(b.mean)
	clear(b.square)
	rows := 0
	for of := b.travel; len(of) > 0; of = of[each:] {
		more := int(joined(of, 0))
		for j := range width {
			kernels.Merge(rows, &b.mean[j], &b.square[j], more, joined(of, 1+j), joined(of, 1+width+j))
		}
		rows += more
	}
	b.rows = float64(rows)
}

// split writes v as two float32, number k of x; joined reads it.
func split(x []float32, k int, v float64) {
	x[2*k] = float32(v)
	x[2*k+1] = float32(v - float64(x[2*k]))
}

func joined(x []float32, k int) float64 { return float64(x[2*k]) + float64(x[2*k+1]) }

// Backward adds to dx and to the gradients of gain and bias. The latter are over the given rows only, like all
// gradients.
func (b *BatchNorm) Backward(dx, dy mat.Dense, t *tape.Tape) {
	x := t.Pop().X
	b.SumGrads(x, dy)
	b.PrepareGrad()
	b.Grad(dx, x, mat.Dense{}, dy)
}

// Again normalises rows x of the last Forward in training as it did, and writes them to y.
func (b *BatchNorm) Again(y, x, _ mat.Dense) {
	kernels.BatchNorm(x.Rows, x.Data, x.Stride, b.factors[:x.Cols], b.factors[x.Cols:2*x.Cols], y.Data, y.Stride)
}

// SumGrads adds to the gradients of gain and bias, and computes the sums that the gradient of the
// rows reads.
func (b *BatchNorm) SumGrads(x, dy mat.Dense) {
	width := len(b.mean)
	clear(b.sums)
	b.sharedGrad = false
	sum, product := b.sums[:width], b.sums[width:]
	kernels.ColumnSums(x.Rows, x.Data, x.Stride, dy.Data, dy.Stride, sum, product)
	dgain, dbias := b.Gain.Grad.Row(0), b.Bias.Grad.Row(0)
	for j := range width {
		product[j] = b.inv[j] * (product[j] - float64(b.mean[j]*sum[j])) // Σ dy·x̂
		dgain[j] = float32(float64(dgain[j]) + product[j])
		dbias[j] = float32(float64(dbias[j]) + sum[j])
	}
}

// GradContribution returns those sums, which the caller sums over all workers.
func (b *BatchNorm) GradContribution() []float32 {
	all := b.travel[:len(b.sums)]
	for j, v := range b.sums {
		all[j] = float32(v)
	}
	b.sharedGrad = true
	return all
}

// PrepareGrad computes the factors of Grad.
func (b *BatchNorm) PrepareGrad() {
	width := len(b.mean)
	if b.sharedGrad {
		for j, v := range b.travel[:len(b.sums)] {
			b.sums[j] = float64(v)
		}
	}
	sum, product := b.sums[:width], b.sums[width:]
	ca, cb, cc := b.factors[:width], b.factors[width:2*width], b.factors[2*width:]
	for j, gain := range b.Gain.Value.Row(0) {
		a, rows := float64(gain)*b.inv[j], max(b.rows, 1)
		slope := -a * b.inv[j] * product[j] / rows
		ca[j], cb[j], cc[j] = float32(a), float32(slope), float32(-a*sum[j]/rows-float64(slope*b.mean[j]))
	}
}

// Grad adds to dx the gradient of some of the rows x.
func (b *BatchNorm) Grad(dx, x, _, dy mat.Dense) {
	if dx.Empty() {
		return
	}
	n := dx.Cols
	ca, cb, cc := b.factors[:n], b.factors[n:2*n], b.factors[2*n:]
	kernels.BatchNormGrad(x.Rows, x.Data, x.Stride, dy.Data, dy.Stride, ca, cb, cc, dx.Data, dx.Stride)
}

// Settle moves the running statistics by a tenth towards the statistics of the last Forward in training. The variance
// is unbiased: divided by the number of rows less one.
func (b *BatchNorm) Settle() {
	move := func(p *float32, to float64) { *p = float32((1-batchMomentum)*float64(*p) + batchMomentum*to) }
	for j := range b.mean {
		move(&b.Mean.Value.Row(0)[j], b.mean[j])
		move(&b.Variance.Value.Row(0)[j], b.square[j]/max(b.rows-1, 1))
	}
}
