package graph

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"slices"
)

// Ranges is a section file that is read piece by piece, for files larger than the memory. It may be read from several
// goroutines at once.
type Ranges struct {
	path string
	kind string
	file *os.File
	list []Section
	at   []int64 // where each payload begins
}

// OpenRanges opens the section file path of the given kind and checks its header and table. The payloads' checksums
// are checked by Check.
func OpenRanges(path, kind string) (*Ranges, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &Ranges{path: path, kind: kind, file: file}
	if err := f.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("graph: %s: %w", path, err), file.Close())
	}
	return f, nil
}

func (f *Ranges) open() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() < headerSize {
		return fmt.Errorf("not a section file: want a header of %d bytes", headerSize)
	}
	b := make([]byte, headerSize)
	if _, err := f.file.ReadAt(b, 0); err != nil {
		return err
	}
	count, table, err := header(b, f.kind, info.Size())
	if err != nil {
		return err
	}
	b = append(b, make([]byte, padTo(headerSize+table, align)-headerSize)...)
	if _, err := f.file.ReadAt(b[headerSize:], headerSize); err != nil {
		return fmt.Errorf("the file ends inside its table: %w", err)
	}
	entries, end, sums := b[headerSize:headerSize+table], int64(len(b)), []uint32(nil)
	if crc32.Checksum(entries, castagnoli) != binary.LittleEndian.Uint32(b[56:]) {
		return errTable
	}
	for i := range count {
		s, size, length, err := entry(entries, padTo(end, align), info.Size())
		if err != nil {
			return fmt.Errorf("section %d of %d: %w", i, count, err)
		}
		sum, at := binary.LittleEndian.Uint32(entries), padTo(end, align)
		s.sum = &sum
		s.from = func(w io.Writer) error {
			_, err := io.Copy(w, io.NewSectionReader(f.file, at, length))
			return err
		}
		f.list, f.at, sums = append(f.list, s), append(f.at, at), append(sums, sum)
		entries, end = entries[size:], at+length
	}
	want, _, err := head(f.kind, f.list, sums)
	if err != nil {
		return err
	}
	if !bytes.Equal(b, want) {
		return errHead
	}
	if end != info.Size() {
		return fmt.Errorf("%d bytes follow the last section", info.Size()-end)
	}
	return nil
}

// Close closes the file.
func (f *Ranges) Close() error { return f.file.Close() }

// Sections returns the sections in the order of the file, to be written again or, with EncodeSections, to be checked:
// that reads all of it and refuses what does not match its checksum.
func (f *Ranges) Sections() []Section { return slices.Clone(f.list) }

// Table writes what tells this file from any other: its sections' names, shapes and checksums.
func (f *Ranges) Table(w io.Writer) error {
	sums := make([]uint32, len(f.list))
	for k, s := range f.list {
		sums[k] = *s.sum
	}
	b, _, err := head(f.kind, f.list, sums)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// Shape returns the shape of a section of type t, nil where there is none of that name.
func (f *Ranges) Shape(name string, t Type) ([]int, error) {
	k := f.index(name)
	if k < 0 {
		return nil, nil
	}
	if f.list[k].Type != t {
		return nil, f.Errorf(name, "%v, want %v", f.list[k].Type, t)
	}
	return f.list[k].Shape, nil
}

// Errorf returns an error that begins with the file and the section at fault.
func (f *Ranges) Errorf(section, format string, args ...any) error {
	return fmt.Errorf("graph: %s: section %q: %w", f.path, section, fmt.Errorf(format, args...))
}

func (f *Ranges) index(name string) int {
	return slices.IndexFunc(f.list, func(s Section) bool { return s.Name == name })
}

// Elements returns a reader of n elements of a section from element at on.
func (f *Ranges) Elements(name string, at, n int64) (*io.SectionReader, error) {
	k := f.index(name)
	if k < 0 {
		return nil, f.Errorf(name, "missing")
	}
	size := f.list[k].Type.size()
	if at < 0 || n < 0 || at > math.MaxInt64/size-n || (at+n)*size > f.list[k].Bytes() {
		return nil, f.Errorf(name, "elements %d to %d of %d", at, at+n, f.list[k].Bytes()/size)
	}
	return io.NewSectionReader(f.file, f.at[k]+at*size, n*size), nil
}

// ReadRange fills dst with the elements of a section from element at on.
func ReadRange[T Element](f *Ranges, name string, at int64, dst []T) error {
	if k := f.index(name); k < 0 || f.list[k].Type != typeOf[T]() {
		return f.Errorf(name, "missing, or not %v", typeOf[T]())
	}
	r, err := f.Elements(name, at, int64(len(dst)))
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(r, bytesOf(dst)); err != nil {
		return f.Errorf(name, "from element %d on: %w", at, err)
	}
	return nil
}

// ReadArray fills dst with numbers as section files hold them.
func ReadArray[T Element](r io.Reader, dst []T) error {
	_, err := io.ReadFull(r, bytesOf(dst))
	return err
}

// WriteArray writes numbers as section files hold them.
func WriteArray[T Element](w io.Writer, src []T) error {
	_, err := w.Write(bytesOf(src))
	return err
}

// Size returns the bytes of an element of T.
func Size[T Element]() int64 { return typeOf[T]().size() }
