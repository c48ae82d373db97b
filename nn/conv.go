package nn

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Conv is y = Post(Self(x) + Nbr(Agg(PreAct(Pre(x))))) + Bias, where x are the rows of a block's sources and y the rows
// of its destinations. A nil Self omits its term; nil Pre, PreAct, Nbr, Post and Bias are identities; a nil Agg means
// that there is no neighbour term. Agg reads a destination's own row as Dst(x) or, if Dst is nil, as it reads it as a
// source.
type Conv struct {
	Pre, Nbr  *tape.Linear
	Self, Dst *tape.Linear
	PreAct    tape.Operator
	Post      tape.Operator
	Bias      *tape.Param
	Agg       aggregate.Aggregator
	Alpha     float32 // restart probability: the fraction of Pre's rows in the output of each hop (0 = no restarts)
	Relations int     // number of edge types; a block has that many rows a destination (0 = edges have no types)
	Reached   bool    // the second half of the relations comes from graph.CSR.WithReached
	Hops      int     // how often Agg is applied (0 = 1); more than once only on a whole graph
}

// Params returns the parameters of Pre, Dst, Self, Agg, Nbr, Post and Bias.
func (c *Conv) Params() []*tape.Param {
	all := slices.Concat(c.Pre.Params(), c.Dst.Params(), c.Self.Params())
	if c.Agg != nil {
		all = append(all, c.Agg.Params()...)
	}
	all = append(all, c.Nbr.Params()...)
	if c.Post != nil {
		all = append(all, c.Post.Params()...)
	}
	if c.Bias != nil {
		all = append(all, c.Bias)
	}
	return all
}

// frozen reports whether the aggregate of a constant input is constant.
func (c *Conv) frozen() bool { return c.Pre == nil && (c.Agg == nil || len(c.Agg.Params()) == 0) }

// route is the order in which a convolution computes its neighbour term.
type route uint8

const (
	ownRows        route = iota // there is no neighbour term
	givenAggregate              // Nbr(Z)
	projectFirst                // Agg(x·Nbr), the same as aggregateFirst of a sum
	aggregateFirst              // Nbr(Agg(Pre(x)))
	sparseFirst                 // Nbr(Agg(Pre(x))), where Agg itself multiplies sparse rows
	propagation                 // hops with restarts from Pre(x)
)

// route returns the order for an input.
func (c *Conv) route(in Input) route {
	switch {
	case c.Agg == nil:
		return ownRows
	case in.G == nil:
		return givenAggregate
	case c.Alpha > 0:
		return propagation
	case c.projectsFirst(in):
		return projectFirst
	case c.Pre != nil || in.X.Sparse == nil:
		return aggregateFirst
	}
	if _, ok := c.Agg.(aggregate.SparseAggregator); !ok || in.Remote {
		panic("nn: rows must be dense for this aggregator and where sources are remote (got sparse rows)")
	}
	return sparseFirst
}

// gatherCost is the cost of a value gathered along an edge, in multiply-adds of a dense product.
const gatherCost = 8

// projectsFirst reports whether A(XW) costs less than (AX)W, which is the same. Sparse rows, whose sums would be dense,
// are always projected first.
func (c *Conv) projectsFirst(in Input) bool {
	if c.Nbr == nil || c.Pre != nil || !c.Agg.Properties().Sum {
		return false
	}
	if in.X.Sparse != nil {
		return true
	}
	w, out := c.Nbr.Dims()
	if in.Remote { // the width of sent rows decides, so that all workers decide alike
		return out < w
	}
	edges := in.G.NumEdges() * max(c.Hops, 1) * gatherCost
	return edges*out+in.G.NumSrc*w*out < edges*w+in.G.NumDst*w*out
}

// fitsOver reports whether the gradient of X can overwrite X: X is read by affine maps and a sum over edges, or by one
// affine map before the aggregator.
func (c *Conv) fitsOver() bool {
	if c.Alpha > 0 || c.Hops > 1 || c.Relations > 0 || c.Dst != nil {
		return false
	}
	switch {
	case c.Agg == nil:
		return true
	case c.Agg.Properties().Sum:
		return c.Pre == nil && c.Nbr != nil
	}
	return c.Pre != nil && c.PreAct == nil
}

// keepsSum reports whether the convolution's output is an aggregate that the aggregator keeps, plus a bias.
func (c *Conv) keepsSum() bool {
	return c.Agg != nil && c.Agg.Properties().KeepsAggregate && c.fitsOver() &&
		c.Self == nil && c.Nbr == nil && c.Post == nil
}

// project writes Nbr(z) to y, or adds it, and applies ReLU if relu is set, which only a layer with Nbr may do.
func (c *Conv) project(y mat.Dense, z graph.Features, add, relu bool, t *tape.Tape) {
	switch {
	case c.Nbr != nil:
		c.Nbr.Product(y, z, add, c.Nbr.B, relu, t)
	case add:
		tape.AddTo(y, z.Dense)
	default:
		y.CopyFrom(z.Dense)
	}
}

// dsts returns the number of destinations of a block.
func (c *Conv) dsts(g *graph.CSR) int { return g.NumDst / max(c.Relations, 1) }

// hops returns how often Agg is applied over g.
func (c *Conv) hops(g *graph.CSR) int {
	if c.Hops > 1 && g.NumDst != g.NumSrc {
		panic("nn: several hops must be over a whole graph, not over a block")
	}
	return max(c.Hops, 1)
}

// aggWidth returns the width of the aggregates of rows of the given width.
func aggWidth(agg aggregate.Aggregator, width int) int {
	if _, out := agg.Dims(); out != 0 {
		return out
	}
	return width
}

// firstRows returns the first n rows of x.
func firstRows(x graph.Features, n int, t *tape.Tape) graph.Features {
	if x.Rows() == n {
		return x
	}
	if x.Sparse == nil {
		return graph.Features{Dense: x.Dense.RowRange(0, n)}
	}
	return graph.Features{Sparse: t.View(x.Sparse.First(n))}
}
