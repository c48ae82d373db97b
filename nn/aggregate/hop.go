package aggregate

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Hop is one aggregation over the edges of some destinations, whose sources come in blocks: the near block of own rows,
// and any number of blocks of remote rows from other workers. After Begin the caller calls Near first and then Add for
// every other block; End writes the aggregate.
type Hop struct {
	Agg   Aggregator
	G     *graph.CSR
	Rows  mat.Dense // near rows, after dropout and projection; other workers read them, too
	Nodes []int64   // their global IDs, which key dropout (nil = the index)
	Own   mat.Dense // rows of the destinations, which a sum does not read (empty = the first of Rows)
	EdgeX mat.Dense // rows of the edges' columns, which all blocks index (graph.CSR.Edge)
	H     mat.Dense // the aggregate
	Onto  bool      // a sum is added to H instead of overwriting it

	acc *Acc // nil for a sum, which is accumulated in H
	t   *tape.Tape
}

// Begin begins the aggregation; a nil tape means inference.
func (p *Hop) Begin(t *tape.Tape) {
	if p.Agg.Properties().Sum {
		checkBlock("Sum", p.H.Rows, p.G, p.Rows)
		p.t = t
		return
	}
	if p.Own.Cols == 0 {
		p.Own = p.Rows.RowRange(0, p.H.Rows)
	}
	p.t, p.acc = t, newAcc(t)
	p.acc.Train, p.acc.Infer, p.acc.Dst, p.acc.Src = t.Training(), !t.Training(), p.Nodes, p.Nodes
	p.acc.EdgeX = p.EdgeX
	if t != nil {
		p.acc.Key = t.Key
	}
	p.Agg.Begin(p.acc, p.Own)
}

// Near adds the near block.
func (p *Hop) Near() {
	if p.acc == nil {
		sumInto(p.H, p.G, p.Rows, p.Onto)
		return
	}
	p.Agg.Add(p.acc, p.G, p.Rows)
}

// Add adds a block of remote rows z; nodes are the global IDs of its sources.
func (p *Hop) Add(g *graph.CSR, nodes []int64, z mat.Dense) {
	if p.acc == nil {
		sumInto(p.H, g, z, true)
		return
	}
	p.acc.Src = nodes
	p.Agg.Add(p.acc, g, z)
}

// End writes the aggregate.
func (p *Hop) End() {
	if p.acc == nil {
		return
	}
	p.Agg.End(p.H, p.acc)
	p.t.Push(tape.Entry{State: p.acc, X: p.Rows, Y: p.Own, Nodes: p.Nodes})
}

// HopGrad is the backward pass of a Hop over the same blocks: Begin, Near, then Add for every other
// block, and End.
type HopGrad struct {
	Agg     Aggregator
	G       *graph.CSR
	DH      mat.Dense // gradient of the aggregate
	Grad    mat.Dense // gradient of the near rows; after Near this worker adds the other workers' contributions
	Fresh   bool      // Grad is empty so far, and Near overwrites it (for a sum, or with WritesGrad)
	OwnGrad mat.Dense // gradient of the destinations' rows (empty = the first of Grad)
	Rows    mat.Dense // near rows, which others may read again; empty if NeedsSource is false

	acc, dacc *Acc // nil for a sum
	own       mat.Dense
	nodes     []int64
	t         *tape.Tape
}

// Begin takes the aggregator's state from the tape. If Grad has no columns, it is not wanted: Begin returns false and
// nothing else is called.
func (p *HopGrad) Begin(t *tape.Tape) (wanted bool) {
	p.t = t
	wanted = p.Grad.Cols > 0
	if p.Agg.Properties().Sum {
		return wanted
	}
	e := t.Pop()
	if !wanted {
		return false
	}
	if p.OwnGrad.Cols == 0 {
		p.OwnGrad = p.Grad.RowRange(0, p.DH.Rows)
	}
	p.Rows, p.own, p.nodes, p.acc, p.dacc = e.X, e.Y, e.Nodes, e.State.(*Acc), newAcc(t)
	p.dacc.fresh = p.Fresh
	p.Agg.EndGrad(p.dacc, p.DH, p.acc)
	return true
}

// GradPlace returns, before Begin, memory for a Grad that Near overwrites, rows×cols. It is the aggregate's memory if
// nothing reads the aggregate after Begin and it has that shape.
func GradPlace(agg Aggregator, rows, cols int, t *tape.Tape) mat.Dense {
	if agg.Properties().KeepsAggregate {
		if sum := t.Last(0).State.(*Acc).sum; sum.Rows == rows && sum.Cols == cols {
			return sum
		}
	}
	return t.Raw(rows, cols)
}

// NeedsSource reports whether Add reads the rows of its block.
func (p *HopGrad) NeedsSource() bool { return p.Agg.Properties().NeedsSource }

// TakesPlace reports whether dz may be z, the rows of the block, in Add: the gradient then overwrites them.
func (p *HopGrad) TakesPlace() bool { return p.Agg.Properties().WritesGrad }

// Near adds the near block's gradient to the gradient of the near rows.
func (p *HopGrad) Near() {
	if p.acc == nil {
		sumGrad(p.Grad, p.G, p.DH, p.t.Patterns(), !p.Fresh)
		return
	}
	p.Add(p.G, p.nodes, p.Grad, p.Rows)
}

// Add adds to dz the gradient of the rows z of a block of sources. z is empty if it is not read, and
// may be dz if TakesPlace.
func (p *HopGrad) Add(g *graph.CSR, nodes []int64, dz, z mat.Dense) {
	if p.acc == nil {
		sumGrad(dz, g, p.DH, p.t.Patterns(), true)
		return
	}
	p.acc.Src = nodes
	p.Agg.AddGrad(dz, g, z, p.acc, p.dacc)
}

// End adds the gradient of the destinations' rows.
func (p *HopGrad) End() {
	if p.acc != nil {
		p.Agg.BeginGrad(p.OwnGrad, p.own, p.acc, p.dacc)
	}
}
