package kernels

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// TestSpMMPanels checks that the bits are SpMM's for rows with no column, few and all of them, overwritten and added,
// on one core and three. Panels must be used if rows have enough edges and the panels' columns are wide enough.
func TestSpMMPanels(t *testing.T) {
	each(t, func(t *testing.T) {
		const rows = 2*panelRows + 37
		for k, c := range []struct{ n, tall, every int }{{128, 97, 3}, {256, 200, 2}, {128, 2*panelTall + 1, 10},
			{128, 96, 3}, {256, 200, 40}, {100, 200, 2}, {384, 300, 1}} {
			ld := c.n + k%3
			rowPtr, col := make([]int64, rows+1), []int32(nil)
			for i := range rows {
				for j := 0; j < c.tall && i%7 != 3; j += c.every + i%2 {
					col = append(col, int32((j+i)%c.tall))
				}
				slices.Sort(col[rowPtr[i]:])
				rowPtr[i+1] = int64(len(col))
			}
			val, x := noise(1, make([]float32, len(col))), noise(2, make([]float32, (c.tall-1)*ld+c.n))
			var s spmm
			s.init("SpMMPanels", rowPtr, col, c.n, len(x), ld)
			if used, must := s.panels(len(val)), active.panel.run != nil && c.n%active.panel.cols == 0 &&
				c.tall > panelTall && c.every < 40; used != must {
				t.Errorf("n %d of %d rows: panels %v, must be %v", c.n, c.tall, used, must)
			}
			for _, threads := range []int{1, 3} {
				before := runtime.GOMAXPROCS(threads)
				y, check := fenced(t, k, (rows-1)*ld+c.n)
				noise(3, y)
				sum := slices.Clone(y)
				SpMMPanels(rowPtr, col, val, c.n, x, ld, y, ld, k%2 == 0)
				check()
				SpMM(rowPtr, col, val, c.n, x, ld, sum, ld, k%2 == 0)
				same(t, fmt.Sprintf("n %d of %d rows", c.n, c.tall), y, sum)
				runtime.GOMAXPROCS(before)
			}
		}
		SpMMPanels([]int64{0}, nil, nil, 128, nil, 128, nil, 128, false)
	})
}

func TestSpMMPanelsPanics(t *testing.T) {
	each(t, func(t *testing.T) {
		const rows, tall, n = 3, 100, 128
		x, y := make([]float32, tall*n), make([]float32, rows*n)
		rowPtr, col := make([]int64, rows+1), make([]int32, rows*tall)
		for i := range rows {
			for j := range tall {
				col[i*tall+j] = int32(j)
			}
			rowPtr[i+1] = int64((i + 1) * tall)
		}
		val := make([]float32, len(col))
		call := func() { SpMMPanels(rowPtr, col, val, n, x, n, y, n, false) }
		for _, at := range []int32{tall, -1} {
			col[150] = at
			panics(t, fmt.Sprintf("column %d of edge 150 is out of the 100 rows", at), call)
		}
		col[150] = 50
		rowPtr[1] = 201
		panics(t, "row pointer 2 is 200", call)
		rowPtr[1] = 100
		panics(t, "has only 383 values", func() { SpMMPanels(rowPtr, col, val, n, x, n, y[:383], n, false) })
		if active.panel.run != nil {
			col[101], col[199] = col[199], col[101]
			panics(t, "columns of row 1 must ascend", call)
		}
	})
}
