package nn

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// newGINE is the graph isomorphism network with columns of edges,
//
//	y_i = ReLU((x_i·S + Σ_j ReLU(x_j·P + e_ij·U + c))·W₁ + b₁)·W₂ + b₂
//
// over the in-edges (j, i), e_ij the columns of an edge: x R×In, y R×Out (Hu et al., ICLR 2020, eq.
// A.1, whose rows are projected beforehand; S = (1+ε)·P is theirs). Where edges have no columns, e_ij·U is left
// out. Weights of edges are not read.
func newGINE(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{
		Pre:  tape.NewLinear(name+".pre", s.In, s.Out, false, key),
		Self: tape.NewLinear(name+".self", s.In, s.Out, false, key),
		Agg:  edgeMessages(name+".edge", s.EdgeColumns, s.Out, key),
		Post: tape.Stack{
			tape.NewLinear(name+".nbr", s.Out, s.Out, true, key), tape.NewActivation("relu"),
			tape.NewLinear(name+".post", s.Out, s.Out, !s.BatchNorm, key),
		},
	}
}

// edgeMessages is Σ_j ReLU(z_j + e_ij·U + c); without columns, U is left out.
func edgeMessages(name string, columns, width int, key rng.Key) *aggregate.EdgeMessages {
	c := tape.NewParam(name+".bias", 1, width, 0)
	f := &aggregate.EdgeMessages{Reduce: aggregate.SumOf, Width: width, EdgeWidth: columns,
		Parameters: []*tape.Param{c}}
	var u *tape.Param
	if columns > 0 {
		u = tape.Glorot(name+".weight", columns, width, columns, width, key)
		f.Parameters = append(f.Parameters, u)
	}
	f.Message = func(b *aggregate.EdgeBatch) {
		m, e := b.M, b.Edge
		m.CopyFrom(b.Src)
		if u != nil {
			kernels.GemmNN(m.Rows, width, columns, e.Data, e.Stride, u.Value.Data, u.Value.Stride, m.Data, m.Stride,
				true)
		}
		tape.AddBias(m, c, false)
		kernels.ReLU(m.Data, m.Data)
	}
	f.Gradient = func(b *aggregate.EdgeBatch) {
		d, e := b.DSrc, b.Edge
		kernels.ReLUGrad(b.M.Data, b.DM.Data, d.Data)
		kernels.SumColumns(d.Rows, d.Data, d.Stride, b.Grads[0].Row(0), true)
		if u != nil {
			kernels.GemmTN(columns, width, d.Rows, e.Data, e.Stride, d.Data, d.Stride, b.Grads[1].Data,
				b.Grads[1].Stride, true)
		}
	}
	return f
}

func weightsOfGINE(s LayerSpec, matrix func(rows, cols int)) {
	matrix(s.In, 2*s.Out)
	matrix(s.EdgeColumns, s.Out)
	matrix(s.Out, 2*s.Out)
}
