//go:build unix

package kernels

import (
	"os"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// walled returns a function that makes slices that end, or begin, at an inaccessible page: if a vector reads one value
// too many, the test crashes. The slices are released with the test.
func walled(t *testing.T, atEnd bool) func(n int) []float32 {
	page := os.Getpagesize()
	return func(n int) []float32 {
		t.Helper()
		size := (4*n + page - 1) / page * page
		mem, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Munmap(mem); err != nil {
				t.Error(err)
			}
		})
		for _, wall := range [][]byte{mem[:page], mem[page+size:]} {
			if err := unix.Mprotect(wall, unix.PROT_NONE); err != nil {
				t.Fatal(err)
			}
		}
		first := page
		if atEnd {
			first += size - 4*n
		}
		return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem[first:]))), n)
	}
}

// TestWalls checks that no loop reads or writes outside of its arguments.
func TestWalls(t *testing.T) {
	for _, atEnd := range []bool{false, true} {
		each(t, func(t *testing.T) {
			alloc := walled(t, atEnd)
			x, y, z, v := alloc(100), alloc(100), alloc(100), alloc(100)
			from := func(s []float32, n int) []float32 {
				if atEnd {
					return s[len(s)-n:]
				}
				return s[:n:n]
			}
			from16 := func(s []uint16, n int) []uint16 {
				if atEnd {
					return s[len(s)-n:]
				}
				return s[:n:n]
			}
			for n := range 101 {
				ToBF16(from(x, n), from16(halves(y), n))
				FromBF16(from16(halves(y), n), from(x, n))
				row8 := unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(y))), 400)
				if atEnd {
					row8 = row8[400-n:]
				}
				FromInt8(ToInt8(from(x, n), row8[:n]), row8[:n], from(x, n))
				x, y, z, v := from(x, n), from(y, n), from(z, n), from(v, n)
				whole, _ := Bytes(x)
				onto, _ := Bytes(y)
				AddIntegers(16, whole, onto)
				steps := make([]float64, n)
				ToFixed(x, steps, onto)
				Fixed(onto, steps, x)
				integers(32, whole, onto, true)
				NewKeystream([32]byte{}).Add(32, 4*(n%5), onto)
				Axpy(2, x, y)
				Dot(x, y)
				Add(x, y)
				Scale(2, x)
				ReLU(x, y)
				ReLUGrad(x, y, z)
				ELU(x, y)
				ELUGrad(x, y, z)
				LeakyDot(0.2, x, y, z)
				LeakyDotGrad(1, 0.2, x, y, z, v, v)
				LeakySourceGrad(1, 1, 0.2, x, y, z, x, v)
				AdamStep(x, y, z, v, 1, 0.1, 0.9, 0.9, 1e-8, 1, 1, 0, 0)
				Dropout([]uint64{3}, 0.5, 0, n, x, n, y, n, false)
				Dropout([]uint64{3}, 0.5, 0, n, x, n, y, n, true)
				at := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(z))), n)
				clear(at)
				ends, kept := []int64{0, int64(n)}, make([]int64, 1)
				mask := NewMask(nil, ends[1], 1)
				DropoutKept([]uint64{3}, 0.5, 0, ends, at, x, mask, kept)
				left := from(y, int(kept[0]))
				DropoutPack(0.5, 0, ends, at, x, mask, []int64{0, kept[0]}, make([]int32, len(left)), left)
				SumColumns(1, x, n, y, true)
				ExpSum(Max(x), x, y)
				var stats [2]float32
				LayerNorm(1, 1, x, n, y, z, v, n, stats[:])
				LayerNormGrad(1, x, n, stats[:], y, z, n, v, n, x, z)
				col := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(z))), n)
				clear(col)
				GatherRows(1, col, y, 1, x, 1)
				clear(v)
				Waves(v, z) // of zeros, which no set leaves to Go
			}
			for _, d := range [][3]int{{1, 1, 1}, {5, 7, 3}, {6, 8, 9}, {13, 15, 17}, {14, 32, 8}, {17, 33, 5},
				{23, 40, 31}, {29, 100, 20}, {33, 65, 67}, {70, 47, 100}} {
				m, n, k := d[0], d[1], d[2]
				a, b, c := alloc(m*k), alloc(k*n), alloc(m*n)
				GemmNN(m, n, k, a, k, b, n, c, n, false)
				GemmTN(m, n, k, a, m, b, n, c, n, true)
				GemmNT(m, n, k, a, k, b, k, c, n, true)
				GemmNNBF16(m, n, k, a, k, b, n, c, n, false, nil, true)
				GemmTNBF16(m, n, k, a, m, b, n, c, n, true)
				GemmNTBF16(m, n, k, a, k, b, k, c, n, true)
			}
			rowPtr, col := sparse(1, []int{0, 3, 1, 40, 0, 2}, 30)
			col[0], col[len(col)-1] = 0, 29
			walledCol := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(alloc(len(col))))), len(col))
			copy(walledCol, col)
			val := alloc(len(col))
			for _, n := range []int{1, 7, 8, 9, 16, 17, 40, 64, 100, 257} {
				x, y := alloc(30*n), alloc(6*n)
				arg := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(alloc(6*n)))), 6*n)
				SpMM(rowPtr, walledCol, val, n, x, n, y, n, false)
				SpMM(rowPtr, walledCol, nil, n, x, n, y, n, true)
				SpMax(rowPtr, walledCol, n, x, n, y, n, arg, n)
			}
			for _, d := range [][2]int{{1, 5}, {2, 8}, {3, 7}, {4, 16}, {8, 20}, {9, 16}} {
				w, ld := d[0]*d[1], PadHeads(d[0])
				a := Attention{RowPtr: rowPtr, Col: walledCol, Heads: d[0], Dim: d[1], Slope: 0.2}
				own, far, x, top, sum, y := alloc(6*ld), alloc(30*ld), alloc(30*w), alloc(6*ld), alloc(6*ld), alloc(6*w)
				a.Forward(own, far, x, w, &Softmax{Top: top, Sum: sum, Y: y, LDY: w, Fresh: true})
				a.Forward(own, far, x, w, &Softmax{Top: top, Sum: sum, Y: y, LDY: w})
				a.Backward(own, far, &AttentionGrad{Log: alloc(30 * ld), Base: alloc(30 * ld), DY: x, LDDY: w, X: y,
					LDX: w, DX: alloc(6 * w), LDDX: w, DOwn: top, DFar: alloc(30 * ld)})
			}
			tall, long := alloc(1<<19), slices.Repeat([]int{50}, 30) // past the size where rows are fetched ahead
			rowPtr, col = sparse(2, long, len(tall)/64)
			SpMM(rowPtr, col, nil, 64, tall, 64, alloc(30*64), 64, false)
		})
	}
}

// halves returns the memory of x as twice as many bfloat16 values.
func halves(x []float32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}
