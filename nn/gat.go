package nn

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// newGAT is graph attention, y_i = Σ_j α_ij x_j·W + b for each head, over a graph with self-loops:
// x R×In. y is R×Out: the heads side by side, or their mean (Veličković et al., ICLR 2018).
func newGAT(name string, s LayerSpec, key rng.Key) Conv {
	return newAttentionConv(name, s, false, key, aggregate.NewAttention)
}

// newAttentionConv returns a convolution of the given attention between rows x·W, plus b where bias
// is set.
func newAttentionConv(name string, s LayerSpec, bias bool, key rng.Key, attention newAttention) Conv {
	dim := s.Out / s.Heads
	if s.Average {
		dim = s.Out
	}
	c := Conv{
		Pre: tape.NewLinear(name+".pre", s.In, s.Heads*dim, bias, key),
		Agg: attention(name+".attention", s.Heads, dim, s.AttentionDropout, key),
	}
	if s.Average {
		c.Post = headMean{s.Heads, dim}
	}
	if !s.BatchNorm {
		c.Bias = tape.NewParam(name+".post.bias", 1, s.Out, 0)
	}
	return c
}

type newAttention func(name string, heads, dim int, dropout float32, key rng.Key) aggregate.Aggregator

// weightsOfHeads has the matrix of an attention, whose heads may be averaged.
func weightsOfHeads(s LayerSpec, matrix func(rows, cols int)) {
	if s.Average {
		matrix(s.In, s.Out*s.Heads)
	} else {
		matrix(s.In, s.Out)
	}
}

// headMean is the mean of heads that lie side by side: x R×(heads·dim), y R×dim.
type headMean struct{ Heads, Dim int }

// Params returns nil.
func (m headMean) Params() []*tape.Param { return nil }

// Dims returns heads·dim and dim.
func (m headMean) Dims() (in, out int) { return m.Heads * m.Dim, m.Dim }

// Forward writes y.
func (m headMean) Forward(y, x mat.Dense, t *tape.Tape) {
	for i := range x.Rows {
		yi, xi := y.Row(i), x.Row(i)
		clear(yi)
		for h := range m.Heads {
			kernels.Axpy(1/float32(m.Heads), xi[h*m.Dim:(h+1)*m.Dim], yi)
		}
	}
}

// Backward adds dy/heads to dx, for every head.
func (m headMean) Backward(dx, dy mat.Dense, t *tape.Tape) {
	if dx.Empty() {
		return
	}
	for i := range dy.Rows {
		di := dx.Row(i)
		for h := range m.Heads {
			kernels.Axpy(1/float32(m.Heads), dy.Row(i), di[h*m.Dim:(h+1)*m.Dim])
		}
	}
}
