package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// rowsOf returns random rows×cols features of which about a share of values are not zero, from one value or many.
func rowsOf(seed uint64, rows, cols int, share float64, many bool) mat.Dense {
	d, key := mat.New(rows, cols), rng.New(seed)
	for i := range d.Data {
		if key.Float64(uint64(i)) < share {
			d.Data[i] = 0.25
			if many {
				d.Data[i] = float32(key.Fold(1).Normal(uint64(i)))
			}
		}
	}
	return d
}

// TestRowsTravelWhole sends rows of any density by the shortest code, the same bytes for dense and sparse rows of the
// same values, and reads the same values back.
func TestRowsTravelWhole(t *testing.T) {
	for _, test := range []struct {
		share float64
		many  bool
		code  byte
	}{{0, false, oneValue}, {0.05, false, oneValue}, {0.05, true, manyValues}, {0.4, true, manyValues},
		{0.6, true, denseRows}, {0.6, false, oneValue}, {1, false, denseRows}, {1, true, denseRows}} {
		d := rowsOf(1, 40, 30, test.share, test.many)
		rows := []int32{3, 0, 39, 17, 18}
		b := new(Coder).Append([]byte("before"), Block{Dense: d}, rows)
		if !bytes.HasPrefix(b, []byte("before")) {
			t.Fatal("what was there is gone")
		}
		b = b[len("before"):]
		if b[0] != test.code {
			t.Errorf("share %g, many values %t: code %d, must be %d", test.share, test.many, b[0], test.code)
		}
		s := nonZeros(Block{Dense: d}, mat.EveryRow(d.Rows))
		if !bytes.Equal(b, new(Coder).Append(nil, Block{Sparse: s}, rows)) {
			t.Errorf("share %g: sparse and dense rows have unlike bytes", test.share)
		}
		f, err := new(Coder).Parse(b, len(rows), 30)
		if err != nil {
			t.Fatal(err)
		}
		got := f.Dense
		if f.Sparse != nil {
			if err := f.Sparse.Valid(); err != nil {
				t.Fatal(err)
			}
			got = f.Sparse.Dense()
		}
		if !slices.Equal(got.Data, d.Select(rows).Data) {
			t.Errorf("share %g: other rows came than were sent", test.share)
		}
	}
	stored := &mat.Sparse{Rows: 1, Cols: 9, RowPtr: []int64{0, 2}, Col: []int32{1, 4}, Val: []float32{0, 2}}
	if b := new(Coder).Append(nil, Block{Sparse: stored}, []int32{0}); len(b) != 1+4+4+4 {
		t.Errorf("a stored zero takes room: %d bytes", len(b))
	}
}

// message puts a message of sparse rows together, right or wrong.
func message(code byte, words ...any) []byte {
	b := []byte{code}
	for _, w := range words {
		switch w := w.(type) {
		case int:
			b = binary.LittleEndian.AppendUint32(b, uint32(w))
		case float64:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(w)))
		}
	}
	return b
}

// TestParseRowsRefuses: the reader returns an error for everything that a peer should not have sent. There are 2 rows
// of 20 columns.
func TestParseRowsRefuses(t *testing.T) {
	inf := math.Inf(1)
	dense := make([]any, 40)
	for i := range dense {
		dense[i] = 1.5 + float64(i)
	}
	zeros := make([]any, 40)
	for i := range zeros {
		zeros[i] = 0.0
	}
	nan := slices.Clone(dense)
	nan[21] = math.NaN()
	for _, test := range []struct {
		b    []byte
		want string
	}{
		{nil, "at least 1 byte (got 0)"},
		{message(7, 0, 0), "(got 7)"},
		{message(oneValue, 0), "lengths of 2 rows must have 8 bytes (got 4)"},
		{message(oneValue, 21, 0), "row 0 must have at most 20 columns (got 21)"},
		{message(oneValue, 0, math.MaxUint32), "row 1 must have at most 20 columns (got 4294967295)"},
		{message(oneValue, 1, 1, 3, 3), "must have 12 bytes (got 8)"},
		{message(oneValue, 1, 1, 3, 3, 1.0, 1.0), "must have 12 bytes (got 16)"},
		{message(manyValues, 1, 1, 3, 3, 1.0), "must have 16 bytes (got 12)"},
		{message(oneValue, 2, 0, 5, 5, 1.0), "row 0: columns must ascend and be below 20 (got 5)"},
		{message(oneValue, 0, 2, 6, 5, 1.0), "row 1: columns must ascend and be below 20 (got 5)"},
		{message(oneValue, 1, 0, 20, 1.0), "row 0: columns must ascend and be below 20 (got 20)"},
		{message(oneValue, 1, 0, math.MaxUint32, 1.0), "row 0: columns must ascend and be below 20 (got 4294967295)"},
		{message(oneValue, 1, 0, 3, inf), "row 0, column 3 must be finite (got +Inf)"},
		{message(manyValues, 1, 1, 3, 4, 1.0, math.NaN()), "row 1, column 4 must be finite (got NaN)"},
		{message(manyValues, 1, 1, 3, 4, 1.0, 1.0), "shortest layout, without zeros (got code 0)"},
		{message(manyValues, 1, 1, 3, 4, 1.0, 0.0), "shortest layout, without zeros (got code 0)"},
		{message(manyValues, 0, 0), "shortest layout, without zeros (got code 0)"},
		{message(denseRows, dense[1:]...), "must have 160 bytes (got 156)"},
		{message(denseRows, nan...), "row 1, column 1 must be finite (got NaN)"},
		{message(denseRows, zeros...), "shortest layout, without zeros (got code 2)"},
	} {
		if _, err := new(Coder).Parse(test.b, 2, 20); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("% x: %v, must be %q", test.b, err, test.want)
		}
	}
	if _, err := new(Coder).Parse(message(denseRows, dense...), 2, 20); err != nil {
		t.Error(err)
	}
}

// FuzzRows: no bytes make the reader panic or take memory beyond a small multiple of theirs, and what it accepts
// encodes to the same bytes.
func FuzzRows(f *testing.F) {
	for _, share := range []float64{0, 0.1, 0.5, 1} {
		for _, many := range []bool{false, true} {
			f.Add(new(Coder).Append(nil, Block{Dense: rowsOf(2, 5, 7, share, many)}, mat.EveryRow(5)), uint8(5),
				uint16(7))
		}
	}
	f.Add(message(oneValue, 1, 1, 3, 3, 1.0), uint8(2), uint16(20))
	f.Fuzz(func(t *testing.T, b []byte, rows uint8, cols uint16) {
		if len(b) > 1<<16 || cols == 0 {
			return
		}
		x, err := new(Coder).Parse(b, int(rows), int(cols))
		if err != nil {
			return
		}
		if x.Rows() != int(rows) || x.Cols() != int(cols) {
			t.Fatalf("%d×%d, must be %d×%d", x.Rows(), x.Cols(), rows, cols)
		}
		if x.Sparse != nil {
			if err := x.Sparse.Valid(); err != nil {
				t.Fatal(err)
			}
		}
		if again := new(Coder).Append(nil, x, mat.EveryRow(int(rows))); !bytes.Equal(again, b) {
			t.Fatalf("% x encodes to % x", b, again)
		}
	})
}
