package cli

import (
	"archive/zip"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
)

// twoParts returns two parts of three nodes with two numbers each.
func twoParts() []NodePredictions {
	return []NodePredictions{{IDs: []string{"a", "Jürgen 😀"}, Hidden: mat.View(2, 2, []float32{1, -2.5, 3, 4})},
		{IDs: []string{"c"}, Hidden: mat.View(1, 2, []float32{5, 6})}}
}

// TestNPZ: the arrays are as NumPy writes them: a header that fills up 64 bytes, text in UTF-32, numbers row by row.
func TestNPZ(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.npz")
	if err := WriteEmbeddings(path, twoParts(), nil); err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	read := func(name, header string) []byte {
		f, err := z.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		length := 10 + int(b[8]) + int(b[9])<<8
		if string(b[:8]) != "\x93NUMPY\x01\x00" || length%64 != 0 ||
			strings.TrimRight(string(b[10:length-1]), " ") != header || b[length-1] != '\n' {
			t.Errorf("%s begins with %q", name, b[:length])
		}
		return b[length:]
	}
	ids := read("ids.npy", "{'descr': '<U8', 'fortran_order': False, 'shape': (3,), }")
	if len(ids) != 3*8*4 || ids[0] != 'a' || ids[4] != 0 || ids[32+4] != 0xfc || ids[32+4*7] != 0x00 ||
		ids[32+4*7+1] != 0xf6 || ids[32+4*7+2] != 1 || ids[64] != 'c' {
		t.Errorf("ids % x", ids)
	}
	rows := read("embeddings.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }")
	for k, want := range []float32{1, -2.5, 3, 4, 5, 6} {
		at := rows[4*k:]
		if got := math.Float32frombits(uint32(at[0]) | uint32(at[1])<<8 | uint32(at[2])<<16 |
			uint32(at[3])<<24); got != want {
			t.Errorf("number %d is %v, must be %v", k, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{"": "", filepath.Join(dir, "x.npz"): "",
		filepath.Join(dir, "x"): "must end in", filepath.Join(dir, "x.csv"): "must end in .npz or .parquet",
		filepath.Join(dir, "x.parquet"): "only the program heddle"} {
		if err := CheckEmbeddings(path, nil); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, must have %q", path, err, want)
		}
	}
	bad := twoParts()
	bad[1].Hidden = mat.New(1, 3)
	if err := WriteEmbeddings(filepath.Join(dir, "x.npz"), bad, nil); err == nil ||
		!strings.Contains(err.Error(), "must have 2 numbers (got 3)") {
		t.Error(err)
	}
}
