package npy

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Header describes an .npy array: NumPy's format, versions 1.0 and 2.0
// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
type Header struct {
	Descr string // NumPy's name of the dtype, as <f4
	Shape []int  // [] for a scalar
	count int    // product of shape

	byColumn bool // the first index changes fastest (Fortran order)
}

// itemSize has the bytes per value of every dtype of numbers that is read.
var itemSize = map[string]int{"|b1": 1, "|i1": 1, "|u1": 1, "<i2": 2, "<u2": 2, "<i4": 4, "<u4": 4, "<i8": 8, "<u8": 8,
	"<f4": 4, "<f8": 8}

// textType is the dtype of texts of a fixed length, in UTF-32 (<U) or in bytes (|S).
var textType = regexp.MustCompile(`^(<U|\|S)([1-9][0-9]{0,3})$`)

// Texts reports whether the array has texts.
func (h Header) Texts() bool { return textType.MatchString(h.Descr) }

// maxHeader bounds a header; what NumPy writes for these dtypes takes 128 bytes.
const maxHeader = 1 << 12

var headerText = regexp.MustCompile(
	`^\{'descr': '([^']*)', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\),? ?\}\s*$`)

// readHeader reads the header of an array whose member has size bytes. The values take exactly
// what is left of them: a shape that asks for more or fewer is refused before anything is allocated
// for it.
func readHeader(r io.Reader, size int64) (Header, error) {
	var h Header
	var b [12]byte
	if _, err := io.ReadFull(r, b[:10]); err != nil {
		return h, fmt.Errorf("header: %w", Ended(err))
	}
	if string(b[:6]) != "\x93NUMPY" {
		return h, errors.New("not an .npy array: magic string missing")
	}
	start, length := int64(10), int64(binary.LittleEndian.Uint16(b[8:]))
	switch version := [2]byte(b[6:8]); version {
	case [2]byte{1, 0}:
	case [2]byte{2, 0}:
		if _, err := io.ReadFull(r, b[10:12]); err != nil {
			return h, fmt.Errorf("header: %w", Ended(err))
		}
		start, length = 12, int64(binary.LittleEndian.Uint32(b[8:]))
	default:
		return h, fmt.Errorf("format version must be 1.0 or 2.0 (got %d.%d)", version[0], version[1])
	}
	if length > maxHeader {
		return h, fmt.Errorf("header must have at most %d bytes (got %d)", maxHeader, length)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, fmt.Errorf("header: %w", Ended(err))
	}
	m := headerText.FindSubmatch(text)
	if m == nil {
		return h, fmt.Errorf("header %.80q is not {'descr': '…', 'fortran_order': False, 'shape': (…), }", text)
	}
	h.Descr = string(m[1])
	item, ok := itemSize[h.Descr]
	if text := textType.FindStringSubmatch(h.Descr); text != nil {
		item, _ = strconv.Atoi(text[2])
		if ok = true; text[1] == "<U" {
			item *= 4
		}
	}
	if !ok {
		return h, fmt.Errorf("dtype must be bool, int8 to int64, uint8 to uint64, float32, float64 or texts of a "+
			"fixed length, "+
			"in this machine's byte order (got %s): convert it by astype, texts of objects by astype(str)", h.Descr)
	}
	h.byColumn = string(m[2]) == "True"
	room := (size - start - length) / int64(item)
	var err error
	if h.Shape, h.count, err = parseShape(string(m[3]), room); err != nil {
		return h, err
	}
	if h.byColumn && len(h.Shape) > 2 {
		return h, fmt.Errorf("array in Fortran order must have at most 2 dimensions (got %s)", ShapeText(h.Shape))
	}
	if want := int64(h.count) * int64(item); want != size-start-length {
		return h, fmt.Errorf("shape %s of %s must take the %d bytes of the member (got %d)", ShapeText(h.Shape),
			h.Descr, size-start-length, want)
	}
	return h, nil
}

func parseShape(text string, room int64) (shape []int, count int, err error) {
	shape = []int{}
	list := strings.TrimSuffix(strings.TrimSpace(text), ",")
	for field := range strings.SplitSeq(list, ",") {
		if list == "" {
			break // a scalar: no lengths
		}
		n, err := strconv.ParseInt(strings.TrimSpace(field), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt32 {
			return nil, 0, fmt.Errorf("extents of shape (%s) must be 0 to %d (got %.20q)", text, math.MaxInt32, field)
		}
		shape = append(shape, int(n))
	}
	if slices.Contains(shape, 0) {
		return shape, 0, nil
	}
	product := int64(1)
	for _, n := range shape {
		if product > room/int64(n) {
			return nil, 0, fmt.Errorf("shape (%s) must need at most the %d values of the member (got more)", text, room)
		}
		product *= int64(n)
	}
	return shape, int(product), nil
}

// ShapeText writes a shape as people read it.
func ShapeText(shape []int) string {
	parts := make([]string, len(shape))
	for k, n := range shape {
		parts[k] = strconv.Itoa(n)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// readValues reads an array as values of T: integers as integers or floats, floats as floats. Each integer must fit; a
// float64 is rounded to the nearest float32. Nothing is unpacked or allocated for an array of another type, or one that
// check (nil = none) refuses.
func readValues[T uint8 | int32 | int64 | float32](r io.Reader, size int64,
	check func(Header) error) ([]T, []int, error) {
	h, err := readHeader(r, size)
	if err == nil && check != nil {
		err = check(h)
	}
	if err != nil {
		return nil, nil, err
	}
	_, floats := any([]T(nil)).([]float32)
	if h.Texts() || h.Descr[:2] == "<f" && !floats {
		want := "whole numbers"
		if floats {
			want = "numbers"
		}
		return nil, nil, fmt.Errorf("dtype must be of %s (got %s)", want, h.Descr)
	}
	out := make([]T, h.count)
	switch h.Descr {
	case "|u1", "|b1":
		err = decode[uint8](h, out, r)
	case "|i1":
		err = decode[int8](h, out, r)
	case "<i2":
		err = decode[int16](h, out, r)
	case "<u2":
		err = decode[uint16](h, out, r)
	case "<u4":
		err = decode[uint32](h, out, r)
	case "<u8":
		err = decode[uint64](h, out, r)
	case "<i4":
		err = decode[int32](h, out, r)
	case "<i8":
		err = decode[int64](h, out, r)
	case "<f4":
		err = decode[float32](h, out, r)
	default:
		err = decode[float64](h, out, r)
	}
	if err != nil {
		return nil, nil, err
	}
	if h.Descr == "|b1" {
		for k, v := range out {
			if v != 0 && v != 1 {
				return nil, nil, fmt.Errorf("entry %d must be 0 or 1 (got %v)", k, v)
			}
		}
	}
	if h.byColumn && len(h.Shape) == 2 {
		out = byRow(out, h.Shape[0], h.Shape[1])
	}
	return out, h.Shape, nil
}

// byRow returns a matrix that is stored column by column as rows.
func byRow[T any](stored []T, rows, cols int) []T {
	out := make([]T, len(stored))
	for i := range rows {
		for j := range cols {
			out[i*cols+j] = stored[j*rows+i]
		}
	}
	return out
}

// place names the k-th value that is stored.
func (h Header) place(k int) string {
	switch {
	case len(h.Shape) != 2:
		return fmt.Sprintf("entry %d", k)
	case h.byColumn:
		return fmt.Sprintf("row %d, column %d", k%h.Shape[0], k/h.Shape[0])
	}
	return fmt.Sprintf("row %d, column %d", k/h.Shape[1], k%h.Shape[1])
}

// number is a type of values in a file.
type number interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// decode fills out with values of type S and refuses an integer that T does not have, and a float beyond T's range.
func decode[S number, T uint8 | int32 | int64 | float32](h Header, out []T, r io.Reader) error {
	buf := make([]S, 1<<12)
	_, rounds := any(S(0)).(float64)
	for done := 0; done < len(out); {
		n := min(len(out)-done, len(buf))
		if err := binary.Read(r, binary.LittleEndian, buf[:n]); err != nil {
			return fmt.Errorf("values from entry %d on: %w", done, Ended(err))
		}
		for k, v := range buf[:n] {
			t := T(v)
			same := S(t) == v && (t < 0) == (v < 0) || v != v // the caller, which knows its row, judges a NaN
			if rounds && t-t == 0 {
				same = true
			}
			if !same {
				return fmt.Errorf("%s is %v, which does not fit a %T: convert the array to that type", h.place(done+k),
					v, t)
			}
			out[done+k] = t
		}
		done += n
	}
	// One read past the end: a member with trailing bytes is refused, and the archive compares its
	// checksum here.
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return errors.New("bytes after the last value")
	case err != io.EOF:
		return fmt.Errorf("after the last value: %w", err)
	}
	return nil
}

// readTexts reads an array of texts. What fills a text up to the length of all are zeros.
func readTexts(r io.Reader, size int64, check func(Header) error) ([]string, []int, error) {
	h, err := readHeader(r, size)
	if err == nil && !h.Texts() {
		err = fmt.Errorf("dtype must be of texts (got %s)", h.Descr)
	}
	if err == nil && check != nil {
		err = check(h)
	}
	if err != nil {
		return nil, nil, err
	}
	item, _ := strconv.Atoi(h.Descr[2:])
	out := make([]string, h.count)
	if h.Descr[0] == '|' {
		all := make([]uint8, h.count*item)
		err = decode[uint8](h, all, r)
		for k := range out {
			out[k] = strings.TrimRight(string(all[k*item:(k+1)*item]), "\x00")
		}
		return out, h.Shape, err
	}
	all := make([]int32, h.count*item)
	err = decode[int32](h, all, r)
	for k := range out {
		out[k] = strings.TrimRight(string([]rune(all[k*item:(k+1)*item])), "\x00")
	}
	return out, h.Shape, err
}

// utf32 returns texts as NumPy has them, each filled up with zeros to the longest one, and their dtype.
func utf32(list []string) (descr string, cells []int32) {
	longest := 1
	for _, text := range list {
		longest = max(longest, utf8.RuneCountInString(text))
	}
	for _, text := range list {
		next := len(cells) + longest
		for _, c := range text {
			cells = append(cells, c)
		}
		cells = append(cells, make([]int32, next-len(cells))...)
	}
	return fmt.Sprintf("<U%d", longest), cells
}

// Create adds one .npy member and returns the writer of its values: version 1.0, the header padded so that the values
// start at a multiple of 64.
func Create(z *zip.Writer, name, descr string, shape ...int) (io.Writer, error) {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Deflate})
	if err != nil {
		return nil, err
	}
	dims := ShapeText(shape)
	dims = dims[1 : len(dims)-1]
	if len(shape) == 1 {
		dims += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	text = fmt.Sprintf("%-*s\n", (10+len(text)+1+63)/64*64-11, text)
	head := append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), byte(len(text)>>8))
	_, err = w.Write(append(head, text...))
	return w, err
}

// Write adds one .npy member.
func Write(z *zip.Writer, name string, shape []int, values any) error {
	var descr string
	switch list := values.(type) {
	case []int32:
		descr = "<i4"
	case []int64:
		descr = "<i8"
	case []float32:
		descr = "<f4"
	case []float64:
		descr = "<f8"
	case []bool:
		descr = "|b1"
	case []uint8:
		descr = "|u1"
	case []string:
		descr, values = utf32(list)
	default:
		return fmt.Errorf("array %s: no dtype for %T", name, values)
	}
	w, err := Create(z, name, descr, shape...)
	if err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, values)
}

// Ended turns the end of a file into an error with that reason.
func Ended(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("truncated: the file ends too early")
	}
	return err
}
