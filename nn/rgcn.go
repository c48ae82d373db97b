package nn

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// newRGCN is y_i = x_i·W₀ + b + Σ_r mean_{j∈N_r(i)} x_j·W_r over typed edges normalised by
// graph.Mean: x R×In, y R×Out. The W_r are combinations of s.Bases bases, or a matrix each if there
// are none (Schlichtkrull et al., ESWC 2018, eqs. 2 and 3).
func newRGCN(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{
		Self: tape.NewLinear(name+".self", s.In, s.Out, !s.BatchNorm, key),
		Agg:  aggregate.NewRelational(name+".nbr", s.In, s.Out, s.Relations, s.Bases, key), Relations: s.Relations,
	}
}

// newRSAGE is GraphSAGE over typed edges,
//
//	y_i = x_i·W₀ + b + Σ_r (mean_{j∈N_r(i)} x_j·W_r + x_i·S_r)
//
// over the relations r that reach i, those with N_r(i) not empty, normalised by graph.Mean and
// graph.CSR.WithReached: x R×In, y R×Out. It is a GraphSAGE with weights of its own for each relation (Hamilton, Ying
// and Leskovec, NeurIPS 2017, algorithm 1), summed over the relations as PyTorch Geometric's HeteroConv
// does, which adds x_i·S_r to nodes of the relation's type that it does not reach, too. W and S
// share parameters as the matrices of R-GCN do.
func newRSAGE(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{
		Self:      tape.NewLinear(name+".self", s.In, s.Out, !s.BatchNorm, key),
		Agg:       aggregate.NewRelational(name+".nbr", s.In, s.Out, 2*s.Relations, s.Bases, key),
		Relations: 2 * s.Relations, Reached: true,
	}
}

// newRGAT is graph attention over typed edges,
//
//	y_i = x_i·W₀ + Σ_r Σ_{j∈N_r(i)} α_ijr x_j·W_r + b
//
// for each head, α a softmax over the neighbours of all relations together: x R×In. y is R×Out: the
// heads side by side, or their mean (Busbridge, Sherburn, Cavallo and Hammerla, 2019, arXiv
// 1904.05811, ARGAT with additive logits; a node's own row has its own matrix, as in R-GCN). The W_r
// share parameters as in R-GCN.
func newRGAT(name string, s LayerSpec, key rng.Key) Conv {
	dim := s.Out / s.Heads
	if s.Average {
		dim = s.Out
	}
	c := Conv{
		Self: tape.NewLinear(name+".self", s.In, s.Heads*dim, false, key), Relations: s.Relations,
		Agg: aggregate.NewRelationalAttention(name+".attention", s.In, s.Relations, s.Heads, dim, s.Bases,
			s.AttentionDropout, key),
	}
	if s.Average {
		c.Post = headMean{s.Heads, dim}
	}
	if !s.BatchNorm {
		c.Bias = tape.NewParam(name+".post.bias", 1, s.Out, 0)
	}
	return c
}

// faultsOfTyped returns the faults of relations and of what their matrices share.
func faultsOfTyped(s LayerSpec) (all []error) {
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if s.Relations < 1 || s.Relations > graph.MaxRelations {
		bad("relations must be 1 to %d (got %d): %s reads the typed edges of a graph that has relations",
			graph.MaxRelations, s.Relations, s.Conv)
	}
	if s.Bases < 0 || s.Bases > s.Relations {
		bad("bases must be 0 (none) to the %d relations (got %d)", s.Relations, s.Bases)
	}
	return all
}

// weightsOfRGCN has the matrices of a node's own row, of the relations or their bases, and of the
// bases' coefficients.
func weightsOfRGCN(s LayerSpec, matrix func(rows, cols int)) {
	matrix(s.In, s.Out)
	weightsOfRelations(s, s.Relations, s.Out, matrix)
}

func weightsOfRSAGE(s LayerSpec, matrix func(rows, cols int)) {
	matrix(s.In, s.Out)
	weightsOfRelations(s, 2*s.Relations, s.Out, matrix)
}

// weightsOfRGAT has the matrices of a node's own row and of the relations, whose heads may be averaged.
func weightsOfRGAT(s LayerSpec, matrix func(rows, cols int)) {
	width := s.Out
	if s.Average {
		width *= s.Heads
	}
	matrix(s.In, width)
	weightsOfRelations(s, s.Relations, width, matrix)
	matrix(2*s.Relations, width)
}

// weightsOfRelations has a matrix for each relation, or the bases and their coefficients.
func weightsOfRelations(s LayerSpec, relations, out int, matrix func(rows, cols int)) {
	matrices := relations
	if s.Bases > 0 {
		matrices = s.Bases
	}
	for range matrices {
		matrix(s.In, out)
	}
	matrix(relations, s.Bases)
}
