package sample

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/heddle-gnn/heddle/internal/rng"
)

// Drawn are the sampled in-edges of some vertices, in the order of the vertices, those of each by relation.
type Drawn struct {
	End    []int32   // [vertices·R] where the edges of each end, of each relation
	Src    []int32   // sources, no two of a vertex and a relation alike
	Weight []float32 // as Edges.Scaled says; nil: none
	Loop   []float32 // [vertices] weights of the edges from a vertex to itself; nil: none have weights
	EdgeX  []float32 // [edges × columns] columns of the edges, row by row; nil: they have none

	// Reached [vertices·R] says which relations reach a vertex by any edge, drawn or not; nil unless Edges.Reached.
	Reached []bool
}

// Reset makes d that of no vertex, in the same memory.
func (d *Drawn) Reset() {
	d.End, d.Src, d.Weight, d.Loop, d.EdgeX, d.Reached = d.End[:0], d.Src[:0], d.Weight[:0], d.Loop[:0], d.EdgeX[:0], d.Reached[:0]
}

// Without takes out the edges of which out says so, by row, of the vertices' relations, and source. The others keep their weights:
// a sum over them estimates that over all edges but those that are out.
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
	d.Src, d.Weight, d.EdgeX = d.Src[:kept], d.Weight[:min(len(d.Weight), int(kept))], d.EdgeX[:min(len(d.EdgeX), int(kept)*columns)]
}

// Sampler draws in-edges. It is not safe for concurrent use; several may share their Edges.
type Sampler struct {
	config Config
	edges  *Edges

	at     []int64   // places of the edges that a chunk of vertices has drawn
	factor []float32 // of their weights
	lo     []int64   // where the rows of each vertex of the chunk begin, by relation
	count  []int32   // edges of each of these rows that were drawn
	seen   []uint64  // bits of the places of one row; all 0 between two rows
	some   []ranked
	sums   []float64

	drawn   [1]Drawn // of the hop of a batch
	touched int32    // result of loads that no one reads: without one they would be left out
}

// ranked is an edge with what it is drawn by.
type ranked struct {
	priority float64
	at       int64
}

// New returns a sampler of edges. c is valid.
func New(c Config, e *Edges) *Sampler { return &Sampler{config: c, edges: e} }

// chunk is how many vertices are drawn at once: loads of one pass over them do not wait for each other, and what a
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
		if s.config.Relations != nil {
			k = s.config.Fanout(hop, i%kinds)
		}
		before := len(s.at)
		if k < 0 || n == 0 || n <= k && !s.config.Replace {
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
		case s.config.Weighted && e.Weight != nil && s.config.Replace:
			s.weightedAgain(own, lo, n, k)
		case s.config.Weighted && e.Weight != nil:
			s.weighted(own, lo, n, k)
		case s.config.Replace:
			s.again(own, lo, n, k)
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
// are left out where they are fewer. A random word serves four draws, each of which leaves the fraction of its product
// to the next one (Brackett-Rozinsky and Lemire, 2024): no probability is off by more than 2⁻⁴⁰ of it.
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

// again draws k of n edges with replacement: one drawn m times counts m·n/k.
func (s *Sampler) again(key rng.Key, lo int64, n, k int) {
	first := len(s.at)
	for i := range k {
		s.at = append(s.at, lo+int64(below(key, uint64(i), n)))
	}
	s.merge(first, func(_ int64, times int) float64 { return float64(times) * float64(n) / float64(k) })
}

// merge sorts the places that were drawn since first and keeps each once.
func (s *Sampler) merge(first int, factor func(at int64, times int) float64) {
	drawn := s.at[first:]
	slices.Sort(drawn)
	kept := 0
	for i := 0; i < len(drawn); {
		j := i + 1
		for j < len(drawn) && drawn[j] == drawn[i] {
			j++
		}
		if s.edges.Scaled {
			s.factor = append(s.factor, float32(factor(drawn[i], j-i)))
		}
		drawn[kept] = drawn[i]
		kept++
		i = j
	}
	s.at = s.at[:first+kept]
}

// magnitude is by what weighted draws choose.
func (s *Sampler) magnitude(at int64) float64 { return math.Abs(float64(s.edges.Weight[at])) }

// weightedAgain draws k edges with replacement, each in proportion to its weight w: one drawn m times counts
// m·Σw/(k·w). Edges of weight 0 are never drawn.
func (s *Sampler) weightedAgain(key rng.Key, lo int64, n, k int) {
	s.sums = s.sums[:0]
	total := 0.0
	for at := lo; at < lo+int64(n); at++ {
		total += s.magnitude(at)
		s.sums = append(s.sums, total)
	}
	if !(total > 0) {
		return
	}
	first := len(s.at)
	for i := range k {
		x := float64(uint64(key.Fold(uint64(i)))>>11) * 0x1p-53 * total
		at, _ := slices.BinarySearchFunc(s.sums, x, func(sum, x float64) int {
			if sum <= x {
				return -1
			}
			return 1
		})
		s.at = append(s.at, lo+int64(min(at, n-1)))
	}
	s.merge(first, func(at int64, times int) float64 {
		return float64(times) * total / (float64(k) * s.magnitude(at))
	})
}

// weighted draws k edges without replacement by priority sampling (Duffield, Lund and Thorup, JACM 2007): those of the
// largest w/u, u uniform in (0, 1], of which each counts max(w, τ)/w, τ the largest w/u that is left out. Sums over the
// sample are unbiased.
func (s *Sampler) weighted(key rng.Key, lo int64, n, k int) {
	s.some = s.some[:0]
	for i := range n {
		at := lo + int64(i)
		if w := s.magnitude(at); w > 0 {
			u := (float64(uint64(key.Fold(uint64(i)))>>11) + 1) * 0x1p-53
			s.some = append(s.some, ranked{w / u, at})
		}
	}
	threshold := 0.0
	if len(s.some) > k {
		slices.SortFunc(s.some, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.at, b.at)) })
		threshold = s.some[k].priority
		s.some = s.some[:k]
	}
	for _, one := range s.some {
		s.at = append(s.at, one.at)
		if s.edges.Scaled {
			w := s.magnitude(one.at)
			s.factor = append(s.factor, float32(max(w, threshold)/w))
		}
	}
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

// put appends the drawn edges to d.
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
