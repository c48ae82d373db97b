package comm

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/kernels"
)

// Fixed is the fixed-point form of an Update: Agree sets the grid from the sums of the members' Magnitudes, and
// Integers are what is summed.
type Fixed struct {
	c              *Contribution
	members        int
	magnitudes     []float32
	parts          []int       // their lengths; each is rows of a number a step
	columns        int         // steps of each
	step           [][]float64 // by part
	steps, inverse [][]float64 // by part: the steps of tile numbers, and what these are multiplied by
}

// MaxMembers returns how many members a sum of Contribution.Bits may have at most: with more,
// rounding would take more than half of the integers or, of 4 bits, nothing but 0 would be left.
func MaxMembers(bits int) int {
	if bits == 4 {
		return mostSmall
	}
	return 1<<(min(bits, 32)-2) - 1
}

// mostSmall is the greatest magnitude of a sum of 4 bits.
const mostSmall = 7

// Fixed returns the fixed-point form of c's Update for a sum over `members` members. The error names which number does
// not fit: it is not finite, or float32 may not hold its sum.
func (c *Contribution) Fixed(members int) (*Fixed, error) {
	g := &Fixed{c: c, members: members, parts: c.Parts}
	columns := max(c.Columns, 1)
	g.columns = columns
	if c.Parts == nil {
		g.parts = []int{len(c.Update)}
	}
	n := 0
	for _, part := range g.parts {
		n += part
	}
	if !slices.Contains([]int{4, 8, 16, 32, 64}, c.Bits) || c.Columns < 0 ||
		c.Columns > 0 && (c.Parts != nil || c.Bits == 4) ||
		c.Bits == 4 && (c.Residual == nil || c.UpdateLimit != nil) || n != len(c.Update) || n%columns != 0 ||
		c.Residual != nil && len(c.Residual) != n {
		panic(fmt.Sprintf("comm: Reduce %v: an update of %d numbers in %d columns, parts %v and %d "+
			"bits, a residual of %d", c.ID, len(c.Update), c.Columns, c.Parts, c.Bits, len(c.Residual)))
	}
	if most := MaxMembers(c.Bits); members > most {
		return nil, fmt.Errorf("a sum of %d bits must have at most %d members (got %d)", c.Bits, most, members)
	}
	if i := g.measure(); i >= 0 {
		bound := largest(members)
		return nil, fmt.Errorf("update[%d] must be between -%g and %g (got %g)", i, bound, bound, c.Update[i])
	}
	if c.Bits == 4 {
		g.meanSquares()
	}
	return g, nil
}

// meanSquares sets the root mean square of each part instead of its largest magnitude. A grid of a few
// integers that reached the largest one would round most of the others to 0.
func (g *Fixed) meanSquares() {
	x := g.c.Update
	for k, n := range g.parts {
		squares := 0.0
		for _, v := range x[:n] {
			squares += float64(v) * float64(v)
		}
		if n > 0 {
			g.magnitudes[k] = min(float32(math.Sqrt(squares/float64(n))), g.magnitudes[k])
		}
		x = x[n:]
	}
}

// reach is the greatest magnitude of one member's integers of 4 bits: the sum of all members' fits.
func (g *Fixed) reach() float64 { return float64(mostSmall / g.members) }

// measure sets the largest magnitudes. It returns the index of a number that does not fit (-1 = all do).
func (g *Fixed) measure() int {
	bound := math.Float32bits(largest(g.members))
	g.magnitudes = make([]float32, 0, g.columns*len(g.parts))
	most, fits := uint32(0), true
	x := g.c.Update
	for _, n := range g.parts {
		if g.columns == 1 {
			top := kernels.MaxAbs(x[:n])
			g.magnitudes = append(g.magnitudes, top)
			fits = fits && magnitude(top) <= bound
			x = x[n:]
			continue
		}
		tops := make([]uint32, g.tile(n)) // as bits: the bits of NaN are above all others
		for at := 0; at < n; at += len(tops) {
			for j, v := range x[at:min(at+len(tops), n)] {
				tops[j] = max(tops[j], magnitude(v))
			}
		}
		for j := range g.columns {
			for most = 0; j < len(tops); j += g.columns {
				most = max(most, tops[j])
			}
			g.magnitudes = append(g.magnitudes, math.Float32frombits(most))
			fits = fits && most <= bound
		}
		x = x[n:]
	}
	if fits {
		return -1
	}
	return slices.IndexFunc(g.c.Update, func(v float32) bool { return magnitude(v) > bound })
}

// magnitude returns the bits of |v|.
func magnitude(v float32) uint32 { return math.Float32bits(v) &^ (1 << 31) }

// tile returns how many of a part's n numbers the loops take at once: some hundreds, as whole rows with one number for
// each step.
func (g *Fixed) tile(n int) int { return (min(n, 512) + g.columns - 1) / g.columns * g.columns }

// stepOf returns whose step, of all, number i of the Update has.
func (g *Fixed) stepOf(i int) int {
	for k, n := range g.parts {
		if i < n {
			return k*g.columns + i%g.columns
		}
		i -= n
	}
	panic("comm: beyond the parts")
}

// Error returns how far rounding may have moved the sums, for each step of the grid: Reduced.Error.
func (g *Fixed) Error() (apart []float64) {
	for _, step := range slices.Concat(g.step...) {
		if g.c.Bits == 4 {
			step = math.Inf(1) // members leave out what is beyond their reach
		}
		apart = append(apart, step*float64(g.members)/2)
	}
	return apart
}

// Magnitudes returns this member's largest magnitude for each step of the grid; with 4 bits, its root mean square.
func (g *Fixed) Magnitudes() []float32 { return g.magnitudes }

// largest returns the largest magnitude that each of `members` members may have so that a float32 can represent every
// sum.
func largest(members int) float32 { return float32(math.MaxFloat32 / float64(4*members)) }

// checkSum returns an error unless s may be the sum of a column's largest magnitudes, whose largest is at least least.
func checkSum(s, least float32) error {
	if !(s >= least && s <= math.MaxFloat32/3) {
		return Refused("a sum of largest magnitudes must be between %g and %g (got %g)",
			least, float32(math.MaxFloat32/3), s)
	}
	return nil
}

// Agree sets the steps from the sums of the members' largest magnitudes. The sums were rounded to
// float32, which a factor makes good. With 64 bits a step is a power of two: there is space, and
// numbers that are not too small for it keep all of their bits.
func (g *Fixed) Agree(sums []float32) error {
	g.step, g.steps, g.inverse = nil, nil, nil
	columns := g.columns
	for at := 0; at < len(sums); at += columns {
		step := make([]float64, columns)
		for j, s := range sums[at : at+columns] {
			if err := checkSum(s, g.magnitudes[at+j]); err != nil {
				return err
			}
			switch g.c.Bits {
			case 4: // the fewer integers a member has, the further apart they are
				step[j] = 2 * float64(s) / float64(g.members) / (1 + g.reach())
			case 64:
				_, exponent := math.Frexp(float64(s))
				if s > 0 {
					step[j] = math.Ldexp(1, exponent-62)
				}
			default:
				step[j] = float64(s) * (1 + 0x1p-23) / float64(uint64(1)<<(g.c.Bits-1)-1-uint64(g.members))
			}
		}
		inverse, times := make([]float64, columns), g.tile(g.parts[len(g.step)])/columns
		for j, s := range step {
			if s > 0 {
				inverse[j] = 1 / s
			}
		}
		g.step, g.steps = append(g.step, step), append(g.steps, slices.Repeat(step, times))
		g.inverse = append(g.inverse, slices.Repeat(inverse, times))
	}
	return nil
}

// Integers returns the Update as multiples of the steps, rounded half to even. A sum computes them when they are to be
// sent, and writes to the Update what their sums stand for. Integers of 32 bits take its memory. Residual, if there is
// one, becomes what rounding left out. With 4 bits each byte has two numbers, the first plus 16 times the second: no
// sum of the first reaches the second.
func (g *Fixed) Integers() Integers {
	n, bits := len(g.c.Update), g.c.Bits
	if bits == 4 {
		n, bits = (n+1)/2, 8
	}
	if bits == 32 {
		return Integers{bits, FloatBytes(g.c.Update), g}
	}
	return Integers{bits, make([]byte, n*bits/8), g}
}

// each calls do for numbers lo, …, hi−1 of the Update in turn, some at a time, with their steps.
func (g *Fixed) each(lo, hi int, do func(lo, hi int, steps, inverse []float64)) {
	first := 0
	for k, n := range g.parts {
		for at := max(lo, first); at < min(hi, first+n); {
			j := (at - first) % len(g.steps[k])
			end := min(hi, first+n, at+len(g.steps[k])-j)
			do(at, end, g.steps[k][j:], g.inverse[k][j:])
			at = end
		}
		first += n
	}
}

// encode writes integers lo, …, hi−1 to b, which may be in their place in the Update.
func (g *Fixed) encode(lo, hi int, b []byte) {
	x, residual, bits := g.c.Update, g.c.Residual, g.c.Bits
	if bits == 4 {
		g.encodePairs(lo, hi, b)
		return
	}
	g.each(lo, hi, func(at, end int, steps, inverse []float64) {
		if residual != nil {
			for j, v := range x[at:end] {
				z := math.RoundToEven(float64(v) * inverse[j])
				residual[at+j] = float32(float64(v) - float64(z*steps[j]))
			}
		}
		encode(bits, x[at:end], inverse, b[(at-lo)*bits/8:])
	})
}

// encodePairs is encode of 4 bits. What is beyond a member's reach stays in its residual.
func (g *Fixed) encodePairs(lo, hi int, b []byte) {
	x, reach := g.c.Update, g.reach()
	clear(b)
	g.each(2*lo, min(2*hi, len(x)), func(at, end int, steps, inverse []float64) {
		for j, v := range x[at:end] {
			z := min(max(math.RoundToEven(float64(v)*inverse[j]), -reach), reach)
			g.c.Residual[at+j] = float32(float64(v) - float64(z*steps[j]))
			b[(at+j)/2-lo] += byte(int8(z) << ((at + j) % 2 * 4))
		}
	})
}

// decode writes to the Update what b, sums of integers from lo on, stand for.
func (g *Fixed) decode(lo int, b []byte) {
	x, width := g.c.Update, g.c.Bits/8
	if g.c.Bits == 4 {
		g.each(2*lo, min(2*(lo+len(b)), len(x)), func(at, end int, steps, _ []float64) {
			for j := range x[at:end] {
				pair := int8(b[(at+j)/2-lo])
				z := pair << 4 >> 4
				if (at+j)%2 == 1 {
					z = (pair - z) >> 4
				}
				x[at+j] = float32(float64(z) * steps[j])
			}
		})
		return
	}
	g.each(lo, lo+len(b)/width, func(at, end int, steps, _ []float64) {
		decode(g.c.Bits, b[(at-lo)*width:], steps, x[at:end])
	})
}

// even, added to a float64 below 2⁵¹ and taken away, leaves the nearest integer, ties to even: the sum has a
// unit in the last place of 1. The lowest bits of the sum are that integer's in two's complement. A multiple
// of 1 that has 24 significant bits, as a float32, stays what it is up to 2⁶².
const even = 0x1.8p52

// encode writes x·inverse to b as integers of `bits` bits, rounded half to even. The products are below 2^(bits−1);
// with 64 bits inverse is a power of two. They are rounded to float64 before anything is added, which Go would fuse on
// some processors.
func encode(bits int, x []float32, inverse []float64, b []byte) {
	inverse, b = inverse[:len(x)], b[:len(x)*bits/8]
	switch bits {
	case 8:
		for i, v := range x {
			b[i] = byte(math.Float64bits(float64(float64(v)*inverse[i]) + even))
		}
	case 16:
		for i, v := range x {
			binary.LittleEndian.PutUint16(b[2*i:], uint16(math.Float64bits(float64(float64(v)*inverse[i])+even)))
		}
	case 32:
		kernels.ToFixed(x, inverse, b)
	default:
		for i, v := range x {
			binary.LittleEndian.PutUint64(b[8*i:], uint64(int64(float64(float64(v)*inverse[i])+even-even)))
		}
	}
}

// decode writes integers of `bits` bits in b times their steps to x.
func decode(bits int, b []byte, steps []float64, x []float32) {
	steps, b = steps[:len(x)], b[:len(x)*bits/8]
	switch bits {
	case 8:
		for i, s := range steps {
			x[i] = float32(float64(int8(b[i])) * s)
		}
	case 16:
		for i, s := range steps {
			x[i] = float32(float64(int16(binary.LittleEndian.Uint16(b[2*i:]))) * s)
		}
	case 32:
		kernels.Fixed(b, steps, x)
	default:
		for i, s := range steps {
			x[i] = float32(float64(int64(binary.LittleEndian.Uint64(b[8*i:]))) * s)
		}
	}
}

// intAt returns integer i of b, packed integers of `bits` bits.
func intAt(b []byte, i, bits int) int64 {
	switch bits {
	case 8:
		return int64(int8(b[i]))
	case 16:
		return int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
	case 32:
		return int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
	}
	return int64(binary.LittleEndian.Uint64(b[8*i:]))
}

// SumBits returns the bits of a number in sums of that format (Contribution.Bits): of int16, int8, auto (int16) or
// empty (float32, 0 bits); −1: it is none of these.
func SumBits(format string) int {
	switch format {
	case "":
		return 0
	case "int8":
		return 8
	case "int16", "auto":
		return 16
	}
	return -1
}
