package nn

import (
	"fmt"

	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/rows"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// newGINE is the graph isomorphism network with columns of edges,
//
//	y_i = ReLU((x_i·S + Σ_j ReLU(x_j·P + e_ij·U + c))·W₁ + b₁)·W₂ + b₂
//
// over the in-edges (j, i), e_ij the columns of an edge: x R×In, y R×Out (Hu et al., ICLR 2020, eq.
// A.1, whose rows are projected beforehand; S = (1+ε)·P is theirs). Weights of edges are not read.
func newGINE(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{
		Pre:  rows.NewLinear(name+".pre", s.In, s.Out, false, key),
		Self: rows.NewLinear(name+".self", s.In, s.Out, false, key),
		Agg:  edgeMessages(name+".edge", s.EdgeColumns, s.Out, key),
		Post: rows.Stack{
			rows.NewLinear(name+".nbr", s.Out, s.Out, true, key), rows.NewActivation("relu"),
			rows.NewLinear(name+".post", s.Out, s.Out, !s.BatchNorm, key),
		},
	}
}

// edgeMessages is Σ_j ReLU(z_j + e_ij·U + c).
func edgeMessages(name string, columns, width int, key rng.Key) *aggregate.Messages {
	u, c := tape.Glorot(name+".weight", columns, width, columns, width, key), tape.NewParam(name+".bias", 1, width, 0)
	return &aggregate.Messages{
		Reduce: aggregate.SumOf, Width: width, EdgeWidth: columns, Parameters: []*tape.Param{u, c},
		Message: func(b *aggregate.EdgeBatch) {
			m, e := b.M, b.Edge
			kernels.GemmNNBias(m.Rows, width, columns, e.Data, e.Stride, u.Value.Data, u.Value.Stride, m.Data, m.Stride, false, c.Value.Row(0))
			kernels.Add(b.Src.Data[:len(m.Data)], m.Data)
			kernels.ReLU(m.Data, m.Data)
		},
		Gradient: func(b *aggregate.EdgeBatch) {
			d, e, du := b.DSrc, b.Edge, b.Grads[0]
			kernels.ReLUGrad(b.M.Data, b.DM.Data, d.Data)
			kernels.GemmTN(columns, width, d.Rows, e.Data, e.Stride, d.Data, d.Stride, du.Data, du.Stride, true)
			kernels.SumColumns(d.Rows, d.Data, d.Stride, b.Grads[1].Row(0), true)
		},
	}
}

// faultsOfEdges are those of a convolution that needs columns of edges.
func faultsOfEdges(s LayerSpec) (all []error) {
	if s.EdgeColumns < 1 {
		all = append(all, fmt.Errorf("edge_columns must be at least 1 (got %d): %s reads the columns of a graph's edges", s.EdgeColumns, s.Conv))
	}
	return all
}

func weightsOfGINE(s LayerSpec, matrix func(rows, cols int)) {
	matrix(s.In, 2*s.Out)
	matrix(s.EdgeColumns, s.Out)
	matrix(s.Out, 2*s.Out)
}
