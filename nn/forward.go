package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Forward is the forward pass of a layer in phases, which its caller drives: what is sent, what is
// aggregated over blocks, what comes out. Layer.Forward drives it if all rows are at hand; a
// trainer that shares a graph with other workers does so itself, every worker in the same order:
//
//	f.Begin(layer, h, in, tape)
//	for hop := f.Hop(); hop != nil; hop = f.Hop() {
//		hop.Near()           // hop.Rows are what other workers fetch meanwhile
//		hop.Add(g, nodes, z) // for every block of rows that has come
//	}
//	if s := f.Statistics(rank, workers); s != nil {
//		sum(s) // over all workers
//	}
//	f.End()
//
// After an error it is left as it is; the tape is then reset.
type Forward struct {
	l    *Layer
	h, y mat.Dense // the layer's rows, and the convolution's output
	in   Input
	t    *tape.Tape
	from tape.Mark

	route      route
	sum        mat.Dense // input of the convolution's Post
	z, first   mat.Dense // input of the next hop, and the rows that propagation restarts from
	own        mat.Dense // Dst's output, the destinations' rows
	room       [2]mat.Dense
	at         tape.Mark
	end        tape.Mark // end of the memory of the rows after dropout
	hop        aggregate.Hop
	done, hops int
	relu       bool // ReLU is applied while the neighbour term is added, which is the last term
}

// Begin computes the rows that the first hop aggregates. The arguments are Layer.Forward's.
func (f *Forward) Begin(l *Layer, h mat.Dense, in Input, t *tape.Tape) {
	l.check(h, in)
	*f = Forward{l: l, h: h, y: h, in: in, t: t, from: t.Mark()}
	if t != nil {
		t.Nodes = in.Nodes
	}
	if l.readsX(in.G) {
		f.in.X = l.dropX.Features(in.X, t)
		f.end = t.Mark()
	}
	if in.G == nil && l.Conv.Agg != nil {
		f.in.Z = l.dropZ.Features(in.Z, t)
	}
	if l.Spec.Residual || l.Norm != nil && t.Training() && !l.sums() { // the norm's gradient reads its input
		f.y = t.Raw(h.Rows, h.Cols)
	}
	f.beginConv()
}

// Place returns where Backward may write the gradient of X: over the rows after dropout, which are not read any more.
// The memory that t has given out since end is then unused. It is empty if there are no such rows, or they are still
// read.
func (f *Forward) Place() (dx mat.Dense, end tape.Mark) {
	if l := f.l; l.readsX(f.in.G) && l.Spec.Dropout > 0 && l.takesOver() && f.t.Training() {
		return f.in.X.Dense, f.end
	}
	return mat.Dense{}, tape.Mark{}
}

// beginConv computes the convolution up to its first hop.
func (f *Forward) beginConv() {
	c, t := &f.l.Conv, f.t
	f.sum = f.y
	f.relu = f.l.fusesReLU()
	if c.Post != nil {
		width, _ := c.Post.Dims()
		f.sum = t.Raw(f.y.Rows, width)
	}
	if c.Self != nil {
		tape.Forward(c.Self, f.sum, firstRows(f.in.X, f.y.Rows, t), t)
	}
	x, g := f.in.X, f.in.G
	switch f.route = c.route(f.in); f.route {
	case ownRows:
		return
	case givenAggregate:
		c.project(f.sum, f.in.Z, c.Self != nil, f.relu, t)
		return
	case sparseFirst:
		f.z = t.Raw(f.y.Rows, f.sum.Cols)
		c.Agg.(aggregate.SparseAggregator).SumSparse(f.z, g, x.Sparse, t)
		c.project(f.sum, graph.Features{Dense: f.z}, c.Self != nil, f.relu, t)
		return
	case propagation:
		f.first = t.Raw(x.Rows(), f.sum.Cols)
		tape.Forward(c.Pre, f.first, x, t)
		f.z, f.at = f.first, t.Mark()
		for k := range min(c.hops(g)-1, 2) {
			f.room[k] = t.Raw(f.y.Rows, f.sum.Cols)
		}
	case projectFirst:
		_, out := c.Nbr.Dims()
		f.at = t.Mark()
		f.z = t.Raw(g.NumSrc, out)
		c.Nbr.Product(f.z, x, false, nil, false, t)
	case aggregateFirst:
		f.z = x.Dense
		if c.Pre != nil {
			_, out := c.Pre.Dims()
			f.z = t.Raw(x.Rows(), out)
			tape.Forward(c.Pre, f.z, x, t)
		}
		if c.PreAct != nil {
			c.PreAct.Forward(f.z, f.z, t)
		}
		if c.Dst != nil {
			_, out := c.Dst.Dims()
			f.own = t.Raw(f.y.Rows, out)
			tape.Forward(c.Dst, f.own, firstRows(x, f.y.Rows, t), t)
		}
	}
	f.hops = c.hops(g)
}

// Hop ends the last hop, if there is one, and returns the next one. It returns nil if there is none; the convolution is
// then complete.
func (f *Forward) Hop() *aggregate.Hop {
	if f.done > 0 {
		f.hop.End()
		f.z = f.hop.H
		if f.route == propagation {
			restart(f.z, f.first, f.l.Conv.Alpha)
		}
	}
	if f.done == f.hops {
		f.endConv()
		return nil
	}
	f.done++
	f.hop = aggregate.Hop{Agg: f.l.Conv.Agg, G: f.in.G, Nodes: f.in.Nodes, Rows: f.z, Own: f.own, EdgeX: f.in.EdgeX}
	f.hop.H, f.hop.Onto = f.into(f.done == f.hops)
	f.hop.Begin(f.t)
	return &f.hop
}

// into returns where a hop writes its aggregate, and whether it adds to the values there.
func (f *Forward) into(last bool) (h mat.Dense, add bool) {
	c, t := &f.l.Conv, f.t
	switch {
	case f.route == propagation && !last:
		return f.room[(f.done-1)%2], false
	case f.route == propagation:
		return f.sum, false
	case f.route == projectFirst && last:
		return f.sum, c.Self != nil
	case last && c.Nbr == nil && c.Self == nil: // the last aggregate is the output
		return f.sum, false
	}
	return t.Raw(c.dsts(f.in.G), aggWidth(c.Agg, f.z.Cols)), false
}

// endConv computes the terms after the last hop.
func (f *Forward) endConv() {
	c, t := &f.l.Conv, f.t
	switch f.route {
	case propagation:
		t.Release(f.at)
	case projectFirst:
		tape.AddBias(f.sum, c.Nbr.B, f.relu)
		t.Release(f.at)
	case aggregateFirst:
		if c.Nbr != nil || c.Self != nil {
			c.project(f.sum, graph.Features{Dense: f.z}, c.Self != nil, f.relu, t)
		}
	}
	t.Push(tape.Entry{Graph: f.in.G, At: int(f.route)})
	if c.Post != nil {
		c.Post.Forward(f.y, f.sum, t)
	}
	tape.AddBias(f.y, c.Bias, false)
	if b := f.l.batch; b != nil && t.Training() {
		b.Moments(f.y)
	}
}

// Statistics returns, after the last hop, worker rank's contribution to the statistics of a BatchNorm. The caller
// replaces these numbers by their sums over all workers. It is nil if there are none.
func (f *Forward) Statistics(rank, workers int) []float32 {
	if f.l.batch == nil || workers == 1 || !f.t.Training() {
		return nil
	}
	return f.l.batch.Contribution(rank, workers)
}

// End computes the layer's rows from the convolution's output.
func (f *Forward) End() {
	l, h, y, t := f.l, f.h, f.y, f.t
	if l.Norm != nil {
		next := h
		if l.Spec.Residual {
			next = y
			if t.Training() {
				next = t.Raw(h.Rows, h.Cols)
			}
		}
		if l.batch != nil && t.Training() {
			l.batch.Normalise(next, y, t)
		} else {
			l.Norm.Forward(next, y, t)
		}
		if t.Training() && l.sums() {
			t.Last(0).State = t.Last(2).State // the aggregator's; the entry between is the convolution's
		}
		y = next
	}
	switch {
	case l.Act == nil:
	case f.relu:
		l.Act.Keep(y, t)
	default:
		l.Act.Forward(y, y, t)
	}
	if l.Spec.Residual {
		x := firstRows(f.in.X, h.Rows, t)
		if l.Residual != nil {
			tape.Forward(l.Residual, h, x, t)
		} else {
			addIdentity(h, x)
		}
		tape.AddTo(h, y)
	}
	t.Push(tape.Entry{Graph: f.in.G, X: f.in.X.Dense, State: f.in.Again.layer, At: f.in.Again.at})
	if t.Infers() {
		t.Release(f.from)
	}
}

// addIdentity writes x to h.
func addIdentity(h mat.Dense, x graph.Features) {
	if x.Sparse == nil {
		h.CopyFrom(x.Dense)
		return
	}
	for i := range h.Rows {
		x.Sparse.Spread(h.Row(i), i)
	}
}

// fusesReLU reports whether nothing comes between a layer's neighbour term, which is a product and a bias, and its
// ReLU.
func (l *Layer) fusesReLU() bool {
	c := &l.Conv
	return l.Spec.Act == "relu" && l.Norm == nil && !l.Spec.Residual && c.Nbr != nil && c.Alpha == 0 && c.Post == nil &&
		c.Bias == nil
}
