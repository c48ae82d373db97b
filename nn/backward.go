package nn

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Backward is the backward pass of a layer in phases, which its caller drives as it does Forward:
//
//	b.Begin(layer, dx, dh, tape)
//	if s := b.Statistics(workers); s != nil {
//		sum(s) // over all workers
//	}
//	for hop := b.Hop(); hop != nil; hop = b.Hop() {
//		hop.Near()
//		hop.Add(g, nodes, dz, z) // for every remote block; dz goes to where its rows are
//		...                      // what others find of this worker's rows is added to hop.Grad
//	}
//	b.End()
type Backward struct {
	l       *Layer
	t       *tape.Tape
	dx      mat.Dense  // output of Layer.Backward
	d       mat.Dense  // gradient of the rows after dropout
	dy      mat.Dense  // gradient of the convolution's output
	kept    tape.Entry // the layer's entry
	norm    tape.Entry
	dropped bool // dropout was applied to the rows
	again   bool // the rows must be recomputed
	over    bool // d is X's memory, which the gradient overwrites
	started bool
	from    tape.Mark

	conv       tape.Entry
	sum        mat.Dense // gradient of the input of the convolution's Post
	grad       mat.Dense // gradient of the previous hop's output
	first      mat.Dense // gradient of the rows that propagation restarts from
	own        mat.Dense // gradient of Dst's output, the destinations' rows
	damped, dz mat.Dense
	at, inner  tape.Mark
	hop        aggregate.HopGrad
	done, hops int
}

// Begin computes the gradient down to the norm. The arguments are Layer.Backward's.
func (b *Backward) Begin(l *Layer, dx, dh mat.Dense, t *tape.Tape) {
	kept := t.Pop()
	*b = Backward{l: l, t: t, dx: dx, d: dx, dy: dh, kept: kept, from: t.Mark()}
	b.dropped, b.again = l.readsX(kept.Graph) && l.Spec.Dropout > 0, againOf(kept).Possible()
	b.over = (b.dropped || b.again) && !dx.Empty() && l.takesOver()
	switch {
	case !b.dropped && !b.again && !dx.Empty():
		dx.Zero()
	case b.over:
		b.d = kept.X
	case (b.dropped || b.again) && !dx.Empty():
		b.d = t.Scratch(dx.Rows, dx.Cols)
	}
	if l.Spec.Residual {
		b.remake()
		l.residualGrad(b.d, dh, t)
	}
	if l.Act != nil {
		l.actGrad(dh, t)
	}
	if l.Norm != nil {
		b.norm = t.Pop()
	}
	if l.batch != nil {
		l.batch.SumGrads(b.norm.X, dh)
	}
}

// remake recomputes the rows of X if their memory has been reused.
func (b *Backward) remake() {
	if b.again && !b.dropped {
		againOf(b.kept).rows(b.kept.X, b.t)
	}
}

// Statistics returns, after Begin, this worker's contribution to the sums of a BatchNorm's gradients. The caller
// replaces these numbers by their sums over all workers. It is nil if there are none.
func (b *Backward) Statistics(workers int) []float32 {
	if b.l.batch == nil || workers == 1 {
		return nil
	}
	return b.l.batch.GradContribution()
}

// Hop ends the last hop, if there is one, and returns the next one, in reverse order. It returns nil if there is none;
// the gradients of the convolution are then complete.
func (b *Backward) Hop() *aggregate.HopGrad {
	switch {
	case b.done > 0:
		b.hop.End()
		b.grad = b.hop.Grad
	case !b.started:
		b.started = true
		if b.l.Norm != nil {
			b.dy = b.l.normGrad(&b.norm, b.dy, b.t)
		}
		if !b.l.Spec.Residual && !b.l.sums() { // dh may be in the memory where X is recomputed
			b.remake()
		}
		b.beginConv()
	}
	for b.done < b.hops {
		b.done++
		b.hop = aggregate.HopGrad{Agg: b.l.Conv.Agg, G: b.conv.Graph, DH: b.grad, OwnGrad: b.own}
		b.hop.Grad, b.hop.Fresh = b.into()
		if b.route() == propagation {
			b.hop.DH = b.damped
		}
		if b.hop.Begin(b.t) {
			return &b.hop
		}
		b.grad = b.hop.Grad
	}
	b.endConv()
	return nil
}

func (b *Backward) route() route { return route(b.conv.At) }

// beginConv computes the gradient of the last hop's output.
func (b *Backward) beginConv() {
	c, t := &b.l.Conv, b.t
	b.at, b.sum = t.Mark(), b.dy
	tape.BiasGrad(c.Bias, b.dy)
	if c.Post != nil {
		width, _ := c.Post.Dims()
		b.sum = t.Scratch(b.dy.Rows, width)
		c.Post.Backward(b.sum, b.dy, t)
	}
	b.conv = t.Pop()
	g := b.conv.Graph
	b.grad = b.sum
	switch b.route() {
	case ownRows:
		return
	case givenAggregate:
		if c.Nbr != nil { // a given aggregate is a constant
			c.Nbr.Backward(mat.Dense{}, b.sum, t)
		}
		return
	case propagation:
		b.first = t.Scratch(g.NumSrc, b.sum.Cols)
		b.inner = t.Mark()
		b.damped, b.dz = t.Raw(b.sum.Rows, b.sum.Cols), t.Raw(g.NumSrc, b.sum.Cols)
	case projectFirst:
		tape.BiasGrad(c.Nbr.B, b.sum)
	case sparseFirst, aggregateFirst:
		if c.Nbr != nil {
			b.grad = mat.Dense{}
			if b.wantsRows() {
				b.grad = c.Nbr.BackwardOver(b.sum, t) // the layer computed the aggregate itself
			} else {
				c.Nbr.Backward(mat.Dense{}, b.sum, t)
			}
		}
		if b.route() == sparseFirst {
			t.Mend()
			c.Agg.(aggregate.SparseAggregator).SumSparseGrad(b.grad, g, t)
			return
		}
		if b.over && c.Pre == nil { // sums of X were multiplied
			b.selfOver(false)
			b.d.RowRange(b.sum.Rows, b.d.Rows).Zero()
		}
	}
	if c.Dst != nil {
		_, width := c.Dst.Dims()
		b.own = t.Scratch(b.sum.Rows, width)
	}
	b.hops = c.hops(g)
}

// wantsRows reports whether the gradient of the aggregated rows is wanted, which is equal at all workers.
func (b *Backward) wantsRows() bool { return b.d.Cols > 0 || !b.l.Conv.frozen() }

// into returns where the gradient of the hop's input is added, and whether it is overwritten first. It has no columns
// if it is not wanted.
func (b *Backward) into() (grad mat.Dense, fresh bool) {
	c, t, g := &b.l.Conv, b.t, b.conv.Graph
	switch {
	case b.route() == propagation:
		for i := range b.grad.Rows {
			kernels.Axpy(c.Alpha, b.grad.Row(i), b.first.Row(i))
			copy(b.damped.Row(i), b.grad.Row(i))
			kernels.Scale(1-c.Alpha, b.damped.Row(i))
		}
		return b.dz, true
	case b.route() == projectFirst:
		return t.Raw(g.NumSrc, b.grad.Cols), true
	case b.done == b.hops && c.Pre == nil && b.d.Cols > 0:
		return b.d, false
	case b.wantsRows():
		width, _ := c.Agg.Dims()
		if width == 0 {
			width = b.grad.Cols
		}
		if p := c.Agg.Properties(); p.Sum || p.WritesGrad {
			return aggregate.GradPlace(c.Agg, g.NumSrc, width, t), true
		}
		return t.Scratch(g.NumSrc, width), false
	}
	return mat.Dense{}, false
}

// endConv computes the gradients of the operators before the hops.
func (b *Backward) endConv() {
	c, t := &b.l.Conv, b.t
	selfDone := false
	switch route := b.route(); {
	case route == propagation:
		tape.AddTo(b.first, b.grad)
		t.Release(b.inner)
		c.Pre.Backward(b.d, b.first, t)
	case route == projectFirst && b.over:
		b.affineOver(c.Nbr)
		selfDone = true
	case route == projectFirst:
		c.Nbr.ProductGrad(b.d, b.grad, t)
	case route == aggregateFirst && b.over:
		if c.Pre != nil {
			if b.l.sums() {
				b.remake() // dy, which may be in that memory, has been read
			}
			tape.BiasGrad(c.Pre.B, b.grad)
			b.affineOver(c.Pre)
		}
		selfDone = true
	case route == aggregateFirst && c.Pre != nil:
		if c.Dst != nil {
			c.Dst.Backward(b.destinations(), b.own, t)
		}
		grad := b.grad
		if c.PreAct != nil {
			grad = t.Scratch(b.grad.Rows, b.grad.Cols)
			c.PreAct.Backward(grad, b.grad, t)
		}
		c.Pre.Backward(b.d, grad, t)
	case b.over: // no hop
		b.selfOver(false)
		selfDone = true
	}
	if c.Self != nil && !selfDone {
		c.Self.Backward(b.destinations(), b.sum, t)
	}
	t.Release(b.at)
}

// destinations returns where the gradient of the destinations' rows is added, or an empty matrix if it is not wanted.
func (b *Backward) destinations() mat.Dense {
	if b.d.Empty() {
		return b.d
	}
	return b.d.RowRange(0, b.dy.Rows)
}

// affineOver computes the gradients of the weights that read X, op's first. The gradient of X then overwrites X.
func (b *Backward) affineOver(op *tape.Linear) {
	op.WeightGrad(b.grad, b.t)
	b.selfWeights()
	op.InputGrad(b.d, b.grad, false, b.t)
	b.selfInput(true)
}

// selfOver computes the gradients of a node's own map, whose weights come first, or writes zeros if
// there is no such map.
func (b *Backward) selfOver(add bool) {
	b.selfWeights()
	b.selfInput(add)
}

// selfWeights adds the gradients of the weights and the bias of a node's own map, if there is one.
func (b *Backward) selfWeights() {
	if self := b.l.Conv.Self; self != nil {
		tape.BiasGrad(self.B, b.sum)
		self.WeightGrad(b.sum, b.t)
	}
}

// selfInput writes the gradient of the own rows through that map to d, or adds it.
func (b *Backward) selfInput(add bool) {
	own := b.d.RowRange(0, b.sum.Rows)
	switch self := b.l.Conv.Self; {
	case self != nil:
		self.InputGrad(own, b.sum, add, b.t)
	case !add:
		own.Zero()
	}
}

// End computes the gradient of the layer's input.
func (b *Backward) End() {
	l, t := b.l, b.t
	if b.kept.Graph == nil && l.Conv.Agg != nil {
		t.Pop() // dropout of Z
	}
	switch {
	case b.dropped:
		l.dropX.BackwardTo(b.dx, b.d, t)
	case l.readsX(b.kept.Graph):
		t.Pop()
		if b.again && !b.over {
			tape.CopyTo(b.dx, b.d)
		}
	}
	t.Release(b.from)
}
