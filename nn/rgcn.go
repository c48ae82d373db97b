package nn

import (
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/rows"
)

// newRGCN is y_i = x_i·W₀ + b + Σ_r mean_{j∈N_r(i)} x_j·W_r over typed edges normalised by
// graph.Mean: x R×In, y R×Out. The W_r are combinations of s.Bases bases, or a matrix each where
// that is 0 (Schlichtkrull et al., ESWC 2018, eqs. 2 and 3).
func newRGCN(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{
		Self: rows.NewLinear(name+".self", s.In, s.Out, !s.BatchNorm, key),
		Agg:  aggregate.NewRelational(name+".nbr", s.In, s.Out, s.Relations, s.Bases, key), Relations: s.Relations,
	}
}

// weightsOfRGCN are those of a node's own row, of the relations or their bases, and the bases'
// coefficients.
func weightsOfRGCN(s LayerSpec, matrix func(rows, cols int)) {
	matrix(s.In, s.Out)
	matrices := s.Bases
	if matrices == 0 {
		matrices = s.Relations
	}
	for range matrices {
		matrix(s.In, s.Out)
	}
	matrix(s.Relations, s.Bases)
}
