package attack

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

// Even finds the set of columns whose sum is proportional to y, within the coding of y, for rows of zeros and
// one other value such as bags of words. Orthogonal matching pursuit proposes columns; the set that explains y with the
// fewest columns is improved by swaps, and for rows in steps by those that leave the least beyond half a step. A number
// of columns above most is not looked for.
func (k *Dictionary) Even(y []float32, format string, most int) Guess {
	e := k.even(y, format)
	if e == nil {
		return Guess{}
	}
	p := k.pursuit(e.y, 0)
	best, least := []int32(nil), math.Inf(1)
	for len(p.set) < min(most, k.d) && p.miss()*p.miss() > e.noise && p.grow() {
		order := make([]int, len(p.set))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p.value[b], p.value[a]) })
		e.clear()
		for _, i := range order {
			e.add(p.set[i], 1)
			if c := e.cost(e.square, e.dot, len(e.set)); c < least {
				best, least = slices.Clone(e.set), c
			}
		}
	}
	e.clear()
	for _, j := range best {
		e.add(j, 1)
	}
	for e.move(e.likelier()) {
	}
	for e.step > 0 && e.move(e.closer()) {
	}
	g := Evenly(slices.Sorted(slices.Values(e.set)))
	g.Miss = math.Sqrt(max(0, 1-e.dot*e.dot/max(e.square, 1e-300)))
	return g
}

// levels are how many steps the largest magnitude has.
var levels = map[string]float64{"int8": 127, "int4": 7, "bf16": 512, "float32": 1 << 20}

// Noise returns the square of what rounding leaves of a row, by the square of its length, and the step of its coding
// (0 = none that all its numbers share).
func Noise(y []float32, format string) (noise, step float64) {
	square, most := dot32(y, y), 0.0
	if format == "bf16" {
		return 1.0 / (1 << 16) / 12, 0
	}
	if noise = Sound * Sound; format == "float32" || square == 0 {
		return noise, 0
	}
	for _, v := range y {
		most = max(most, math.Abs(float64(v)))
	}
	step = most / levels[format]
	return float64(len(y)) * step * step / 12 / square, step
}

// even is a set of columns of one value each, and their sum next to y.
type even struct {
	*Dictionary
	y           []float64 // of length 1
	noise, step float64
	toY, toS    []float64           // [F] products of the columns with y, and with the sum
	gram        map[int32][]float64 // of columns that were in the set: products with all
	set         []int32
	in          []bool
	dot, square float64 // product of the sum with y, and with itself
}

// even returns an empty set for y; nil if y is 0.
func (k *Dictionary) even(y []float32, format string) *even {
	f := len(k.norm)
	e := &even{Dictionary: k, y: wide(y), toY: make([]float64, f), toS: make([]float64, f), gram: map[int32][]float64{},
		in: make([]bool, f)}
	length := floats.Norm(e.y, 2)
	if length == 0 {
		return nil
	}
	e.noise, e.step = Noise(y, format)
	e.step /= length
	floats.Scale(1/length, e.y)
	e.products(e.y, e.toY)
	return e
}

// products computes the products of all columns with x.
func (k *Dictionary) products(x, out []float64) {
	blas64.Gemv(blas.NoTrans, 1, blas64.General{Rows: len(k.norm), Cols: k.d, Stride: k.d, Data: k.atoms},
		blas64.Vector{N: k.d, Inc: 1, Data: x}, 0, blas64.Vector{N: len(k.norm), Inc: 1, Data: out})
}

// clear empties the set. Products of columns that were in it are kept: they cost the most.
func (e *even) clear() {
	clear(e.in)
	clear(e.toS)
	e.set, e.dot, e.square = nil, 0, 0
}

// add adds a column, or with sign −1 takes it out.
func (e *even) add(j int32, sign float64) {
	e.square += sign*2*e.toS[j] + e.norm[j]*e.norm[j]
	e.dot += sign * e.toY[j]
	floats.AddScaled(e.toS, sign, e.with(j))
	if e.in[j] = sign > 0; e.in[j] {
		e.set = append(e.set, j)
	} else {
		e.set = slices.DeleteFunc(e.set, func(i int32) bool { return i == j })
	}
}

// with returns the products of column j with all columns, which are computed when it is first in the set.
func (e *even) with(j int32) []float64 {
	if e.gram[j] == nil {
		e.gram[j] = make([]float64, len(e.norm))
		e.products(e.atom(j), e.gram[j])
	}
	return e.gram[j]
}

// cost is −2 times the log-likelihood of a set of n columns, if all sets of a size are equally likely and what it
// leaves of y is rounding.
func (e *even) cost(square, dot float64, n int) float64 {
	if square <= 0 || dot <= 0 {
		return math.Inf(1)
	}
	f := float64(len(e.norm) + 1)
	all, _ := math.Lgamma(f)
	those, _ := math.Lgamma(float64(n) + 1)
	others, _ := math.Lgamma(f - float64(n))
	return (1-dot*dot/square)*float64(e.d)/e.noise + 2*(all-those-others)
}

// move takes a column out and puts one in (−1 = none).
func (e *even) move(out, in int32) bool {
	if out >= 0 {
		e.add(out, -1)
	}
	if in >= 0 {
		e.add(in, 1)
	}
	return out >= 0 || in >= 0
}

// moves calls do for each way to take out one column or none and to put one in or none, with the products of what
// results.
func (e *even) moves(begin func(out int32), do func(out, in int32, dot, square float64)) {
	for _, out := range append(slices.Clone(e.set), -1) {
		dot, square, less := e.dot, e.square, []float64(nil)
		if begin(out); out >= 0 {
			less = e.with(out)
			dot -= e.toY[out]
			square += e.norm[out]*e.norm[out] - 2*e.toS[out]
			do(out, -1, dot, square)
		}
		for in, n := range e.norm {
			if n == 0 || e.in[in] {
				continue
			}
			s := e.toS[in]
			if out >= 0 {
				s -= less[in]
			}
			do(out, int32(in), dot+e.toY[in], square+2*s+n*n)
		}
	}
}

// likelier returns the move to the likeliest set.
func (e *even) likelier() (out, in int32) {
	least, size := (1-1e-9)*e.cost(e.square, e.dot, len(e.set)), 0
	if len(e.set) == 0 {
		least = math.Inf(1)
	}
	bound := 0.0 // the cosine that a set of this size needs, squared
	out, in = -1, -1
	e.moves(func(int32) {}, func(o, i int32, dot, square float64) {
		n := len(e.set)
		if o >= 0 {
			n--
		}
		if i >= 0 {
			n++
		}
		if n == size && dot*dot <= bound*square {
			return // most moves, without a logarithm
		}
		c := e.cost(square, dot, n)
		if c < least {
			least, out, in = c, o, i
		}
		if n != size {
			size, bound = n, 0
		}
		if square > 0 {
			bound = max(bound, dot*dot/square)
		}
	})
	return out, in
}

// closer returns the move that leaves the least beyond half a step, or takes out a column and leaves no more.
func (e *even) closer() (out, in int32) {
	sum := make([]float64, e.d)
	for _, j := range e.set {
		add(sum, e.atom(j))
	}
	without := slices.Clone(sum)
	least := (1 - 1e-6) * e.beyond(sum, nil, e.dot, e.square, math.Inf(1))
	out, in = -1, -1
	e.moves(func(o int32) {
		if copy(without, sum); o >= 0 {
			sub(without, e.atom(o))
		}
	}, func(o, i int32, dot, square float64) {
		var more []float64
		if i >= 0 {
			more = e.atom(i)
		}
		if m := e.beyond(without, more, dot, square, least); m < least || i < 0 && m == 0 {
			least, out, in = m, o, i
		}
	})
	return out, in
}

// beyond is by how much y is further from the multiple of a sum, with one more column, than rounding explains, squared;
// above limit it need not be exact.
func (e *even) beyond(sum, more []float64, dot, square, limit float64) (out float64) {
	if dot <= 0 || square <= 0 {
		return math.Inf(1)
	}
	scale := dot / square
	for i, v := range sum {
		if more != nil {
			v += more[i]
		}
		if r := math.Abs(e.y[i]-scale*v)/e.step - 0.5 - 0.01; r > 0 {
			if out += r * r; out >= limit {
				return out
			}
		}
	}
	return out
}
