package kernels

import (
	"math"
	"runtime"
	"slices"
	"testing"
)

// lengths returns lengths about every limit of the vector loops, and some larger than the size from which on helpers
// join.
func lengths() []int {
	var n []int
	for i := range 140 {
		n = append(n, i)
	}
	return append(n, 255, 256, 257, 1000, 1003, 200_003)
}

// special returns values that are not ordinary numbers, scattered over noise.
func special(seed uint64, x []float32) []float32 {
	odd := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)),
		1e-45, math.MaxFloat32, -1e-40}
	for i := range noise(seed, x) {
		if h := (uint64(i)*0x9e3779b97f4a7c15 + seed) >> 40; h%5 == 0 {
			x[i] = odd[h/5%uint64(len(odd))]
		}
	}
	return x
}

// TestVector checks that loops without a sum give the bits of plain Go on every set, at every alignment.
func TestVector(t *testing.T) {
	each(t, func(t *testing.T) {
		for i, n := range lengths() {
			for offset := range 9 {
				if (n > 300 || raceEnabled) && offset != i%9 {
					continue
				}
				for _, fill := range []func(uint64, []float32) []float32{noise, special} {
					testVector(t, n, offset, fill)
				}
			}
		}
	})
}

func testVector(t *testing.T, n, offset int, fill func(uint64, []float32) []float32) {
	t.Helper()
	x := fill(1, make([]float32, n+offset))[offset:]
	z := fill(2, make([]float32, n+offset))[offset:]
	y0 := fill(3, make([]float32, n))
	thirds := make([]int32, n)
	for i := range thirds {
		thirds[i] = int32(i%3 + 1)
	}
	for _, c := range []struct {
		name      string
		run, want func(y []float32)
	}{
		{"Axpy", func(y []float32) { Axpy(0.3, x, y) }, func(y []float32) { axpyGeneric(0.3, x, y) }},
		{"Add", func(y []float32) { Add(x, y) }, func(y []float32) { addGeneric(x, y) }},
		{"Scale", func(y []float32) { Scale(-1.7, y) }, func(y []float32) { scaleGeneric(-1.7, y) }},
		{"ReLU", func(y []float32) { ReLU(x, y) }, func(y []float32) { reluGeneric(x, y) }},
		{"ReLU in place", func(y []float32) { ReLU(y, y) }, func(y []float32) { reluGeneric(y, y) }},
		{"ReLUGrad", func(y []float32) { ReLUGrad(x, z, y) }, func(y []float32) { reluGradGeneric(x, z, y) }},
		{"ReLUGrad in place", func(y []float32) { ReLUGrad(x, y, y) }, func(y []float32) { reluGradGeneric(x, y, y) }},
		{"SpMaxGrad", func(y []float32) { SpMaxGrad([]int32{0}, []int32{2}, n, thirds, n, x, n, y, n) },
			func(y []float32) { whereGeneric(2, thirds, x, y) }},
		{"ELU", func(y []float32) { ELU(x, y) }, func(y []float32) { eluGeneric(x, y) }},
		{"ELU in place", func(y []float32) { ELU(y, y) }, func(y []float32) { eluGeneric(y, y) }},
		{"ELUGrad", func(y []float32) { ELUGrad(x, z, y) }, func(y []float32) { eluGradGeneric(x, z, y) }},
		{"ELUGrad in place", func(y []float32) { ELUGrad(x, y, y) }, func(y []float32) { eluGradGeneric(x, y, y) }},
		{"LeakySourceGrad", func(y []float32) { LeakySourceGrad(0.7, -0.3, 0.2, z, y0, x, z, y) },
			func(y []float32) { leakySourceGeneric(0.7, -0.3, 0.2, z, y0, x, z, y) }},
		{"LeakyDotGrad of v", func(y []float32) { LeakyDotGrad(-0.3, 0.2, y0, x, z, y, slices.Clone(y)) },
			func(y []float32) { leakyGradGeneric(-0.3, 0.2, y0, x, z, y, slices.Clone(y)) }},
		{"LeakyDotGrad of y", func(y []float32) { LeakyDotGrad(1.3, 0.2, y0, x, z, slices.Clone(y), y) },
			func(y []float32) { leakyGradGeneric(1.3, 0.2, y0, x, z, slices.Clone(y), y) }},
		{"Dropout", func(y []float32) { dropRow(0x123456789abcdef0, 0.6, x, y, false) },
			func(y []float32) { times(x, dropped(0x123456789abcdef0, 0.6, y)) }},
		{"Dropout in place", func(y []float32) { dropRow(0x123456789abcdef0, 0.6, y, y, false) },
			func(y []float32) { times(dropped(0x123456789abcdef0, 0.6, make([]float32, n)), y) }},
		{"Dropout added", func(y []float32) { dropRow(0x123456789abcdef0, 0.6, x, y, true) },
			func(y []float32) {
				keep := dropped(0x123456789abcdef0, 0.6, make([]float32, n))
				times(x, keep)
				Add(keep, y)
			}},
	} {
		y, check := fenced(t, offset, n)
		copy(y, y0)
		want := slices.Clone(y0)
		c.run(y)
		c.want(want)
		check()
		same(t, c.name, y, want)
	}

	var got, want [4][]float32 // p, g, m, v
	var checks [4]func()
	for k := range got {
		got[k], checks[k] = fenced(t, offset+k, n)
		fill(uint64(10+k), got[k])
		if k == 3 {
			for i, v := range got[k] {
				got[k][i] = float32(math.Abs(float64(v)))
			}
		}
		want[k] = slices.Clone(got[k])
	}
	AdamStep(got[0], got[1], got[2], got[3], 0.25, 0.01, 0.9, 0.999, 1e-8, 0.1, 0.001, 5e-4, 0.02)
	adamGeneric(want[0], want[1], want[2], want[3],
		adam{float32(0.01) / float32(0.1), 0.9, 1 - float32(0.9), 0.999, 1 - float32(0.999), 1e-8, 0.25,
			1 / float32(math.Sqrt(float64(float32(0.001)))), 5e-4, 1 - float32(float32(0.01)*float32(0.02))})
	for k := range got {
		checks[k]()
		same(t, "AdamStep", got[k], want[k])
	}
}

// TestLeakyDot compares it with plain Go in float64, and its gradients with finite differences.
func TestLeakyDot(t *testing.T) {
	const slope, step = 0.2, 1e-3
	each(t, func(t *testing.T) {
		for _, n := range lengths() {
			v, x, y := noise(1, make([]float32, n+1))[1:], noise(2, make([]float32, n+3))[3:],
				noise(3, make([]float32, n))
			leaky := func(c int, v, y float32) float64 {
				u := float64(x[c]) + float64(y)
				return float64(v) * max(u, slope*u)
			}
			var want, abs float64
			for c := range n {
				want += leaky(c, v[c], y[c])
				abs += math.Abs(leaky(c, v[c], y[c]))
			}
			if got := float64(LeakyDot(slope, v, x, y)); !(math.Abs(got-want) <= float64(n)*0x1p-23*abs+1e-6) {
				t.Fatalf("%d values: %g, must be %g", n, got, want)
			}
			dv, dy := make([]float32, n), make([]float32, n)
			LeakyDotGrad(2, slope, v, x, y, dv, dy)
			for c := range n {
				if u := x[c] + y[c]; math.Abs(float64(u)) < 2*step {
					continue // at the kink
				}
				mustV := (leaky(c, v[c]+step, y[c]) - leaky(c, v[c]-step, y[c])) / step
				mustY := (leaky(c, v[c], y[c]+step) - leaky(c, v[c], y[c]-step)) / step
				if !(math.Abs(float64(dv[c])-mustV) <= 1e-3*(1+math.Abs(mustV)) &&
					math.Abs(float64(dy[c])-mustY) <= 1e-3*(1+math.Abs(mustY))) {
					t.Fatalf("%d values: gradients of value %d are %g and %g, must be %g and %g", n, c, dv[c], dy[c],
						mustV, mustY)
				}
			}
		}
	})
	panics(t, "x of LeakyDot", func() { LeakyDot(slope, make([]float32, 2), nil, nil) })
	panics(t, "rows of LeakyDotGrad", func() { LeakyDotGrad(1, slope, make([]float32, 2), nil, nil, nil, nil) })
	panics(t, "rows of LeakySourceGrad",
		func() { LeakySourceGrad(1, 1, slope, nil, make([]float32, 2), nil, nil, nil) })
}

func TestDot(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range lengths() {
			for offset := range 4 {
				x, y := noise(1, make([]float32, n+offset))[offset:], noise(2, make([]float32, n+3))[3:]
				var sum, abs float64
				for i := range x {
					sum += float64(x[i]) * float64(y[i])
					abs += math.Abs(float64(x[i]) * float64(y[i]))
				}
				if got := float64(Dot(x, y)); math.Abs(got-sum) > float64(n)*0x1p-24*abs {
					t.Fatalf("n %d: %g, must be %g", n, got, sum)
				}
				counts(1, x)
				counts(2, y)
				sum = 0
				for i := range x {
					sum += float64(x[i]) * float64(y[i])
				}
				if got := float64(Dot(x, y)); n < 10000 && got != sum {
					t.Fatalf("n %d, integers: %g, must be %g", n, got, sum)
				}
			}
		}
	})
}

func TestSumColumns(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, d := range [][2]int{{0, 5}, {1, 1}, {3, 7}, {50, 3}, {20, 31}, {9, 64}, {17, 513}, {3000, 200},
			{700, 1100}} {
			for _, acc := range []bool{false, true} {
				rows, n := d[0], d[1]
				ld := n + rows%3
				x := noise(1, make([]float32, max(0, (rows-1)*ld+n)))
				dst, check := fenced(t, n%5, n)
				noise(2, dst)
				want := make([]float32, n)
				for j := range want {
					var s float64
					for i := range rows {
						s += float64(x[i*ld+j])
					}
					if acc {
						s += float64(dst[j])
					}
					want[j] = float32(s)
				}
				SumColumns(rows, x, ld, dst, acc)
				check()
				same(t, "SumColumns", dst, want)
			}
		}
	})
}

func TestGatherRows(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 7, 33, 300} {
			for _, rows := range []int{0, 1, 5, 3000} {
				src := noise(1, make([]float32, 40*(n+2)))
				index := make([]int32, rows)
				for i := range index {
					index[i] = int32(i * 7 % 40)
				}
				dst, check := fenced(t, 1, max(0, rows*(n+1)-1))
				GatherRows(n, index, src, n+2, dst, n+1)
				check()
				for i, j := range index {
					same(t, "GatherRows", dst[i*(n+1):][:n], src[int(j)*(n+2):][:n])
				}
			}
		}
		src, dst := make([]float32, 30), make([]float32, 20)
		panics(t, "index[1] = 3", func() { GatherRows(10, []int32{2, 3}, src, 10, dst, 10) })
		panics(t, "index[0] = -1", func() { GatherRows(10, []int32{-1, 2}, src, 10, dst, 10) })
		panics(t, "dst of GatherRows", func() { GatherRows(10, []int32{0, 1, 2}, src, 10, dst, 10) })
		panics(t, "src of GatherRows", func() { GatherRows(10, []int32{0, 1}, src, 9, dst, 10) })
	})
}

func TestLengthPanics(t *testing.T) {
	x, y := make([]float32, 3), make([]float32, 4)
	for name, f := range map[string]func(){
		"Axpy":     func() { Axpy(1, x, y) },
		"Dot":      func() { Dot(x, y) },
		"Add":      func() { Add(x, y) },
		"ReLU":     func() { ReLU(x, y) },
		"dx of":    func() { ReLUGrad(x, x, y) },
		"dy of":    func() { ReLUGrad(x, y, x) },
		"AdamStep": func() { AdamStep(x, x, x, y, 0, 0, 0, 0, 0, 0, 0, 0, 0) },
		"A of":     func() { GemmNN(2, 2, 2, x, 2, y, 2, y, 2, false) },
		"B of":     func() { GemmTN(2, 2, 2, y, 2, x, 2, y, 2, false) },
		"C of":     func() { GemmNT(2, 2, 2, y, 2, y, 2, x, 2, false) },
		"stride":   func() { GemmNN(2, 2, 2, y, 1, y, 2, y, 2, false) },
		"-1":       func() { GemmNN(-1, 2, 2, y, 2, y, 2, y, 2, false) },
		"has only": func() { GemmNN(math.MaxInt/2, 4, 4, y, 4, y, 4, y, 4, false) },
	} {
		panics(t, name, f)
	}
}

// TestNoAllocation checks calls with and without helpers.
func TestNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector sync.Pool forgets on purpose")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	each(t, func(t *testing.T) {
		const n = 300
		a, b, c := noise(1, make([]float32, n*n)), noise(2, make([]float32, n*n)), make([]float32, n*n)
		long := make([]float32, 200_000)
		rowPtr, col := sparse(1, slices.Repeat([]int{9}, n), n)
		arg, half, bytes := make([]int32, n*n), make([]uint16, n*n), make([]int8, 200)
		index := slices.Repeat([]int32{5, 2, 8}, 100)
		for name, f := range map[string]func(){
			"Gemm":          func() { GemmNN(n, n, 100, a, n, b, n, c, n, false) },
			"small Gemm":    func() { GemmTN(20, 20, 20, a, n, b, n, c, n, false) },
			"SpMM":          func() { SpMM(rowPtr, col, nil, n, a, n, c, n, false) },
			"SpMax":         func() { SpMax(rowPtr, col, n, a, n, c, n, arg, n) },
			"Add":           func() { Add(a[:10], c[:10]) },
			"long ToBF16":   func() { ToBF16(a, half) },
			"LayerNorm":     func() { LayerNorm(n, 1e-5, a, n, b[:n], b[:n], c, n, long[:2*n]) },
			"LayerNormGrad": func() { LayerNormGrad(n, a, n, long[:2*n], b[:n], b, n, c, n, c[:n], c[n:2*n]) },
			"ExpSum":        func() { ExpSum(Max(a), a, c) },
			"ToInt8":        func() { ToInt8(a[:200], bytes) },
			"long Axpy":     func() { Axpy(1, long, long) },
			"AdamStep":      func() { AdamStep(a, b, c, c, 1, 0, 0, 0, 1, 1, 1, 0, 0) },
			"SumColumns":    func() { SumColumns(n, a, n, c[:n], true) },
			"GatherRows":    func() { GatherRows(n, index, a, n, c, n) },
			"Dropout":       func() { dropRow(1, 0.5, a[:n], c[:n], true) },
		} {
			if got := testing.AllocsPerRun(20, f); got != 0 {
				t.Errorf("%s allocates %g times a call", name, got)
			}
		}
	})
}

// TestAddBias: rows get the bits of Add and ReLU, one by one, and the gaps between rows do not change.
func TestAddBias(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 7, 16, 33, 100} {
			const rows = 5
			ld := n + 3
			b := special(1, make([]float32, n))
			for _, relu := range []bool{false, true} {
				for _, bias := range [][]float32{nil, b} {
					y, check := fenced(t, 1, (rows-1)*ld+n)
					special(2, y)
					want := slices.Clone(y)
					for i := range rows {
						row := want[i*ld:][:n]
						if bias != nil {
							Add(bias, row)
						}
						if relu {
							ReLU(row, row)
						}
					}
					AddBias(rows, n, y, ld, bias, relu)
					check()
					same(t, "AddBias", y, want)
				}
			}
		}
	})
	panics(t, "b of AddBias", func() { AddBias(1, 2, make([]float32, 2), 2, make([]float32, 1), false) })
}
