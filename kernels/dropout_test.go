package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// dropped returns the mask of a row as plain Go computes it.
func dropped(key uint64, p float32, keep []float32) []float32 {
	maskGeneric(uint32(key), uint32(key>>32), dropLimit(p), 1/(1-p), keep)
	return keep
}

// times multiplies y by x, value by value.
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

// TestDropoutOfSparse checks sparse rows, short and long, to the bit. The values that are counted and packed are those
// that Dropout keeps in whole rows, with their columns, in order. Stored zeros are dropped, nothing next to the output
// is written, and Drop transposes the same values.
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
					if v := keep[col[k]]; v != 0 && x[k] != 0 {
						wantCol, want = append(wantCol, col[k]), append(want, x[k]*v)
					}
				}
				into = append(into, int64(len(want)))
			}
			kept := make([]int64, len(keys))
			mask := NewMask(Mask{0xffff}, rowPtr[len(keys)], len(keys))
			DropoutKept(keys[:3], p, 0, rowPtr[:4], col, x, mask, kept[:3])
			DropoutKept(keys[3:], p, 3, rowPtr[3:], col, x, mask, kept[3:])
			for i, n := range kept {
				if must := into[i+1] - into[i]; n != must {
					t.Fatalf("p %g: row %d keeps %d values, must be %d", p, i, n, must)
				}
			}
			at := make([]int32, len(want))
			y, check := fenced(t, 3, len(want))
			DropoutPack(p, 0, rowPtr[:7], col, x, mask, into[:7], at, y)
			DropoutPack(p, 6, rowPtr[6:], col, x, mask, into[6:], at, y)
			check()
			for _, some := range [][2]int{{0, len(keys)}, {0, 1}, {2, 9}, {12, 14}} {
				testDrop(t, some[0], some[1], p, rowPtr, col, x, mask, into, at, y)
			}
			for k, v := range want {
				if at[k] != wantCol[k] || math.Float32bits(y[k]) != math.Float32bits(v) && v == v {
					t.Fatalf("p %g: value %d is %g of column %d, must be %g of column %d", p, k, y[k], at[k], v,
						wantCol[k])
				}
			}
		}
	})
	two, one := []int64{0, 2}, []uint64{1}
	mask := NewMask(nil, 2, 1)
	panics(t, "kept of DropoutKept", func() { DropoutKept(one, 0, 0, two, []int32{0, 1}, []float32{1, 2}, mask, nil) })
	panics(t, "row pointer 1 is 2",
		func() { DropoutKept(one, 0, 0, two, []int32{0}, []float32{1, 2}, mask, make([]int64, 1)) })
	panics(t, "too few for rows 1 to 2",
		func() { DropoutKept(one, 0, 1, two, []int32{0, 1}, []float32{1, 2}, mask, make([]int64, 1)) })
	DropoutKept(one, 0, 0, two, []int32{0, 1}, []float32{1, 2}, mask, make([]int64, 1))
	panics(t, "has room for 1 values", func() {
		DropoutPack(0, 0, two, []int32{0, 1}, []float32{1, 2}, mask, []int64{0, 1}, make([]int32, 1),
			make([]float32, 1))
	})
	turned, _ := NewTurned(0, two, []int32{0, 1}, []float32{1, 2}, 2)
	panics(t, "mask of Drop must have", func() { new(Block).Drop(&turned, 0, mask[:2], nil, nil) })
	panics(t, "room of Drop must be", func() {
		new(Block).Drop(&turned, 0, mask, make([]int32, DropMore+9), make([]float32, DropMore))
	})
	if _, ok := NewTurned(0, make([]int64, 1<<12+2), nil, nil, 2); ok {
		t.Error("rows that do not fit the bits of a place must be refused")
	}
	panics(t, "Y of Dropout", func() { Dropout(one, 0.5, 0, 3, []float32{1, 2, 3}, 3, make([]float32, 2), 3, false) })
}

// testDrop checks that Drop gives, for some rows, the Transpose of the values that dropout keeps.
func testDrop(t *testing.T, lo, hi int, p float32, rowPtr []int64, col []int32, x []float32, mask Mask, into []int64,
	at []int32, y []float32) {
	t.Helper()
	const cols = 3001
	turned, ok := NewTurned(lo, rowPtr[lo:hi+1], col, x, cols)
	if !ok {
		t.Fatalf("rows %d to %d must fit", lo, hi)
	}
	var got, want Block
	want.Transpose(lo, into[lo:hi+1], at, y, cols)
	room := int(into[hi]-into[lo]) + DropMore
	for range 2 { // the second time in the memory of the first result
		got.Drop(&turned, p, mask, make([]int32, room), make([]float32, room))
	}
	gotPtr, gotCol, gotVal := got.CSR()
	wantPtr, wantCol, wantVal := want.CSR()
	if got.first != want.first || got.rows != want.rows || !slices.Equal(gotPtr, wantPtr) ||
		!slices.Equal(gotCol, wantCol) {
		t.Fatalf("p %g: the pattern of rows %d to %d must be that of their transpose", p, lo, hi)
	}
	same(t, fmt.Sprintf("p %g, rows %d to %d", p, lo, hi), gotVal, wantVal)
}
