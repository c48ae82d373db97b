package attack

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/heddle-gnn/heddle/mat"
)

// Dictionary is a linear map of features to measurements that an attacker knows: row j is what a value of
// 1 in column j adds to them. F×D.
type Dictionary struct {
	atoms []float64 // F×D
	norm  []float64 // [F] lengths of the rows
	d     int
}

// NewDictionary returns the dictionary of a map, F×D.
func NewDictionary(m mat.Dense) *Dictionary {
	k := &Dictionary{atoms: make([]float64, m.Rows*m.Cols), norm: make([]float64, m.Rows), d: m.Cols}
	for j := range m.Rows {
		sum := 0.0
		for i, v := range m.Row(j) {
			k.atoms[j*m.Cols+i] = float64(v)
			sum += float64(v) * float64(v)
		}
		k.norm[j] = math.Sqrt(sum)
	}
	return k
}

func (k *Dictionary) atom(j int32) []float64 { return k.atoms[int(j)*k.d:][:k.d] }

// Guess is a sparse nonnegative row: Value[i] in column Col[i]. The columns ascend.
type Guess struct {
	Col   []int32
	Value []float64
	Miss  float64 // length of what it leaves of the measurements, by theirs
}

// Pursue finds a sparse x ≥ 0 whose measurements x·D are proportional to y. It uses orthogonal matching pursuit (Pati,
// Rezaiifar and Krishnaprasad, Asilomar 1993) with coefficients of at least 0, and then swaps columns for better ones.
// It ends when the rest is below tolerance times the length of y, or with most columns.
func (k *Dictionary) Pursue(y []float32, most int, tolerance float64) Guess {
	p := k.pursuit(wide(y), tolerance)
	if p.length == 0 {
		return Guess{}
	}
	for len(p.set) < min(most, k.d) && p.miss() > tolerance {
		if !p.grow() {
			break
		}
	}
	p.swaps(most)
	return p.guess()
}

// pursuit begins one of y.
func (k *Dictionary) pursuit(y []float64, tolerance float64) *pursuit {
	f := len(k.norm)
	return &pursuit{Dictionary: k, y: y, left: slices.Clone(y), length: floats.Norm(y, 2), tolerance: tolerance,
		in: make([]bool, f), toward: make([]float64, f), met: make([]int32, f)}
}

// hopeless is what a set misses, by the length of the measurements, from which on no swap has been seen to help.
const hopeless = 0.1

// negligible is the value, by the largest, below which a column is not in a guess.
const negligible = 1e-3

// pursuit is a set of columns and the least squares solution on it.
type pursuit struct {
	*Dictionary
	y, left   []float64
	toward    []float64 // [F] products with left
	length    float64
	tolerance float64
	set       []int32
	in        []bool
	value     []float64

	// Swaps solve on the same columns again and again: the products of all columns that were ever in the set.
	met   []int32     // [F] one more than a column's place below (0 = it was in no set)
	ever  []int32     // columns by place
	gram  [][]float64 // by place: with the columns of lower places and with itself
	withY []float64   // by place
}

func (p *pursuit) miss() float64 { return math.Sqrt(floats.Dot(p.left, p.left)) / p.length }

// best returns the column outside the set whose direction is nearest to the rest (−1 = none).
func (p *pursuit) best() int32 {
	at, most := int32(-1), 1e-12*p.length
	p.products(p.left, p.toward)
	for j, n := range p.norm {
		if n == 0 || p.in[j] {
			continue
		}
		if c := p.toward[j] / n; c > most {
			at, most = int32(j), c
		}
	}
	return at
}

// grow adds the best column and solves again.
func (p *pursuit) grow() bool {
	j := p.best()
	if j < 0 {
		return false
	}
	p.set, p.in[j] = append(p.set, j), true
	p.solve()
	return true
}

// solve finds the coefficients on the set; columns whose coefficients would be negative leave it, the
// smallest first (Lawson and Hanson 1974, §23, without its line search).
func (p *pursuit) solve() {
	for {
		p.value = p.leastSquares()
		at := -1
		for i, v := range p.value {
			if v <= 0 && (at < 0 || v < p.value[at]) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		p.drop(at)
	}
	copy(p.left, p.y)
	for i, j := range p.set {
		for t, a := range p.atom(j) {
			p.left[t] -= p.value[i] * a
		}
	}
}

func (p *pursuit) drop(at int) {
	p.in[p.set[at]] = false
	p.set = slices.Delete(p.set, at, at+1)
}

// place returns where the products of column j are.
func (p *pursuit) place(j int32) int {
	if p.met[j] == 0 {
		p.ever = append(p.ever, j)
		p.met[j] = int32(len(p.ever))
		a, row := p.atom(j), make([]float64, len(p.ever))
		for k, other := range p.ever {
			row[k] = floats.Dot(a, p.atom(other))
		}
		p.gram, p.withY = append(p.gram, row), append(p.withY, floats.Dot(a, p.y))
	}
	return int(p.met[j]) - 1
}

// leastSquares solves the normal equations of the set by Cholesky, with a penalty below rounding.
func (p *pursuit) leastSquares() []float64 {
	n := len(p.set)
	g, x := make([]float64, n*n), make([]float64, n)
	places := make([]int, n)
	for i, a := range p.set {
		places[i] = p.place(a)
		for j, k := range places[:i+1] {
			g[i*n+j] = p.gram[max(places[i], k)][min(places[i], k)]
		}
		g[i*n+i] *= 1 + 1e-12
		x[i] = p.withY[places[i]]
	}
	FactorLower(g, n)
	Substitute(g, x)
	return x
}

// swaps drops each column in turn and refills the set, as long as this leaves less.
func (p *pursuit) swaps(most int) {
	for better := p.miss() < hopeless; better && p.miss() > p.tolerance; {
		better = false
		before, set := p.miss(), slices.Clone(p.set)
		order := make([]int, len(p.set))
		for i := range order {
			order[i] = i
		}
		value := p.value
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(value[a], value[b]) })
		for _, at := range order {
			p.restore(slices.Delete(slices.Clone(set), at, at+1))
			for len(p.set) < min(len(set), most) && p.grow() && p.miss() > p.tolerance {
			}
			if p.miss() < before*(1-1e-9) {
				better = true
				break
			}
		}
		if !better {
			p.restore(set)
		}
	}
}

func (p *pursuit) restore(set []int32) {
	clear(p.in)
	p.set = set
	for _, j := range set {
		p.in[j] = true
	}
	p.solve()
}

// guess returns the solution without columns that are in it only by rounding.
func (p *pursuit) guess() Guess {
	var order []int
	for i, v := range p.value {
		if v > negligible*slices.Max(p.value) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return int(p.set[a]) - int(p.set[b]) })
	g := Guess{Miss: p.miss()}
	for _, i := range order {
		g.Col, g.Value = append(g.Col, p.set[i]), append(g.Value, p.value[i])
	}
	return g
}

// FactorLower replaces the lower triangle of g, n×n and positive definite, by Cholesky's factor.
func FactorLower(g []float64, n int) {
	for i := range n {
		for j := range i + 1 {
			v := g[i*n+j] - floats.Dot(g[i*n:][:j], g[j*n:][:j])
			if i == j {
				g[i*n+i] = math.Sqrt(max(v, 1e-300))
			} else {
				g[i*n+j] = v / g[j*n+j]
			}
		}
	}
}

// Substitute replaces x by (LLᵀ)⁻¹x, where the lower triangle of g is L.
func Substitute(g, x []float64) {
	n := len(x)
	for i := range n {
		x[i] = (x[i] - floats.Dot(g[i*n:][:i], x[:i])) / g[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			x[i] -= g[j*n+i] * x[j]
		}
		x[i] /= g[i*n+i]
	}
}
