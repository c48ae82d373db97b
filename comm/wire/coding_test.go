package wire

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leak"
	"github.com/heddle-gnn/heddle/mat"
)

func TestMain(m *testing.M) { leak.Main(m) }

var codings = []Coding{{}, {Values: "bf16"}, {Values: "int8"}, {Compress: "zstd"}, {Values: "bf16", Compress: "zstd"}, {Values: "int8", Compress: "zstd"}}

// off is by how much a value may be off after it travelled in a row of the given greatest magnitude.
func (c Coding) off(v, top float32) float64 {
	switch c.Values {
	case "bf16":
		return math.Abs(float64(v)) / 256 // half of the last of 8 bits
	case "int8":
		return float64(top) / 127 / 2 * 1.001
	}
	return 0
}

func (c Coding) check(t *testing.T, got, want mat.Dense) {
	t.Helper()
	for i := range want.Rows {
		var top float32
		for _, v := range want.Row(i) {
			top = max(top, v, -v)
		}
		for j, v := range want.Row(i) {
			if d := math.Abs(float64(got.At(i, j)) - float64(v)); !(d <= c.off(v, top)) {
				t.Fatalf("%+v: row %d, column %d: %g came, %g was sent, want it within %g", c, i, j, got.At(i, j), v, c.off(v, top))
			}
		}
	}
}

// TestMessages sends messages of every coding, dense and sparse, and holds their lengths to the formulas of docs/reference/wire.md.
func TestMessages(t *testing.T) {
	for _, c := range codings {
		for _, share := range []float64{0, 0.05, 0.6, 1} {
			const rows, cols = 40, 30
			d := rowsOf(3, rows, cols, share, true)
			k := New(c)
			b := k.Append(nil, Block{Dense: d}, everyRow(rows))
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
			c.check(t, x.Dense, d)
			n := nonZeros(Block{Dense: d}, everyRow(rows)).NNZ()
			dense, sparse := 1+rows*4*cols, 1+4*rows+8*n
			switch c.Values {
			case "bf16":
				dense, sparse = 1+rows*2*cols, 1+4*rows+6*n
			case "int8":
				dense, sparse = 1+rows*(4+cols), 1+8*rows+5*n
			}
			if n == 0 {
				sparse = 1 + 4*rows
			}
			want := min(dense, sparse)
			if dense != c.MaxLen(rows, cols) {
				t.Errorf("%+v: at most %d bytes, want %d", c, c.MaxLen(rows, cols), dense)
			}
			if c.Compress == "" && len(b) != want || len(b) > want {
				t.Errorf("%+v, share %g: %d bytes, want %d", c, share, len(b), want)
			}
			if c.Compress != "" && share == 0.05 && len(b) >= want {
				t.Errorf("%+v, share %g: %d bytes, no less than the %d without compression", c, share, len(b), want)
			}
			if again := k.Append(nil, Block{Dense: d}, everyRow(rows)); !bytes.Equal(again, b) {
				t.Errorf("%+v: the same rows have other bytes at the second time", c)
			}
		}
	}
}

// TestNarrowBytes pins the layout of rounded rows, byte by byte.
func TestNarrowBytes(t *testing.T) {
	d := mat.View(1, 3, []float32{1, -2, 0.5})
	for _, k := range []struct {
		c    Coding
		x    mat.Dense
		want []byte
	}{
		{Coding{Values: "bf16"}, d, []byte{0x12, 0x80, 0x3f, 0x00, 0xc0, 0x00, 0x3f}},
		{Coding{Values: "int8"}, mat.View(1, 3, []float32{127, -254, 64}), []byte{0x22, 0, 0, 0, 0x40, 64, 0x81, 32}},
		{Coding{Values: "bf16"}, mat.View(1, 9, []float32{0, 0, 1, 0, 0, 0, 0, 0, -2}), []byte{0x10, 2, 0, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0, 0x80, 0x3f, 0x00, 0xc0}},
		{Coding{Values: "bf16"}, mat.View(1, 9, []float32{0, 0, 1, 0, 0, 0, 0, 0, 0}), []byte{0x01, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x80, 0x3f}},
	} {
		if b := New(k.c).Append(nil, Block{Dense: k.x}, everyRow(k.x.Rows)); !bytes.Equal(b, k.want) {
			t.Errorf("%+v: % x, want % x", k.c, b, k.want)
		}
	}
}

// TestLanes carries rows by streams of every coding, with pieces that cut rows and pieces that do not, and holds the
// bytes to the formula.
func TestLanes(t *testing.T) {
	for _, c := range codings {
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
						t.Errorf("%+v, %d columns: %d bytes were sent, want %d", c, cols, b, bytes)
					}
				})
			}
			all.Wait()
			for me := range 2 {
				c.check(t, got[me], sent)
			}
			if !slices.Equal(got[0].Data, got[1].Data) {
				t.Errorf("%+v: two members read different numbers", c)
			}
		}
	}
}

// TestLaneRefuses: a piece that is compressed and was not agreed to be, or holds more or less than its place.
func TestLaneRefuses(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	frame := func(n int) []byte { return enc.EncodeAll(make([]byte, n), nil) }
	l := New(Coding{Compress: "zstd"}).Lane(100, make([]int, 2), make([]int, 2), nil, func(int, int, int, []float32) {})
	for _, k := range []struct {
		src []byte
		ok  bool
	}{{frame(400), true}, {frame(396), false}, {frame(404), false}, {frame(1 << 22)[:20], false}, {[]byte("heddle"), false}, {frame(400), true}, {append(frame(200), frame(200)...), false}} {
		if err := l.Take(1, 0, 400, k.src); (err == nil) != k.ok {
			t.Errorf("% x…: %v", k.src[:6], err)
		}
	}
	plain := New(Coding{}).Lane(100, make([]int, 2), make([]int, 2), nil, func(int, int, int, []float32) {})
	if plain.Packed {
		t.Error("a stream would take short pieces")
	}
	if err := plain.Take(1, 0, 400, frame(400)); err == nil {
		t.Error("a compressed piece was taken that had not been agreed on")
	}
}

// FuzzCoded: no bytes make the reader of any coding panic or take more memory than rows×cols allow, and what it takes
// are numbers.
func FuzzCoded(f *testing.F) {
	for i, c := range codings {
		for _, share := range []float64{0, 0.1, 1} {
			f.Add(New(c).Append(nil, Block{Dense: rowsOf(2, 5, 70, share, true)}, everyRow(5)), uint8(i), uint8(5), uint16(70))
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
			t.Fatalf("%d×%d, want %d×%d", x.Rows(), x.Cols(), rows, cols)
		}
		if x.Sparse != nil {
			if err := x.Sparse.Valid(); err != nil {
				t.Fatal(err)
			}
			x.Dense = x.Sparse.Dense()
		}
		again, err := k.Parse(k.Append(nil, x, everyRow(int(rows))), int(rows), int(cols))
		if err != nil {
			t.Fatal(err)
		}
		if again.Sparse != nil {
			again.Dense = again.Sparse.Dense()
		}
		if k.coding.Values != "int8" && !slices.Equal(again.Dense.Data, x.Dense.Data) { // of int8 the greatest value of a row need not be 127 times the scale that came
			t.Fatal("rows changed when they were sent on")
		}
	})
}

// TestNames: what is not a coding is named.
func TestNames(t *testing.T) {
	for _, values := range []string{"", "bf16", "int8"} {
		for _, compress := range []string{"", "zstd"} {
			if err := (Coding{Values: values, Compress: compress}).Validate(); err != nil {
				t.Error(err)
			}
		}
	}
	const must = "rows must be float32, bf16 or int8 (got \"int4\")\ncompress must be none or zstd (got \"lz4\")"
	if err := (Coding{Values: "int4", Compress: "lz4"}).Validate(); err == nil || err.Error() != must {
		t.Errorf("error is %v, must be %s", err, must)
	}
}
