package graph

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
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
	le := binary.LittleEndian
	if len(b) < headerSize || string(b[:8]) != magic {
		return fmt.Errorf("not a section file: want a header of %d bytes that begins with %q", headerSize, magic)
	}
	if v := le.Uint32(b[8:]); v != version {
		return fmt.Errorf("format version %d, want %d", v, version)
	}
	if crc32.Checksum(b[:60], castagnoli) != le.Uint32(b[60:]) {
		return fmt.Errorf("header does not match its checksum")
	}
	if size := le.Uint64(b[16:]); size != uint64(len(b)) {
		return fmt.Errorf("%d bytes long, want %d: truncated, or something follows", len(b), size)
	}
	if got := string(bytes.TrimRight(b[32:56], "\x00")); got != kind {
		return fmt.Errorf("a file of kind %q, want %q", got, kind)
	}
	count, table := le.Uint32(b[12:]), le.Uint64(b[24:])
	if table > maxTable || table > uint64(len(b)-headerSize) || uint64(count)*entrySize > table {
		return fmt.Errorf("table of %d bytes for %d sections in a file of %d bytes", table, count, len(b))
	}
	if crc32.Checksum(b[headerSize:headerSize+table], castagnoli) != le.Uint32(b[56:]) {
		return fmt.Errorf("table of sections does not match its checksum")
	}
	b = aligned(b)
	f.index = make(map[string]int)
	if int64(len(b)) < padTo(headerSize+int64(table), align) {
		return fmt.Errorf("the file ends before its first section")
	}
	entries, end := b[headerSize:headerSize+table], padTo(headerSize+int64(table), align)
	var sum []uint32
	for i := range int(count) {
		s, size, err := entry(b, entries, padTo(end, align))
		if err != nil {
			return fmt.Errorf("section %d of %d: %w", i, count, err)
		}
		if slices.ContainsFunc(b[end:padTo(end, align)], func(c byte) bool { return c != 0 }) {
			return fmt.Errorf("section %q: the padding before it is not zero", s.Name)
		}
		sum = append(sum, crc32.Checksum(s.data, castagnoli))
		if want := le.Uint32(entries); want != sum[i] {
			return fmt.Errorf("section %q has checksum %08x, want %08x", s.Name, sum[i], want)
		}
		end = padTo(end, align) + int64(len(s.data))
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
		return fmt.Errorf("header or table is not as it is written for these sections")
	}
	f.digest = sha256.Sum256(want)
	return nil
}

// entry reads the first of the table's entries, whose payload has to begin at byte at of the file b, and returns how
// long the entry is.
func entry(b, entries []byte, at int64) (s Section, size int64, err error) {
	le := binary.LittleEndian
	if len(entries) < entrySize {
		return s, 0, fmt.Errorf("the table ends before it")
	}
	rank, name := int64(entries[5]), int64(le.Uint16(entries[6:]))
	if size = padTo(entrySize+8*rank+name, 8); size > int64(len(entries)) {
		return s, 0, fmt.Errorf("the table ends inside it")
	}
	s = Section{Name: string(entries[entrySize+8*rank:][:name]), Type: Type(entries[4])}
	if !goodName(s.Name, maxName) {
		return s, 0, fmt.Errorf("bad name %q", s.Name)
	}
	if s.Type < U8 || s.Type > F32 {
		return s, 0, fmt.Errorf("%q has element %v, want u8, i32, i64 or f32", s.Name, s.Type)
	}
	for k := range rank {
		d := le.Uint64(entries[entrySize+8*k:])
		if d > math.MaxInt {
			return s, 0, fmt.Errorf("%q has extent %d", s.Name, d)
		}
		s.Shape = append(s.Shape, int(d))
	}
	n, ok := product(s.Shape)
	offset, length := le.Uint64(entries[8:]), le.Uint64(entries[16:])
	if !ok || uint64(n*s.Type.size()) != length {
		return s, 0, fmt.Errorf("%q has %d bytes for shape %v of %v", s.Name, length, s.Shape, s.Type)
	}
	if offset != uint64(at) || at > int64(len(b)) || length > uint64(int64(len(b))-at) {
		return s, 0, fmt.Errorf("%q lies at byte %d, %d bytes long, want it at %d and inside the file of %d", s.Name, offset, length, at, len(b))
	}
	s.data = b[at : at+int64(length) : at+int64(length)]
	return s, size, nil
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
