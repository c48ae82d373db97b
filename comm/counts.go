package comm

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// CountBits returns in how many bits a number that sums cannot bring above most may travel (Contribution.CountBits).
func CountBits(most int64) int {
	switch {
	case most < 1<<16:
		return 16
	case most < 1<<32:
		return 32
	}
	return 0
}

// CountBytes returns the bytes of one member's part of so many Counts with these CountBits, of which so many are wide.
func CountBytes(counts, wide int64, bits, members int) int64 {
	c := Contribution{CountBits: bits, Counts: []int64{0}, Wide: func(int) bool { return true }}
	f := c.countForm(max(members, 1))
	return ((counts - wide) + wide*int64(f.len(1))) * int64(f.bits) / 8
}

// countForm is how Counts travel: whole numbers modulo 2^bits. A wide number travels as its digits of limb bits each,
// lowest first, with room above them for the sum over the members.
type countForm struct {
	bits, limb int
	at         []int // number i begins at element at[i], the last one ends where at does; nil: element i is number i
}

// countForm returns how c's Counts travel between so many members.
func (c *Contribution) countForm(members int) countForm {
	if c.CountBits == 0 {
		return countForm{bits: 64}
	}
	if c.CountBits != 16 && c.CountBits != 32 || members > 1<<12 {
		panic(fmt.Sprintf("comm: Reduce %v: counts of %d bits, %d members", c.ID, c.CountBits, members))
	}
	f := countForm{bits: c.CountBits, limb: c.CountBits - bits.Len(uint(members-1))}
	if c.Wide == nil {
		return f
	}
	f.at = make([]int, len(c.Counts)+1)
	for i := range c.Counts {
		f.at[i+1] = f.at[i] + 1
		if c.Wide(i) {
			f.at[i+1] = f.at[i] + (63+f.limb)/f.limb
		}
	}
	return f
}

// span returns the elements lo, …, hi−1 that number i travels as.
func (f countForm) span(i int) (lo, hi int) {
	if f.at == nil {
		return i, i + 1
	}
	return f.at[i], f.at[i+1]
}

// len returns how many elements n numbers travel as.
func (f countForm) len(n int) int {
	if f.at == nil {
		return n
	}
	return f.at[n]
}

// number returns the number that element k belongs to.
func (f countForm) number(k int) int {
	if f.at == nil {
		return k
	}
	i, ok := slices.BinarySearch(f.at, k)
	if !ok {
		i--
	}
	return i
}

// value returns the number whose elements are in b, modulo 2⁶⁴.
func (f countForm) value(b []byte) (v int64) {
	if f.bits == 64 {
		return int64(binary.LittleEndian.Uint64(b))
	}
	width := f.bits / 8
	for k := len(b)/width - 1; k >= 0; k-- {
		v = v<<f.limb + f.element(b[k*width:])
	}
	return v
}

func (f countForm) element(b []byte) int64 {
	if f.bits == 16 {
		return int64(binary.LittleEndian.Uint16(b))
	}
	return int64(binary.LittleEndian.Uint32(b))
}

// PackCounts returns c's Counts as they travel between so many members, to be added element by element. What does not fit
// is cut off, as in any sum modulo 2^CountBits.
func (c *Contribution) PackCounts(members int) Integers {
	f := c.countForm(members)
	x := Integers{f.bits, make([]byte, 0, f.len(len(c.Counts))*f.bits/8)}
	for i, n := range c.Counts {
		lo, hi := f.span(i)
		for k := range hi - lo {
			digit := uint64(n)
			if hi > lo+1 {
				digit = digit >> (k * f.limb) & (1<<f.limb - 1)
			}
			switch f.bits {
			case 16:
				x.B = binary.LittleEndian.AppendUint16(x.B, uint16(digit))
			case 32:
				x.B = binary.LittleEndian.AppendUint32(x.B, uint32(digit))
			default:
				x.B = binary.LittleEndian.AppendUint64(x.B, digit)
			}
		}
	}
	return x
}

// TakeCounts makes c's Counts the sums over so many members in x, of PackCounts.
func (c *Contribution) TakeCounts(x Integers, members int) {
	f := c.countForm(members)
	for i := range c.Counts {
		lo, hi := f.span(i)
		c.Counts[i] = f.value(x.B[lo*f.bits/8 : hi*f.bits/8])
	}
}

// checkCounts returns the check of what another of so many members gives of c's Counts. A wide number in two frames is
// not looked at; its sum is.
func (c *Contribution) checkCounts(members int) func(at int, b []byte) error {
	if c.CountLimit == nil {
		return nil
	}
	f := c.countForm(members)
	width := f.bits / 8
	return func(at int, b []byte) error {
		for i := f.number(at); i < len(c.Counts); i++ {
			lo, hi := f.span(i)
			if hi = hi - at; width*hi > len(b) {
				break
			}
			if lo = lo - at; lo < 0 {
				continue
			}
			if err := c.CountLimit(i).refusal(float64(f.value(b[width*lo:width*hi])), 0); err != nil {
				return err
			}
		}
		return nil
	}
}
