// Package npy reads and writes archives of NumPy arrays (.npz).
package npy

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/mat"
)

// Archive is an open .npz file: a zip archive of .npy arrays.
type Archive struct {
	path   string
	part   string // " of NAME" in errors, if it is a part of the file
	size   int64
	sealed bool                 // it has a digest, which Open compares
	member map[string]*zip.File // by array name
	file   *os.File             // nil if the bytes are in memory
}

// Open opens the .npz file at path; close it after use.
func Open(path string) (*Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	a, err := New(path, f, info.Size())
	if err == nil && a.sealed {
		if err = intact(f, info.Size()); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	a.file = f
	return a, nil
}

// New opens the .npz file whose bytes r has.
func New(path string, r io.ReaderAt, size int64) (*Archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%s: truncated or not a zip archive of arrays: %w", path, err)
	}
	a := &Archive{path: path, size: size, sealed: z.Comment != "", member: map[string]*zip.File{}}
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if a.member[name] != nil {
			return nil, a.Fault(name, errors.New("stored twice"))
		}
		a.member[name] = f
	}
	return a, nil
}

// Unsealed is the comment of an archive that Seal completes. NumPy writes none.
const Unsealed = `"digest":"` + noDigest + `"`

const noDigest = "0000000000000000000000000000000000000000000000000000000000000000"

// digest returns the SHA-256 of an archive with zeros instead of its digest, which is the last but the quote.
func digest(r io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, io.NewSectionReader(r, 0, size-int64(len(noDigest))-1))
	h.Write([]byte(noDigest + `"`))
	return hex.EncodeToString(h.Sum(nil)), err
}

// Seal writes the digest into an archive with the comment Unsealed.
func Seal(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sum, err := digest(f, info.Size())
	if err == nil {
		_, err = f.WriteAt([]byte(sum), info.Size()-int64(len(sum))-1)
	}
	return err
}

// intact refuses an archive with a comment unless that is its digest.
func intact(r io.ReaderAt, size int64) error {
	comment := make([]byte, len(Unsealed))
	if _, err := r.ReadAt(comment, max(0, size-int64(len(comment)))); err != nil && err != io.EOF {
		return err
	}
	sum, err := digest(r, size)
	if want := strings.Replace(Unsealed, noDigest, sum, 1); err == nil && string(comment) != want {
		err = fmt.Errorf("the file is damaged or changed: it must end with %s (got %q)", want, comment)
	}
	return err
}

// Close closes the file.
func (a *Archive) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// Has reports whether there is an array of that name.
func (a *Archive) Has(name string) bool { return a.member[name] != nil }

// Part returns the arrays under a path such as "nodes/0/", by their names behind it. name is what errors call the part.
// The part reads a's file, which stays a's to close.
func (a *Archive) Part(under, name string) *Archive {
	p := &Archive{path: a.path, part: " of " + name, size: a.size, member: map[string]*zip.File{}}
	for full, f := range a.member {
		if own, ok := strings.CutPrefix(full, under); ok {
			p.member[own] = f
		}
	}
	return p
}

// Fault names the file and the array that err is about.
func (a *Archive) Fault(name string, err error) error {
	return fmt.Errorf("%s: array %s%s: %w", a.path, name, a.part, err)
}

// maxDeflate is how many bytes one byte of a deflate stream can become at most (RFC 1951: 258 bytes
// for 2 bits).
const maxDeflate = 1032

// open returns the bytes of array name and how many there are.
func (a *Archive) open(name string) (io.ReadCloser, int64, error) {
	f := a.member[name]
	if f == nil {
		return nil, 0, a.Fault(name, errors.New("missing"))
	}
	declared, stored := f.UncompressedSize64, f.CompressedSize64
	if stored > uint64(a.size) || declared > stored*maxDeflate+64 {
		return nil, 0,
			a.Fault(name, fmt.Errorf("declares %d bytes packed into %d, in a file of %d", declared, stored, a.size))
	}
	r, err := f.Open()
	if err != nil {
		return nil, 0, a.Fault(name, err)
	}
	return r, int64(declared), nil
}

// Header returns the header of array name.
func (a *Archive) Header(name string) (Header, error) {
	r, size, err := a.open(name)
	if err != nil {
		return Header{}, err
	}
	defer r.Close()
	h, err := readHeader(r, size)
	if err != nil {
		return h, a.Fault(name, err)
	}
	return h, nil
}

// Read returns array name and its shape. want has the length of each dimension, −1 for any; one more dimension of
// length 1 is passed over.
func Read[T uint8 | int32 | int64 | float32](a *Archive, name string, want ...int) ([]T, []int, error) {
	return read(a, name, readValues[T], want)
}

// Matrix reads array name of finite numbers, with `rows` rows (-1 = any) and any columns.
func Matrix(a *Archive, name string, rows int) (mat.Dense, error) {
	x, shape, err := Read[float32](a, name, rows, -1)
	if err != nil {
		return mat.Dense{}, err
	}
	for k, v := range x {
		if v-v != 0 { // infinite, or no number
			return mat.Dense{}, a.Fault(name, fmt.Errorf("row %d, column %d must be a finite number (got %v)",
				k/shape[1], k%shape[1], v))
		}
	}
	return mat.View(shape[0], shape[1], x), nil
}

// Texts is Read for an array of texts.
func Texts(a *Archive, name string, want ...int) ([]string, []int, error) {
	return read(a, name, readTexts, want)
}

// read reads an array by values, which must refuse a header of another shape before it reads what is behind it.
func read[T any](a *Archive, name string, values func(io.Reader, int64, func(Header) error) ([]T, []int, error),
	want []int) ([]T, []int, error) {
	r, size, err := a.open(name)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	out, shape, err := values(r, size, func(h Header) error {
		if h.is(want) {
			return nil
		}
		return h.not(want)
	})
	if err != nil {
		return nil, nil, a.Fault(name, err)
	}
	return out, shape[:len(want)], nil
}

// Check refuses array name, if there is one, unless it has the shape: want has the length of each dimension, −1 for
// any. It reads no more than the header.
func (a *Archive) Check(name string, want ...int) error {
	if !a.Has(name) {
		return nil
	}
	h, err := a.Header(name)
	if err == nil && !h.is(want) {
		err = a.Fault(name, h.not(want))
	}
	return err
}

// is reports whether the array has the shape, or one more dimension of length 1.
func (h Header) is(want []int) bool {
	shape := h.Shape
	if n := len(want); len(shape) == n+1 && shape[n] == 1 {
		shape = shape[:n]
	}
	return slices.EqualFunc(shape, want, func(s, w int) bool { return w < 0 || s == w })
}

// not is the error of another shape.
func (h Header) not(want []int) error {
	hint := ""
	if len(h.Shape) == 2 && len(want) == 2 && want[1] < 0 && h.Shape[1] == want[0] {
		hint = ": transpose it"
	}
	return fmt.Errorf("shape must be %s (got %s)%s", strings.ReplaceAll(ShapeText(want), "-1", "any"),
		ShapeText(h.Shape), hint)
}
