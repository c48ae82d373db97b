package dgl

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// ElementKind is the kind of a tensor's elements, as DLPack numbers them.
type ElementKind uint8

// The kinds that DGL stores.
const (
	Int    ElementKind = 0
	Uint   ElementKind = 1
	Float  ElementKind = 2
	Bfloat ElementKind = 4
	Bool   ElementKind = 6
)

// Tensor is an array as it is in a file: row by row, little-endian.
type Tensor struct {
	Kind  ElementKind
	Bits  int // of an element
	Shape []int64
	data  []byte
}

const (
	arrayMagic = 0xDD5E40F096B4A13F
	maxRank    = 8
)

// Len returns the number of elements.
func (t Tensor) Len() int {
	if t.Bits == 0 {
		return 0
	}
	return len(t.data) / (t.Bits / 8)
}

func (t Tensor) String() string {
	names := map[ElementKind]string{Int: "int", Uint: "uint", Float: "float", Bfloat: "bfloat", Bool: "bool"}
	name, ok := names[t.Kind]
	if !ok {
		name = fmt.Sprintf("kind %d of ", t.Kind)
	}
	return fmt.Sprintf("%s%d %v", name, t.Bits, t.Shape)
}

// ints returns the elements of a tensor of integers or truth values.
func (t Tensor) ints() ([]int64, error) {
	le := binary.LittleEndian
	var get func([]byte) int64
	switch kind := t.Kind; {
	case (kind == Uint || kind == Bool) && t.Bits == 8:
		get = func(b []byte) int64 { return int64(b[0]) }
	case kind == Int && t.Bits == 8:
		get = func(b []byte) int64 { return int64(int8(b[0])) }
	case kind == Int && t.Bits == 16:
		get = func(b []byte) int64 { return int64(int16(le.Uint16(b))) }
	case kind == Int && t.Bits == 32:
		get = func(b []byte) int64 { return int64(int32(le.Uint32(b))) }
	case kind == Int && t.Bits == 64:
		get = func(b []byte) int64 { return int64(le.Uint64(b)) }
	default:
		return nil, fmt.Errorf("must be integers (got %v)", t)
	}
	return decode(t, get), nil
}

// floats returns the elements of a tensor of numbers, rounded to float32, and refuses one that is
// not finite then. A NaN is taken if nan is true: labels have it for none.
func (t Tensor) floats(nan bool) ([]float32, error) {
	le := binary.LittleEndian
	var out []float32
	switch kind := t.Kind; {
	case kind == Float && t.Bits == 16:
		out = decode(t, func(b []byte) float32 { return half(le.Uint16(b)) })
	case kind == Bfloat && t.Bits == 16:
		out = decode(t, func(b []byte) float32 { return math.Float32frombits(uint32(le.Uint16(b)) << 16) })
	case kind == Float && t.Bits == 32:
		out = decode(t, func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) })
	case kind == Float && t.Bits == 64:
		out = decode(t, func(b []byte) float32 { return float32(math.Float64frombits(le.Uint64(b))) })
	default:
		ints, err := t.ints()
		if err != nil {
			return nil, fmt.Errorf("must be numbers (got %v)", t)
		}
		out = make([]float32, len(ints))
		for k, v := range ints {
			out[k] = float32(v)
		}
	}
	for k, v := range out {
		if math.IsInf(float64(v), 0) || v != v && !nan {
			return nil, fmt.Errorf("element %d must be a finite number (got %v)", k, v)
		}
	}
	return out, nil
}

func decode[T int64 | float32](t Tensor, get func([]byte) T) []T {
	out, size := make([]T, t.Len()), t.Bits/8
	for k := range out {
		out[k] = get(t.data[k*size:])
	}
	return out
}

// half widens an IEEE 754 binary16.
func half(h uint16) float32 {
	bits := uint32(h>>15)<<31 | uint32(h&(1<<15-1))<<13
	if h>>10&31 == 31 { // infinite, or no number
		return math.Float32frombits(bits | 255<<23)
	}
	return math.Float32frombits(bits) * 0x1p112 // exact: the factor corrects the exponent
}

// vector returns the elements of a tensor that has to be n integers in [0, limit).
func (t Tensor) vector(n int, limit int64) ([]int64, error) {
	if !slices.Equal(t.Shape, []int64{int64(n)}) {
		return nil, fmt.Errorf("must be %d integers (got %v)", n, t)
	}
	v, err := t.ints()
	if err != nil {
		return nil, err
	}
	for k, x := range v {
		if x < 0 || x >= limit {
			return nil, fmt.Errorf("element %d is %d, out of [0, %d)", k, x, limit)
		}
	}
	return v, nil
}
