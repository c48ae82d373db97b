package kernels

import (
	"fmt"
	"runtime"
	"testing"
)

// TestSpMMBlocks checks that the bits are the same as adding block after block by SpMM: for widths about every limit,
// on one core and three, for blocks that stay in L1 and in L2. Blocks too large for a copy are read in place.
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
		var none Block
		none.Transpose(0, []int64{0}, nil, nil, 0)
		SpMMBlocks([]Block{none}, 3, nil, 3, nil, 3)
	})
}

func testSpMMBlocks(t *testing.T, n, gap, offset int) {
	t.Helper()
	const rows = 37
	ld := n + gap
	var blocks []Block
	sum := make([]float32, (rows-1)*ld+n)
	noise(9, sum)
	first := 2
	near, far := BlockRows(n)
	talls := []int{near, 3, 0, 1}
	switch n % 3 {
	case 0:
		talls = append(talls, near+40)
	case 1:
		talls = append(talls, far, far+40)
	}
	x := noise(8, make([]float32, (2*near+2*far+46)*ld+offset))[offset:]
	for k, tall := range talls {
		lengths := make([]int, tall)
		for i := range lengths {
			lengths[i] = (i + k) * 5 % 19
		}
		rowPtr, col := sparse(uint64(k), lengths, rows)
		for i := range rowPtr { // rows before the transposed ones
			rowPtr[i] += int64(k)
		}
		col = append(make([]int32, k), col...)
		val := noise(7, make([]float32, len(col)))
		var b Block
		for range 2 { // the second time in the memory of the first block
			b.Transpose(first, rowPtr, col, val, rows)
		}
		blocks = append(blocks, b)
		at, cols, values := b.CSR()
		if b.Bytes() < 8*int64(len(at))+8*int64(len(cols)) || len(cols) != len(col)-k {
			t.Fatalf("a block has %d columns in %d bytes, must be %d columns", len(cols), b.Bytes(), len(col)-k)
		}
		for c := range rows { // columns of the block are the rows that have column c, in order
			e := at[c]
			for i := range tall {
				for p := rowPtr[i]; p < rowPtr[i+1]; p++ {
					if int(col[p]) != c {
						continue
					}
					if cols[e] != int32(i) || values[e] != val[p] {
						t.Fatalf("value %d of a block is %v of row %d, must be %v of row %d", e, values[e], cols[e],
							val[p], i)
					}
					e++
				}
			}
			if e != at[c+1] {
				t.Fatalf("row %d of a block ends at %d, must be %d", c, at[c+1], e)
			}
		}
		SpMM(at, cols, values, n, x[first*ld:], ld, sum, ld, true)
		first += tall
	}
	y, check := fenced(t, offset, (rows-1)*ld+n)
	noise(9, y)
	SpMMBlocks(blocks, n, x, ld, y, ld)
	check()
	same(t, fmt.Sprintf("n %d gap %d", n, gap), y, sum)
}

func TestSpMMBlocksPanics(t *testing.T) {
	each(t, func(t *testing.T) {
		x, y := make([]float32, 40), make([]float32, 20) // X 4×10, Y 2×10
		block := func(first, cols int) (b Block) {
			b.Transpose(first, []int64{0, 1, 2, 2, 2}, []int32{1, 0}, []float32{1, 1}, cols)
			return b
		}
		good := block(0, 2)
		SpMMBlocks([]Block{good}, 10, x, 10, y, 10)
		for _, c := range []struct {
			what string
			b    Block
		}{
			{"block 1 of SpMMBlocks must have 2 rows (got 3)", block(0, 3)},
			{"block 1 of SpMMBlocks must have 2 rows (got -1)", Block{}},
			{"X of SpMMBlocks", block(1, 2)},
		} {
			panics(t, c.what, func() { SpMMBlocks([]Block{good, c.b}, 10, x, 10, y, 10) })
		}
		panics(t, "must have -1 rows", func() { SpMMBlocks([]Block{{}}, 10, x, 10, y, 10) })
		panics(t, "Y of SpMMBlocks", func() { SpMMBlocks([]Block{good}, 10, x, 10, y[:19], 10) })
		panics(t, "Transpose begins with row -1", func() { block(-1, 2) })
	})
}
