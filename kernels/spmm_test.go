package kernels

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// sparse returns a CSR with the given row lengths and keyed columns, ascending with repeats.
func sparse(seed uint64, lengths []int, tall int) (rowPtr []int64, col []int32) {
	rowPtr = []int64{0}
	for i, n := range lengths {
		row := make([]int32, n)
		for k, v := range noise(seed+uint64(i)*1000, make([]float32, n)) {
			row[k] = int32((v + 1) / 2 * float32(tall-1))
		}
		slices.Sort(row)
		col = append(col, row...)
		rowPtr = append(rowPtr, int64(len(col)))
	}
	return rowPtr, col
}

var spmmLengths = [][]int{{}, {0}, {1}, {0, 3, 0, 1, 17, 0, 40, 0}, {300}, {16, 15, 18, 2}}

// TestSpMM compares with a float64 sum, exactly for small integers, for widths about every limit.
func TestSpMM(t *testing.T) {
	widths := []int{0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 47, 63, 64, 65, 100, 127, 128, 129, 200, 255, 256, 257,
		300, 530, 1024}
	each(t, func(t *testing.T) {
		for w, n := range widths {
			for l, lengths := range spmmLengths {
				for _, weighted := range []bool{false, true} {
					for _, exact := range []bool{true, false} {
						testSpMM(t, n, lengths, (w+l)%3, w%5, weighted, l%2 == w%2, exact, 50)
					}
				}
			}
		}
		long := make([]int, 5000) // several blocks, parts and a hub; X past the size where rows are fetched ahead
		for i := range long {
			long[i] = i % 7
		}
		long[77] = 20000
		testSpMM(t, 40, long, 0, 1, true, false, false, 9000)
		testSpMM(t, 300, long[:500], 1, 0, false, true, true, 2000)
		if testing.Short() {
			return
		}
		// hubs: the first row, two adjacent ones, the last, the only one
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
		for k, at := range [][]int{{0}, {10, 11}, {499}, {0, 250, 499}} {
			some := slices.Clone(long[:500])
			some[77] = 0
			for _, i := range at {
				some[i] = 9000
			}
			testSpMM(t, []int{40, 256, 100, 33}[k], some, k, 1, k%2 == 0, k%3 == 0, true, 2000)
		}
		testSpMM(t, 200, []int{30000}, 0, 0, true, true, false, 900)
	})
}

// TestHubs checks that a row with most of the edges is split by columns among the workers, with the same bits.
func TestHubs(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, lengths := range [][]int{{20000}, {3, 20000, 0}, {1, 9000, 9000, 2}} {
			const n, tall = 100, 300
			rowPtr, col := sparse(1, lengths, tall)
			x, val := noise(2, make([]float32, tall*n)), noise(3, make([]float32, len(col)))
			run := func(workers int) []float32 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
				y := make([]float32, len(lengths)*n)
				SpMM(rowPtr, col, val, n, x, n, y, n, false)
				return y
			}
			same(t, "four workers", run(4), run(1))
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
			var s spmm
			s.init("SpMM", rowPtr, col, n, len(x), n)
			s.cut()
			rows := 0
			for _, edges := range lengths {
				if edges > 1000 {
					rows++
				}
			}
			if parts := s.split(); s.nHubs != rows || parts < s.parts+2*rows {
				t.Errorf("lengths %v: %d hubs in %d parts beside %d", lengths, s.nHubs, parts-s.parts, s.parts)
			}
		}
	})
}

func testSpMM(t *testing.T, n int, lengths []int, gap, offset int, weighted, acc, exact bool, tall int) {
	t.Helper()
	fill := noise
	if exact {
		fill = counts
	}
	rowPtr, col := sparse(5, lengths, tall)
	if offset == 2 { // a shard's rows may begin later
		for i := range rowPtr {
			rowPtr[i] += 3
		}
		col = append([]int32{-1, 1 << 30, -7}, col...)
	}
	var val []float32
	if weighted {
		val = fill(7, make([]float32, len(col)))
	}
	ld := n + gap
	rows := len(lengths)
	x := fill(8, make([]float32, max(0, (tall-1)*ld+n)+offset))[offset:]
	y, check := fenced(t, offset, max(0, (rows-1)*ld+n))
	fill(9, y)
	before := slices.Clone(y)
	SpMM(rowPtr, col, val, n, x, ld, y, ld, acc)
	check()
	sum, abs := make([]float64, n), make([]float64, n)
	for i := range rows {
		for j := range n {
			sum[j], abs[j] = 0, 0
			if acc {
				sum[j] = float64(before[i*ld+j])
				abs[j] = math.Abs(sum[j])
			}
		}
		for k := rowPtr[i]; k < rowPtr[i+1]; k++ {
			w := 1.0
			if weighted {
				w = float64(val[k])
			}
			for j, v := range x[int(col[k])*ld:][:n] {
				sum[j] += w * float64(v)
				abs[j] += math.Abs(w * float64(v))
			}
		}
		for j := range n {
			bound := 0.0
			if !exact {
				bound = float64(rowPtr[i+1]-rowPtr[i]+1) * 0x1p-24 * abs[j]
			}
			if got := float64(y[i*ld+j]); math.Abs(got-sum[j]) > bound {
				t.Fatalf("n %d rows %d gap %d weighted %v acc %v exact %v: Y[%d,%d] = %g, must be %g within %g", n,
					rows, gap, weighted, acc, exact, i, j, got, sum[j], bound)
			}
		}
		for j := n; j < ld && i < rows-1; j++ {
			if y[i*ld+j] != before[i*ld+j] {
				t.Fatalf("n %d: wrote between rows at %d,%d", n, i, j)
			}
		}
	}
}

// TestSpMax compares with plain Go, including ties and NaN.
func TestSpMax(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 7, 8, 9, 16, 17, 33, 64, 65, 130} {
			for l, lengths := range spmmLengths {
				gap, tall := l%3, 30
				rowPtr, col := sparse(5, lengths, tall)
				x := counts(3, make([]float32, tall*(n+gap))) // small integers tie often
				for i := 0; i < len(x); i += 13 {
					x[i] = float32(math.NaN())
				}
				ld := n + gap
				size := max(0, (len(lengths)-1)*ld+n)
				y, check := fenced(t, l, size)
				want, arg := make([]float32, size), make([]int32, size)
				for i := range y {
					y[i], want[i], arg[i] = float32(math.Inf(-1)), float32(math.Inf(-1)), -1
				}
				wantArg := slices.Clone(arg)
				SpMax(rowPtr, col, n, x, ld, y, ld, arg, ld)
				check()
				for i := range lengths {
					for _, j := range col[rowPtr[i]:rowPtr[i+1]] {
						for c, v := range x[int(j)*ld:][:n] {
							if v > want[i*ld+c] {
								want[i*ld+c], wantArg[i*ld+c] = v, j
							}
						}
					}
				}
				same(t, fmt.Sprintf("n %d lengths %v", n, lengths), y, want)
				if !slices.Equal(arg, wantArg) {
					t.Fatalf("n %d lengths %v: arg %v, must be %v", n, lengths, arg, wantArg)
				}
			}
		}
	})
}

// panics fails unless f panics with a message that begins with "kernels: " and contains want.
func panics(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		s, _ := recover().(string)
		if !strings.HasPrefix(s, "kernels: ") || !strings.Contains(s, want) {
			t.Errorf("panic %q, must be kernels: … %s", s, want)
		}
	}()
	f()
}

func TestSpMMPanics(t *testing.T) {
	each(t, func(t *testing.T) {
		x, y := make([]float32, 40), make([]float32, 20) // X 4×10, Y 2×10
		arg := make([]int32, 20)
		for _, c := range []struct {
			what   string
			rowPtr []int64
			col    []int32
			val    []float32
		}{
			{"one row pointer more than rows", nil, nil, nil},
			{"row pointer 2", []int64{0, 2, 1}, []int32{0, 1}, nil},
			{"row pointer 1", []int64{0, 9, 2}, []int32{0, 1}, nil},
			{"row pointer 2", []int64{0, 1, 3}, []int32{0, 1}, nil},
			{"row pointer 0", []int64{-1, 1, 2}, []int32{0, 1}, nil},
			{"row pointer 1", []int64{0, -1, 2}, []int32{0, 1}, nil},
			{"column 4 of edge 1", []int64{0, 1, 2}, []int32{3, 4}, nil},
			{"column -1 of edge 0", []int64{0, 1, 2}, []int32{-1, 3}, nil},
			{"1 values", []int64{0, 1, 2}, []int32{0, 1}, []float32{1}},
			{"Y of Sp", []int64{0, 1, 2, 2}, []int32{0, 1}, nil},
		} {
			panics(t, c.what, func() { SpMM(c.rowPtr, c.col, c.val, 10, x, 10, y, 10, false) })
			if c.val == nil {
				panics(t, c.what, func() { SpMax(c.rowPtr, c.col, 10, x, 10, y, 10, arg, 10) })
			}
		}
		panics(t, "arg of SpMax", func() { SpMax([]int64{0, 1, 2}, []int32{0, 1}, 10, x, 10, y, 10, arg[:19], 10) })
		panics(t, "X of SpMM", func() { SpMM([]int64{0, 1}, []int32{0}, nil, 10, x, 9, y, 10, false) })
	})
}

// FuzzSpMM checks that a broken CSR only panics with a message.
func FuzzSpMM(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, []byte{0, 1, 2}, uint8(7), uint8(0))
	f.Add([]byte{0, 200, 3}, []byte{255, 1, 2}, uint8(40), uint8(3))
	f.Fuzz(func(t *testing.T, ptr, cols []byte, n, gap uint8) {
		rowPtr, col := make([]int64, len(ptr)), make([]int32, len(cols))
		for i, p := range ptr {
			rowPtr[i] = int64(int8(p))
		}
		for i, c := range cols {
			col[i] = int32(int8(c))
		}
		ld := int(n) + int(gap)
		x := noise(1, make([]float32, 20*ld))
		before := active
		defer func() { active = before }()
		for _, s := range usable() {
			active = s
			y, check := fenced(t, int(gap)%7, max(0, (len(ptr)-1)*ld))
			func() {
				defer func() {
					if r := recover(); r != nil && !strings.HasPrefix(fmt.Sprint(r), "kernels: ") {
						panic(r)
					}
				}()
				SpMM(rowPtr, col, nil, int(n), x, ld, y, ld, false)
			}()
			check()
		}
	})
}
