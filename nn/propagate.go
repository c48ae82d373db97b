package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// NewAPPNP is y = Z⁽ᴷ⁾ with Z⁽⁰⁾ = x·W + b and Z⁽ᵏ⁺¹⁾ = (1−α)·Â·Z⁽ᵏ⁾ + α·Z⁽⁰⁾ over a graph normalised by graph.GCN, K being the hops
// and α teleport: personalised PageRank by power iteration (Klicpera, Bojchevski and Günnemann, ICLR 2019, eqs. 5 and 6).
// Its gradient reads no source.
func NewAPPNP(name string, in, out int, teleport float32, key rng.Key) Conv {
	return Conv{Pre: NewLinear(name+".pre", in, out, true, key), Agg: Sum{}, Teleport: teleport}
}

// propagate writes Z⁽ᴷ⁾ to y.
func (c *Conv) propagate(y mat.Dense, in Input, t *Tape) {
	first := t.raw(in.X.Rows(), y.Cols)
	forward(c.Pre, first, in.X, t)
	var m mark
	if t != nil {
		m = t.arena.at
	}
	hops := c.hops(in.G)
	var room [2]mat.Dense
	for k := range min(hops-1, 2) {
		room[k] = t.raw(y.Rows, y.Cols)
	}
	z := first
	for k := range hops {
		next := y
		if k < hops-1 {
			next = room[k%2]
		}
		sumOver(next, in.G, in.Far, z, false)
		teleport(next, first, c.Teleport)
		z = next
	}
	if t != nil {
		t.arena.release(m)
	}
}

// teleport makes (1−α)·z + α·first of z.
func teleport(z, first mat.Dense, alpha float32) {
	for i := range z.Rows {
		kernels.Scale(1-alpha, z.Row(i))
		kernels.Axpy(alpha, first.Row(i), z.Row(i))
	}
}

// propagateGrad is the backward pass of propagate.
func (c *Conv) propagateGrad(dx, dy mat.Dense, g *graph.CSR, far Far, t *Tape) {
	first := t.Scratch(g.NumSrc, dy.Cols)
	m := t.arena.at
	damped, dz := t.raw(dy.Rows, dy.Cols), t.raw(g.NumSrc, dy.Cols)
	for range c.hops(g) {
		for i := range dy.Rows {
			kernels.Axpy(c.Teleport, dy.Row(i), first.Row(i))
			copy(damped.Row(i), dy.Row(i))
			kernels.Scale(1-c.Teleport, damped.Row(i))
		}
		dz.Zero()
		sumOverGrad(dz, g, far, damped, t)
		dy = dz
	}
	addRows(first, dy)
	t.arena.release(m)
	c.Pre.Backward(dx, first, t)
}
