package nn

// Memory is how many bytes a tape holds, by what for. It grows to what the largest step so far
// needed.
type Memory struct {
	Rows       int64 // of layers: what operators and accumulators put out, keep, and compute in
	Aggregates int64 // of accumulators, beside that: sums by relation, places of maxima, scratch
	Transposes int64 // of the edges that gradients flow back along
}

// Memory returns what the tape holds.
func (t *Tape) Memory() (m Memory) {
	for _, c := range t.arena.chunks {
		m.Rows += 4 * int64(len(c))
	}
	for _, a := range t.accs {
		for _, b := range a.buf {
			m.Aggregates += 4 * int64(cap(b))
		}
		for _, s := range a.sums {
			m.Aggregates += 4 * int64(cap(s))
		}
		m.Aggregates += 4 * int64(cap(a.arg)+cap(a.argNow)+cap(a.edge))
	}
	for _, tr := range t.trans.of {
		m.Transposes += 8*int64(len(tr.rowPtr)) + 4*int64(len(tr.col)+len(tr.perm)+len(tr.val))
	}
	return m
}
