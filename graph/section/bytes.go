package section

import "unsafe"

// Only this file reinterprets arrays as bytes and bytes as arrays: section files store numbers exactly as a
// little-endian machine does, so a mapped file needs no copy.

// Element is the type of a section's elements.
type Element interface {
	~uint8 | ~int32 | ~int64 | ~float32
}

// littleEndian reports whether this machine stores numbers as the files do. Every target of Heddle does.
func littleEndian() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}

// typeOf returns the section type of T.
func typeOf[T Element]() Type {
	switch x := T(1); {
	case unsafe.Sizeof(x) == 1:
		return U8
	case unsafe.Sizeof(x) == 8:
		return I64
	case x/2 != 0:
		return F32
	}
	return I32
}

// bytesOf returns the memory of s.
func bytesOf[T Element](s []T) []byte {
	var x T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(x)))
}

// arrayOf returns b, whose length is a multiple of T's size and whose start is aligned to 8, as an
// array.
func arrayOf[T Element](b []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(x)))
}

// aligned returns b, or a copy of it that starts at a multiple of 8.
func aligned(b []byte) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 == 0 {
		return b
	}
	c := bytesOf(make([]int64, (len(b)+7)/8))[:len(b)]
	copy(c, b)
	return c
}
