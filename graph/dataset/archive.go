package dataset

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// archive is an open .npz file: a zip archive of .npy arrays.
type archive struct {
	path   string
	size   int64
	member map[string]*zip.File // by array name
	file   *os.File             // nil where the bytes lie in memory
}

// openArchive opens the .npz file at path; close it after use.
func openArchive(path string) (*archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("dataset: %w", err)
	}
	a, err := newArchive(path, f, info.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	a.file = f
	return a, nil
}

func newArchive(path string, r io.ReaderAt, size int64) (*archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("dataset: %s: truncated or not a zip archive of arrays: %w", path, err)
	}
	a := &archive{path: path, size: size, member: map[string]*zip.File{}}
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if a.member[name] != nil {
			return nil, a.fault(name, errors.New("stored twice"))
		}
		a.member[name] = f
	}
	return a, nil
}

func (a *archive) close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

func (a *archive) has(name string) bool { return a.member[name] != nil }

// fault names the file and the array that err is about.
func (a *archive) fault(name string, err error) error {
	return fmt.Errorf("dataset: %s: array %s: %w", a.path, name, err)
}

// maxDeflate is how many bytes one byte of a deflate stream can become at most (RFC 1951: 258 bytes
// for 2 bits).
const maxDeflate = 1032

// open returns the bytes of array name and how many there are.
func (a *archive) open(name string) (io.ReadCloser, int64, error) {
	f := a.member[name]
	if f == nil {
		return nil, 0, a.fault(name, errors.New("missing"))
	}
	declared, stored := f.UncompressedSize64, f.CompressedSize64
	if stored > uint64(a.size) || declared > stored*maxDeflate+64 {
		return nil, 0, a.fault(name, fmt.Errorf("declares %d bytes packed into %d, in a file of %d", declared, stored, a.size))
	}
	r, err := f.Open()
	if err != nil {
		return nil, 0, a.fault(name, err)
	}
	return r, int64(declared), nil
}

// header returns the header of array name.
func (a *archive) header(name string) (header, error) {
	r, size, err := a.open(name)
	if err != nil {
		return header{}, err
	}
	defer r.Close()
	h, err := readHeader(r, size)
	if err != nil {
		return h, a.fault(name, err)
	}
	return h, nil
}

// read returns array name and its shape. want holds the length of each dimension, −1 for any.
func read[T uint8 | int32 | int64 | float32](a *archive, name string, want ...int) ([]T, []int, error) {
	r, size, err := a.open(name)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	values, shape, err := readValues[T](r, size)
	if err != nil {
		return nil, nil, a.fault(name, err)
	}
	if !slices.EqualFunc(shape, want, func(s, w int) bool { return w < 0 || s == w }) {
		return nil, nil, a.fault(name, fmt.Errorf("shape must be %s (got %s)", strings.ReplaceAll(shapeText(want), "-1", "any"), shapeText(shape)))
	}
	return values, shape, nil
}
