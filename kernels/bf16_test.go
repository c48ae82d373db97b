package kernels

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// bf16 returns the bfloat16 nearest to each of x.
func bf16(x []float32) []uint16 {
	y := make([]uint16, len(x))
	toBF16Generic(x, y)
	return y
}

// widened returns x as float32.
func widened(x []uint16) []float32 {
	y := make([]float32, len(x))
	fromBF16Generic(x, y)
	return y
}

// TestToBF16Generic holds that plain Go rounds to the nearest, ties to even.
func TestToBF16Generic(t *testing.T) {
	for _, c := range []struct {
		in   uint32
		want uint16
	}{
		{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82}, {0x3f817fff, 0x3f81},
		{0x80000000, 0x8000}, {0x00000001, 0}, {0x00008001, 1}, {0x7f7fffff, 0x7f80}, {0xff800000, 0xff80},
		{0x7f800001, 0x7fc0}, {0xffffffff, 0xffff}, {0x7fc10000, 0x7fc1},
	} {
		var got [1]uint16
		toBF16Generic([]float32{math.Float32frombits(c.in)}, got[:])
		if got[0] != c.want {
			t.Errorf("%#x: %#x, must be %#x", c.in, got[0], c.want)
		}
	}
}

// TestConversions holds that every set gives the bits of plain Go.
func TestConversions(t *testing.T) {
	each(t, func(t *testing.T) {
		for i, n := range lengths() {
			offset := i % 7
			for _, fill := range []func(uint64, []float32) []float32{noise, special} {
				x := fill(1, make([]float32, n+offset))[offset:]
				const canary = 0xabcd
				all := slices.Repeat([]uint16{canary}, n+40)
				y, want := all[20:20+n:20+n], make([]uint16, n)
				ToBF16(x, y)
				toBF16Generic(x, want)
				if !slices.Equal(y, want) {
					t.Fatalf("ToBF16 of %d differs", n)
				}
				if slices.ContainsFunc(slices.Concat(all[:20], all[20+n:]), func(v uint16) bool { return v != canary }) {
					t.Fatalf("ToBF16 of %d wrote outside", n)
				}
				back, check := fenced(t, offset, n)
				FromBF16(y, back)
				check()
				same(t, "FromBF16", back, widened(want))
			}
			if n > 1003 {
				continue
			}
			x := noise(uint64(i), make([]float32, n+offset))[offset:]
			all := slices.Repeat([]int8{99}, n+80)
			y, want := all[40:40+n:40+n], make([]int8, n)
			scale := ToInt8(x, y)
			if top := maxAbsGeneric(x); n > 0 {
				toInt8Generic(127/top, x, want)
				if scale != top/127 {
					t.Fatalf("scale %g, must be %g", scale, top/127)
				}
			}
			if !slices.Equal(y, want) {
				t.Fatalf("ToInt8 of %d: %v, must be %v", n, y, want)
			}
			if slices.ContainsFunc(slices.Concat(all[:40], all[40+n:]), func(v int8) bool { return v != 99 }) {
				t.Fatalf("ToInt8 of %d wrote outside", n)
			}
			back, check := fenced(t, offset, n)
			FromInt8(scale, y, back)
			check()
			for k, v := range back {
				if v != scale*float32(y[k]) || math.Abs(float64(v-x[k])) > float64(scale)*0.5001 {
					t.Fatalf("FromInt8 of %d, scale %g: %g for %g", y[k], scale, v, x[k])
				}
			}
		}
		for _, c := range []struct{ odd, want float32 }{{0, 0}, {1e-40, 0}, {float32(math.Inf(-1)), float32(math.Inf(1))}, {float32(math.NaN()), float32(math.NaN())}} {
			x, y := make([]float32, 21), slices.Repeat([]int8{5}, 21)
			for _, at := range []int{3, 20} {
				clear(x)
				x[at] = c.odd
				same(t, "scale", []float32{ToInt8(x, y)}, []float32{c.want})
				if slices.ContainsFunc(y, func(v int8) bool { return v != 0 }) {
					t.Fatalf("%g: %v, must be zeros", c.odd, y)
				}
			}
		}
	})
}

// TestSpMMBF16 holds that the product is that of the widened rows, to the bit.
func TestSpMMBF16(t *testing.T) {
	each(t, func(t *testing.T) {
		test := func(n, tall, gap int, lengths []int, weighted, acc bool) {
			rowPtr, col := sparse(5, lengths, tall)
			var val []float32
			if weighted {
				val = noise(7, make([]float32, len(col)))
			}
			ld := n + gap
			x := bf16(noise(8, make([]float32, max(0, (tall-1)*ld+n)+gap)))[gap:]
			y, check := fenced(t, gap, max(0, (len(lengths)-1)*ld+n))
			noise(9, y)
			want := slices.Clone(y)
			SpMMBF16(rowPtr, col, val, n, x, ld, y, ld, acc)
			check()
			SpMM(rowPtr, col, val, n, widened(x), ld, want, ld, acc)
			same(t, fmt.Sprintf("n %d lengths %v", n, lengths), y, want)
		}
		for w, n := range []int{0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 63, 64, 65, 100, 127, 128, 129, 200, 256, 257, 300, 530} {
			for l, lengths := range spmmLengths {
				test(n, 50, (w+l)%3, lengths, l%2 == 0, w%2 == 0)
			}
		}
		long := make([]int, 5000)
		for i := range long {
			long[i] = i % 7
		}
		test(150, 9000, 1, long, true, false)
		panics(t, "column 4 of edge 1", func() {
			SpMMBF16([]int64{0, 2}, []int32{3, 4}, nil, 10, make([]uint16, 40), 10, make([]float32, 10), 10, false)
		})
		panics(t, "1 values", func() {
			SpMMBF16([]int64{0, 2}, []int32{3, 3}, make([]float32, 1), 10, make([]uint16, 40), 10, make([]float32, 10), 10, false)
		})
	})
}

// TestGemmBF16 compares every form with a float64 product of the rounded values, exactly on small integers.
func TestGemmBF16(t *testing.T) {
	forms := []struct {
		name string
		run  func(m, n, k int, a []uint16, lda int, b []uint16, ldb int, c []float32, ldc int, acc bool)
		a, b bool // transposed
	}{{"NN", GemmNNBF16, false, false}, {"TN", GemmTNBF16, true, false}, {"NT", GemmNTBF16, false, true}}
	shapes := [][3]int{{0, 3, 3}, {3, 0, 3}, {3, 3, 0}, {1, 1, 1}, {1, 7, 2}, {8, 16, 3}, {5, 8, 9}, {14, 32, 64}, {15, 33, 65}, {17, 47, 31}, {30, 100, 12},
		{28, 64, 128}, {33, 40, 511}, {16, 65, 513}, {231, 30, 40}, {250, 520, 66}, {20, 16, 1026}, {113, 200, 260}, {40, 70, 96}, {70, 100, 800}, {64, 33, 512}, {9, 20, 4101}}
	each(t, func(t *testing.T) {
		for s, d := range shapes {
			if raceEnabled && d[0]*d[1]*d[2] > 50_000 && s%3 != 0 {
				continue // slow there
			}
			for _, f := range forms {
				for _, exact := range []bool{true, false} {
					fill := noise
					if exact {
						fill = counts
					}
					m, n, k, gap, acc := d[0], d[1], d[2], s%3, s%2 == 0
					rowsA, colsA, rowsB, colsB := m, k, k, n
					if f.a {
						rowsA, colsA = k, m
					}
					if f.b {
						rowsB, colsB = n, k
					}
					lda, ldb, ldc := colsA+gap, colsB+gap, n+gap
					// Past the last row lie values that no sum may take in.
					nan := slices.Repeat([]uint16{0x7fc0}, 4)
					a := slices.Concat(bf16(fill(1, make([]float32, max(0, (rowsA-1)*lda+colsA)))), nan)
					b := slices.Concat(bf16(fill(2, make([]float32, max(0, (rowsB-1)*ldb+colsB)))), nan)
					for i := range rowsA - 1 {
						for j := colsA; j < lda; j++ {
							a[i*lda+j] = 0x7fc0
						}
					}
					c, check := fenced(t, s%5, max(0, (m-1)*ldc+n))
					fill(3, c)
					before := slices.Clone(c)
					f.run(m, n, k, a, lda, b, ldb, c, ldc, acc)
					check()
					wa, wb := widened(a), widened(b)
					for i := range m {
						for j := range n {
							var sum, abs float64
							if acc {
								sum, abs = float64(before[i*ldc+j]), math.Abs(float64(before[i*ldc+j]))
							}
							for p := range k {
								ia, ib := i*lda+p, p*ldb+j
								if f.a {
									ia = p*lda + i
								}
								if f.b {
									ib = j*ldb + p
								}
								v := float64(wa[ia]) * float64(wb[ib])
								sum += v
								abs += math.Abs(v)
							}
							bound := 0.0
							if !exact {
								bound = float64(k+1) * 0x1p-23 * abs
							}
							if got := float64(c[i*ldc+j]); !(math.Abs(got-sum) <= bound) {
								t.Fatalf("%s %v acc %v exact %v: C[%d,%d] = %g, must be %g within %g", f.name, d, acc, exact, i, j, got, sum, bound)
							}
						}
						for j := n; j < ldc && i < m-1; j++ {
							if c[i*ldc+j] != before[i*ldc+j] {
								t.Fatalf("%s %v: wrote between rows", f.name, d)
							}
						}
					}
				}
			}
		}
		x := make([]uint16, 4)
		panics(t, "A of GemmNNBF16", func() { GemmNNBF16(2, 2, 2, x[:3], 2, x, 2, make([]float32, 4), 2, false) })
		panics(t, "B of GemmTNBF16", func() { GemmTNBF16(2, 2, 2, x, 2, x[:3], 2, make([]float32, 4), 2, false) })
		panics(t, "C of Gemm", func() { GemmNTBF16(2, 2, 2, x, 2, x, 2, make([]float32, 3), 2, false) })
	})
}

// FuzzGemm holds that no shape, stride or length does more than panic with a message.
func FuzzGemm(f *testing.F) {
	f.Add(int8(3), int8(5), int8(7), int8(7), int8(5), int8(5), uint16(60), uint8(0))
	f.Add(int8(20), int8(33), int8(9), int8(9), int8(33), int8(40), uint16(800), uint8(4))
	f.Add(int8(2), int8(2), int8(-2), int8(0), int8(1), int8(2), uint16(3), uint8(1))
	f.Add(int8(2), int8(2), int8(0), int8(90), int8(1), int8(2), uint16(75), uint8(0))
	f.Fuzz(func(t *testing.T, m, n, k, lda, ldb, ldc int8, size uint16, form uint8) {
		a, b := make([]float32, size), make([]float32, size)
		a16, b16 := make([]uint16, size), make([]uint16, size)
		before := active
		defer func() { active = before }()
		for _, s := range usable() {
			active = s
			c, check := fenced(t, int(size)%7, int(size))
			func() {
				defer func() {
					if r := recover(); r != nil && !strings.HasPrefix(fmt.Sprint(r), "kernels: ") {
						panic(r)
					}
				}()
				m, n, k, lda, ldb, ldc := int(m), int(n), int(k), int(lda), int(ldb), int(ldc)
				switch form % 6 {
				case 0:
					GemmNN(m, n, k, a, lda, b, ldb, c, ldc, true)
				case 1:
					GemmTN(m, n, k, a, lda, b, ldb, c, ldc, false)
				case 2:
					GemmNT(m, n, k, a, lda, b, ldb, c, ldc, false)
				case 3:
					GemmNNBF16(m, n, k, a16, lda, b16, ldb, c, ldc, false)
				case 4:
					GemmTNBF16(m, n, k, a16, lda, b16, ldb, c, ldc, true)
				case 5:
					GemmNTBF16(m, n, k, a16, lda, b16, ldb, c, ldc, false)
				}
			}()
			check()
		}
	})
}
