package section

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

const (
	magic      = "\x89HEDDLE\n"
	version    = 1
	headerSize = 64
	entrySize  = 24 // bytes of a table entry, without shape and name
	align      = 64 // alignment of payloads: a cache line, and any vector register
	maxTable   = 1 << 28
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// padTo rounds n up to a multiple of to.
func padTo(n int64, to int64) int64 { return (n + to - 1) / to * to }

// encodeHead returns header and table of a file, up to the first payload, and the byte at which each payload
// begins. sum has the payloads' checksums.
func encodeHead(kind string, sections []Section, sum []uint32) (b []byte, offset []int64, err error) {
	if !littleEndian() {
		return nil, nil, errors.New("section files need a little-endian machine")
	}
	if !goodName(kind, maxKind) {
		return nil, nil, fmt.Errorf("kind must be 1 to %d of a-z A-Z 0-9 . _ - / (got %q)", maxKind, kind)
	}
	if len(sections) > maxSections {
		return nil, nil, fmt.Errorf("a file must have at most %d sections (got %d)", maxSections, len(sections))
	}
	seen := make(map[string]bool, len(sections))
	table := int64(0)
	for _, s := range sections {
		if !goodName(s.Name, maxName) {
			return nil, nil, fmt.Errorf("a section's name must be 1 to %d of a-z A-Z 0-9 . _ - / (got %q)", maxName,
				s.Name)
		}
		if seen[s.Name] {
			return nil, nil, fmt.Errorf("section %q occurs twice", s.Name)
		}
		seen[s.Name] = true
		table += padTo(entrySize+8*int64(len(s.Shape))+int64(len(s.Name)), 8)
	}
	if table > maxTable {
		return nil, nil, fmt.Errorf("table must have at most %d bytes (got %d)", maxTable, table)
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

var (
	errHeader = fmt.Errorf("not a section file: it must have a header of %d bytes that begins with %q", headerSize,
		magic)
	errHead  = errors.New("header or table is not as it is written for these sections")
	errTable = errors.New("table of sections does not match its checksum")
)

// table is the content of a file's header and table.
type table struct {
	path  string
	head  []byte // the bytes before the first payload
	list  []Section
	at    []int64 // start of each payload
	index map[string]int
}

// read reads the head of a file of size bytes and checks it: first bounds, before anything is allocated, then
// checksums. Then it checks that the head is the one that encodeHead writes for these sections, so that it contains
// nothing else.
func (t *table) read(r io.ReaderAt, kind string, size int64) error {
	t.head = make([]byte, headerSize)
	if _, err := r.ReadAt(t.head, 0); err != nil {
		return errHeader
	}
	count, length, err := header(t.head, kind, size)
	if err != nil {
		return err
	}
	t.head = append(t.head, make([]byte, padTo(headerSize+length, align)-headerSize)...)
	if _, err := io.ReadFull(io.NewSectionReader(r, headerSize, size), t.head[headerSize:]); err != nil {
		return fmt.Errorf("the file ends before its first section: %w", err)
	}
	entries, end := t.head[headerSize:headerSize+length], int64(len(t.head))
	if crc32.Checksum(entries, castagnoli) != binary.LittleEndian.Uint32(t.head[56:]) {
		return errTable
	}
	t.index = make(map[string]int)
	var sums []uint32
	for i := range count {
		at := padTo(end, align)
		s, entryLength, bytes, err := entry(entries, at, size)
		if err != nil {
			return fmt.Errorf("section %d of %d: %w", i, count, err)
		}
		sum := binary.LittleEndian.Uint32(entries)
		s.sum, t.index[s.Name] = &sum, i
		t.list, t.at, sums = append(t.list, s), append(t.at, at), append(sums, sum)
		entries, end = entries[entryLength:], at+bytes
	}
	want, _, err := encodeHead(kind, t.list, sums)
	if err != nil {
		return err
	}
	if !bytes.Equal(t.head, want) {
		return errHead
	}
	return nil
}

// header checks the header b of a file of that kind and size. It returns the number of sections and the length of the
// table.
func header(b []byte, kind string, size int64) (count int, table int64, err error) {
	le := binary.LittleEndian
	if string(b[:8]) != magic {
		return 0, 0, errHeader
	}
	if v := le.Uint32(b[8:]); v != version {
		return 0, 0, fmt.Errorf("format version must be %d (got %d)", version, v)
	}
	if crc32.Checksum(b[:60], castagnoli) != le.Uint32(b[60:]) {
		return 0, 0, errors.New("header does not match its checksum")
	}
	if want := le.Uint64(b[16:]); want != uint64(size) {
		return 0, 0, fmt.Errorf("the file must have %d bytes (got %d): it is truncated, or something follows", want,
			size)
	}
	if got := string(bytes.TrimRight(b[32:56], "\x00")); got != kind {
		return 0, 0, fmt.Errorf("kind of the file must be %q (got %q)", kind, got)
	}
	n, length := le.Uint32(b[12:]), le.Uint64(b[24:])
	if length > maxTable || length > uint64(size-headerSize) || uint64(n)*entrySize > length {
		return 0, 0, fmt.Errorf("table of %d bytes for %d sections in a file of %d bytes", length, n, size)
	}
	return int(n), int64(length), nil
}

// entry reads the first table entry, whose payload must begin at byte `at` of a file of that size. It returns the
// lengths of the entry and the payload.
func entry(entries []byte, at, file int64) (s Section, size, length int64, err error) {
	le := binary.LittleEndian
	fault := func(format string, args ...any) (Section, int64, int64, error) {
		return Section{}, 0, 0, fmt.Errorf(format, args...)
	}
	if len(entries) < entrySize {
		return fault("the table ends before it")
	}
	rank, name := int64(entries[5]), int64(le.Uint16(entries[6:]))
	if size = padTo(entrySize+8*rank+name, 8); size > int64(len(entries)) {
		return fault("the table ends inside it")
	}
	s = Section{Name: string(entries[entrySize+8*rank:][:name]), Type: Type(entries[4])}
	if !goodName(s.Name, maxName) {
		return fault("bad name %q", s.Name)
	}
	if s.Type < U8 || s.Type > F32 {
		return fault("elements of %q must be u8, i32, i64 or f32 (got %v)", s.Name, s.Type)
	}
	for k := range rank {
		d := le.Uint64(entries[entrySize+8*k:])
		if d > math.MaxInt {
			return fault("%q has extent %d", s.Name, d)
		}
		s.Shape = append(s.Shape, int(d))
	}
	n, ok := product(s.Shape)
	offset, bytes := le.Uint64(entries[8:]), le.Uint64(entries[16:])
	if !ok || uint64(n*s.Type.size()) != bytes {
		return fault("%q has %d bytes for shape %v of %v", s.Name, bytes, s.Shape, s.Type)
	}
	if offset != uint64(at) || at > file || bytes > uint64(file-at) {
		return fault("%q must lie at byte %d and inside the file of %d bytes (got byte %d, %d bytes long)", s.Name, at,
			file, offset, bytes)
	}
	return s, size, int64(bytes), nil
}

// Sections returns the sections in the order of the file, for writing them again. Sections of Arrays share its memory;
// sections of Ranges are checked against their checksums while they are written.
func (t *table) Sections() []Section { return slices.Clone(t.list) }

// Has reports whether the file has a section of that name.
func (t *table) Has(name string) bool {
	_, ok := t.index[name]
	return ok
}

// Shape returns the shape of a section, which must have that type; nil if there is none of that name.
func (t *table) Shape(name string, of Type) ([]int, error) {
	k, ok := t.index[name]
	if !ok {
		return nil, nil
	}
	if t.list[k].Type != of {
		return nil, t.Errorf(name, "elements must be %v (got %v)", of, t.list[k].Type)
	}
	return t.list[k].Shape, nil
}

// Errorf returns an error that begins with the file and the section.
func (t *table) Errorf(section, format string, args ...any) error {
	return fmt.Errorf("%s: section %q: %w", t.path, section, fmt.Errorf(format, args...))
}
