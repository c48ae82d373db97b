package aggregate_test

import (
	"fmt"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/nntest"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

func TestAggregators(t *testing.T) {
	for name, agg := range map[string]aggregate.Aggregator{
		"sum":               aggregate.Sum{},
		"max":               aggregate.Max{},
		"attention":         aggregate.NewAttention("att", 2, 3, 0, rng.New(1)),
		"messages":          squares(),
		"sum of messages":   projected(aggregate.SumOf),
		"mean of messages":  projected(aggregate.MeanOf),
		"max of messages":   projected(aggregate.MaxOf),
		"linear messages":   tripled(aggregate.SumOf),
		"of linear ones":    tripled(aggregate.MaxOf),
		"of one's own":      doubled{},
		"dynamic attention": aggregate.NewDynamicAttention("att", 2, 3, 0, 0.3, rng.New(1)),
		"edge attention":    aggregate.NewDynamicAttention("att", 2, 3, 4, 0.3, rng.New(1)),
		"attention dropout": aggregate.NewAttention("att", 3, 2, 0.4, rng.New(1)),
	} {
		t.Run(name, func(t *testing.T) { nntest.CheckAggregator(t, agg, 6, 0) })
	}
}

// squares is the message gain·w·z².
func squares() aggregate.Aggregator {
	gain := &tape.Param{Name: "gain", Value: mat.New(1, 1), Grad: mat.New(1, 1)}
	gain.Value.Set(0, 0, 0.7)
	return &aggregate.EdgeMessages{
		Parameters: []*tape.Param{gain},
		Message: func(b *aggregate.EdgeBatch) {
			for k, w := range b.Weight {
				for c, v := range b.Src.Row(k) {
					b.M.Row(k)[c] = gain.Value.At(0, 0) * w * v * v
				}
			}
		},
		Gradient: func(b *aggregate.EdgeBatch) {
			for k, w := range b.Weight {
				for c, v := range b.Src.Row(k) {
					d := b.DM.At(k, c) * w * v
					b.DSrc.Row(k)[c] += 2 * d * gain.Value.At(0, 0)
					b.Grads[0].Row(0)[0] += d * v
				}
			}
		},
	}
}

// projected is the message w·ReLU([z_j | r_i | x_ij]·W), of another width than z.
func projected(how aggregate.Reduction) aggregate.Aggregator {
	const in, edge, out = 6, 3, 5
	p := tape.Glorot("weight", 2*in+edge, out, 2*in+edge, out, rng.New(4))
	pieces := func(w mat.Dense) [3]mat.Dense {
		return [3]mat.Dense{w.RowRange(0, in), w.RowRange(in, 2*in), w.RowRange(2*in, 2*in+edge)}
	}
	return &aggregate.EdgeMessages{
		Reduce: how, Width: out, ReadsDst: true, EdgeWidth: edge, Parameters: []*tape.Param{p},
		Message: func(b *aggregate.EdgeBatch) {
			for k, w := range pieces(p.Value) {
				x := [3]mat.Dense{b.Src, b.Dst, b.Edge}[k]
				kernels.GemmNN(x.Rows, out, x.Cols, x.Data, x.Stride, w.Data, w.Stride, b.M.Data, out, k > 0)
			}
			kernels.ReLU(b.M.Data, b.M.Data)
			for k, w := range b.Weight {
				kernels.Scale(w, b.M.Row(k))
			}
		},
		Gradient: func(b *aggregate.EdgeBatch) {
			d := mat.New(b.M.Rows, out)
			kernels.ReLUGrad(b.M.Data, b.DM.Data, d.Data)
			for k, w := range b.Weight {
				kernels.Scale(w, d.Row(k))
			}
			dw := pieces(b.Grads[0])
			for k, w := range pieces(p.Value) {
				x, dx := [3]mat.Dense{b.Src, b.Dst, b.Edge}[k], [3]mat.Dense{b.DSrc, b.DDst}[k]
				kernels.GemmTN(x.Cols, out, x.Rows, x.Data, x.Stride, d.Data, out, dw[k].Data, out, true)
				if k < 2 {
					kernels.GemmNT(x.Rows, x.Cols, out, d.Data, out, w.Data, w.Stride, dx.Data, dx.Stride, true)
				}
			}
		},
	}
}

// tripled is the message 3·z_j + r_i, of which the gradient reads nothing but its own.
func tripled(how aggregate.Reduction) *aggregate.EdgeMessages {
	return &aggregate.EdgeMessages{
		Reduce: how, ReadsDst: true, Linear: true,
		Message: func(b *aggregate.EdgeBatch) {
			b.M.CopyFrom(b.Dst)
			kernels.Axpy(3, b.Src.Data, b.M.Data)
		},
		Gradient: func(b *aggregate.EdgeBatch) {
			kernels.Axpy(3, b.DM.Data, b.DSrc.Data)
			kernels.Add(b.DM.Data, b.DDst.Data)
		},
	}
}

// doubled is 2·Σ_j z_j: an Aggregator with nothing of the package but the interface, which keeps its
// sums in Acc.State.
type doubled struct{}

func (doubled) Params() []*tape.Param                                         { return nil }
func (doubled) Dims() (in, out int)                                           { return 0, 0 }
func (doubled) Properties() aggregate.Properties                              { return aggregate.Properties{} }
func (doubled) Begin(acc *aggregate.Acc, z mat.Dense)                         { acc.State = mat.New(z.Rows, z.Cols) }
func (doubled) End(h mat.Dense, acc *aggregate.Acc)                           { h.CopyFrom(acc.State.(mat.Dense)) }
func (doubled) EndGrad(dacc *aggregate.Acc, dh mat.Dense, acc *aggregate.Acc) { dacc.State = dh }
func (doubled) BeginGrad(dz, z mat.Dense, acc, dacc *aggregate.Acc)           {}

func (doubled) Add(acc *aggregate.Acc, g *graph.CSR, z mat.Dense) {
	sum := acc.State.(mat.Dense)
	for i := range g.NumDst {
		col, _ := g.Row(i)
		for _, j := range col {
			for c, v := range z.Row(int(j)) {
				sum.Row(i)[c] += 2 * v
			}
		}
	}
}

func (doubled) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *aggregate.Acc) {
	for i := range g.NumDst {
		col, _ := g.Row(i)
		for _, j := range col {
			for c, v := range dacc.State.(mat.Dense).Row(i) {
				dz.Row(int(j))[c] += 2 * v
			}
		}
	}
}

func TestRelational(t *testing.T) {
	for _, bases := range []int{0, 2} {
		agg := aggregate.NewRelational("rel", 6, 4, 3, bases, rng.New(1))
		t.Run(fmt.Sprintf("%d bases", bases), func(t *testing.T) { nntest.CheckAggregator(t, agg, 6, 3) })
	}
}

func TestRelationalAttention(t *testing.T) {
	for _, bases := range []int{0, 2} {
		for _, dropout := range []float32{0, 0.4} {
			agg := aggregate.NewRelationalAttention("rel", 6, 3, 2, 3, bases, dropout, rng.New(1))
			t.Run(fmt.Sprintf("%d bases, dropout %g", bases, dropout),
				func(t *testing.T) { nntest.CheckAggregator(t, agg, 6, 3) })
		}
	}
}
