package fullbatch

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// StepMemory is how many bytes a worker needs for a step, in addition to parameters, the shard and the transport's
// buffers.
type StepMemory struct {
	Tape  tape.Memory // for own nodes: inversely proportional to the number of workers
	Halo  int64       // peak of halo rows and their gradients
	First int64       // features of the halo, or their aggregate, which are kept for the run
	Edges int64       // edges of the step
}

// Memory returns how much memory the steps of Run took.
func (t *Trainer) Memory() StepMemory {
	m := StepMemory{Tape: t.tape.Memory(), Halo: 4 * int64(t.line.peak),
		First: size(t.rows) - size(t.input) + size(t.seen.z) + size(t.seen.beside)}
	if t.full != t.seen {
		m.First += size(t.full.z) + size(t.full.beside)
	}
	seen := make(map[*graph.CSR]bool)
	add := func(g *graph.CSR) {
		if g != nil && !seen[g] {
			seen[g] = true
			m.Edges += 8*int64(len(g.RowPtr)) + 4*int64(len(g.Col)+len(g.Weight))
		}
	}
	for _, p := range t.train.parts {
		add(p.near)
		if p.far != nil {
			for _, b := range p.far.blocks {
				add(b.g)
			}
		}
	}
	return m
}
