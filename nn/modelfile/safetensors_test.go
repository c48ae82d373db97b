package modelfile

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// sameBits reports whether x and y hold the same values, NaNs too.
func sameBits(x, y []float32) bool {
	return slices.EqualFunc(x, y, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
}

func sameArchive(a, b archive) bool {
	return maps.Equal(a.meta, b.meta) && slices.EqualFunc(a.tensors, b.tensors, func(x, y tensor) bool {
		return x.name == y.name && slices.Equal(x.shape, y.shape) && sameBits(x.data, y.data)
	})
}

// TestReadsPython reads what the format's own library wrote; testdata/golden.py makes it.
func TestReadsPython(t *testing.T) {
	b, err := os.ReadFile("testdata/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	a, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	want := archive{
		meta: map[string]string{"spec": `{"task":"single"}`, "größe": "1 < 2 & 3"},
		tensors: []tensor{
			{"empty", []int{0, 4}, nil},
			{"f32", []int{2, 3}, []float32{1.5, -2, 0.25, 3e-39, 1e30, float32(math.Copysign(0, -1))}},
			{"scalar", nil, []float32{7}},
			{"bf16", []int{3, 1}, []float32{1, -3.140625, math.Float32frombits(1 << 16)}},
			{"f16", []int{5}, []float32{1, -0.5, 0x1p-24, 65504, float32(math.Inf(1))}},
		},
	}
	if !sameArchive(a, want) {
		t.Errorf("read %+v\nwant %+v", a, want)
	}
}

func TestArchiveRoundTrip(t *testing.T) {
	a := archive{
		meta: map[string]string{"b": "<&>", "a": "ä\n\"", "": ""},
		tensors: []tensor{
			{"z", []int{2, 2}, []float32{1, 2, 3, float32(math.NaN())}},
			{"a\"b", []int{0}, nil},
			{"a", nil, []float32{9}},
		},
	}
	b, err := a.encode()
	if err != nil {
		t.Fatal(err)
	}
	if n := binary.LittleEndian.Uint64(b); n%8 != 0 {
		t.Errorf("header of %d bytes is not padded", n)
	}
	got, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(a.tensors, func(x, y tensor) int { return strings.Compare(x.name, y.name) })
	if !sameArchive(got, a) {
		t.Errorf("read %+v\nwant %+v", got, a)
	}
	again, err := got.encode()
	if err != nil || !bytes.Equal(again, b) {
		t.Errorf("encoded again to other bytes (%v)", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, a := range map[string]archive{
		"shape":         {tensors: []tensor{{"x", []int{2}, []float32{1}}}},
		"twice":         {tensors: []tensor{{"x", nil, []float32{1}}, {"x", nil, []float32{1}}}},
		"reserved":      {tensors: []tensor{{metadataKey, nil, []float32{1}}}},
		"not UTF-8":     {tensors: []tensor{{"\xff", nil, []float32{1}}}},
		"meta no UTF-8": {meta: map[string]string{"a": "\xff"}},
	} {
		if _, err := a.encode(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// file puts a header before n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func TestDecodeRefuses(t *testing.T) {
	one := `"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`
	if _, err := decode(file("{"+one+"}  ", 4)); err != nil {
		t.Fatalf("the file that the others break: %v", err)
	}
	for want, b := range map[string][]byte{
		"must be a model file":    []byte("1234567"),
		"got another, or part":    {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'},
		"starts with {":           file(" {}", 0),
		"in UTF-8":                file("{\"\xff\":1}", 0),
		"JSON object":             file("{"+one+",}", 4),
		"comes twice":             file("{"+one+","+one+"}", 4),
		"x comes twice":           file(`{"__metadata__":{"x":"1","x":"2"}}`, 0),
		"shape comes twice":       file(`{"a":{"shape":[1],"shape":[1],"dtype":"F32","data_offsets":[0,4]}}`, 4),
		"__metadata__ comes":      file(`{"__metadata__":{},"__metadata__":{}}`, 0),
		"must be a string":        file(`{"__metadata__":{"x":1}}`, 0),
		"(got \"I64\")":           file(`{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}`, 8),
		"unknown key":             file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}`, 4),
		"must have dtype, shape":  file(`{"a":{"dtype":"F32","shape":[1]}}`, 4),
		"got 2 more bytes":        file("{"+one+"}", 6),
		"end within 3":            file("{"+one+"}", 3),
		"must begin at 0":         file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
		"must begin at 4":         file("{"+one+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, 6),
		"shape [2] has 4":         file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4),
		"F16 and shape [2] has 5": file(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,5]}}`, 5),
		"has 0 bytes": file(
			`{"a":{"dtype":"F32","shape":[281474976710655,281474976710655],"data_offsets":[0,0]}}`, 0),
		"-1 in an array":  file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4),
		"1e0 in an array": file(`{"a":{"dtype":"F32","shape":[1e0],"data_offsets":[0,4]}}`, 4),
		"281474976710656 in an": file(`{"a":{"dtype":"F32","shape":[281474976710656],"data_offsets":[0,4]}}`,
			4),
		"at most 16": file(
			`{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}`, 4),
		"2 offsets (got 3)": file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}}`, 4),
		"where { should be": file(`{"a":[]}`, 0),
		"where [ should be": file(`{"a":{"shape":1}}`, 0),
		"(got \"\")":        file(`{"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}}`, 4),
		"(got [4, 0))": file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]},`+one[:2]+"b"+
			one[2:]+`}`, 4),
		"header: must be a JSON object": file("{}x", 0),
		"2 bytes after the object":      file("{} \n", 0),
	} {
		if _, err := decode(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error, got %v", want, err)
		}
	}
}

func TestHalfToFloat(t *testing.T) {
	for h, want := range map[uint16]float64{
		0: 0, 1: 0x1p-24, 0x03ff: 1023 * 0x1p-24, 0x0400: 0x1p-14, 0x3c00: 1, 0x3555: 0.333251953125, 0xc000: -2,
		0x7bff: 65504, 0xfc00: math.Inf(-1),
	} {
		if got := halfToFloat(h); float64(got) != want {
			t.Errorf("%#x is %v, want %v", h, got, want)
		}
	}
	if v := halfToFloat(0x7e01); v == v {
		t.Errorf("NaN became %v", v)
	}
	if !math.Signbit(float64(halfToFloat(0x8000))) {
		t.Error("−0 lost its sign")
	}
}

// What decodes encodes to a file that decodes to the same, and encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	golden, err := os.ReadFile("testdata/golden.safetensors")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))
	f.Add(file(`{"__metadata__":{"x":"y"}}  `, 0))
	f.Add(
		file(
			`{"a":{"dtype":"BF16","shape":[0,9],"data_offsets":[0,0]},"b":{"dtype":"F16","shape":[],"data_offsets":[0,2]}}`, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decode(b)
		if err != nil {
			return
		}
		out, err := a.encode()
		if err != nil {
			t.Fatalf("decoded, but does not encode: %v", err)
		}
		again, err := decode(out)
		if err != nil {
			t.Fatalf("encoded, but does not decode: %v", err)
		}
		slices.SortFunc(a.tensors, func(x, y tensor) int { return strings.Compare(x.name, y.name) })
		if !sameArchive(again, a) {
			t.Fatalf("%+v became %+v", a, again)
		}
		twice, err := again.encode()
		if err != nil || !bytes.Equal(twice, out) {
			t.Fatalf("not canonical (%v)", err)
		}
	})
}
