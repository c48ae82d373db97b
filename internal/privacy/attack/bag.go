package attack

import (
	"cmp"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/rng"
)

// Bag is the problem of finding a hidden set of K of F columns. Known are D measurements: sums of the columns' atoms
// over the set, rounded to whole numbers. An example is a bag of words behind a known linear map with a grid for each
// number: its measurements and atoms are divided by the steps of the grids.
type Bag struct {
	K      int
	Atom   []float64 // F×D
	Target []float64 // [D]
	Prior  []float64 // [F] logarithm of the odds that a column is in the set

	pairs *pairs
}

// slack is what float32 arithmetic and the rounding of scales add to half a step.
const slack = 0.05

// miss is by how much a sum is further from the target than rounding explains, squared. Above limit it need not be
// exact.
func (b *Bag) miss(left []float64, limit float64) (sum float64) {
	for _, v := range left {
		if v = math.Abs(v) - 0.5 - slack; v > 0 {
			if sum += v * v; sum > limit {
				return sum
			}
		}
	}
	return sum
}

func (b *Bag) atom(j int32) []float64 { d := len(b.Target); return b.Atom[int(j)*d:][:d] }

func sub(x, y []float64) {
	for i, v := range y {
		x[i] -= v
	}
}

func add(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}

// pairs finds pairs of columns by three of their sum's measurements: cells of a grid, each with its pairs.
type pairs struct {
	*Bag
	axis  [3]int
	low   [3]float64
	width [3]float64
	size  [3]int
	start []int32 // [cells+1]
	pair  []int32 // a·F+b, by cell
	f     int32
}

// cells is how many cells a grid has at most along one axis.
const cells = 128

func (b *Bag) index() *pairs {
	d := len(b.Target)
	f := int32(len(b.Atom) / d)
	p := &pairs{Bag: b, f: f, axis: b.axes()}
	for t, at := range p.axis {
		lo, hi := math.Inf(1), math.Inf(-1)
		for j := range f {
			v := b.atom(j)[at]
			lo, hi = min(lo, v), max(hi, v)
		}
		p.low[t] = 2 * lo
		p.width[t] = max(1, 2*(hi-lo)/(cells-1))
		p.size[t] = int(2*(hi-lo)/p.width[t]) + 1
	}
	p.start = make([]int32, p.size[0]*p.size[1]*p.size[2]+1)
	each := func(do func(cell int, pair int32)) {
		for a := range f {
			x := b.atom(a)
			for c := a + 1; c < f; c++ {
				y := b.atom(c)
				at := 0
				for t, i := range p.axis {
					at = at*p.size[t] + int((x[i]+y[i]-p.low[t])/p.width[t])
				}
				do(at, a*f+c)
			}
		}
	}
	each(func(cell int, _ int32) { p.start[cell+1]++ })
	for i := range p.start[1:] {
		p.start[i+1] += p.start[i]
	}
	p.pair = make([]int32, p.start[len(p.start)-1])
	next := slices.Clone(p.start)
	each(func(cell int, pair int32) {
		p.pair[next[cell]] = pair
		next[cell]++
	})
	return p
}

// axes returns the three measurements that vary most, each given the ones before it.
func (b *Bag) axes() (axis [3]int) {
	d := len(b.Target)
	f := len(b.Atom) / d
	x := slices.Clone(b.Atom)
	for i := range d {
		mean := 0.0
		for j := range f {
			mean += x[j*d+i] / float64(f)
		}
		for j := range f {
			x[j*d+i] -= mean
		}
	}
	for t := range axis {
		best, most := 0, -1.0
		for i := range d {
			sum := 0.0
			for j := range f {
				sum += x[j*d+i] * x[j*d+i]
			}
			if sum > most && !slices.Contains(axis[:t], i) {
				best, most = i, sum
			}
		}
		axis[t] = best
		for i := range d {
			if i == best || most <= 0 {
				continue
			}
			cross := 0.0
			for j := range f {
				cross += x[j*d+i] * x[j*d+best]
			}
			for j := range f {
				x[j*d+i] -= cross / most * x[j*d+best]
			}
		}
		for j := range f {
			x[j*d+best] = 0
		}
	}
	return axis
}

// each calls do for all pairs whose sum may be within half a step of left on the three axes, until do returns
// false.
func (p *pairs) each(left []float64, do func(a, b int32) bool) {
	var lo, hi [3]int
	for t, i := range p.axis {
		lo[t] = max(0, int(math.Floor((left[i]-0.5-slack-p.low[t])/p.width[t])))
		hi[t] = min(p.size[t]-1, int(math.Floor((left[i]+0.5+slack-p.low[t])/p.width[t])))
	}
	for u := lo[0]; u <= hi[0]; u++ {
		for v := lo[1]; v <= hi[1]; v++ {
			row := (u*p.size[1] + v) * p.size[2]
			if lo[2] > hi[2] {
				continue
			}
			for _, pair := range p.pair[p.start[row+lo[2]]:p.start[row+hi[2]+1]] {
				if !do(pair/p.f, pair%p.f) {
					return
				}
			}
		}
	}
}

// Found is what a search found.
type Found struct {
	Set        []int32 // ascending
	Consistent bool    // rounding explains what is left
}

// Search looks for the set of highest prior among those that are consistent: all sets of up to four
// columns are enumerated, larger ones found by local search that replaces any three columns of a set by any three
// others at once, from up to tries random sets. If more than tries sets of up to four columns are near the
// measurements, local search has half as many tries again.
func (b *Bag) Search(tries int, key rng.Key) Found {
	s := b.begin(tries)
	if b.K <= 4 {
		s.enumerate()
	}
	if b.K > 2 {
		s.limit += s.tries / 2
		for start := uint64(0); s.tries < s.limit && start < 1000; start++ {
			s.climb(s.draw(key.Fold(start), start > 0), key.Fold(1000+start))
		}
	}
	return Found{s.best, s.bestMiss == 0}
}

// search is the state of one search.
type search struct {
	*Bag
	limit, tries int
	best         []int32
	bestMiss     float64
	bestOdds     float64
	found        bool // a consistent set
}

func (b *Bag) begin(tries int) *search {
	if b.pairs == nil {
		b.pairs = b.index()
	}
	return &search{Bag: b, limit: tries, bestMiss: math.Inf(1), bestOdds: math.Inf(-1)}
}

func (s *search) odds(set []int32) (sum float64) {
	for _, j := range set {
		sum += s.Prior[j]
	}
	return sum
}

// offer notes a set and what it misses by.
func (s *search) offer(set []int32, miss float64) {
	if miss == 0 {
		if !s.found { // as much again for a likelier one
			s.limit = min(s.limit, 2*s.tries)
		}
		s.found = true
	}
	odds := s.odds(set)
	if miss < s.bestMiss || miss == s.bestMiss && odds > s.bestOdds {
		s.best, s.bestMiss, s.bestOdds = slices.Clone(set), miss, odds
		slices.Sort(s.best)
	}
}

// enumerate goes through all sets of K ≤ 4 columns.
func (s *search) enumerate() {
	f := int32(len(s.Prior))
	left := slices.Clone(s.Target)
	two := func(with ...int32) {
		s.pairs.each(left, func(a, b int32) bool {
			if s.tries++; s.tries > s.limit {
				return false
			}
			if slices.Contains(with, a) || slices.Contains(with, b) {
				return true
			}
			if miss := s.missWithout(left, a, b, s.bestMiss); miss <= s.bestMiss {
				s.offer(append([]int32{a, b}, with...), miss)
			}
			return true
		})
	}
	switch s.K {
	case 1:
		for a := range f {
			copy(left, s.Target)
			sub(left, s.atom(a))
			s.offer([]int32{a}, s.miss(left, math.Inf(1)))
		}
	case 2:
		two()
	case 3:
		for a := int32(0); a < f && s.tries <= s.limit; a++ {
			sub(left, s.atom(a))
			two(a)
			add(left, s.atom(a))
		}
	case 4:
		for a := int32(0); a < f && s.tries <= s.limit; a++ {
			sub(left, s.atom(a))
			for b := a + 1; b < f && s.tries <= s.limit; b++ {
				sub(left, s.atom(b))
				two(a, b)
				add(left, s.atom(b))
			}
			add(left, s.atom(a))
		}
	}
}

// missWithout is miss of left without two columns.
func (s *search) missWithout(left []float64, a, b int32, limit float64) (sum float64) {
	x, y := s.atom(a), s.atom(b)
	for i, v := range left {
		if v = math.Abs(v-x[i]-y[i]) - 0.5 - slack; v > 0 {
			if sum += v * v; sum > limit {
				return sum
			}
		}
	}
	return sum
}

// draw returns a set to begin with: the columns of highest prior, or random ones by the prior. It then makes them fit,
// one at a time.
func (s *search) draw(key rng.Key, random bool) []int32 {
	order := make([]int32, len(s.Prior))
	score := make([]float64, len(s.Prior))
	for j := range order {
		order[j], score[j] = int32(j), s.Prior[j]
		if random { // Gumbel: a draw without replacement
			score[j] -= math.Log(-math.Log(key.Float64(uint64(j)) + 1e-300))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(score[b], score[a]) })
	set := slices.Clone(order[:s.K])
	s.single(set)
	return set
}

// single replaces one column after another by the one that fits best, until none fits better.
func (s *search) single(set []int32) {
	left := slices.Clone(s.Target)
	for _, j := range set {
		sub(left, s.atom(j))
	}
	cost := func(limit float64, j int32) float64 {
		sum := 0.0
		for i, v := range s.atom(j) {
			if v = left[i] - v; sum <= limit {
				sum += v * v
			}
		}
		return sum
	}
	for better := true; better; {
		better = false
		for at, j := range set {
			add(left, s.atom(j))
			best, least := j, cost(math.Inf(1), j)
			for c := range int32(len(s.Prior)) {
				s.tries++
				if v := cost(least, c); v < least*(1-1e-9) && !slices.Contains(set, c) {
					best, least, better = c, v, true
				}
			}
			set[at] = best
			sub(left, s.atom(best))
		}
	}
}

// climb replaces three columns at a time as long as the set fits better, then as long as its prior rises.
func (s *search) climb(set []int32, key rng.Key) {
	for round := uint64(0); s.tries < s.limit; round++ {
		next := s.triples(set, key.Fold(round))
		if next == nil {
			return
		}
		set = next
	}
}

// triples tries all ways to replace three columns of a set, and returns the first better set (nil = none).
func (s *search) triples(set []int32, key rng.Key) (better []int32) {
	left := slices.Clone(s.Target)
	for _, j := range set {
		sub(left, s.atom(j))
	}
	miss, odds := s.miss(left, math.Inf(1)), s.odds(set)
	s.offer(set, miss)
	k := len(set)
	for _, t := range key.Perm(k * k * k) {
		a, b, c := int(t)/(k*k), int(t)/k%k, int(t)%k
		if a >= b || b >= c || s.tries > s.limit {
			continue
		}
		var rest []int32
		for i, j := range set {
			if i != a && i != b && i != c {
				rest = append(rest, j)
			} else {
				add(left, s.atom(j))
			}
		}
		if better, goOn := s.refill(rest, left, miss, odds); better != nil || !goOn {
			return better
		}
		for _, i := range []int{a, b, c} {
			sub(left, s.atom(set[i]))
		}
	}
	return nil
}

// refill adds to rest the three columns that leave least of left, if this is less than miss, or as little with
// better odds.
func (s *search) refill(rest []int32, left []float64, miss, odds float64) (better []int32, goOn bool) {
	base := s.odds(rest)
	goOn = true
	for c := range int32(len(s.Prior)) {
		if slices.Contains(rest, c) {
			continue
		}
		sub(left, s.atom(c))
		s.pairs.each(left, func(a, b int32) bool {
			if s.tries++; s.tries > s.limit {
				goOn = false
				return false
			}
			if c >= a { // each triple once
				return true
			}
			m := s.missWithout(left, a, b, miss)
			if m > miss {
				return true
			}
			if slices.Contains(rest, a) || slices.Contains(rest, b) {
				return true
			}
			set := append(slices.Clone(rest), c, a, b)
			if m == 0 {
				s.offer(set, m)
			}
			o := base + s.Prior[a] + s.Prior[b] + s.Prior[c]
			if m < miss || m == miss && o > odds {
				better, miss, odds = set, m, o
			}
			return true
		})
		add(left, s.atom(c))
		if !goOn {
			break
		}
	}
	return better, goOn
}
