package dgl

import (
	"encoding/binary"
	"fmt"
	"math"
)

// tensorStream reads dmlc's encoding: little-endian, nothing aligned, vectors and strings led by a 64-bit
// count. The first error stays; from then on every read gives zero. A count is compared with the
// bytes that are left before anything is allocated for it.
type tensorStream struct {
	path string
	b    []byte
	at   int
	err  error
}

func (s *tensorStream) fail(at int, format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%s: byte %d: %w", s.path, at, fmt.Errorf(format, args...))
	}
}

// take returns the next n bytes, or nil.
func (s *tensorStream) take(n uint64, what string) []byte {
	if s.err != nil {
		return nil
	}
	if left := uint64(len(s.b) - s.at); n > left {
		s.fail(s.at, "%s takes %d bytes, %d are left", what, n, left)
		return nil
	}
	b := s.b[s.at : s.at+int(n) : s.at+int(n)]
	s.at += int(n)
	return b
}

func (s *tensorStream) u64(what string) uint64 {
	if b := s.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count returns a number of things of at least size bytes each, which all have to be there.
func (s *tensorStream) count(what string, size int) int {
	at := s.at
	n := s.u64("number of " + what)
	if left := uint64(len(s.b) - s.at); s.err == nil && n > left/uint64(size) {
		s.fail(at, "%d %s of at least %d bytes, %d are left", n, what, size, left)
	}
	if s.err != nil {
		return 0
	}
	return int(n)
}

func (s *tensorStream) text(what string) string {
	return string(s.take(uint64(s.count("bytes of "+what, 1)), what))
}

// expect refuses anything but want.
func (s *tensorStream) expect(want uint64, what string) {
	at := s.at
	if got := s.u64(what); s.err == nil && got != want {
		s.fail(at, "%s must be %#x (got %#x)", what, want, got)
	}
}

// tensor reads an NDArray.
func (s *tensorStream) tensor() Tensor {
	start := s.at
	s.expect(arrayMagic, "magic number of an array")
	s.u64("reserved field")
	s.u64("device")
	head := s.take(8, "rank and type of an array")
	if s.err != nil {
		return Tensor{}
	}
	rank := binary.LittleEndian.Uint32(head)
	if rank > maxRank {
		s.fail(start+24, "array must have at most rank %d (got %d)", maxRank, rank)
		return Tensor{}
	}
	t := Tensor{Kind: ElementKind(head[4]), Bits: int(head[5]), Shape: make([]int64, rank)}
	if lanes := binary.LittleEndian.Uint16(head[6:]); lanes != 1 || t.Bits%8 != 0 || t.Bits == 0 || t.Bits > 64 {
		s.fail(start+28, "array elements must be one lane of 8 to 64 bits (got %d of %d)", lanes, t.Bits)
		return Tensor{}
	}
	most := uint64(len(s.b)-s.at) / uint64(t.Bits/8)
	count := uint64(1)
	for k := range t.Shape {
		at := s.at
		n := s.u64("extent of an array")
		if n > math.MaxInt64 || n > 0 && count > most/n {
			s.fail(at, "extent %d of an array is %d, for which the %d bytes left are too few", k, int64(n),
				len(s.b)-s.at)
			return Tensor{}
		}
		t.Shape[k], count = int64(n), count*n
	}
	s.expect(count*uint64(t.Bits/8), "length of an array's data")
	t.data = s.take(count*uint64(t.Bits/8), "data of an array")
	return t
}

// columns reads a vector of named tensors. DGL writes them in no particular order.
func (s *tensorStream) columns(what string) map[string]Tensor {
	const least = 8 + 40 + 8 // name, header of an array, length of its data
	n := s.count(what, least)
	all := make(map[string]Tensor, n)
	for range n {
		at := s.at
		name := s.text("name of " + what)
		t := s.tensor()
		if _, ok := all[name]; ok {
			s.fail(at, "%s %q occurs twice", what, name)
		}
		if s.err != nil {
			return nil
		}
		all[name] = t
	}
	return all
}

func (s *tensorStream) end() {
	if s.err == nil && s.at != len(s.b) {
		s.fail(s.at, "%d bytes after the end", len(s.b)-s.at)
	}
}
