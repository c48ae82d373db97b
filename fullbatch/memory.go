package fullbatch

import "github.com/heddle-gnn/heddle/graph"

// memory counts what a step holds.
func (t *Trainer) memory() Memory {
	m := Memory{Tape: t.tape.Memory(), Halo: 4 * int64(t.line.peak), First: size(t.rows) - size(t.input) + size(t.seen.z) + size(t.seen.beside)}
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
