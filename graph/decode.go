package graph

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
)

// Sections is a section file that has been read and checked.
type Sections struct {
	path   string
	list   []Section
	index  map[string]int
	digest [32]byte
	unmap  func() error
}

// DecodeSections reads a section file of the given kind from b, which it shares; path is for its errors. It checks
// every byte: bounds before anything is allocated, then checksums, then that the file is the one that EncodeSections
// makes of its sections.
func DecodeSections(path, kind string, b []byte) (*Sections, error) {
	f := &Sections{path: path}
	if err := f.decode(kind, b); err != nil {
		return nil, fmt.Errorf("graph: %s: %w", path, err)
	}
	return f, nil
}

func (f *Sections) decode(kind string, b []byte) error {
	if !littleEndian() {
		return fmt.Errorf("section files need a little-endian machine")
	}
	if len(b) < headerSize {
		return errHeader
	}
	count, table, err := header(b, kind, int64(len(b)))
	if err != nil {
		return err
	}
	if crc32.Checksum(b[headerSize:headerSize+table], castagnoli) != binary.LittleEndian.Uint32(b[56:]) {
		return errTable
	}
	b = aligned(b)
	f.index = make(map[string]int)
	if int64(len(b)) < padTo(headerSize+table, align) {
		return fmt.Errorf("the file ends before its first section")
	}
	entries, end := b[headerSize:headerSize+table], padTo(headerSize+table, align)
	var sum []uint32
	for i := range count {
		at := padTo(end, align)
		s, size, length, err := entry(entries, at, int64(len(b)))
		if err != nil {
			return fmt.Errorf("section %d of %d: %w", i, count, err)
		}
		s.data = b[at : at+length : at+length]
		if slices.ContainsFunc(b[end:at], func(c byte) bool { return c != 0 }) {
			return fmt.Errorf("section %q: the padding before it is not zero", s.Name)
		}
		sum = append(sum, crc32.Checksum(s.data, castagnoli))
		if want := binary.LittleEndian.Uint32(entries); want != sum[i] {
			return fmt.Errorf("section %q has checksum %08x, want %08x", s.Name, sum[i], want)
		}
		end = at + length
		entries = entries[size:]
		f.index[s.Name] = i
		f.list = append(f.list, s)
	}
	// What is left to check is that nothing else is in the file: it has to be what its sections encode to.
	want, _, err := head(kind, f.list, sum)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(b, want) {
		return errHead
	}
	f.digest = sha256.Sum256(want)
	return nil
}

var (
	errHeader = fmt.Errorf("not a section file: want a header of %d bytes that begins with %q", headerSize, magic)
	errHead   = errors.New("header or table is not as it is written for these sections")
	errTable  = errors.New("table of sections does not match its checksum")
)

// header checks the header b of a file of that kind and size, and returns the number of sections and the length of the
// table.
func header(b []byte, kind string, size int64) (count int, table int64, err error) {
	le := binary.LittleEndian
	if string(b[:8]) != magic {
		return 0, 0, errHeader
	}
	if v := le.Uint32(b[8:]); v != version {
		return 0, 0, fmt.Errorf("format version %d, want %d", v, version)
	}
	if crc32.Checksum(b[:60], castagnoli) != le.Uint32(b[60:]) {
		return 0, 0, fmt.Errorf("header does not match its checksum")
	}
	if want := le.Uint64(b[16:]); want != uint64(size) {
		return 0, 0, fmt.Errorf("%d bytes long, want %d: truncated, or something follows", size, want)
	}
	if got := string(bytes.TrimRight(b[32:56], "\x00")); got != kind {
		return 0, 0, fmt.Errorf("a file of kind %q, want %q", got, kind)
	}
	n, length := le.Uint32(b[12:]), le.Uint64(b[24:])
	if length > maxTable || length > uint64(size-headerSize) || uint64(n)*entrySize > length {
		return 0, 0, fmt.Errorf("table of %d bytes for %d sections in a file of %d bytes", length, n, size)
	}
	return int(n), int64(length), nil
}

// entry reads the first of the table's entries, whose payload has to begin at byte at of a file of that size, and
// returns how long the entry and the payload are.
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
		return fault("%q has element %v, want u8, i32, i64 or f32", s.Name, s.Type)
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
		return fault("%q lies at byte %d, %d bytes long, want it at %d and inside the file of %d", s.Name, offset, bytes, at, file)
	}
	return s, size, int64(bytes), nil
}

// Names returns the names of the sections in the order of the file.
func (f *Sections) Names() []string {
	names := make([]string, len(f.list))
	for i, s := range f.list {
		names[i] = s.Name
	}
	return names
}

// List returns the sections in the order of the file; they share its memory.
func (f *Sections) List() []Section { return slices.Clone(f.list) }

// Has reports whether the file has a section of that name.
func (f *Sections) Has(name string) bool {
	_, ok := f.index[name]
	return ok
}

// Digest returns the SHA-256 of header and table, which hold the names, shapes and checksums of everything in the file.
func (f *Sections) Digest() [32]byte { return f.digest }

// Errorf returns an error that begins with the file and the section at fault.
func (f *Sections) Errorf(section, format string, args ...any) error {
	return fmt.Errorf("graph: %s: section %q: %w", f.path, section, fmt.Errorf(format, args...))
}

// Values returns the elements of a section, which share the file's memory: read only, and only until Close. The
// section must have T's type and the given shape, where −1 stands for any extent; without a shape it must be
// one-dimensional.
func Values[T Element](f *Sections, name string, shape ...int) ([]T, error) {
	i, ok := f.index[name]
	if !ok {
		return nil, f.Errorf(name, "missing")
	}
	if len(shape) == 0 {
		shape = []int{-1}
	}
	s := f.list[i]
	same := len(shape) == len(s.Shape) && s.Type == typeOf[T]()
	for k := 0; same && k < len(shape); k++ {
		same = shape[k] < 0 || shape[k] == s.Shape[k]
	}
	if !same {
		return nil, f.Errorf(name, "%v of shape %v, want %v of shape %v (-1: any)", s.Type, s.Shape, typeOf[T](), shape)
	}
	return arrayOf[T](s.data), nil
}
