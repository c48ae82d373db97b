package comm

import (
	"context"
	"encoding/binary"
	"fmt"
)

// Integers are numbers of Bits bits each, packed, little endian, that are added modulo 2^Bits.
type Integers struct {
	Bits int // 8, 16, 32 or 64
	B    []byte
}

// NewIntegers returns n zeros of so many bits.
func NewIntegers(bits, n int) Integers { return Integers{bits, make([]byte, n*bits/8)} }

// CountIntegers returns counts as Integers of 64 bits.
func CountIntegers(counts []int64) Integers {
	x := Integers{64, make([]byte, 0, 8*len(counts))}
	for _, n := range counts {
		x.B = binary.LittleEndian.AppendUint64(x.B, uint64(n))
	}
	return x
}

// Counts is the inverse of CountIntegers.
func (x Integers) Counts(counts []int64) {
	for i := range counts {
		counts[i] = int64(binary.LittleEndian.Uint64(x.B[8*i:]))
	}
}

// Add adds y, packed integers of as many bits, to the first ones of x.
func (x Integers) Add(y []byte) { addPacked(x.B, y, x.Bits) }

// Sub subtracts y, packed integers of as many bits, from the first ones of x.
func (x Integers) Sub(y []byte) { subtractPacked(x.B, y, x.Bits) }

func (x Integers) shape() (n, width int)   { return len(x.B) / (x.Bits / 8), x.Bits / 8 }
func (x Integers) bytes(lo, hi int) []byte { return x.B[lo*x.Bits/8 : hi*x.Bits/8] }
func (x Integers) put(lo int, b []byte)    { copy(x.B[lo*x.Bits/8:], b) }
func (x Integers) sum(lo int, terms [][]byte) {
	for _, b := range terms {
		if b != nil {
			addPacked(x.B[lo*x.Bits/8:], b, x.Bits)
		}
	}
}

// addPacked adds src to dst, packed integers of so many bits each, modulo 2^bits.
func addPacked(dst, src []byte, bits int) {
	if bits == 64 {
		for ; len(src) >= 8; dst, src = dst[8:], src[8:] {
			binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(dst)+binary.LittleEndian.Uint64(src))
		}
		return
	}
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

// subtractPacked subtracts src from dst, packed integers of so many bits each, modulo 2^bits.
func subtractPacked(dst, src []byte, bits int) {
	high := uint64(1) << 63
	if bits < 64 {
		high = ^uint64(0) / (1<<bits - 1) << (bits - 1)
	}
	subtract := func(x, y uint64) uint64 { return ((x | high) - y&^high) ^ (x^^y)&high }
	for ; len(src) >= 8; dst, src = dst[8:], src[8:] {
		binary.LittleEndian.PutUint64(dst, subtract(binary.LittleEndian.Uint64(dst), binary.LittleEndian.Uint64(src)))
	}
	if len(src) > 0 {
		var x, y [8]byte
		copy(x[:], dst[:len(src)])
		copy(y[:], src)
		binary.LittleEndian.PutUint64(x[:], subtract(binary.LittleEndian.Uint64(x[:]), binary.LittleEndian.Uint64(y[:])))
		copy(dst, x[:len(src)])
	}
}

// SumIntegers makes each of at most two vectors the sum of the members' vectors by the door Reduce,
// element by element; every member sends meta to each of the others by the door Control. The
// lengths must agree between members. It is the transport of sums whose terms are masked.
func (g *Group) SumIntegers(ctx context.Context, id ReduceID, meta []byte, vectors ...Integers) (Reduced, error) {
	if len(meta) > MaxMeta || len(vectors) > 2 {
		panic(fmt.Sprintf("comm: SumIntegers %v: at most %d bytes of meta and two vectors (got %d and %d)", id, MaxMeta, len(meta), len(vectors)))
	}
	c, err := g.begin(ctx, opAllReduce, Reduce, "")
	if err != nil {
		return Reduced{}, err
	}
	c.id = id
	r := Reduced{Meta: make([][]byte, g.size)}
	if len(meta) > 0 {
		r.Meta[g.rank] = meta
	}
	var sums []*sum
	for k, v := range vectors {
		if len(v.B) > 0 {
			c.path = 2
		}
		sums = append(sums, newSum(c, v, []uint8{stepGive, stepGiveCount}[k], []uint8{stepSum, stepSumCount}[k]))
	}
	if len(g.members) > 1 {
		c.sumUp(meta, r.Meta, sums...)
	}
	return r, c.end()
}
