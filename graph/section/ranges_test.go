package section

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRangesReadWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	number, text := []int64{3, 1, 4, 1, 5, 9, 2, 6}, []byte("heddle")
	streamed := Stream("number", I64, []int{4, 2}, func(w io.Writer) error {
		if err := WriteArray(w, number[:3]); err != nil {
			return err
		}
		return WriteArray(w, number[3:])
	})
	digest, err := Write(path, "test", []Section{Array("text", text), streamed})
	if err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	if err := Encode(&whole, "test", []Section{Array("text", text), Array("number", number, 4, 2)}); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(file, whole.Bytes()) {
		t.Fatalf("a streamed section is written in another way (%v)", err)
	}
	s, err := Decode(path, "test", file)
	if err != nil || s.Digest() != digest {
		t.Fatalf("digest of a streamed file: %v", err)
	}

	f, err := OpenRanges(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make([]int64, 3)
	if err := ReadRange(f, "number", 2, got); err != nil || !slices.Equal(got, number[2:5]) {
		t.Errorf("read %v, %v", got, err)
	}
	if shape, err := f.Shape("number", I64); err != nil || !slices.Equal(shape, []int{4, 2}) {
		t.Errorf("shape %v, %v", shape, err)
	}
	var again bytes.Buffer
	if err := Encode(&again, "test", f.Sections()); err != nil || !bytes.Equal(again.Bytes(), file) {
		t.Errorf("written again it is another file: %v", err)
	}
	for what, err := range map[string]error{
		"elements 7 to 10 of 8":   ReadRange(f, "number", 7, got),
		"elements -1 to 2 of 8":   ReadRange(f, "number", -1, got),
		"missing, or not i64":     ReadRange(f, "text", 0, got),
		`section "none": missing`: ReadRange(f, "none", 0, got),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
	if _, err := f.Shape("text", I32); err == nil {
		t.Error("text is numbers")
	}
	if _, err := Write(path, "test",
		[]Section{Stream("number", I64, []int{4, 2},
			func(w io.Writer) error { return WriteArray(w, number[:3]) })}); err == nil ||
		!strings.Contains(err.Error(), "must have 64 bytes (got 24)") {
		t.Errorf("too few bytes: %v", err)
	}
}

// Header and table are checked when the file is opened, the payloads when it is encoded again.
func TestRangesFindDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if _, err := Write(path, "test",
		[]Section{Array("a", []int32{1, 2, 3}), Array("b", make([]uint8, 70))}); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := func(b []byte) error {
		at := filepath.Join(dir, "damaged")
		if err := os.WriteFile(at, b, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := OpenRanges(at, "test")
		if err != nil {
			return err
		}
		defer f.Close()
		var again bytes.Buffer
		if err := Encode(&again, "test", f.Sections()); err != nil {
			return err
		}
		if !bytes.Equal(again.Bytes(), file) {
			t.Errorf("a damaged file was taken for another")
		}
		return nil
	}
	for n := range file {
		if damaged(file[:n]) == nil {
			t.Errorf("cut off at byte %d: no error", n)
		}
		b := bytes.Clone(file)
		b[n] ^= 0x40
		damaged(b) // no error only where it is the padding between payloads, which is not read
	}
	if damaged(append(bytes.Clone(file), 0)) == nil {
		t.Error("a byte more: no error")
	}
}
