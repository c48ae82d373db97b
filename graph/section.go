package graph

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"
)

// A section file is a list of named arrays: header, table, payloads (docs/reference/file-format.md draws it). Every byte of it follows
// from its kind and its sections, so that what is read and written again is the same file.
const (
	magic       = "\x89HEDDLE\n"
	version     = 1
	headerSize  = 64
	entrySize   = 24 // of a table entry, without shape and name
	align       = 64 // of payloads: a cache line, and any vector register
	maxSections = 1 << 20
	maxTable    = 1 << 28
	maxKind     = 24
	maxName     = 255
	maxRank     = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

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
	Shape []int // 1 to 8 extents, row by row; their product is the number of elements
	data  []byte
	from  func(io.Writer) error // nil: data
	sum   *uint32               // of what from writes, where it is known before
}

// Stream returns a section whose bytes write puts out when the file is written, so that they need not be in memory at
// once. Only WriteSections takes it. Writing another number of bytes than the shape says is an error.
func Stream(name string, t Type, shape []int, write func(io.Writer) error) Section {
	return Section{Name: name, Type: t, Shape: shape, from: write}
}

// Bytes returns the length of the payload.
func (s Section) Bytes() int64 {
	if s.from == nil {
		return int64(len(s.data))
	}
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
		return 0, fmt.Errorf("section %q: %d bytes came, want %d", s.Name, c.n, s.Bytes())
	}
	if s.sum != nil && *s.sum != c.sum {
		return 0, fmt.Errorf("section %q has checksum %08x, want %08x", s.Name, c.sum, *s.sum)
	}
	return c.sum, nil
}

// counter counts and sums what is written through it.
type counter struct {
	w   io.Writer
	n   int64
	sum uint32
}

func (c *counter) Write(b []byte) (int, error) {
	c.n, c.sum = c.n+int64(len(b)), crc32.Update(c.sum, castagnoli, b)
	return c.w.Write(b)
}

// Array returns the section that holds data, which it shares. Without a shape it is one-dimensional. It panics where
// the shape does not have len(data) elements.
func Array[T Element](name string, data []T, shape ...int) Section {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	if n, ok := product(shape); !ok || n != int64(len(data)) {
		panic(fmt.Sprintf("graph: section %q of shape %v has %d elements", name, shape, len(data)))
	}
	return Section{Name: name, Type: typeOf[T](), Shape: shape, data: bytesOf(data)}
}

// product returns the number of elements of a shape, or false where it is no shape or needs too many bytes.
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

func goodName(s string, longest int) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/"
	return len(s) > 0 && len(s) <= longest && strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(letters, r) }) < 0
}

func padTo(n int64, to int64) int64 { return (n + to - 1) / to * to }

// head returns the header and the table of a file, up to the first payload, and where each payload begins. sum holds
// the payloads' checksums.
func head(kind string, sections []Section, sum []uint32) (b []byte, offset []int64, err error) {
	if !goodName(kind, maxKind) {
		return nil, nil, fmt.Errorf("kind %q, want 1 to %d of a-z A-Z 0-9 . _ - /", kind, maxKind)
	}
	if len(sections) > maxSections {
		return nil, nil, fmt.Errorf("%d sections, want at most %d", len(sections), maxSections)
	}
	seen := make(map[string]bool, len(sections))
	table := int64(0)
	for _, s := range sections {
		if !goodName(s.Name, maxName) {
			return nil, nil, fmt.Errorf("section %q: a name has 1 to %d of a-z A-Z 0-9 . _ - /", s.Name, maxName)
		}
		if seen[s.Name] {
			return nil, nil, fmt.Errorf("section %q occurs twice", s.Name)
		}
		seen[s.Name] = true
		table += padTo(entrySize+8*int64(len(s.Shape))+int64(len(s.Name)), 8)
	}
	if table > maxTable {
		return nil, nil, fmt.Errorf("table of %d bytes, want at most %d", table, maxTable)
	}
	b = make([]byte, headerSize, padTo(headerSize+table, align))
	end := int64(cap(b))
	le := binary.LittleEndian
	for i, s := range sections {
		at := padTo(end, align)
		end = at + s.Bytes()
		offset = append(offset, at)
		b = le.AppendUint32(b, sum[i])
		b = append(b, byte(s.Type), byte(len(s.Shape)))
		b = le.AppendUint16(b, uint16(len(s.Name)))
		b = le.AppendUint64(b, uint64(at))
		b = le.AppendUint64(b, uint64(s.Bytes()))
		for _, d := range s.Shape {
			b = le.AppendUint64(b, uint64(d))
		}
		b = append(b, s.Name...)
		b = b[:padTo(int64(len(b)), 8)]
	}
	copy(b, magic)
	le.PutUint32(b[8:], version)
	le.PutUint32(b[12:], uint32(len(sections)))
	le.PutUint64(b[16:], uint64(end))
	le.PutUint64(b[24:], uint64(table))
	copy(b[32:56], kind)
	le.PutUint32(b[56:], crc32.Checksum(b[headerSize:], castagnoli))
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b[:cap(b)], offset, nil
}

// EncodeSections writes the section file of the given kind (1 to 24 characters, as in names) to w.
func EncodeSections(w io.Writer, kind string, sections []Section) error {
	sum := make([]uint32, len(sections))
	for i, s := range sections {
		switch {
		case s.from == nil:
			sum[i] = crc32.Checksum(s.data, castagnoli)
		case s.sum != nil:
			sum[i] = *s.sum
		default:
			return fmt.Errorf("graph: section %q: its checksum is not known before it is written", s.Name)
		}
	}
	b, offset, err := layout(kind, sections, sum)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	_, err = payloads(w, sections, offset, int64(len(b)))
	return err
}

// layout is head on a machine that can write the files.
func layout(kind string, sections []Section, sum []uint32) (b []byte, offset []int64, err error) {
	if !littleEndian() {
		return nil, nil, fmt.Errorf("graph: section files need a little-endian machine")
	}
	if b, offset, err = head(kind, sections, sum); err != nil {
		return nil, nil, fmt.Errorf("graph: %w", err)
	}
	return b, offset, nil
}

// payloads writes what follows the head, which ends at byte end, and returns the checksums.
func payloads(w io.Writer, sections []Section, offset []int64, end int64) (sum []uint32, err error) {
	var zero [align]byte
	sum = make([]uint32, len(sections))
	for i, s := range sections {
		if _, err := w.Write(zero[:offset[i]-end]); err != nil {
			return nil, err
		}
		if sum[i], err = s.payload(w); err != nil {
			return nil, err
		}
		end = offset[i] + s.Bytes()
	}
	return sum, nil
}
