package dgl

import (
	"encoding/binary"
	"io"
	"math"
	"slices"
)

// sink writes what stream reads. The first error stays.
type sink struct {
	w   io.Writer
	buf []byte
	err error
}

func (s *sink) bytes(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
}

func (s *sink) u64(list ...uint64) {
	s.buf = s.buf[:0]
	for _, v := range list {
		s.buf = binary.LittleEndian.AppendUint64(s.buf, v)
	}
	s.bytes(s.buf)
}

func (s *sink) text(v string) {
	s.u64(uint64(len(v)))
	s.bytes([]byte(v))
}

func (s *sink) floats(list []float32) {
	s.buf = s.buf[:0]
	for _, v := range list {
		s.buf = binary.LittleEndian.AppendUint32(s.buf, math.Float32bits(v))
	}
	s.bytes(s.buf)
}

// array writes the header of an array.
func (s *sink) array(kind ElementKind, bits int, shape ...int) {
	const processor = 1
	s.u64(arrayMagic, 0, processor)
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(shape)))
	head = append(head, byte(kind), byte(bits))
	s.bytes(binary.LittleEndian.AppendUint16(head, 1))
	count := uint64(1)
	for _, n := range shape {
		s.u64(uint64(n))
		count *= uint64(n)
	}
	s.u64(count * uint64(bits/8))
}

func (s *sink) ints(list []int64) {
	s.array(Int, 64, len(list))
	for _, v := range list {
		s.u64(uint64(v))
	}
}

// flags writes n truth values: the first ones true, the others false.
func (s *sink) flags(first, n int) {
	s.array(Uint, 8, n)
	s.bytes(append(slices.Repeat([]byte{1}, first), make([]byte, n-first)...))
}

// metagraph writes that one relation goes from the one type to itself.
func (s *sink) metagraph() {
	s.u64(metaMagic, csrMagic, 1, 1)
	s.ints([]int64{0, 1})
	s.ints([]int64{0})
	s.ints([]int64{0})
	s.bytes([]byte{1})
}

func (s *sink) tensors(columns []func()) {
	s.u64(tensorsMagic, uint64(len(columns)), uint64(len(columns)))
	for _, write := range columns {
		write()
	}
}
