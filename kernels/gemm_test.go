package kernels

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

type gemmFunc func(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool)

var gemmForms = []struct {
	name   string
	run    gemmFunc
	transA bool
	transB bool
	bf16   bool
}{
	{"NN", GemmNN, false, false, false}, {"TN", GemmTN, true, false, false}, {"NT", GemmNT, false, true, false},
	{"NNBF16", gemmNNBF16, false, false, true}, {"TNBF16", GemmTNBF16, true, false, true},
	{"NTBF16", GemmNTBF16, false, true, true},
}

func gemmNNBF16(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	GemmNNBF16(m, n, k, a, lda, b, ldb, c, ldc, acc, nil, false)
}

// TestGemm compares every form with a float64 product: exactly for small integers, else within k·ε·Σ|a·b|.
func TestGemm(t *testing.T) {
	dims := []int{0, 1, 2, 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 17, 28, 31, 32, 33, 40, 47, 48, 63, 64, 65}
	var shapes [][3]int
	for i, m := range dims { // all pairs of m and n, with a k that varies
		for j, n := range dims {
			shapes = append(shapes, [3]int{m, n, dims[(3*i+5*j)%len(dims)]})
		}
	}
	// Larger than the blocks of m, n and k, and than the size from which on helpers join.
	shapes = append(shapes, [][3]int{{1, 1, 1000}, {3, 7, 255}, {14, 32, 256}, {15, 33, 257}, {30, 40, 513},
		{16, 520, 270}, {449, 70, 30}, {230, 7, 256}, {16, 600, 40}, {250, 65, 260}, {113, 100, 260}, {260, 40, 400},
		{270, 97, 390}, {129, 97, 65}, {20, 6, 6200}, {16, 40, 4100}}...)
	for len(shapes)%2 == 1 { // an even index has no gap
		shapes = append(shapes, [3]int{1, 1, 1})
	}
	shapes = append(shapes, [3]int{30, 70, 256}) // rows of A a power of two apart
	distinct(t, func(t *testing.T) {
		for s, d := range shapes {
			if raceEnabled && s%7 != 0 {
				continue // slow there, and other shapes cover every path
			}
			for _, f := range gemmForms {
				if f.bf16 && s%7 != 0 && d[2] < 600 {
					continue // TestGemmBF16Random covers smaller ones
				}
				for _, exact := range []bool{true, false} {
					testGemm(t, f.name, f.run, f.transA, f.transB, f.bf16, d, s%2*3, s%5, s%3 == 0, exact)
				}
			}
		}
	})
}

func testGemm(t *testing.T, name string, run gemmFunc, transA, transB, bf16 bool, d [3]int, gap, offset int,
	acc, exact bool) {
	t.Helper()
	m, n, k := d[0], d[1], d[2]
	fill := noise
	if exact {
		fill = counts
	}
	rowsA, colsA, rowsB, colsB := m, k, k, n
	if transA {
		rowsA, colsA = k, m
	}
	if transB {
		rowsB, colsB = n, k
	}
	lda, ldb, ldc := colsA+gap, colsB+gap, n+gap
	size := func(r, c, ld int) int { return max(0, (r-1)*ld+c) }
	a := fill(1, make([]float32, size(rowsA, colsA, lda)+offset))[offset:]
	b := fill(2, make([]float32, size(rowsB, colsB, ldb)+offset))[offset:]
	c, check := fenced(t, offset, size(m, n, ldc))
	if m == 0 || n == 0 {
		c, check = fenced(t, offset, 0)
	}
	fill(3, c)
	before := append([]float32(nil), c...)
	run(m, n, k, a, lda, b, ldb, c, ldc, acc)
	check()
	if bf16 {
		a, b = inBF16(a), inBF16(b)
	}
	what := fmt.Sprintf("%s %v gap %d offset %d acc %v exact %v", name, d, gap, offset, acc, exact)
	rows, columns := inDouble(a, m, k, lda, transA), inDouble(b, n, k, ldb, !transB)
	for i := range m {
		for j := range ldc {
			at := i*ldc + j
			if at >= len(c) {
				continue
			}
			if j >= n {
				if c[at] != before[at] {
					t.Fatalf("%s: wrote between rows at %d,%d", what, i, j)
				}
				continue
			}
			var sum, abs float64
			if acc {
				sum, abs = float64(before[at]), math.Abs(float64(before[at]))
			}
			column := columns[j*k:][:k]
			for p, x := range rows[i*k:][:k] {
				v := x * column[p]
				sum += v
				abs += math.Abs(v)
			}
			bound := 0.0
			if !exact {
				bound = float64(k+1) * 0x1p-24 * abs
			}
			if math.Abs(float64(c[at])-sum) > bound {
				t.Fatalf("%s: C[%d,%d] = %g, must be %g within %g", what, i, j, c[at], sum, bound)
			}
		}
	}
}

// inDouble returns the rows × k matrix x, which may be stored by columns, without gaps in float64.
func inDouble(x []float32, rows, k, ld int, byColumn bool) []float64 {
	y := make([]float64, 0, rows*k)
	for i := range rows {
		for p := range k {
			at := i*ld + p
			if byColumn {
				at = p*ld + i
			}
			y = append(y, float64(x[at]))
		}
	}
	return y
}

// inBF16 returns x rounded to bfloat16.
func inBF16(x []float32) []float32 {
	half, y := make([]uint16, len(x)), make([]float32, len(x))
	toBF16Generic(x, half)
	fromBF16Generic(half, y)
	return y
}

// TestGemmThreads checks that the number of threads changes no bit; there may be more threads than slices of k.
func TestGemmThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	distinct(t, func(t *testing.T) {
		for _, d := range [][3]int{{300, 130, 60}, {16, 40, 4100}, {130, 20, 6300}} {
			m, n, k := d[0], d[1], d[2]
			a, b := noise(1, make([]float32, m*k)), noise(2, make([]float32, n*k))
			for _, f := range gemmForms {
				lda, ldb := k, n
				if f.transA {
					lda = m
				}
				if f.transB {
					ldb = k
				}
				var want []float32
				for _, threads := range []int{1, 2, 5} {
					runtime.GOMAXPROCS(threads)
					c := noise(3, make([]float32, m*n))
					f.run(m, n, k, a, lda, b, ldb, c, n, true)
					if want == nil {
						want = c
					}
					same(t, fmt.Sprint(f.name, d, threads), c, want)
				}
			}
		}
	})
}

// TestTranspose checks that exactly the rows of Y are written, up to 16 values each.
func TestTranspose(t *testing.T) {
	each(t, func(t *testing.T) {
		transpose := active.tiles.transpose
		for rows := 1; transpose != nil && rows <= 16; rows++ {
			for _, k := range []int{1, 2, 15, 16, 17, 31, 48, 53} {
				ldx, ldy := k+rows%3, rows+k%4
				x := noise(1, make([]float32, (rows-1)*ldx+k))
				y, check := fenced(t, k%5, (k-1)*ldy+rows)
				noise(2, y)
				before := append([]float32(nil), y...)
				transpose(rows, k, unsafe.Pointer(&x[0]), ldx, unsafe.Pointer(&y[0]), ldy)
				check()
				for i := range y {
					want := before[i]
					if q, r := i/ldy, i%ldy; r < rows {
						want = x[r*ldx+q]
					}
					if y[i] != want {
						t.Fatalf("%d rows of %d: y[%d] = %g, must be %g", rows, k, i, y[i], want)
					}
				}
			}
		}
	})
}

// TestLay checks that exactly n values of each row are copied.
func TestLay(t *testing.T) {
	distinct(t, func(t *testing.T) {
		lay := active.tiles.lay
		for n := 1; lay != nil && n <= 48; n++ {
			for _, rows := range []int{1, 2, 3, 4, 5, 8, 31} {
				ldx, ldy := n+rows%3, n+rows%4
				x := noise(1, make([]float32, (rows-1)*ldx+n))
				y, check := fenced(t, rows%5, (rows-1)*ldy+n)
				noise(2, y)
				before := append([]float32(nil), y...)
				lay(rows, n, unsafe.Pointer(&x[0]), ldx, unsafe.Pointer(&y[0]), ldy)
				check()
				for i := range y {
					want := before[i]
					if q, c := i/ldy, i%ldy; c < n {
						want = x[q*ldx+c]
					}
					if y[i] != want {
						t.Fatalf("%d of %d rows: y[%d] = %g, must be %g", n, rows, i, y[i], want)
					}
				}
			}
		}
	})
}

// TestGemmNNBias checks that bias and ReLU give the same bits as when they are applied afterwards.
func TestGemmNNBias(t *testing.T) {
	shapes := [][3]int{{1, 1, 1}, {3, 5, 0}, {0, 3, 4}, {15, 33, 40}, {29, 47, 400}, {16, 530, 9}, {300, 64, 390},
		{450, 100, 64}}
	each(t, func(t *testing.T) {
		for at := range 2 * len(shapes) {
			i, bf16 := at/2, at%2 == 1
			d := shapes[i]
			m, n, k, acc := d[0], d[1], d[2], i%2 == 0
			ldc := n + i%3
			a, b, bias := noise(1, make([]float32, m*k)), noise(2, make([]float32, k*n)), noise(3, make([]float32, n))
			c, check := fenced(t, i%5, max(0, (m-1)*ldc+n))
			want := slices.Clone(noise(4, c))
			relu := i%3 == 0
			if i == 3 {
				bias = nil
			}
			run, plain := GemmNNBias, GemmNN
			if bf16 {
				run, plain = GemmNNBF16, gemmNNBF16
			}
			run(m, n, k, a, k, b, n, c, ldc, acc, bias, relu)
			check()
			plain(m, n, k, a, k, b, n, want, ldc, acc)
			for r := range m {
				row := want[r*ldc:][:n]
				if bias != nil {
					Add(bias, row)
				}
				if relu {
					ReLU(row, row)
				}
			}
			same(t, fmt.Sprint(d, bf16), c, want)
		}
		panics(t, "the length of bias of GemmNNBias must be 1 (got 2)", func() {
			GemmNNBias(1, 1, 1, make([]float32, 1), 1, make([]float32, 1), 1, make([]float32, 1), 1, false,
				make([]float32, 2), false)
		})
	})
}

// FuzzGemm checks that a wrong shape, stride or length only panics with a message.
func FuzzGemm(f *testing.F) {
	f.Add(int8(3), int8(5), int8(7), int8(7), int8(5), int8(5), uint16(60), uint8(0))
	f.Add(int8(20), int8(33), int8(9), int8(9), int8(33), int8(40), uint16(800), uint8(4))
	f.Add(int8(2), int8(2), int8(-2), int8(0), int8(1), int8(2), uint16(3), uint8(1))
	f.Add(int8(2), int8(2), int8(0), int8(90), int8(1), int8(2), uint16(75), uint8(0))
	f.Fuzz(func(t *testing.T, m, n, k, lda, ldb, ldc int8, size uint16, form uint8) {
		a, b := make([]float32, size), make([]float32, size)
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
				gemmForms[int(form)%len(gemmForms)].run(m, n, k, a, lda, b, ldb, c, ldc, form%3 == 0)
			}()
			check()
		}
	})
}
