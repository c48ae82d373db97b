package section

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// Ranges is a section file that is read piece by piece, for files larger than the memory. Several goroutines may read
// it at once.
type Ranges struct {
	table
	file *os.File
}

// OpenRanges opens the section file path of the given kind and checks its header and table. It does not check the
// payloads: Encode of Sections does.
func OpenRanges(path, kind string) (*Ranges, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &Ranges{table{path: path}, file}
	if err := f.open(kind); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return f, nil
}

func (f *Ranges) open(kind string) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errHeader
	}
	if err := f.read(f.file, kind, info.Size()); err != nil {
		return err
	}
	for i := range f.list {
		s, at, length := &f.list[i], f.at[i], f.list[i].Bytes()
		s.from = func(w io.Writer) error {
			_, err := io.Copy(w, io.NewSectionReader(f.file, at, length))
			return err
		}
	}
	return nil
}

// Close closes the file.
func (f *Ranges) Close() error { return f.file.Close() }

// Elements returns a reader of n elements of a section, from element `at` on.
func (f *Ranges) Elements(name string, at, n int64) (*io.SectionReader, error) {
	k, ok := f.index[name]
	if !ok {
		return nil, f.Errorf(name, "missing")
	}
	size := f.list[k].Type.size()
	if at < 0 || n < 0 || at > math.MaxInt64/size-n || (at+n)*size > f.list[k].Bytes() {
		return nil, f.Errorf(name, "elements %d to %d of %d", at, at+n, f.list[k].Bytes()/size)
	}
	return io.NewSectionReader(f.file, f.at[k]+at*size, n*size), nil
}

// ReadRange fills dst with the elements of a section, from element `at` on.
func ReadRange[T Element](f *Ranges, name string, at int64, dst []T) error {
	if k, ok := f.index[name]; !ok || f.list[k].Type != typeOf[T]() {
		return f.Errorf(name, "missing, or not %v", typeOf[T]())
	}
	r, err := f.Elements(name, at, int64(len(dst)))
	if err != nil {
		return err
	}
	if err := ReadArray(r, dst); err != nil {
		return f.Errorf(name, "from element %d on: %w", at, err)
	}
	return nil
}

// ReadArray fills dst with numbers in the format of section files.
func ReadArray[T Element](r io.Reader, dst []T) error {
	_, err := io.ReadFull(r, bytesOf(dst))
	return err
}

// WriteArray writes numbers in the format of section files.
func WriteArray[T Element](w io.Writer, src []T) error {
	_, err := w.Write(bytesOf(src))
	return err
}

// WritePointers writes the pointers of rows with these numbers of elements: 0, then the end of each row.
func WritePointers(w io.Writer, elements []int32) error {
	b, end := bufio.NewWriterSize(w, 1<<16), []int64{0}
	err := WriteArray(b, end)
	for k := 0; k < len(elements) && err == nil; k++ {
		end[0] += int64(elements[k])
		err = WriteArray(b, end)
	}
	return errors.Join(err, b.Flush())
}

// Size returns the bytes of an element of T.
func Size[T Element]() int64 { return typeOf[T]().size() }
