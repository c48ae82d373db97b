package section

import (
	"bytes"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func encode(t interface{ Fatal(...any) }, kind string, list ...Section) []byte {
	var b bytes.Buffer
	if err := Encode(&b, kind, list); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A type of the caller's, as graph.Split is.
type mark uint8

func sample() []Section {
	return []Section{
		Array("adj/0/row_ptr", []int64{0, 2, 3}),
		Array("adj/0/col", []int32{0, 1, 1}),
		Array("x/dense", []float32{1, -2, 0.5, float32(math.Pi)}, 2, 2),
		Array("split", []mark{1, 3}),
		Array("empty", []float32{}, 0, 7),
		Array("name", []byte("small")),
	}
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	digest, err := Write(path, "shard", sample())
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, "shard")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Digest() != digest {
		t.Error("the digest read is not the digest written")
	}
	if x, err := Values[float32](f, "x/dense", 2, -1); err != nil ||
		!slices.Equal(x, []float32{1, -2, 0.5, float32(math.Pi)}) {
		t.Errorf("x/dense: %v, %v", x, err)
	}
	if s, err := Values[mark](f, "split", 2); err != nil || !slices.Equal(s, []mark{1, 3}) {
		t.Errorf("split: %v, %v", s, err)
	}
	if e, err := Values[float32](f, "empty", -1, 7); err != nil || len(e) != 0 {
		t.Errorf("empty: %v, %v", e, err)
	}
	if p, err := Values[int64](f, "adj/0/row_ptr"); err != nil || !slices.Equal(p, []int64{0, 2, 3}) {
		t.Errorf("row_ptr: %v, %v", p, err)
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"missing", second(Values[int32](f, "adj/1/col")), `section "adj/1/col": missing`},
		{"type", second(Values[int32](f, "adj/0/row_ptr")),
			"must be i32 of shape [-1], where -1 is any (got i64 of shape [3])"},
		{"rank", second(Values[float32](f, "x/dense")),
			"must be f32 of shape [-1], where -1 is any (got f32 of shape [2 2])"},
		{"extent", second(Values[float32](f, "x/dense", 3, -1)), "must be f32 of shape [3 -1]"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || !strings.Contains(c.err.Error(), path) {
			t.Errorf("%s: %v, want %q and the path", c.name, c.err, c.want)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if list, _ := os.ReadDir(filepath.Dir(path)); len(list) != 1 {
		t.Errorf("temporary files are left: %v", list)
	}
}

func second[T any](_ T, err error) error { return err }

// The frozen file holds the format still: a change of it is a new version.
func TestFrozenFile(t *testing.T) {
	got := hex.EncodeToString(encode(t, "demo", Array("a/b", []int32{1, -1}), Array("f", []float32{1.5}, 1, 1)))
	want, err := os.ReadFile("testdata/sections.hex")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(strings.Fields(string(want)), "") != got {
		t.Errorf("got\n%s", got)
	}
}

func TestDecodeRefusesFlippedBytes(t *testing.T) {
	good := encode(t, "shard", sample()...)
	for i := range good {
		for _, mask := range []byte{1, 0x80, 0xff} {
			bad := bytes.Clone(good)
			bad[i] ^= mask
			if _, err := Decode("f", "shard", bad); err == nil || !strings.HasPrefix(err.Error(), "f: ") {
				t.Fatalf("byte %d of %d flipped by %#x: %v", i, len(good), mask, err)
			}
		}
	}
	for n := range good {
		if _, err := Decode("f", "shard", good[:n]); err == nil {
			t.Fatalf("accepted %d of %d bytes", n, len(good))
		}
	}
	if _, err := Decode("f", "shard", append(bytes.Clone(good), 0)); err == nil {
		t.Fatal("accepted a byte too many")
	}
	if _, err := Decode("f", "checkpoint", good); err == nil ||
		!strings.Contains(err.Error(), `kind of the file must be "checkpoint" (got "shard")`) {
		t.Fatal(err)
	}
	payload := bytes.Index(good, bytesOf([]float32{1, -2}))
	good[payload]++
	if _, err := Decode("f", "shard", good); err == nil ||
		!strings.Contains(err.Error(), `section "x/dense" must have checksum`) {
		t.Fatal(err)
	}
}

// What a careless or hostile writer makes, with checksums that are right.
func TestDecodeRefusesForgedTables(t *testing.T) {
	for _, c := range []struct {
		name string
		at   int // in the table
		put  []byte
		want string
	}{
		{"offset", 8, []byte{0xc0, 1}, "must lie at byte"},
		{"length", 16, []byte{9}, "9 bytes for shape [2] of i32"},
		{"huge shape", 24, []byte{0, 0, 0, 0, 0, 0, 0, 0x7f}, "for shape"},
		{"shape past int", 24, []byte{0, 0, 0, 0, 0, 0, 0, 0xff}, "has extent"},
		{"type", 4, []byte{9}, "type 9"},
		{"rank", 5, []byte{200}, "the table ends inside"},
		{"name", 6, []byte{200}, "the table ends inside"},
		{"no name", 6, []byte{0}, "bad name"},
		{"bad name", 32, []byte{' '}, "bad name"},
		{"padding", 35, []byte{1}, "not as it is written"},
	} {
		b := encode(t, "demo", Array("a/b", []int32{1, -1}))
		copy(b[headerSize+c.at:], c.put)
		reseal(b)
		if _, err := Decode("f", "demo", b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	b := encode(t, "demo", Array("a", []uint8{1, 2}))
	b[headerSize+16], b[headerSize+24] = 3, 3 // one byte more than the file has
	reseal(b)
	if _, err := Decode("f", "demo", b); err == nil || !strings.Contains(err.Error(), "inside the file") {
		t.Error(err)
	}
	b = encode(t, "demo", Array("a", []int32{1}), Array("b", []int32{2}))
	b[headerSize+40+32] = 'a'
	reseal(b)
	if _, err := Decode("f", "demo", b); err == nil || !strings.Contains(err.Error(), `"a" occurs twice`) {
		t.Error(err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	one := Array("a", []uint8{1})
	for _, c := range []struct {
		kind string
		list []Section
		want string
	}{
		{"", nil, `kind must be 1 to 24 of a-z A-Z 0-9 . _ - / (got "")`},
		{"a kind", nil, `(got "a kind")`},
		{"k", []Section{Array("", []uint8{1})}, "name must be 1 to 255"},
		{"k", []Section{Array(strings.Repeat("n", 256), []uint8{1})}, "name must be 1 to 255"},
		{"k", []Section{one, one}, "occurs twice"},
	} {
		if err := Encode(&bytes.Buffer{}, c.kind, c.list); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := Write(filepath.Join(t.TempDir(), "no", "such"), "k", nil); err == nil {
		t.Error("wrote into a directory that is not there")
	}
	dir := t.TempDir()
	if _, err := Open(dir, "k"); err == nil {
		t.Error("opened a directory")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for a shape of another size")
		}
	}()
	Array("a", []int32{1, 2}, 3)
}

func TestDecodeAtAnyAddress(t *testing.T) {
	good := encode(t, "shard", sample()...)
	for shift := range 9 {
		b := append(make([]byte, shift, shift+len(good)), good...)[shift:]
		f, err := Decode("f", "shard", b)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := Values[int64](f, "adj/0/row_ptr"); err != nil || p[1] != 2 {
			t.Fatal(p, err)
		}
	}
}

func TestCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []Section
		for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z/_.0-9A-Z-]{1,20}`), 0, 6,
			rapid.ID[string]).Draw(t, "names") {
			switch rapid.IntRange(0, 3).Draw(t, "type") {
			case 0:
				list = append(list, Array(name, rapid.SliceOf(rapid.Byte()).Draw(t, "u8")))
			case 1:
				v := rapid.SliceOf(rapid.Int32()).Draw(t, "i32")
				list = append(list, Array(name, v, len(v), 1))
			case 2:
				v := rapid.SliceOf(rapid.Int64()).Draw(t, "i64")
				list = append(list, Array(name, v, 1, len(v)))
			case 3:
				list = append(list, Array(name, rapid.SliceOf(rapid.Float32()).Draw(t, "f32")))
			}
		}
		b := encode(t, "kind", list...)
		f, err := Decode("f", "kind", b)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Sections(); len(got) != len(list) || !bytes.Equal(encode(t, "kind", got...), b) {
			t.Fatal("encoded again, the file differs")
		}
		for i, s := range f.Sections() {
			if s.Name != list[i].Name || s.Type != list[i].Type || !reflect.DeepEqual(s.Shape, list[i].Shape) ||
				!bytes.Equal(s.data, list[i].data) {
				t.Fatalf("section %v became %v", list[i], s)
			}
			for at, offset := range offsets(b, i) {
				if at == i && offset%64 != 0 {
					t.Fatalf("payload %d begins at %d", i, offset)
				}
			}
		}
	})
}

func offsets(b []byte, upTo int) (at []int64) {
	f, _ := Decode("f", "kind", b)
	_, at, _ = encodeHead("kind", f.list, make([]uint32, len(f.list)))
	return at[:upTo+1]
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, "shard", sample()...), false)
	f.Add(encode(f, "shard"), true)
	f.Add(encode(f, "shard", Array("a", []int32{1})), true)
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal { // lets the fuzzer reach what lies behind the checksums
			b = bytes.Clone(b)
			reseal(b)
		}
		s, err := Decode("f", "shard", b)
		if err != nil {
			return
		}
		if !bytes.Equal(encode(t, "shard", s.Sections()...), b) {
			t.Fatal("encoded again, the file differs")
		}
	})
}
