package section

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"slices"

	"github.com/edsrzf/mmap-go"
)

// Arrays is a section file in memory, all of it checked.
type Arrays struct {
	table
	mapped mmap.MMap // nil = not a mapped file
}

// Open maps the section file path of the given kind into memory and checks all of it (Decode). Close unmaps it: no
// array from the file may be used after that. The arrays are read only; a write to one faults.
func Open(path, kind string) (*Arrays, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() < headerSize || info.Size() > math.MaxInt {
		return nil, fmt.Errorf("%s: %w", path, errHeader)
	}
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	s, err := Decode(path, kind, m)
	if err != nil {
		return nil, errors.Join(err, m.Unmap())
	}
	s.mapped = m
	return s, nil
}

// Decode reads a section file of the given kind from b, which it shares; path is for its errors. It checks every byte:
// Encode writes the same file from its sections.
func Decode(path, kind string, b []byte) (*Arrays, error) {
	f := &Arrays{table: table{path: path}}
	if err := f.decode(kind, aligned(b)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *Arrays) decode(kind string, b []byte) error {
	if err := f.read(bytes.NewReader(b), kind, int64(len(b))); err != nil {
		return err
	}
	end := int64(len(f.head))
	for i := range f.list {
		s, at := &f.list[i], f.at[i]
		if slices.ContainsFunc(b[end:at], func(c byte) bool { return c != 0 }) {
			return fmt.Errorf("section %q: the padding before it is not zero", s.Name)
		}
		end = at + s.Bytes()
		s.data = b[at:end:end]
		if err := s.check(crc32.Checksum(s.data, castagnoli)); err != nil {
			return err
		}
	}
	return nil
}

// Close unmaps the file. It may be called more than once.
func (f *Arrays) Close() error {
	m := f.mapped
	*f = Arrays{table: table{path: f.path}}
	if m == nil {
		return nil
	}
	return m.Unmap()
}

// Forget gives the memory of a mapped file back to the system, which reads the file again when it is used again.
func (f *Arrays) Forget() {
	if f.mapped != nil {
		forget(f.mapped)
	}
}

// Digest returns the SHA-256 of header and table, which have the names, shapes and checksums of everything in the file.
func (f *Arrays) Digest() [32]byte { return sha256.Sum256(f.head) }

// Values returns the elements of a section, which share the file's memory: read only, and only until Close. The section
// must have T's type and the given shape; −1 is any extent. Without a shape it must be one-dimensional.
func Values[T Element](f *Arrays, name string, shape ...int) ([]T, error) {
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
		return nil, f.Errorf(name, "must be %v of shape %v, where -1 is any (got %v of shape %v)", typeOf[T](), shape,
			s.Type, s.Shape)
	}
	return arrayOf[T](s.data), nil
}

// Optional is Values, or nil if the file has no such section.
func Optional[T Element](f *Arrays, name string, shape ...int) ([]T, error) {
	if !f.Has(name) {
		return nil, nil
	}
	return Values[T](f, name, shape...)
}

// Strings returns copies of the n strings of NAME (-1 = any number), nil if the file has none.
func (f *Arrays) Strings(name string, n int) ([]string, error) {
	if !f.Has(name + "/ptr") {
		return nil, nil
	}
	ptr, err := Values[int64](f, name+"/ptr")
	if err != nil {
		return nil, err
	}
	text, err := Values[uint8](f, name+"/text")
	if err != nil {
		return nil, err
	}
	if n < 0 {
		n = max(len(ptr)-1, 0)
	}
	if len(ptr) != n+1 || ptr[0] != 0 || ptr[n] != int64(len(text)) {
		return nil, f.Errorf(name+"/ptr", "must be %d pointers from 0 to %d (got %d)", n+1, len(text), len(ptr))
	}
	for k := range n {
		if ptr[k+1] < ptr[k] || ptr[k+1] > int64(len(text)) {
			return nil, f.Errorf(name+"/ptr", "string %d ends at %d, before its start %d or past the %d bytes", k,
				ptr[k+1], ptr[k], len(text))
		}
	}
	all, list := string(text), make([]string, n)
	for k := range list {
		list[k] = all[ptr[k]:ptr[k+1]]
	}
	return list, nil
}
