package kernels

import (
	"encoding/binary"
	"unsafe"
)

// littleEndian reports whether this processor has the byte order of frames and files.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Floats returns the little-endian float32s of b as a view of its memory, if the processor's byte order and b's address
// allow it. Bytes after the last whole value are ignored.
func Floats(b []byte) (x []float32, ok bool) {
	n := len(b) / 4
	if n == 0 {
		return nil, true
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if !littleEndian || uintptr(p)%unsafe.Alignof(float32(0)) != 0 {
		return nil, false
	}
	return unsafe.Slice((*float32)(p), n), true
}

// Bytes is the inverse of Floats: it returns the memory of x as little-endian bytes if the processor has this byte
// order.
func Bytes(x []float32) (b []byte, ok bool) {
	if len(x) == 0 {
		return nil, true
	}
	if !littleEndian {
		return nil, false
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x)), true
}
