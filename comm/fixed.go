package comm

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A fixed-point sum goes three ways: quantise makes an Update packed integers, they are summed
// modulo 2^bits as any vector is (allreduce.go), and dequantise makes the sums numbers again. Masks
// modulo 2^bits belong in between.

// MaxMembers returns how many members a sum of Contribution.Bits may have at most: with more,
// rounding would take more than half of the integers.
func MaxMembers(bits int) int { return 1<<(bits-2) - 1 }

// grids are the steps of a fixed-point Update. Each of its parts is rows of a number a step.
type grids struct {
	parts []int // their lengths
	step  [][]float64
}

// fixed returns c's grids, without steps, and the largest magnitude for each step, or what is wrong
// with c for so many members.
func (c *Contribution) fixed(members int) (g grids, magnitudes []float32, err error) {
	g.parts = c.Parts
	columns := max(c.Columns, 1)
	if c.Parts == nil {
		g.parts = []int{len(c.Update)}
	}
	n := 0
	for _, part := range g.parts {
		n += part
	}
	if c.Bits != 8 && c.Bits != 16 && c.Bits != 32 || c.Columns < 0 || c.Columns > 0 && c.Parts != nil ||
		n != len(c.Update) || n%columns != 0 || c.Residual != nil && len(c.Residual) != n {
		panic(fmt.Sprintf("comm: Reduce %v: an update of %d numbers in %d columns, parts %v and %d bits, a residual of %d",
			c.ID, len(c.Update), c.Columns, c.Parts, c.Bits, len(c.Residual)))
	}
	if most := MaxMembers(c.Bits); members > most {
		return g, nil, fmt.Errorf("a sum of %d bits must have at most %d members (got %d)", c.Bits, most, members)
	}
	magnitudes, bound := make([]float32, columns*len(g.parts)), largest(members)
	x, most := c.Update, magnitudes
	for _, n := range g.parts {
		j := 0
		for i, v := range x[:n] {
			if v < 0 {
				v = -v
			}
			if !(v <= bound) {
				return g, nil, fmt.Errorf("update[%d] must be between -%g and %g (got %g)",
					len(c.Update)-len(x)+i, bound, bound, x[i])
			}
			most[j] = max(most[j], v)
			if j++; j == columns {
				j = 0
			}
		}
		x, most = x[n:], most[columns:]
	}
	return g, magnitudes, nil
}

// largest returns the largest magnitude that so many members may have: a float32 holds every sum.
func largest(members int) float32 { return float32(math.MaxFloat32 / float64(4*members)) }

// checkMagnitudes returns an error unless b is magnitudes that a member may have.
func checkMagnitudes(b []byte, members int) error {
	for _, v := range floats(b) {
		if !(v >= 0 && v <= largest(members)) {
			return fmt.Errorf("a largest magnitude must be between 0 and %g (got %g)", largest(members), v)
		}
	}
	return nil
}

// checkSum returns an error unless s may be the sum of a column's largest magnitudes, one of which
// is least.
func checkSum(s, least float32) error {
	if !(s >= least && s <= math.MaxFloat32/3) {
		return fmt.Errorf("a sum of largest magnitudes must be between %g and %g (got %g)",
			least, float32(math.MaxFloat32/3), s)
	}
	return nil
}

// agree sets the steps from the sums of the members' largest magnitudes. The sums were rounded to
// float32, which the factor makes good.
func (g *grids) agree(sums []float32, bits, members int) {
	columns := len(sums) / len(g.parts)
	for ; len(sums) > 0; sums = sums[columns:] {
		step := make([]float64, columns)
		for j, s := range sums[:columns] {
			step[j] = float64(s) * (1 + 0x1p-23) / float64(1<<(bits-1)-1-members)
		}
		g.step = append(g.step, step)
	}
}

// quantise returns x as multiples of the steps, rounded half to even. None of x lies beyond the
// magnitudes that the steps are for. residual, unless nil, becomes what rounding left out.
func (g *grids) quantise(x, residual []float32, bits int) intVector {
	all := intVector{bits, make([]byte, len(x)*bits/8)}
	b := all.b
	for k, n := range g.parts {
		inverse := make([]float64, len(g.step[k]))
		for j, s := range g.step[k] {
			if s > 0 {
				inverse[j] = 1 / s
			}
		}
		j := 0
		for i, v := range x[:n] {
			z := math.RoundToEven(float64(v) * inverse[j])
			switch bits {
			case 8:
				b[i] = byte(int32(z))
			case 16:
				binary.LittleEndian.PutUint16(b[2*i:], uint16(int32(z)))
			default:
				binary.LittleEndian.PutUint32(b[4*i:], uint32(int32(z)))
			}
			if residual != nil {
				residual[i] = float32(float64(v) - float64(z*g.step[k][j]))
			}
			if j++; j == len(inverse) {
				j = 0
			}
		}
		x, b = x[n:], b[n*bits/8:]
		if residual != nil {
			residual = residual[n:]
		}
	}
	return all
}

// dequantise is the inverse of quantise, for sums.
func (g *grids) dequantise(x []float32, sums intVector) {
	b := sums.b
	for k, n := range g.parts {
		step, j := g.step[k], 0
		for i := range x[:n] {
			var z int32
			switch sums.bits {
			case 8:
				z = int32(int8(b[i]))
			case 16:
				z = int32(int16(binary.LittleEndian.Uint16(b[2*i:])))
			default:
				z = int32(binary.LittleEndian.Uint32(b[4*i:]))
			}
			x[i] = float32(float64(z) * step[j])
			if j++; j == len(step) {
				j = 0
			}
		}
		x, b = x[n:], b[n*sums.bits/8:]
	}
}

// intVector is integers of so many bits, packed.
type intVector struct {
	bits int
	b    []byte
}

func (x intVector) shape() (n, width int)   { return len(x.b) / (x.bits / 8), x.bits / 8 }
func (x intVector) bytes(lo, hi int) []byte { return x.b[lo*x.bits/8 : hi*x.bits/8] }
func (x intVector) put(lo int, b []byte)    { copy(x.b[lo*x.bits/8:], b) }
func (x intVector) sum(lo int, terms [][]byte) {
	for _, b := range terms {
		if b != nil {
			addPacked(x.b[lo*x.bits/8:], b, x.bits)
		}
	}
}

// addPacked adds src to dst, packed integers of so many bits each, modulo 2^bits.
func addPacked(dst, src []byte, bits int) {
	high := ^uint64(0) / (1<<bits - 1) << (bits - 1) // the highest bit of each integer of a word
	add := func(x, y uint64) uint64 { return (x&^high + y&^high) ^ (x^y)&high }
	for ; len(src) >= 8; dst, src = dst[8:], src[8:] {
		binary.LittleEndian.PutUint64(dst, add(binary.LittleEndian.Uint64(dst), binary.LittleEndian.Uint64(src)))
	}
	if len(src) > 0 {
		var x, y [8]byte
		copy(x[:], dst[:len(src)])
		copy(y[:], src)
		binary.LittleEndian.PutUint64(x[:], add(binary.LittleEndian.Uint64(x[:]), binary.LittleEndian.Uint64(y[:])))
		copy(dst, x[:len(src)])
	}
}

// countBytes returns counts as they travel.
func countBytes(counts []int64) []byte {
	b := make([]byte, 0, 8*len(counts))
	for _, n := range counts {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// readCounts is the inverse of countBytes.
func readCounts(counts []int64, b []byte) {
	for i := range counts {
		counts[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
}
