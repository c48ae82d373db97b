package fullbatch

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// pass computes a view's scores, unit by unit, and the backward pass; it runs the phases of each layer. Memory of rows
// is reused once no later step reads them, or if they can be recomputed.
type pass struct {
	t    *Trainer
	v    *view
	tape *tape.Tape
	add  func(x []float32) error // sums statistics over the workers; nil in inference
	room [2]mat.Dense            // memory that units share
	dx   []place                 // [unit] memory for the gradient of the unit's input
	keep *mat.Dense              // gets a copy of the rows that the last linear map reads (nil = no copy)

	forwards  nn.Forward // buffers of the current unit
	backwards nn.Backward
}

// place is where a gradient is written: over rows that are no longer read, or (empty) in new memory.
type place struct {
	rows mat.Dense
	end  tape.Mark // memory from here on is unused once the gradient is complete
}

func (t *Trainer) pass(v *view, on *tape.Tape, add func(x []float32) error) *pass {
	n := len(t.units)
	p := &pass{t: t, v: v, tape: on, add: add, dx: make([]place, n)}
	var size [2]int
	for k, u := range t.units {
		if r := p.shares(k); r >= 0 {
			size[r] = max(size[r], v.parts[k].dst*u.layer.Spec.Out)
		}
	}
	for r, n := range size {
		if n > 0 {
			p.room[r] = on.Raw(1, n)
		}
	}
	return p
}

// shares returns the index of the shared memory for a unit's rows, or −1 if they have their own memory. In training,
// rows that can be recomputed share memory. In inference all rows do, because they are needed only until the next ones
// have been computed from them.
func (p *pass) shares(k int) int {
	switch u := p.t.units[k]; {
	case p.tape == p.t.infer:
		return k % 2
	case k < len(p.t.units)-1 && u.head == nil && u.layer.Remakes():
		return 0
	}
	return -1
}

// sum runs a hop over own rows and the other workers' rows.
func (p *part) sum(hop *aggregate.Hop) error {
	if p.far != nil {
		return p.far.sum(hop)
	}
	hop.Near()
	return nil
}

// grad runs the backward pass of such a hop.
func (p *part) grad(hop *aggregate.HopGrad) error {
	if p.far != nil {
		return p.far.grad(hop)
	}
	hop.Near()
	return nil
}

// forward returns the scores of the view's nodes.
func (p *pass) forward() (mat.Dense, error) {
	x := p.v.input.Dense
	for k, u := range p.t.units {
		wanted := p.keep != nil && k == len(p.t.units)-1
		if wanted && k > 0 && u.head == nil {
			*p.keep = x.Clone()
		}
		h, out, err := p.unit(k, x)
		if err != nil {
			return mat.Dense{}, err
		}
		if wanted && u.head != nil {
			*p.keep = h.Clone()
		}
		x = out
	}
	return x, nil
}

// unit computes unit k from x, or from the view if k is the first unit. It returns the layer's rows h, and the unit's
// output.
func (p *pass) unit(k int, x mat.Dense) (h, out mat.Dense, err error) {
	u, q := p.t.units[k], &p.v.parts[k]
	from := p.tape.Mark()
	in := nn.Input{G: q.near, Remote: q.far != nil, EdgeX: p.t.shard.EdgeX, X: graph.Features{Dense: x}, Z: q.z,
		Nodes: q.nodes}
	if k == 0 {
		in.X = p.v.input
	} else if p.shares(k-1) >= 0 {
		in.Again = p.t.units[k-1].layer.Again(p.tape)
	}
	if r := p.shares(k); r >= 0 {
		h = mat.View(q.dst, u.layer.Spec.Out, p.room[r].Data)
	} else {
		h = p.tape.Raw(q.dst, u.layer.Spec.Out)
	}
	f := &p.forwards
	f.Begin(u.layer, h, in, p.tape)
	switch {
	case in.Again.Possible(): // in memory that units share, before this unit's rows
		p.dx[k] = place{in.X.Dense, from}
	case k > 0:
		p.dx[k].rows, p.dx[k].end = f.Place()
	}
	for hop := f.Hop(); hop != nil; hop = f.Hop() {
		if err := q.sum(hop); err != nil {
			return h, h, err
		}
	}
	if s := f.Statistics(p.t.shard.Rank, p.t.shard.Parts); s != nil {
		if err := p.add(s); err != nil {
			return h, h, err
		}
	}
	f.End()
	if k == 0 {
		p.t.own.addTo(h, p.v.own)
	}
	if u.head == nil {
		return h, h, nil
	}
	_, c := u.head.Dims()
	scores := p.tape.Raw(q.dst, c)
	u.head.Forward(scores, h, p.tape)
	return h, scores, nil
}

// backward adds the gradients of the parameters to the slab. Its input d is the gradient of the scores, which is
// overwritten. It calls ready for each unit whose gradients are complete.
func (p *pass) backward(d mat.Dense, ready func(k int) error) error {
	for k := len(p.t.units) - 1; k >= 0; k-- {
		var err error
		if d, err = p.back(k, d); err != nil {
			return err
		}
		if err := ready(k); err != nil {
			return err
		}
	}
	return nil
}

// back returns the gradient of unit k's input, given the gradient of its output.
func (p *pass) back(k int, d mat.Dense) (dx mat.Dense, err error) {
	u := p.t.units[k]
	if u.head != nil {
		dh := p.tape.Scratch(d.Rows, u.layer.Spec.Out)
		u.head.Backward(dh, d, p.tape)
		d = dh
	}
	if dx = p.dx[k].rows; k > 0 && dx.Empty() {
		dx = p.tape.Raw(len(p.v.parts[k].nodes), u.layer.Spec.In)
	}
	if k == 0 {
		p.t.own.learn(d, p.v.own)
	}
	b := &p.backwards
	b.Begin(u.layer, dx, d, p.tape)
	if s := b.Statistics(p.t.shard.Parts); s != nil {
		if err := p.add(s); err != nil {
			return dx, err
		}
	}
	for hop := b.Hop(); hop != nil; hop = b.Hop() {
		if err := p.v.parts[k].grad(hop); err != nil {
			return dx, err
		}
	}
	b.End()
	if at := p.dx[k]; !at.rows.Empty() {
		p.tape.Release(at.end)
	}
	return dx, nil
}
