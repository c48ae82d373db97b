package modelfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The safetensors format (https://huggingface.co/docs/safetensors): eight bytes, the length of the header
// (little-endian); the header, a JSON object {name: {"dtype", "shape", "data_offsets": [begin,
// end)}, "__metadata__": {string: string}}, padded with spaces; the tensors' values, which fill the
// rest without holes or overlaps.

const metadataKey = "__metadata__"

// tensor is a named float32 array of any rank, row by row.
type tensor struct {
	name  string
	shape []int
	data  []float32
}

// archive is the content of a safetensors file.
type archive struct {
	meta    map[string]string
	tensors []tensor
}

// encode returns the one file of a: metadata first, then the tensors by name, F32 only, the header
// padded to a multiple of eight.
func (a archive) encode() ([]byte, error) {
	sorted := slices.Clone(a.tensors)
	slices.SortFunc(sorted, func(x, y tensor) int { return cmp.Compare(x.name, y.name) })
	var head bytes.Buffer
	head.WriteByte('{')
	if len(a.meta) > 0 {
		for k, v := range a.meta {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("metadata %q is not UTF-8", k)
			}
		}
		b, err := json.Marshal(a.meta)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&head, "%q:%s", metadataKey, b)
	}
	end := 0
	for i, t := range sorted {
		if n, ok := elements(t.shape); !ok || n != len(t.data) {
			return nil, fmt.Errorf("tensor %q has %d values for shape %v", t.name, len(t.data), t.shape)
		}
		if t.name == metadataKey || !utf8.ValidString(t.name) || i > 0 && sorted[i-1].name == t.name {
			return nil, fmt.Errorf("tensor name %q is reserved, not UTF-8 or used twice", t.name)
		}
		name, err := json.Marshal(t.name)
		if err != nil {
			return nil, err
		}
		shape, err := json.Marshal(append([]int{}, t.shape...))
		if err != nil {
			return nil, err
		}
		if head.Len() > 1 {
			head.WriteByte(',')
		}
		fmt.Fprintf(&head, `%s:{"dtype":"F32","shape":%s,"data_offsets":[%d,%d]}`, name, shape, end, end+4*len(t.data))
		end += 4 * len(t.data)
	}
	head.WriteByte('}')
	for head.Len()%8 != 0 {
		head.WriteByte(' ')
	}
	out := make([]byte, 0, 8+head.Len()+end)
	out = binary.LittleEndian.AppendUint64(out, uint64(head.Len()))
	out = append(out, head.Bytes()...)
	for _, t := range sorted {
		for _, x := range t.data {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
		}
	}
	return out, nil
}

var errNoModel = errors.New("must be a model file (.safetensors) of heddle train (got another, or part of one)")

// decode reads a file; the tensors come in the order of their data. It refuses repeated names,
// holes, overlaps, types other than F32, F16 and BF16, and everything else that would let two
// readers see different tensors.
func decode(file []byte) (archive, error) {
	if len(file) < 8 {
		return archive{}, errNoModel
	}
	n := binary.LittleEndian.Uint64(file)
	if n > uint64(len(file)-8) {
		return archive{}, errNoModel
	}
	data := file[8+n:]
	meta, entries, err := parseHeader(file[8 : 8+n])
	if err != nil {
		return archive{}, fmt.Errorf("safetensors header: %w", err)
	}
	slices.SortStableFunc(entries, func(x, y tensorEntry) int {
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end))
	})
	a := archive{meta: meta}
	at := int64(0)
	for _, e := range entries {
		width, ok := map[string]int64{"F32": 4, "F16": 2, "BF16": 2}[e.dtype]
		if !ok {
			return archive{}, fmt.Errorf("the type of tensor %q must be F32, F16 or BF16 (got %q)",
				e.name, e.dtype)
		}
		count, ok := elements(e.shape)
		switch {
		case e.begin != at || e.end < e.begin || e.end > int64(len(data)):
			return archive{}, fmt.Errorf("tensor %q must begin at %d and end within %d bytes (got [%d, %d))",
				e.name, at, len(data), e.begin, e.end)
		case !ok || int64(count) != (e.end-e.begin)/width || (e.end-e.begin)%width != 0:
			return archive{}, fmt.Errorf("tensor %q of %s and shape %v has %d bytes",
				e.name, e.dtype, e.shape, e.end-e.begin)
		}
		a.tensors = append(a.tensors, tensor{e.name, e.shape, widen(e.dtype, data[e.begin:e.end])})
		at = e.end
	}
	if at != int64(len(data)) {
		return archive{}, fmt.Errorf("the file must end with its last tensor, at byte %d "+
			"(got %d more bytes)", at, int64(len(data))-at)
	}
	return a, nil
}

// elements returns the product of shape, and whether it is one that memory could hold.
func elements(shape []int) (int, bool) {
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// widen returns the values of a tensor of type F32, F16 or BF16 as float32.
func widen(dtype string, b []byte) []float32 {
	if dtype == "F32" {
		out := make([]float32, len(b)/4)
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		return out
	}
	out := make([]float32, len(b)/2)
	for i := range out {
		h := binary.LittleEndian.Uint16(b[2*i:])
		if dtype == "BF16" {
			out[i] = math.Float32frombits(uint32(h) << 16)
		} else {
			out[i] = halfToFloat(h)
		}
	}
	return out
}

// halfToFloat widens an IEEE 754 binary16.
func halfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0: // zero or subnormal: frac·2⁻²⁴
		return math.Float32frombits(math.Float32bits(float32(frac)*0x1p-24) | sign)
	case 31: // infinity or NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// tensorEntry is one tensor's line of the header.
type tensorEntry struct {
	name, dtype string
	shape       []int
	begin, end  int64
}

// parseHeader reads the header token by token: encoding/json alone would let the last of two equal
// keys win.
func parseHeader(head []byte) (meta map[string]string, entries []tensorEntry, err error) {
	if len(head) == 0 || head[0] != '{' || !utf8.Valid(head) || !json.Valid(head) {
		return nil, nil, errors.New("must be a JSON object in UTF-8 that starts with {")
	}
	d := json.NewDecoder(bytes.NewReader(head))
	d.UseNumber()
	err = eachKey(d, func(name string) error {
		if name == metadataKey {
			meta = map[string]string{}
			return eachKey(d, func(key string) error {
				v, err := d.Token()
				s, ok := v.(string)
				if err == nil && !ok {
					err = fmt.Errorf("metadata %q must be a string", key)
				}
				meta[key] = s
				return err
			})
		}
		e, err := parseEntry(d, name)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if rest := bytes.TrimRight(head[d.InputOffset():], " "); len(rest) > 0 {
		return nil, nil, fmt.Errorf("%d bytes after the object", len(rest))
	}
	return meta, entries, nil
}

func parseEntry(d *json.Decoder, name string) (tensorEntry, error) {
	e := tensorEntry{name: name}
	seen := 0
	err := eachKey(d, func(key string) error {
		seen++
		switch key {
		case "dtype":
			v, err := d.Token()
			e.dtype, _ = v.(string)
			return err
		case "shape":
			dims, err := wholeNumbers(d)
			for _, v := range dims {
				e.shape = append(e.shape, int(v))
			}
			return err
		case "data_offsets":
			at, err := wholeNumbers(d)
			if err == nil && len(at) != 2 {
				err = fmt.Errorf("a tensor must have 2 offsets (got %d)", len(at))
			}
			if err == nil {
				e.begin, e.end = at[0], at[1]
			}
			return err
		}
		return fmt.Errorf("unknown key %q", key)
	})
	if err == nil && seen != 3 {
		err = errors.New("a tensor must have dtype, shape and data_offsets")
	}
	if err != nil {
		return e, fmt.Errorf("tensor %q: %w", name, err)
	}
	return e, nil
}

// eachKey reads an object and calls f at each value; f must read it. A key that comes twice is an
// error.
func eachKey(d *json.Decoder, f func(key string) error) error {
	if err := delim(d, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return err
		}
		key, ok := tok.(string)
		if !ok || seen[key] {
			return fmt.Errorf("key %v comes twice", tok)
		}
		seen[key] = true
		if err := f(key); err != nil {
			return err
		}
	}
	return delim(d, '}')
}

// wholeNumbers reads an array of at most 16 integers in [0, 2⁴⁸).
func wholeNumbers(d *json.Decoder) ([]int64, error) {
	if err := delim(d, '['); err != nil {
		return nil, err
	}
	var out []int64
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return nil, err
		}
		num, _ := tok.(json.Number)
		v, err := strconv.ParseUint(num.String(), 10, 48)
		if err != nil || len(out) == 16 {
			return nil, fmt.Errorf("%v in an array of at most 16 whole numbers below 2⁴⁸", tok)
		}
		out = append(out, int64(v))
	}
	return out, delim(d, ']')
}

func delim(d *json.Decoder, want json.Delim) error {
	tok, err := d.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err == nil && tok != want {
		err = fmt.Errorf("%v where %v should be", tok, want)
	}
	return err
}
