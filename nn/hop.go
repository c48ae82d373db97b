package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Hop is one aggregation over the edges of some destinations, whose sources come in blocks: the
// near block, whose rows are at hand, and any number of blocks of remote rows, which other workers
// hold. Whoever has the rows calls Near first and then Add for every other block.
type Hop struct {
	agg   Aggregator
	acc   *Acc // nil: a sum, which is written to h as it grows
	h, z  mat.Dense
	own   mat.Dense // rows of the destinations
	g     *graph.CSR
	nodes []int64
	add   bool // a sum is added to what h holds
}

// NewHop begins the aggregation to h, R×H, of near sources z over the edges g, whose first R
// sources are the destinations; a sum, which reads no destination, takes any sources. End ends it.
func NewHop(agg Aggregator, h mat.Dense, g *graph.CSR, z mat.Dense) *Hop {
	p := &Hop{agg: agg, h: h, g: g, z: z}
	if !agg.IsSum() {
		p.own = z.RowRange(0, h.Rows)
	}
	p.begin(nil)
	return p
}

func (p *Hop) begin(t *Tape) {
	if p.agg.IsSum() {
		checkBlock("Sum", p.h.Rows, p.g, p.z)
		return
	}
	p.acc = t.acc()
	p.acc.Train, p.acc.Infer, p.acc.Dst, p.acc.Src = t.training(), !t.training(), p.nodes, p.nodes
	if t != nil {
		p.acc.Key = t.Key
	}
	p.agg.Begin(p.acc, p.own)
}

// Rows returns the near rows: what other workers read of this one, after dropout and projection.
func (p *Hop) Rows() mat.Dense { return p.z }

// Near takes in the near block.
func (p *Hop) Near() {
	if p.acc == nil {
		sumInto(p.h, p.g, p.z, p.add)
		return
	}
	p.agg.Add(p.acc, p.g, p.z)
}

// Add takes in a block of remote rows z, nodes being the global IDs of its sources.
func (p *Hop) Add(g *graph.CSR, nodes []int64, z mat.Dense) {
	if p.acc == nil {
		sumInto(p.h, g, z, true)
		return
	}
	p.acc.Src = nodes
	p.agg.Add(p.acc, g, z)
}

// End writes the aggregate.
func (p *Hop) End() { p.end(nil) }

func (p *Hop) end(t *Tape) {
	if p.acc == nil {
		return
	}
	p.agg.End(p.h, p.acc)
	t.push(entry{acc: p.acc, x: p.z, y: p.own, nodes: p.nodes})
}

// HopGrad is the backward pass of a Hop over the same blocks: Near first, then Add for every other
// block.
type HopGrad struct {
	agg       Aggregator
	acc, dacc *Acc // nil: a sum
	dz, dh, z mat.Dense
	own, dOwn mat.Dense // rows of the destinations and their gradient
	g         *graph.CSR
	nodes     []int64
	trans     *transposes
}

// begin takes from the tape what the aggregator kept; where dz has no columns it is not wanted, and
// nothing follows.
func (p *HopGrad) begin(t *Tape) (wanted bool) {
	p.trans = &t.trans
	if p.agg.IsSum() {
		return p.dz.Cols > 0
	}
	e := t.pop()
	if p.dz.Cols == 0 {
		return false
	}
	p.z, p.own, p.nodes, p.acc, p.dacc = e.x, e.y, e.nodes, e.acc, t.acc()
	p.agg.EndGrad(p.dacc, p.dh, p.acc)
	return true
}

// Grad returns the gradient of the near rows, to which this worker adds what others find of them.
func (p *HopGrad) Grad() mat.Dense { return p.dz }

// Rows returns the near rows, which others may read again; empty where NeedsSource is false.
func (p *HopGrad) Rows() mat.Dense { return p.z }

// NeedsSource reports whether Add reads the rows of its block.
func (p *HopGrad) NeedsSource() bool { return p.agg.NeedsSource() }

// Near adds to the gradient of the near rows what the near block brings.
func (p *HopGrad) Near() {
	if p.acc == nil {
		sumGrad(p.dz, p.g, p.dh, p.trans)
		return
	}
	p.acc.Src = p.nodes
	p.agg.AddGrad(p.dz, p.g, p.z, p.acc, p.dacc)
}

// Add adds to dz the gradient of the rows z of a block of remote sources; z is empty where it is
// not read.
func (p *HopGrad) Add(g *graph.CSR, nodes []int64, dz, z mat.Dense) {
	if p.acc == nil {
		sumGrad(dz, g, p.dh, p.trans)
		return
	}
	p.acc.Src = nodes
	p.agg.AddGrad(dz, g, z, p.acc, p.dacc)
}

func (p *HopGrad) end() {
	if p.acc != nil {
		p.agg.BeginGrad(p.dOwn, p.own, p.acc, p.dacc)
	}
}
