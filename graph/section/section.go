// Package section reads and writes section files: lists of named arrays after a header and a table
// (docs/reference/file-format.md). The kind and the sections determine every byte, so that a file that is read and
// written again is the same.
package section

import (
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"
)

const (
	maxSections = 1 << 20
	maxKind     = 24
	maxName     = 255
	maxRank     = 8
)

// Type is the type of a section's elements.
type Type uint8

// The types. Numbers are little-endian, floats IEEE 754.
const (
	U8 Type = 1 + iota
	I32
	I64
	F32
)

func (t Type) String() string {
	if t < U8 || t > F32 {
		return fmt.Sprintf("type %d", uint8(t))
	}
	return [...]string{"u8", "i32", "i64", "f32"}[t-1]
}

func (t Type) size() int64 { return [...]int64{0, 1, 4, 8, 4}[t] }

// Section is one named array of a file.
type Section struct {
	Name  string // 1 to 255 of the characters a-z A-Z 0-9 . _ - /
	Type  Type
	Shape []int  // 1 to 8 extents, row by row; their product is the number of elements
	data  []byte // the payload, unless from writes it
	from  func(io.Writer) error
	sum   *uint32 // the payload's checksum in the table, if known
}

// Stream returns a section whose bytes `write` writes when the file is written, so that they need not be in memory at
// once. Only Write accepts it. Writing more or fewer bytes than the shape needs is an error.
func Stream(name string, t Type, shape []int, write func(io.Writer) error) Section {
	return Section{Name: name, Type: t, Shape: shape, from: write}
}

// Bytes returns the length of the payload.
func (s Section) Bytes() int64 {
	n, _ := product(s.Shape)
	return n * s.Type.size()
}

// payload writes the section's bytes and returns their checksum.
func (s Section) payload(w io.Writer) (uint32, error) {
	if s.from == nil {
		_, err := w.Write(s.data)
		return crc32.Checksum(s.data, castagnoli), err
	}
	c := &counter{w: w}
	if err := s.from(c); err != nil {
		return 0, fmt.Errorf("section %q: %w", s.Name, err)
	}
	if c.n != s.Bytes() {
		return 0, fmt.Errorf("section %q must have %d bytes (got %d)", s.Name, s.Bytes(), c.n)
	}
	return c.sum, s.check(c.sum)
}

// check compares a payload's checksum with the one in the table, if that is known.
func (s Section) check(sum uint32) error {
	if s.sum != nil && *s.sum != sum {
		return fmt.Errorf("section %q must have checksum %08x (got %08x)", s.Name, *s.sum, sum)
	}
	return nil
}

// counter counts the bytes that are written through it and computes their checksum.
type counter struct {
	w   io.Writer
	n   int64
	sum uint32
}

func (c *counter) Write(b []byte) (int, error) {
	c.n, c.sum = c.n+int64(len(b)), crc32.Update(c.sum, castagnoli, b)
	return c.w.Write(b)
}

// Array returns a section of data, which it shares. Without a shape it is
// one-dimensional. It panics if the shape does not have len(data) elements.
func Array[T Element](name string, data []T, shape ...int) Section {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	if n, ok := product(shape); !ok || n != int64(len(data)) {
		panic(fmt.Sprintf("section: section %q of shape %v has %d elements", name, shape, len(data)))
	}
	return Section{Name: name, Type: typeOf[T](), Shape: shape, data: bytesOf(data)}
}

// Strings returns a list of strings as sections NAME/ptr and NAME/text; none if the list is nil. String k is bytes
// [ptr[k], ptr[k+1]) of text.
func Strings(name string, list []string) []Section {
	if list == nil {
		return nil
	}
	ptr := make([]int64, len(list)+1)
	for k, s := range list {
		ptr[k+1] = ptr[k] + int64(len(s))
	}
	return []Section{Array(name+"/ptr", ptr), Array(name+"/text", []byte(strings.Join(list, "")))}
}

// product returns the number of elements of a shape, or false if it is not a shape or needs too
// many bytes.
func product(shape []int) (int64, bool) {
	if len(shape) == 0 || len(shape) > maxRank {
		return 0, false
	}
	n, empty := int64(1), false
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		if d == 0 {
			empty = true
			continue
		}
		if n > math.MaxInt64/16/int64(d) {
			return 0, false
		}
		n *= int64(d)
	}
	if empty {
		return 0, true
	}
	return n, true
}

// goodName reports whether s has 1 to longest characters, all of them allowed in names.
func goodName(s string, longest int) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/"
	return len(s) > 0 && len(s) <= longest &&
		strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(letters, r) }) < 0
}
