package tape

import "github.com/heddle-gnn/heddle/kernels"

// Memory is how many bytes a tape has, by their use. It grows to the need of the largest step so
// far.
type Memory struct {
	Rows       int64 // of layers: outputs, kept values and scratch memory of operators and accumulators
	Aggregates int64 // other memory of accumulators: sums by relation, indices of maxima, scratch
	Transposes int64 // of the edges that gradients flow back along
}

// Memory returns how much memory the tape has.
func (t *Tape) Memory() (m Memory) {
	m.Rows = 4 * int64(t.arena.held())
	for _, p := range t.pools {
		m.Aggregates += p.bytes()
	}
	for _, r := range t.patterns.of {
		switch tr := r.value.(type) {
		case *Transpose:
			m.Transposes += 8*int64(len(tr.RowPtr)) + 4*int64(len(tr.Col)+len(tr.perm)+len(tr.val))
		case *turnedPattern:
			for k := range tr.blocks {
				m.Transposes += tr.blocks[k].Bytes()
			}
		}
	}
	return m
}

// arena hands out float32s, forwards only: from a few chunks until it is known how many a step
// takes, then from one.
type arena struct {
	chunks [][]float32
	at     Mark
	most   int // most values in use at a time
}

// Mark is a position in a tape's used memory.
type Mark struct{ chunk, used, all int }

const chunkLen = 1 << 16 // 256 KiB: what a chunk's rest is too short for goes to the next one

// take returns n uninitialized values, from the first chunk with space or from a new one.
func (a *arena) take(n int) []float32 {
	whole := (n + 15) &^ 15 // rows begin on a cache line
	for ; a.at.chunk < len(a.chunks); a.at.chunk, a.at.used = a.at.chunk+1, 0 {
		if c := a.chunks[a.at.chunk]; len(c)-a.at.used >= n {
			s := c[a.at.used : a.at.used+n : a.at.used+n]
			a.at.used = min(a.at.used+whole, len(c))
			a.at.all += whole
			a.most = max(a.most, a.at.all)
			return s
		}
	}
	least := chunkLen
	if len(a.chunks) == 0 {
		least = max(least, a.most)
	}
	a.chunks = append(a.chunks, kernels.Room(max(n, least)))
	return a.take(n)
}

// gaps reports whether much of the chunks is left over: too short for what came next.
func (a *arena) gaps() bool {
	return len(a.chunks) > 1 && a.held() > a.most+a.most/32
}

func (a *arena) held() (n int) {
	for _, c := range a.chunks {
		n += len(c)
	}
	return n
}
