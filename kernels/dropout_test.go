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

// TestDropoutOfSparse: of sparse rows, short and long, what is counted and packed are the values that whole rows keep, at their
// columns and in their order, to the bit; zeros that are stored go too, and nothing beside the room is touched.
func TestDropoutOfSparse(t *testing.T) {
	const cols = 3000
	each(t, func(t *testing.T) {
		for _, p := range []float32{0, 0.1, 0.5, 0.75, math.Nextafter32(1, 0)} {
			var keys []uint64
			rowPtr, col := []int64{0}, []int32(nil)
			for _, n := range []int{0, 1, 3, 7, 8, 15, 16, 17, 33, 100, 511, 512, 513, 1029} {
				for k := range n {
					col = append(col, int32(k*(cols/n)+n%3))
				}
				keys, rowPtr = append(keys, uint64(n+1)*0xd1342543de82ef95), append(rowPtr, int64(len(col)))
			}
			x := noise(1, make([]float32, len(col)))
			x[5], x[40], x[41] = 0, float32(math.Copysign(0, -1)), float32(math.NaN())
			var wantCol []int32
			var want []float32
			into := []int64{0}
			keep := make([]float32, cols)
			for i, key := range keys {
				dropped(key, p, keep)
				for k := rowPtr[i]; k < rowPtr[i+1]; k++ {
					if v := x[k] * keep[col[k]]; v != 0 {
						wantCol, want = append(wantCol, col[k]), append(want, v)
					}
				}
				into = append(into, int64(len(want)))
			}
			kept := make([]int64, len(keys))
			DropoutKept(keys, p, rowPtr, col, x, kept)
			for i, n := range kept {
				if must := into[i+1] - into[i]; n != must {
					t.Fatalf("p %g: row %d keeps %d values, must be %d", p, i, n, must)
				}
			}
			at := make([]int32, len(want))
			y, check := fenced(t, 3, len(want))
			DropoutPack(keys, p, rowPtr, col, x, into, at, y)
			check()
			for k, v := range want {
				if at[k] != wantCol[k] || math.Float32bits(y[k]) != math.Float32bits(v) && v == v {
					t.Fatalf("p %g: value %d is %g of column %d, must be %g of column %d", p, k, y[k], at[k], v, wantCol[k])
				}
			}
		}
	})
	two, one := []int64{0, 2}, []uint64{1}
	panics(t, "kept of DropoutKept", func() { DropoutKept(one, 0, two, []int32{0, 1}, []float32{1, 2}, nil) })
	panics(t, "row pointer 1 is 2", func() { DropoutKept(one, 0, two, []int32{0}, []float32{1, 2}, make([]int64, 1)) })
	panics(t, "has room for 1 values", func() {
		DropoutPack(one, 0, two, []int32{0, 1}, []float32{1, 2}, []int64{0, 1}, make([]int32, 1), make([]float32, 1))
	})
	panics(t, "Y of Dropout", func() { Dropout(one, 0.5, 0, 3, []float32{1, 2, 3}, 3, make([]float32, 2), 3, false) })
}
