package kernels

import (
	"math"
	"testing"
)

// dropped returns the mask of a row, as plain Go has it.
func dropped(key uint64, p float32, keep []float32) []float32 {
	maskGeneric(uint32(key), uint32(key>>32), dropLimit(p), 1/(1-p), keep)
	return keep
}

// times makes of y the products with x, one by one.
func times(x, y []float32) {
	for i, v := range x {
		y[i] *= v
	}
}

func dropRow(key uint64, p float32, x, y []float32, add bool) {
	Dropout([]uint64{key}, p, 0, len(x), x, len(x), y, len(x), add)
}

// TestDropoutMask pins the mask: a change here changes every trained model.
func TestDropoutMask(t *testing.T) {
	each(t, func(t *testing.T) {
		one, keep := make([]float32, 40), make([]float32, 40)
		for c := range one {
			one[c] = 1
		}
		dropRow(42, 0.5, one, keep, false)
		var bits uint64
		for c, v := range keep {
			switch v {
			case 2:
				bits |= 1 << c
			case 0:
			default:
				t.Fatalf("keep[%d] = %g, must be 0 or 2", c, v)
			}
		}
		if want := uint64(0x95c1623cde); bits != want {
			t.Errorf("mask %#x, must be %#x", bits, want)
		}
		dropRow(42, 0, one, keep, false)
		for c, v := range keep {
			if v != 1 {
				t.Fatalf("p = 0: keep[%d] = %g, must be 1", c, v)
			}
		}
	})
}

// TestDropoutOfSparse: single places of a row, and those of a column, are dropped as whole rows are.
func TestDropoutOfSparse(t *testing.T) {
	const rows, cols = 300, 1000
	keys := make([]uint64, rows)
	for i := range keys {
		keys[i] = uint64(i+1) * 0xd1342543de82ef95
	}
	x := noise(1, make([]float32, cols))
	each(t, func(t *testing.T) {
		for n := range 70 {
			p := []float32{0, 0.1, 0.5, 0.75, math.Nextafter32(1, 0)}[n%5]
			col, row := make([]int32, n), make([]int32, n)
			for k := range n {
				col[k], row[k] = int32(k*14+n%14), int32(k*4+n%20)
			}
			key, column := keys[n], 991-n
			inRow, checkRow := fenced(t, n%9, n)
			inColumn, checkColumn := fenced(t, n%7, n)
			DropoutColumns(key, p, col, x[:n], inRow)
			DropoutRows(keys, column, p, row, x[:n], inColumn)
			checkRow()
			checkColumn()
			keep := make([]float32, cols)
			for k, c := range col {
				if want := x[k] * dropped(key, p, keep)[c]; math.Float32bits(inRow[k]) != math.Float32bits(want) {
					t.Fatalf("%d columns, p %g, column %d: %g, must be %g", n, p, c, inRow[k], want)
				}
				if want := x[k] * dropped(keys[row[k]], p, keep)[column]; math.Float32bits(inColumn[k]) != math.Float32bits(want) {
					t.Fatalf("%d rows, p %g, row %d: %g, must be %g", n, p, row[k], inColumn[k], want)
				}
			}
		}
	})
	panics(t, "a row has no key", func() { DropoutRows(keys, 0, 0.5, []int32{0, rows}, x[:2], x[2:4]) })
	panics(t, "a row has no key", func() { DropoutRows(nil, 0, 0.5, []int32{-1}, x[:1], x[1:2]) })
	panics(t, "x of DropoutColumns", func() { DropoutColumns(1, 0.5, make([]int32, 3), x[:2], x[2:5]) })
	panics(t, "Y of Dropout", func() { Dropout([]uint64{1}, 0.5, 0, 3, x[:3], 3, x[3:5], 3, false) })
}
