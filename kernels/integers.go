package kernels

import (
	"encoding/binary"
	"fmt"
)

// AddIntegers computes y += x modulo 2^bits: packed little-endian integers of 8, 16, 32 or 64 bits.
func AddIntegers(bits int, x, y []byte) { integers(bits, x, y, false) }

func integers(bits int, x, y []byte, minus bool) {
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 || len(x)%(bits/8) != 0 {
		panic(fmt.Sprintf("kernels: integers must have 8, 16, 32 or 64 bits and be whole (got %d bits, %d bytes)", bits,
			len(x)))
	}
	checkLength("y of integers", len(y), len(x))
	reads(x)
	writes(y)
	active.integers(bits, x, y, minus)
}

// integersGeneric processes eight bytes at a time. It adds the integers without their highest bits, so that nothing is
// carried into the next integer, and adds the highest bits separately.
func integersGeneric(bits int, x, y []byte, minus bool) {
	high := ^uint64(0) / (^uint64(0) >> (64 - bits)) << (bits - 1) // the highest bit of each integer in a word
	for ; len(x) >= 8 && len(y) >= 8; x, y = x[8:], y[8:] {
		a, b := binary.LittleEndian.Uint64(x), binary.LittleEndian.Uint64(y)
		binary.LittleEndian.PutUint64(y, packedSum(a, b, high, minus))
	}
	if len(x) > 0 {
		var a, b [8]byte
		copy(a[:], x)
		copy(b[:], y)
		binary.LittleEndian.PutUint64(b[:],
			packedSum(binary.LittleEndian.Uint64(a[:]), binary.LittleEndian.Uint64(b[:]), high, minus))
		copy(y, b[:])
	}
}

// packedSum returns b + a, or b − a, for words of integers; high has their highest bits.
func packedSum(a, b, high uint64, minus bool) uint64 {
	if minus {
		return ((b | high) - a&^high) ^ (b^^a)&high
	}
	return (b&^high + a&^high) ^ (b^a)&high
}
