package sample

import (
	"math/bits"
	"slices"

	"github.com/heddle-gnn/heddle/rng"
)

// Drawn are the sampled in-edges of some vertices, in the order of the vertices, each vertex's by relation.
type Drawn struct {
	End    []int32   // [vertices·R] ends of the edges of each vertex and relation
	Src    []int32   // sources, no two of a vertex and a relation alike
	Weight []float32 // as for Edges.Scaled (nil = none)
	Loop   []float32 // [vertices] weights of the edges from a vertex to itself (nil = none have weights)
	EdgeX  []float32 // [edges × columns] columns of the edges, row by row (nil = they have none)

	// Reached [vertices·R] reports which relations reach a vertex by any edge, sampled or not; nil unless
	// Edges.Reached.
	Reached []bool
}

// Reset makes d empty, of no vertex, in the same memory.
func (d *Drawn) Reset() {
	d.End, d.Src, d.Weight, d.Loop, d.EdgeX, d.Reached = d.End[:0], d.Src[:0], d.Weight[:0], d.Loop[:0], d.EdgeX[:0],
		d.Reached[:0]
}

// Without takes out the edges for which out is true, by row, of the vertices' relations, and source. The others keep
// their weights: a sum over them estimates that over all edges but those that are out.
func (d *Drawn) Without(columns int, out func(row int, source int32) bool) {
	kept, lo := int32(0), int32(0)
	for row, hi := range d.End {
		for k := lo; k < hi; k++ {
			if out(row, d.Src[k]) {
				continue
			}
			if d.Src[kept] = d.Src[k]; len(d.Weight) > 0 {
				d.Weight[kept] = d.Weight[k]
			}
			if len(d.EdgeX) > 0 {
				copy(d.EdgeX[int(kept)*columns:int(kept+1)*columns], d.EdgeX[int(k)*columns:])
			}
			kept++
		}
		d.End[row], lo = kept, hi
	}
	d.Src, d.Weight, d.EdgeX = d.Src[:kept], d.Weight[:min(len(d.Weight), int(kept))],
		d.EdgeX[:min(len(d.EdgeX), int(kept)*columns)]
}

// Sampler draws in-edges. It is not safe for concurrent use; several may share their Edges.
type Sampler struct {
	config Config
	edges  *InEdges

	at     []int64   // places of the edges that were sampled for a chunk of vertices
	factor []float32 // of their weights
	lo     []int64   // where the rows of each vertex of the chunk begin, by relation
	count  []int32   // number of sampled edges of each of these rows
	seen   []uint64  // bits of the places of one row; all 0 between two rows

	drawn   [1]Drawn // of the hop of a batch
	touched int32    // result of loads that nothing reads: without it the compiler would drop them
}

// New returns a sampler of edges. c is valid.
func New(c Config, e *InEdges) *Sampler { return &Sampler{config: c, edges: e} }

// chunk is how many vertices are sampled at once. Loads of one pass over them do not wait for each other, and what a
// pass leaves for the next one stays in the cache.
const chunk = 256

// Draw adds to d a sample of the in-edges of each of the vertices, in the given hop. key names the batch: seed, epoch
// and step.
func (s *Sampler) Draw(key rng.Key, hop int, vertices []int32, d *Drawn) {
	key = key.Fold(uint64(hop))
	if k := s.config.Fanouts[hop]; k > 0 {
		d.Src = slices.Grow(d.Src, len(vertices)*min(k, 64))
	}
	d.End = slices.Grow(d.End, len(vertices)*s.edges.relations())
	for len(vertices) > 0 {
		n := min(max(1, chunk/s.edges.relations()), len(vertices))
		s.draw(key, hop, vertices[:n], d)
		s.put(vertices[:n], d)
		vertices = vertices[n:]
	}
}

// draw fills in at, factor, count and d.Reached.
func (s *Sampler) draw(key rng.Key, hop int, vertices []int32, d *Drawn) {
	s.at, s.factor, s.lo, s.count = s.at[:0], s.factor[:0], s.lo[:0], s.count[:0]
	e, kinds := s.edges, s.edges.relations()
	n := (len(e.RowPtr) - 1) / kinds
	for _, v := range vertices {
		for r := range kinds {
			row := r*n + int(v)
			lo := e.RowPtr[row]
			s.lo, s.count = append(s.lo, lo), append(s.count, int32(e.RowPtr[row+1]-lo))
			if e.Reached {
				d.Reached = append(d.Reached, e.RowPtr[row+1] > lo)
			}
		}
	}
	s.touch()
	k := s.config.Fanouts[hop]
	for i := range s.count {
		lo, n := s.lo[i], int(s.count[i])
		before := len(s.at)
		if k < 0 || n <= k {
			s.all(lo, n)
			continue
		}
		own := key.Fold(e.id(vertices[i/kinds]))
		if kinds > 1 {
			own = own.Fold(uint64(i % kinds))
		}
		switch {
		case s.config.Kind == "labor":
			s.shared(key, lo, n, k)
		case n <= 64:
			s.few(own, lo, n, k)
		default:
			s.distinct(own, lo, n, k)
		}
		s.count[i] = int32(len(s.at) - before)
	}
}

// touch reads the sources of short rows, one of each cache line, so that the memory fetches many lines at once: what
// draws from them has too many steps between two loads for that.
func (s *Sampler) touch() {
	const line = 16
	col, sum := s.edges.Col, int32(0)
	for i, lo := range s.lo {
		n := int64(s.count[i])
		if n == 0 || n > 4*line {
			continue
		}
		for at := lo; at < lo+n; at += line {
			sum |= col[at]
		}
		sum |= col[lo+n-1]
	}
	s.touched = sum
}

// all takes every edge of a row.
func (s *Sampler) all(lo int64, n int) {
	for at := lo; at < lo+int64(n); at++ {
		s.at = append(s.at, at)
	}
	s.same(n, 1)
}

// same appends n times a factor, where factors are read.
func (s *Sampler) same(n int, f float32) {
	if s.edges.Scaled {
		for range n {
			s.factor = append(s.factor, f)
		}
	}
}

// below returns value i of a key, uniform in [0, n).
func below(key rng.Key, i uint64, n int) int {
	hi, _ := bits.Mul64(uint64(key.Fold(i)), uint64(n))
	return int(hi)
}

// distinct draws k of n edges without replacement, all subsets alike (Floyd's algorithm; Bentley and Floyd, CACM
// 1987). Each is among them with probability k/n.
func (s *Sampler) distinct(key rng.Key, lo int64, n, k int) {
	if words := (n + 63) / 64; len(s.seen) < words {
		s.seen = make([]uint64, words)
	}
	first := len(s.at)
	for j := n - k; j < n; j++ {
		r := below(key, uint64(j), j+1)
		if s.seen[r>>6]>>(r&63)&1 != 0 {
			r = j
		}
		s.seen[r>>6] |= 1 << (r & 63)
		s.at = append(s.at, lo+int64(r))
	}
	for _, at := range s.at[first:] {
		s.seen[(at-lo)>>6] = 0
	}
	s.same(k, float32(float64(n)/float64(k)))
}

// few is distinct of k < n ≤ 64 edges, whose places are bits of a word. It draws those that are taken, or those that
// are left out if they are fewer. A random word serves four draws, and each leaves the fraction of its product to the
// next one (Brackett-Rozinsky and Lemire, 2024): no probability is off by more than 2⁻⁴⁰ of it.
func (s *Sampler) few(key rng.Key, lo int64, n, k int) {
	var taken uint64
	word, m := uint64(key), min(k, n-k)
	for i := range m {
		if i&3 == 0 && i > 0 {
			word = uint64(key.Fold(uint64(i)))
		}
		var r uint64
		j := n - m + i
		r, word = bits.Mul64(word, uint64(j+1))
		one := uint64(1) << (r & 63)
		if taken&one != 0 {
			one = 1 << (j & 63)
		}
		taken |= one
	}
	if m < k {
		taken ^= 1<<n - 1
	}
	first := len(s.at)
	s.at = slices.Grow(s.at, k)[:first+k]
	for i := range s.at[first:] {
		s.at[first+i] = lo + int64(bits.TrailingZeros64(taken))
		taken &= taken - 1
	}
	s.same(k, float32(float64(n)/float64(k)))
}

// shared takes each of n > k edges with probability k/n, by a number of its source that all vertices of the hop share
// (LABOR-0, with the weights of Horvitz and Thompson).
func (s *Sampler) shared(key rng.Key, lo int64, n, k int) {
	limit, _ := bits.Div64(uint64(k), 0, uint64(n)) // 2⁶⁴·k/n
	key = key.FoldString("source")
	e, drawn := s.edges, 0
	for at := lo; at < lo+int64(n); at++ {
		if uint64(key.Fold(e.id(e.Col[at]))) < limit {
			s.at = append(s.at, at)
			drawn++
		}
	}
	s.same(drawn, float32(float64(n)/float64(k)))
}

// put appends the sampled edges to d.
func (s *Sampler) put(vertices []int32, d *Drawn) {
	e, end := s.edges, int32(len(d.Src))
	for _, n := range s.count {
		end += n
		d.End = append(d.End, end)
	}
	first := len(d.Src)
	d.Src = slices.Grow(d.Src, len(s.at))[:first+len(s.at)]
	for i, at := range s.at {
		d.Src[first+i] = e.Col[at]
	}
	if e.Edge != nil {
		for _, at := range s.at {
			if row := e.Edge[at]; row >= 0 {
				d.EdgeX = append(d.EdgeX, e.EdgeX.Row(int(row))...)
			} else {
				d.EdgeX = append(d.EdgeX, make([]float32, e.EdgeX.Cols)...)
			}
		}
	}
	if !e.Scaled {
		return
	}
	first = len(d.Weight)
	d.Weight = append(d.Weight, s.factor...)
	if e.Weight != nil {
		for i, at := range s.at {
			d.Weight[first+i] *= e.Weight[at]
		}
	}
	if e.Loops {
		for _, v := range vertices {
			w := float32(1)
			if e.Loop != nil {
				w = e.Loop[v]
			}
			d.Loop = append(d.Loop, w)
		}
	}
}
