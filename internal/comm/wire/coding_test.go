package wire

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

var codings = []comm.Coding{{}, {Values: "bf16"}, {Values: "int8"}, {Compress: "zstd"},
	{Values: "bf16", Compress: "zstd"},
	{Values: "int8", Compress: "zstd"}, {Values: "int4"}, {Values: "int4", Compress: "zstd"},
	{Values: "int8", Columns: true}, {Values: "int4", Columns: true}, {Values: "int8", Compress: "zstd", Columns: true},
	{Values: "int4", Compress: "zstd", Columns: true}}

// off is by how much a value may be off after it was sent in a row, or column, of the given greatest magnitude.
func off(c comm.Coding, v, top float32) float64 {
	switch c.Values {
	case "bf16":
		return math.Abs(float64(v)) / 256 // half of the last of 8 bits
	case "int8":
		return float64(top) / 127 / 2 * 1.00001
	case "int4":
		return float64(top) / 7 / 2 * 1.00001
	}
	return 0
}

func check(t *testing.T, c comm.Coding, got, want mat.Dense) {
	t.Helper()
	rows, columns := make([]float32, want.Rows), make([]float32, want.Cols)
	for i := range rows {
		for j, v := range want.Row(i) {
			rows[i], columns[j] = max(rows[i], v, -v), max(columns[j], v, -v)
		}
	}
	for i := range rows {
		for j, v := range want.Row(i) {
			top := rows[i]
			if c.Columns {
				top = columns[j]
			}
			if d := math.Abs(float64(got.At(i, j)) - float64(v)); !(d <= off(c, v, top)) {
				t.Fatalf("%+v: row %d, column %d: %g came, %g was sent, must be within %g", c, i, j, got.At(i, j), v,
					off(c, v, top))
			}
		}
	}
}

// TestMessages sends dense and sparse messages in every coding. Their lengths must be those that docs/reference/wire.md
// gives.
func TestMessages(t *testing.T) {
	for _, c := range codings {
		for _, share := range []float64{0, 0.05, 0.6, 1} {
			const rows, cols = 40, 30
			d := rowsOf(3, rows, cols, share, true)
			k := New(c)
			b := k.Append(nil, Block{Dense: d}, mat.EveryRow(rows))
			x, err := k.Parse(b, rows, cols)
			if err != nil {
				t.Fatalf("%+v, share %g: %v", c, share, err)
			}
			if x.Sparse != nil {
				if err := x.Sparse.Valid(); err != nil {
					t.Fatal(err)
				}
				x.Dense = x.Sparse.Dense()
			}
			check(t, c, x.Dense, d)
			n := nonZeros(Block{Dense: d}, mat.EveryRow(rows)).NNZ()
			dense, sparse := 1+rows*4*cols, 1+4*rows+8*n
			switch c.Values {
			case "bf16":
				dense, sparse = 1+rows*2*cols, 1+4*rows+6*n
			case "int8":
				dense, sparse = 1+rows*(4+cols), 1+8*rows+5*n
			case "int4":
				dense, sparse = 1+rows*(4+cols/2), 1+8*rows+4*n+(n+1)/2
			}
			if n == 0 {
				sparse = 1 + 4*rows
			}
			if c.Columns {
				dense = map[string]int{"int8": 1 + 4*cols + rows*cols, "int4": 1 + 4*cols + rows*cols/2}[c.Values]
				sparse = dense
			}
			want := min(dense, sparse)
			if dense != c.MaxLen(rows, cols) {
				t.Errorf("%+v: at most %d bytes, must be %d", c, c.MaxLen(rows, cols), dense)
			}
			if c.Compress == "" && len(b) != want || len(b) > want {
				t.Errorf("%+v, share %g: %d bytes, must be %d", c, share, len(b), want)
			}
			if c.Compress != "" && share == 0.05 && len(b) >= want {
				t.Errorf("%+v, share %g: %d bytes, no less than the %d without compression", c, share, len(b), want)
			}
			if again := k.Append(nil, Block{Dense: d}, mat.EveryRow(rows)); !bytes.Equal(again, b) {
				t.Errorf("%+v: the same rows have other bytes at the second time", c)
			}
		}
	}
}

// TestNarrowBytes pins the layout of rounded rows, byte by byte.
func TestNarrowBytes(t *testing.T) {
	d := mat.View(1, 3, []float32{1, -2, 0.5})
	for _, k := range []struct {
		c    comm.Coding
		x    mat.Dense
		want []byte
	}{
		{comm.Coding{Values: "bf16"}, d, []byte{0x12, 0x80, 0x3f, 0x00, 0xc0, 0x00, 0x3f}},
		{comm.Coding{Values: "int8"}, mat.View(1, 3, []float32{127, -254, 64}),
			[]byte{0x22, 0, 0, 0, 0x40, 64, 0x81, 32}},
		// 3.5 and 2.5: to even
		{comm.Coding{Values: "int4"}, mat.View(2, 3, []float32{7, -14, 5, 0, 0, 0}),
			[]byte{0x32, 0, 0, 0, 0x40, 0x94, 0x02, 0, 0, 0, 0, 0, 0}},
		{comm.Coding{Values: "int4"}, mat.View(2, 40,
			append(append(make([]float32, 30), 7, -1, 7), make([]float32, 47)...)), []byte{0x30, 3, 0, 0, 0, 0, 0, 0, 0,
			30, 0, 0, 0, 31, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0xf7, 0x07}},
		// 0.5: to even
		{comm.Coding{Values: "int8", Columns: true}, mat.View(2, 3, []float32{127, 0, 1, -3, 0, -254}),
			[]byte{0x23, 0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40, 127, 0, 0, 0xfd, 0, 0x81}},
		{comm.Coding{Values: "int4", Columns: true}, mat.View(3, 1, []float32{14, -1, 3}),
			[]byte{0x33, 0, 0, 0, 0x40, 0x07, 0x02}},
		{comm.Coding{Values: "int8", Columns: true}, mat.View(0, 3, nil), []byte{0x23}},
		{comm.Coding{Values: "int4", Columns: true, Compress: "zstd"}, mat.View(0, 3, nil), []byte{0x33}},
		{comm.Coding{Values: "bf16"}, mat.View(1, 9, []float32{0, 0, 1, 0, 0, 0, 0, 0, -2}),
			[]byte{0x10, 2, 0, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0, 0x80, 0x3f, 0x00, 0xc0}},
		{comm.Coding{Values: "bf16"}, mat.View(1, 9, []float32{0, 0, 1, 0, 0, 0, 0, 0, 0}),
			[]byte{0x01, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x80, 0x3f}},
	} {
		if b := New(k.c).Append(nil, Block{Dense: k.x}, mat.EveryRow(k.x.Rows)); !bytes.Equal(b, k.want) {
			t.Errorf("%+v: % x, must be % x", k.c, b, k.want)
		}
	}
}

// TestLanes sends rows by streams of every coding, with pieces that cut rows and pieces that do not, and compares the
// bytes with the formula.
func TestLanes(t *testing.T) {
	for _, c := range codings {
		if c.Columns {
			continue // TestLaneRefusesColumns
		}
		for _, cols := range []int{1, 3, 1000} {
			const rows = 333
			net := netsim.New(2, netsim.Config{})
			sent := rowsOf(7, rows, cols, 0.7, true)
			got := [2]mat.Dense{mat.New(rows, cols), mat.New(rows, cols)}
			var all sync.WaitGroup
			for me := range 2 {
				all.Go(func() {
					g := comm.NewGroup(net.Transport(me), me, 2)
					defer g.Close()
					n := make([]int, 2)
					n[1-me] = rows
					k := New(c)
					lane := k.Lane(cols, n, n, func(_, i int) []float32 { return sent.Row(rows - 1 - i) },
						func(_, i, at int, values []float32) { copy(got[me].Row(rows - 1 - i)[at:], values) })
					s, err := g.Stream(context.Background(), comm.Halo, "rows", lane)
					if err != nil {
						t.Error(err)
						return
					}
					s.Give(0, 1-me)
					s.Ask(0, 1-me)
					if err := s.End(); err != nil {
						t.Error(err)
						return
					}
					if err := g.Barrier(context.Background()); err != nil {
						t.Error(err)
					}
					bytes := int64(rows * c.RowLen(cols))
					if b := g.Bytes().Halo; b > bytes || c.Compress == "" && b != bytes {
						t.Errorf("%+v, %d columns: %d bytes were sent, must be %d", c, cols, b, bytes)
					}
				})
			}
			all.Wait()
			for me := range 2 {
				check(t, c, got[me], sent)
			}
			if !slices.Equal(got[0].Data, got[1].Data) {
				t.Errorf("%+v: two members read different numbers", c)
			}
		}
	}
}

// TestLaneRefuses: a piece that is compressed without agreement, or has more or less than its place.
func TestLaneRefuses(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	frame := func(n int) []byte { return enc.EncodeAll(make([]byte, n), nil) }
	l := New(comm.Coding{Compress: "zstd"}).Lane(100, make([]int, 2), make([]int, 2), nil,
		func(int, int, int, []float32) {})
	for _, k := range []struct {
		src []byte
		ok  bool
	}{{frame(400), true}, {frame(396), false}, {frame(404), false}, {frame(1 << 22)[:20], false},
		{[]byte("heddle"), false}, {frame(400), true}, {append(frame(200), frame(200)...), false}} {
		if err := l.Take(1, 0, 400, k.src); (err == nil) != k.ok {
			t.Errorf("% x…: %v", k.src[:6], err)
		}
	}
	plain := New(comm.Coding{}).Lane(100, make([]int, 2), make([]int, 2), nil, func(int, int, int, []float32) {})
	if plain.Packed {
		t.Error("a stream would take short pieces")
	}
	if err := plain.Take(1, 0, 400, frame(400)); err == nil {
		t.Error("a compressed piece was taken that had not been agreed on")
	}
}

// TestLaneRefusesColumns: a lane has no message over which a column could have a scale.
func TestLaneRefusesColumns(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a lane was made of rows whose columns have scales")
		}
	}()
	New(comm.Coding{Values: "int8", Columns: true}).Lane(3, make([]int, 2), make([]int, 2), nil, nil)
}

// TestNotFinite: a value that is not finite reaches nobody as a number, whatever the coding.
func TestNotFinite(t *testing.T) {
	for _, c := range codings {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			d := rowsOf(3, 5, 7, 1, true)
			d.Row(3)[2] = float32(bad)
			if _, err := New(c).Parse(New(c).Append(nil, Block{Dense: d}, mat.EveryRow(5)), 5, 7); err == nil ||
				!strings.Contains(err.Error(), "must be finite") {
				t.Errorf("%+v: %g was taken (%v)", c, bad, err)
			}
		}
	}
}

// TestParseColumnsRefuses: the reader of rows whose columns have scales returns an error for what a peer should not
// have sent: 3 rows of 2 columns.
func TestParseColumnsRefuses(t *testing.T) {
	columns := comm.Coding{Values: "int8", Columns: true}
	good := message(columnRows|int8s, 1.0, 0.0)
	for _, k := range []struct {
		c    comm.Coding
		b    []byte
		rows int
		want string
	}{
		{columns, append(good, make([]byte, 5)...), 3, "must have 14 bytes (got 13)"},
		{columns, append(good, make([]byte, 7)...), 3, "must have 14 bytes (got 15)"},
		{comm.Coding{Values: "int4", Columns: true}, append(message(columnRows|int4s, 1.0, 0.0), make([]byte, 4)...), 3,
			"must have 11 bytes (got 12)"},
		{columns, good, 0, "must have 0 bytes (got 8)"},
		{columns, append(message(columnRows|int8s, 1.0, -1.0), make([]byte, 6)...), 3,
			"scale of column 1 must be finite and at least 0 (got -1)"},
		{columns, append(message(columnRows|int8s, math.Inf(1), 1.0), make([]byte, 6)...),
			3, "scale of column 0 must be finite and at least 0 (got +Inf)"},
		{columns, append(message(columnRows|int8s, 1.0, 3e38), 0, 0, 0, 0, 0, 2), 3,
			"row 2, column 1 must be finite (got +Inf)"},
		{columns, append(message(columnRows|int4s, 1.0, 1.0), make([]byte, 3)...), 3,
			"code of the rows must be known (got 51)"},
		{columns, message(oneValue, 0, 0, 0), 3,
			"code of the rows must be known (got 1)"},
		{comm.Coding{Values: "int8"}, append(good, make([]byte, 6)...), 3, "code of the rows must be known (got 35)"},
		{comm.Coding{}, append(message(columnRows, 1.0, 0.0), make([]byte, 24)...), 3,
			"code of the rows must be known (got 3)"},
	} {
		if _, err := New(k.c).Parse(k.b, k.rows, 2); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%+v, % x: %v, must be %q", k.c, k.b, err, k.want)
		}
	}
}

// TestOwnRowsStayExact: what a member sends is rounded, what it keeps is not, in any coding, for dense and sparse rows.
func TestOwnRowsStayExact(t *testing.T) {
	for _, c := range codings {
		for _, sparse := range []bool{false, true} {
			const rows = 9
			net := netsim.New(2, netsim.Config{})
			d := rowsOf(5, rows, 4, 0.7, true)
			own := Block{Dense: d}
			if sparse {
				own = Block{Sparse: nonZeros(own, mat.EveryRow(rows))}
			}
			var all sync.WaitGroup
			for me := range 2 {
				all.Go(func() {
					g := comm.NewGroup(net.Transport(me), me, 2)
					defer g.Close()
					h := Halo{Give: make([][]int32, 2), Ptr: []int{rows, rows, rows}}
					h.Give[1-me] = []int32{1, 4, 5, 8}
					for q := 1 - me; q < 2; q++ {
						h.Ptr[q+1] = rows + 4
					}
					x, err := New(c).Exchange(t.Context(), g, h, own, sparse, "rows")
					if err != nil {
						t.Error(err)
						return
					}
					if x.Sparse != nil {
						x.Dense = x.Sparse.Dense()
					}
					if x.Dense.Rows != rows+4 || !slices.Equal(x.Dense.RowRange(0, rows).Data, d.Data) {
						t.Errorf("%+v, sparse %t: the own rows changed", c, sparse)
					}
					got, sent := x.Dense.RowRange(rows, rows+4), d.Select(h.Give[1-me])
					check(t, c, got, sent)
					if (coding{c}).scaled() && slices.Equal(got.Data, sent.Data) {
						t.Errorf("%+v: rows that were sent are not rounded", c)
					}
				})
			}
			all.Wait()
		}
	}
}

// FuzzCoded: no bytes make the reader of any coding panic or take more memory than rows×cols allow, and what it takes
// are numbers.
func FuzzCoded(f *testing.F) {
	for i, c := range codings {
		for _, share := range []float64{0, 0.1, 1} {
			f.Add(New(c).Append(nil, Block{Dense: rowsOf(2, 5, 70, share, true)}, mat.EveryRow(5)), uint8(i), uint8(5),
				uint16(70))
		}
	}
	coders := make([]*Coder, len(codings))
	for i, c := range codings {
		coders[i] = New(c)
	}
	f.Fuzz(func(t *testing.T, b []byte, which, rows uint8, cols uint16) {
		k := coders[int(which)%len(coders)]
		if len(b) > 1<<16 || cols == 0 || cols > 1<<12 {
			return
		}
		x, err := k.Parse(b, int(rows), int(cols))
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
			x.Dense = x.Sparse.Dense()
		}
		again, err := k.Parse(k.Append(nil, x, mat.EveryRow(int(rows))), int(rows), int(cols))
		if err != nil {
			t.Fatal(err)
		}
		if again.Sparse != nil {
			again.Dense = again.Sparse.Dense()
		}
		// in int8 the greatest value of a row need not be 127 times the scale that came
		if !k.coding.scaled() && !slices.Equal(again.Dense.Data, x.Dense.Data) {
			t.Fatal("rows changed when they were sent on")
		}
	})
}

// TestNames: what is not a coding is named.
func TestNames(t *testing.T) {
	for _, values := range []string{"", "bf16", "int8", "int4"} {
		for _, compress := range []string{"", "zstd"} {
			if err := (comm.Coding{Values: values, Compress: compress}).Validate(); err != nil {
				t.Error(err)
			}
		}
	}
	for c, must := range map[comm.Coding]string{
		{Values: "int2", Compress: "lz4"}: "rows must be float32, bf16, int8 or int4 (got \"int2\")\n" +
			"compress must be none or zstd (got \"lz4\")",
		{Values: "bf16", Columns: true}: "rows must be int8 or int4 where columns have scales (got \"bf16\")",
	} {
		if err := c.Validate(); err == nil || err.Error() != must {
			t.Errorf("error is %v, must be %s", err, must)
		}
	}
}
