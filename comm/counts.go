package comm

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// CountBits returns in how many bits a number that sums cannot bring above most may be sent (Contribution.CountBits).
func CountBits(most int64) int {
	switch {
	case most < 1<<16:
		return 16
	case most < 1<<32:
		return 32
	}
	return 0
}

// CountBytes returns the encoded size of one member's part of `counts` Counts, `wide` of them Wide.
func CountBytes(counts, wide int64, bits, members int) int64 {
	c := Contribution{CountBits: bits, Counts: []int64{0}, Wide: func(int) bool { return true }}
	f := c.countForm(max(members, 1))
	return (counts - wide + wide*int64(f.at[1])) * int64(f.bits) / 8
}

// countForm is how Counts are sent: as whole numbers modulo 2^bits. A wide number is sent as its digits of limb bits
// each, lowest first, with space above them for the sum over the members.
type countForm struct {
	bits, limb int
	at         []int // number i is sent as elements at[i], …, at[i+1]−1
}

// countForm returns how c's Counts are sent between `members` members.
func (c *Contribution) countForm(members int) countForm {
	f := countForm{bits: 64, at: make([]int, len(c.Counts)+1)}
	if c.CountBits != 0 {
		if c.CountBits != 16 && c.CountBits != 32 || members > 1<<12 {
			panic(fmt.Sprintf("comm: Reduce %v: counts of %d bits, %d members", c.ID, c.CountBits, members))
		}
		f.bits, f.limb = c.CountBits, c.CountBits-bits.Len(uint(members-1))
	}
	for i := range c.Counts {
		f.at[i+1] = f.at[i] + 1
		if f.bits < 64 && c.Wide != nil && c.Wide(i) {
			f.at[i+1] = f.at[i] + (63+f.limb)/f.limb
		}
	}
	return f
}

// value returns the number whose elements are in b, modulo 2⁶⁴.
func (f countForm) value(b []byte) (v int64) {
	for width := f.bits / 8; len(b) > 0; b = b[:len(b)-width] {
		var digit [8]byte
		copy(digit[:], b[len(b)-width:])
		v = v<<f.limb + int64(binary.LittleEndian.Uint64(digit[:]))
	}
	return v
}

// PackCounts returns c's Counts as they are sent between `members` members, to be added element by element. What does
// not fit is cut off, as in any sum modulo 2^CountBits.
func (c *Contribution) PackCounts(members int) Integers {
	f := c.countForm(members)
	x := Integers{Bits: f.bits, B: make([]byte, 0, f.at[len(c.Counts)]*f.bits/8)}
	var b [8]byte
	for i, n := range c.Counts {
		digits := f.at[i+1] - f.at[i]
		for k := range digits {
			digit := uint64(n)
			if digits > 1 {
				digit = digit >> (k * f.limb) & (1<<f.limb - 1)
			}
			binary.LittleEndian.PutUint64(b[:], digit)
			x.B = append(x.B, b[:f.bits/8]...)
		}
	}
	return x
}

// TakeCounts makes c's Counts the sums in x, over `members` members, of PackCounts.
func (c *Contribution) TakeCounts(x Integers, members int) {
	f := c.countForm(members)
	for i := range c.Counts {
		c.Counts[i] = f.value(x.B[f.at[i]*f.bits/8 : f.at[i+1]*f.bits/8])
	}
}

// checkCounts returns the check of another member's part of c's Counts, in a group of `members`. A wide number in two
// frames is not looked at; its sum is.
func (c *Contribution) checkCounts(members int) func(at int, b []byte) error {
	if c.CountLimit == nil {
		return nil
	}
	f := c.countForm(members)
	width := f.bits / 8
	return func(at int, b []byte) error {
		i, _ := slices.BinarySearch(f.at, at) // the first that begins here
		for ; i < len(c.Counts) && width*(f.at[i+1]-at) <= len(b); i++ {
			v := f.value(b[width*(f.at[i]-at) : width*(f.at[i+1]-at)])
			if err := c.CountLimit(i).refusal(float64(v), 0); err != nil {
				return err
			}
		}
		return nil
	}
}
