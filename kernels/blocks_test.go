package kernels

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// TestSpMMBlocks: to the bit what SpMM adds block after block, over widths about every cut-off, on one core and three; rows that
// are too many for their copy are taken as they lie.
func TestSpMMBlocks(t *testing.T) {
	each(t, func(t *testing.T) {
		for k, n := range []int{1, 7, 16, 33, 64, 100, 128, 129, 256, 300} {
			for _, threads := range []int{1, 3} {
				before := runtime.GOMAXPROCS(threads)
				testSpMMBlocks(t, n, k%3, k%5)
				runtime.GOMAXPROCS(before)
			}
		}
		SpMMBlocks(nil, 3, nil, 3, nil, 3)
		SpMMBlocks([]Block{{RowPtr: []int64{0}}}, 3, nil, 3, nil, 3)
	})
}

func testSpMMBlocks(t *testing.T, n, gap, offset int) {
	t.Helper()
	const rows = 37
	ld := n + gap
	var blocks []Block
	first := 2
	for k, tall := range []int{BlockRows(n), 3, 0, BlockRows(n) + 40, 1} {
		lengths := make([]int, rows)
		for i := range lengths {
			if lengths[i] = (i + k) * 5 % 19; tall == 0 {
				lengths[i] = 0
			}
		}
		b := Block{First: first, Rows: tall}
		b.RowPtr, b.Col = sparse(uint64(k), lengths, tall)
		b.Val = noise(7, make([]float32, len(b.Col)))
		blocks, first = append(blocks, b), first+tall
	}
	x := noise(8, make([]float32, (first-1)*ld+n+offset))[offset:]
	y, check := fenced(t, offset, (rows-1)*ld+n)
	noise(9, y)
	sum := slices.Clone(y)
	for _, b := range blocks {
		SpMM(b.RowPtr, b.Col, b.Val, n, x[min(b.First*ld, len(x)):], ld, sum, ld, true)
	}
	SpMMBlocks(blocks, n, x, ld, y, ld)
	check()
	same(t, fmt.Sprintf("n %d gap %d", n, gap), y, sum)
}

func TestSpMMBlocksPanics(t *testing.T) {
	each(t, func(t *testing.T) {
		x, y := make([]float32, 40), make([]float32, 20) // X 4×10, Y 2×10
		good := Block{Rows: 4, RowPtr: []int64{0, 1, 2}, Col: []int32{0, 3}, Val: []float32{1, 1}}
		for _, c := range []struct {
			what string
			b    Block
		}{
			{"block 1 of SpMMBlocks must have 3 row pointers (got 2)", Block{Rows: 4, RowPtr: []int64{0, 1}, Col: []int32{0}, Val: []float32{1}}},
			{"has 1 values for 2 columns", Block{Rows: 4, RowPtr: []int64{0, 1, 2}, Col: []int32{0, 1}, Val: []float32{1}}},
			{"picks 2 rows from row -1 on", Block{First: -1, Rows: 2, RowPtr: []int64{0, 0, 0}}},
			{"X of SpMMBlocks", Block{First: 1, Rows: 4, RowPtr: []int64{0, 0, 0}}},
			{"column 2 of edge 1", Block{First: 1, Rows: 2, RowPtr: []int64{0, 1, 2}, Col: []int32{0, 2}, Val: []float32{1, 1}}},
			{"column -1 of edge 0", Block{Rows: 2, RowPtr: []int64{0, 1, 2}, Col: []int32{-1, 1}, Val: []float32{1, 1}}},
			{"row pointer 1", Block{Rows: 2, RowPtr: []int64{0, 5, 2}, Col: []int32{0, 1}, Val: []float32{1, 1}}},
		} {
			panics(t, c.what, func() { SpMMBlocks([]Block{good, c.b}, 10, x, 10, y, 10) })
		}
		panics(t, "row pointers", func() { SpMMBlocks([]Block{{}}, 10, x, 10, y, 10) })
		panics(t, "Y of SpMMBlocks", func() { SpMMBlocks([]Block{good}, 10, x, 10, y[:19], 10) })
	})
}
