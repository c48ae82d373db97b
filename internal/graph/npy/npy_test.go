package npy

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

func member(version byte, header string, values ...byte) []byte {
	b := append([]byte("\x93NUMPY"), version, 0)
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	return append(append(b, header...), values...)
}

func TestNpyFaults(t *testing.T) {
	const good = "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }\n"
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "truncated"},
		{"magic", []byte("\x93NUMPX\x01\x00\x00\x00"), "magic"},
		{"version", member(3, good, 1, 0, 0, 0), "format version must be 1.0 or 2.0 (got 3.0)"},
		{"header cut", member(1, good)[:30], "truncated"},
		{"giant header", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"),
			"header must have at most 4096 bytes (got 4294967295)"},
		{"header text", member(1, "{'descr': '<i4'}"), "is not {'descr'"},
		{"big-endian", member(1, strings.Replace(good, "<", ">", 1), 1, 0, 0, 0),
			"texts of a fixed length, in this machine's byte order (got >i4)"},
		{"objects", member(1, strings.Replace(good, "<i4", "|O", 1), 1, 0, 0, 0),
			"(got |O): convert it by astype, texts of objects by astype(str)"},
		{"Fortran", member(1, strings.NewReplacer("False", "True", "(1,)", "(1, 1, 1)").Replace(good), 1, 0, 0, 0),
			"in Fortran order must have at most 2 dimensions (got [1, 1, 1])"},
		{"too few values", member(1, good, 1, 0, 0), "must need at most the 0 values"},
		{"trailing bytes", member(1, good, 1, 0, 0, 0, 0), "must take the 5 bytes of the member (got 4)"},
		{"overflow", member(1, strings.Replace(good, "(1,)", "(2147483647, 2147483647, 2147483647)", 1)),
			"must need at most"},
		{"giant", member(1, strings.Replace(good, "(1,)", "(99999999999999999999,)", 1)),
			`extents of shape (99999999999999999999,) must be 0 to 2147483647 (got "99999999999999999999")`},
		{"blank length", member(1, strings.Replace(good, "(1,)", "(1,,1)", 1), 1, 0, 0, 0),
			`extents of shape (1,,1) must be 0 to 2147483647 (got "")`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := readValues[int32](bytes.NewReader(c.data), int64(len(c.data)), nil)
			graphtest.Refused(t, err, c.want)
		})
	}
	// A member that has fewer bytes than its directory entry states.
	data := member(1, strings.Replace(good, "(1,)", "(2,)", 1), 1, 0, 0, 0)
	_, _, err := readValues[int32](bytes.NewReader(data), int64(len(data)+4), nil)
	graphtest.Refused(t, err, "truncated")
}

// TestNpyTypes reads every dtype, as every type that can represent it.
func TestNpyTypes(t *testing.T) {
	head := func(descr, shape string) string {
		return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }"
	}
	f8 := func(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) }
	check := func(got, want any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v (%v), want %v", got, err, want)
		}
	}
	one := func(b []byte) *bytes.Reader { return bytes.NewReader(b) }
	data := member(2, head("<i8", "(2,)"), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0, 0, 0)
	narrow, _, err := readValues[int32](one(data), int64(len(data)), nil)
	check(narrow, []int32{-1, 2}, err)
	data = member(1, head("<i4", "()"), 7, 0, 0, 0)
	wide, shape, err := readValues[int64](one(data), int64(len(data)), nil)
	check(wide, []int64{7}, err)
	check(shape, []int{}, nil)
	data = member(1, head("|u1", "(1, 2)"), 0, 255)
	bytewise, shape, err := readValues[float32](one(data), int64(len(data)), nil)
	check(bytewise, []float32{0, 255}, err)
	check(shape, []int{1, 2}, nil)
	data = member(1, head("<f8", "(1,)"), f8(0.5)...)
	half, _, err := readValues[float32](one(data), int64(len(data)), nil)
	check(half, []float32{0.5}, err)
	data = member(1, head("<f8", "(1,)"), f8(0.1)...)
	half, _, err = readValues[float32](one(data), int64(len(data)), nil)
	check(half, []float32{0.1}, err)
	data = member(1, head("<f8", "(1,)"), f8(1e300)...)
	_, _, err = readValues[float32](one(data), int64(len(data)), nil)
	graphtest.Refused(t, err, "entry 0 is 1e+300, which does not fit a float32")
	data = member(1, head("<u4", "(1,)"), 0, 0, 0, 0x80)
	_, _, err = readValues[int32](one(data), int64(len(data)), nil)
	graphtest.Refused(t, err, "entry 0 is 2147483648, which does not fit a int32")
	data = member(1, head("|i1", "(2,)"), 0xff, 2)
	narrow, _, err = readValues[int32](one(data), int64(len(data)), nil)
	check(narrow, []int32{-1, 2}, err)
	data = member(1, head("|O", "(1,)"), 0)
	_, _, err = readValues[int32](one(data), int64(len(data)), nil)
	graphtest.Refused(t, err, "texts of a fixed length",
		"(got |O): convert it by astype, texts of objects by astype(str)")
	data = member(1, head("|b1", "(2,)"), 1, 2)
	_, _, err = readValues[uint8](one(data), int64(len(data)), nil)
	graphtest.Refused(t, err, "entry 1 must be 0 or 1 (got 2)")
}

func FuzzNpy(f *testing.F) {
	for _, d := range []string{"<i4", "<i8", "<f4", "<f8", "|b1", "|u1"} {
		header := "{'descr': '" + d + "', 'fortran_order': False, 'shape': (1, 1), }"
		f.Add(member(1, header, make([]byte, itemSize[d])...))
		f.Add(member(2, header, 1, 2, 3))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		refuzz[int32](t, data)
		refuzz[int64](t, data)
		refuzz[uint8](t, data)
		refuzz[float32](t, data)
	})
}

// refuzz checks that what was read is written so that it reads the same.
func refuzz[T uint8 | int32 | int64 | float32](t *testing.T, data []byte) {
	values, shape, err := readValues[T](bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		return
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if err := Write(z, "v", shape, values); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := New("v.npz", bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Read[T](a, "v", shape...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(again, values, func(x, y T) bool { return x == y || x != x && y != y }) {
		t.Fatalf("%v was read again as %v", values, again)
	}
}

// TestFortranOrder: a matrix that is stored column by column, as numpy.asfortranarray gives it, is read as rows.
func TestFortranOrder(t *testing.T) {
	data := member(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", 1, 4, 2, 5, 3, 6)
	got, shape, err := readValues[int32](bytes.NewReader(data), int64(len(data)), nil)
	if err != nil || !slices.Equal(got, []int32{1, 2, 3, 4, 5, 6}) || !slices.Equal(shape, []int{2, 3}) {
		t.Errorf("%v %v %v", got, shape, err)
	}
}

// TestTexts: texts are written as NumPy writes them, in UTF-32, filled up with zeros.
func TestTexts(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if err := Write(z, "ids", []int{2}, []string{"a", "ü😀"}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.Open("ids.npy")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err != nil || !bytes.Contains(text, []byte("{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }")) {
		t.Fatalf("%q, %v", text, err)
	}
	a, err := New("t.npz", bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := Texts(a, "ids", 2); err != nil || !slices.Equal(got, []string{"a", "ü😀"}) {
		t.Errorf("%q, %v", got, err)
	}
	data := member(1, "{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }", 'a', 'b', 'c', 'd', 0, 0)
	if got, _, err := readTexts(bytes.NewReader(data), int64(len(data)), nil); err != nil ||
		!slices.Equal(got, []string{"abc", "d"}) {
		t.Errorf("%q, %v", got, err)
	}
	want := []rune{'a', 0, 'ü', '😀'}
	for k, c := range want {
		if got := binary.LittleEndian.Uint32(text[len(text)-16+4*k:]); got != uint32(c) {
			t.Errorf("character %d is %x, must be %x", k, got, c)
		}
	}
}
