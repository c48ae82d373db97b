package kernels

import (
	"math"
	"runtime"
	"slices"
	"testing"
)

// TestExp checks that the exponential is within 2 units in the last place, and its limits.
func TestExp(t *testing.T) {
	for i := range 2_000_000 {
		if raceEnabled && i%50 != 0 {
			continue
		}
		x := float32(-87.3 + float64(i)*(87.3+88)/2_000_000)
		want := math.Exp(float64(x))
		if got := float64(exp(x)); math.Abs(got-want) > want*0x1p-22 {
			t.Fatalf("exp(%g) = %g, must be %g", x, got, want)
		}
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	in, out := []float32{0, -88, -1e30, -inf, 90, inf, nan}, []float32{1, 0, 0, 0, inf, inf, nan}
	each(t, func(t *testing.T) {
		for i := range in {
			y := make([]float32, 1)
			if sum := ExpSum(0, in[i:i+1], y); float32(sum) != out[i] && out[i] == out[i] {
				t.Errorf("sum of exp(%g) = %g, must be %g", in[i], sum, out[i])
			}
			same(t, "exp", y, out[i:i+1])
		}
		if got := ExpSum(0, nil, nil); got != 0 {
			t.Errorf("empty sum %g", got)
		}
		if got := Max([]float32{nan, -3, nan, -2, nan}); got != -2 {
			t.Errorf("Max = %g, must be -2", got)
		}
		if got := Max(nil); got != -inf {
			t.Errorf("Max of nothing = %g, must be -Inf", got)
		}
	})
}

// TestELU checks that exp(x) − 1 is within 4 units in the last place, and its limits.
func TestELU(t *testing.T) {
	each(t, func(t *testing.T) {
		var x []float32
		for v := float32(-1e-6); v > -100; v *= 1.0007 {
			x = append(x, v)
		}
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		y := make([]float32, len(x))
		ELU(x, y)
		for i, v := range x {
			if want := math.Expm1(float64(v)); math.Abs(float64(y[i])-want) > 4.8e-7*math.Abs(want) {
				t.Fatalf("ELU(%v) is %v, must be %v", v, y[i], want)
			}
		}
		y = y[:6]
		ELU([]float32{0, 3, inf, -inf, nan, -1e30}, y)
		same(t, "ELU", y, []float32{0, 3, inf, -1, nan, -1})
		panics(t, "y of ELU", func() { ELU(x, y) })
		panics(t, "dx of ELUGrad", func() { ELUGrad(x, x, y) })
	})
}

// TestRows checks that LayerNorm and softmax have the bits of plain Go on every set.
func TestRows(t *testing.T) {
	each(t, func(t *testing.T) {
		for i, n := range lengths() {
			if n > 1003 || raceEnabled && i%5 != 0 {
				continue // slow there
			}
			for _, fill := range []func(uint64, []float32) []float32{noise, special} {
				offset := i % 9
				x, dy, gain, bias := fill(1, make([]float32, n+offset))[offset:], fill(2, make([]float32, n)),
					noise(3, make([]float32, n)), noise(4, make([]float32, n))
				scalar := func(what string, got, want float64) {
					if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
						t.Fatalf("%s of %d: %g, must be %g", what, n, got, want)
					}
				}
				row := func(what string, f, g func(y []float32)) {
					y, check := fenced(t, offset, n)
					noise(5, y)
					want := slices.Clone(y)
					f(y)
					g(want)
					check()
					same(t, what, y, want)
				}
				scalar("Max", float64(Max(x)), float64(maxGeneric(x)))
				scalar("sum", active.sum(x), sumGeneric(x))
				scalar("sumSquares", active.sumSquares(x, 0.3), sumSquaresGeneric(x, 0.3))
				a, b := active.normSums(x, dy, gain, 0.1, 1.7)
				wantA, wantB := normSumsGeneric(x, dy, gain, 0.1, 1.7)
				scalar("a", a, wantA)
				scalar("b", b, wantB)
				row("ExpSum", func(y []float32) { a = ExpSum(0.9, x, y) },
					func(y []float32) { b = expSumGeneric(0.9, x, y) })
				scalar("ExpSum", a, b)
				row("normalise", func(y []float32) { active.normalise(x, gain, bias, y, 0.1, 1.7, false) },
					func(y []float32) { normaliseGeneric(x, gain, bias, y, 0.1, 1.7, false) })
				row("normGrad", func(y []float32) { active.normGrad(x, dy, gain, y, 0.1, 1.7, 0.2, 0.3) },
					func(y []float32) { normGradGeneric(x, dy, gain, y, 0.1, 1.7, 0.2, 0.3) })
				got, want := slices.Repeat([]float64{7}, 2*n+2), slices.Repeat([]float64{7}, 2*n+2)
				rows := 1 + n%3
				tall, tallDy := fill(6, make([]float32, rows*(n+1))), fill(7, make([]float32, rows*n))
				stats := noise(8, make([]float32, 2*rows))
				active.addNorm(rows, tall, n+1, tallDy, n, stats, got[:n], got[n+1:2*n+1])
				addNormGeneric(rows, tall, n+1, tallDy, n, stats, want[:n], want[n+1:2*n+1])
				for c := range got {
					scalar("addNorm", got[c], want[c])
				}
			}
		}
	})
}

// normTruth returns y, mean and inv in float64.
func normTruth(x, gain, bias []float64, eps float64) (y []float64, mean, inv float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		inv += (v - mean) * (v - mean) / float64(len(x))
	}
	inv = 1 / math.Sqrt(inv+eps)
	for c, v := range x {
		y = append(y, (v-mean)*inv*gain[c]+bias[c])
	}
	return y, mean, inv
}

func float64s(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// TestLayerNorm compares results with float64, and the gradients with finite differences.
func TestLayerNorm(t *testing.T) {
	const eps = 1e-5
	each(t, func(t *testing.T) {
		for _, d := range [][2]int{{0, 4}, {1, 1}, {3, 5}, {4, 16}, {7, 33}, {2, 100}} {
			rows, n := d[0], d[1]
			ld := n + rows%3
			size := max(0, (rows-1)*ld+n)
			x, dy := noise(1, make([]float32, size)), noise(2, make([]float32, size))
			gain, bias := noise(3, make([]float32, n)), noise(4, make([]float32, n))
			y, check := fenced(t, 1, size)
			stats := make([]float32, 2*rows)
			LayerNorm(rows, eps, x, ld, gain, bias, y, ld, stats)
			check()
			dx, checkX := fenced(t, 2, size)
			noise(5, dx)
			before := slices.Clone(dx)
			dgain, dbias := slices.Repeat([]float32{0.5}, n), slices.Repeat([]float32{-0.5}, n)
			LayerNormGrad(rows, x, ld, stats, gain, dy, ld, dx, ld, dgain, dbias)
			checkX()
			g64, b64, x64 := float64s(gain), float64s(bias), float64s(x)
			loss := func() (sum float64) {
				for i := range rows {
					y, _, _ := normTruth(x64[i*ld:][:n], g64, b64, eps)
					for c, v := range y {
						sum += v * float64(dy[i*ld+c])
					}
				}
				return sum
			}
			slope := func(v *float64) float64 {
				const h = 1e-5
				at := *v
				*v = at + h
				up := loss()
				*v = at - h
				down := loss()
				*v = at
				return (up - down) / (2 * h)
			}
			near := func(what string, got float32, want float64) {
				t.Helper()
				if !(math.Abs(float64(got)-want) <= 2e-5*(1+math.Abs(want))) {
					t.Fatalf("%v %s: %g, must be %g", d, what, got, want)
				}
			}
			for i := range rows {
				want, mean, inv := normTruth(x64[i*ld:][:n], g64, b64, eps)
				if n > 1 { // the variance of one value is 0
					near("mean", stats[2*i], mean)
					near("inv", stats[2*i+1], inv)
				}
				for c := range n {
					near("y", y[i*ld+c], want[c])
					near("dx", dx[i*ld+c]-before[i*ld+c], slope(&x64[i*ld+c]))
				}
			}
			for c := range n {
				near("dgain", dgain[c]-0.5, slope(&g64[c]))
				near("dbias", dbias[c]+0.5, slope(&b64[c]))
			}
		}
		x := make([]float32, 12)
		panics(t, "stats of LayerNorm", func() { LayerNorm(3, eps, x, 4, x[:4], x[:4], x, 4, x[:5]) })
		panics(t, "X of LayerNorm", func() { LayerNorm(3, eps, x[:11], 4, x[:4], x[:4], x, 4, x[:6]) })
		panics(t, "dX of LayerNormGrad", func() { LayerNormGrad(3, x, 4, x[:6], x[:4], x, 4, x[:11], 4, x[:4], x[:4]) })
		panics(t, "y of ExpSum", func() { ExpSum(0, x, x[:3]) })
	})
}

// TestPast checks that LayerNorm and dropout write the same values past the caches, and nothing next to the output.
func TestPast(t *testing.T) {
	each(t, func(t *testing.T) {
		if active.fence == nil {
			t.Skip("this set has no such stores")
		}
		for _, n := range []int{16, 64, 272} {
			const rows, around = 7, 64
			x, gain, want, stats, keys := noise(1, make([]float32, rows*n)), noise(2, make([]float32, n)),
				make([]float32, rows*n), make([]float32, 2*rows), make([]uint64, rows)
			for i := range keys {
				keys[i] = uint64(i) * 0xd1342543de82ef95
			}
			all := aligned(around + rows*n + around)
			y := all[around : around+rows*n]
			check := func(what string) {
				t.Helper()
				same(t, what, y, want)
				for i, v := range slices.Concat(all[:around], all[around+rows*n:]) {
					if v != 7 {
						t.Fatalf("%s of %d: wrote %g beside the output, at %d", what, n, v, i)
					}
				}
			}
			for i := range all {
				all[i] = 7
			}
			LayerNorm(rows, 1e-5, x, n, gain, gain, want, n, stats)
			norms(norm{rows: rows, eps: 1e-5, x: x, ldx: n, gain: gain, bias: gain, out: y, ldo: n, stats: stats,
				past: true})
			check("LayerNorm")
			Dropout(keys[2:], 0.4, 2, n, x, n, want, n, false)
			dropoutRows(keys[2:], 0.4, 2, n, x, n, y, n, false, true)
			check("dropout")
			Dropout(keys, 0.4, 0, n, x, n, want, n, true)
			dropoutRows(keys, 0.4, 0, n, x, n, y, n, true, false)
			check("dropout added")
		}
		x := aligned(pastFrom / 4)
		if y := aligned(pastFrom / 4); !past(x, y, 16, 16) || past(x, x, 16, 16) || past(x, y[16:], 16, 16) ||
			past(x, y, 16, 32) {
			t.Error("what is written past the caches is not what is large and lies alone")
		}
	})
	x := make([]float32, 12)
	panics(t, "X of Dropout", func() { Dropout(make([]uint64, 3), 0.5, 1, 4, x, 4, x, 4, false) })
	panics(t, "Y of Dropout", func() { Dropout(make([]uint64, 3), 0.5, 0, 4, x, 4, x[:11], 4, false) })
	panics(t, "begins with row -1", func() { Dropout(make([]uint64, 3), 0.5, -1, 4, x, 4, x, 4, false) })
}

// TestLayerNormWorkers checks that bits depend neither on the workers, including helpers, nor on whether dX is wanted.
func TestLayerNormWorkers(t *testing.T) {
	each(t, func(t *testing.T) {
		const rows, n = 2503, 130
		x, dy, gain := noise(1, make([]float32, rows*n)), noise(2, make([]float32, rows*n)),
			noise(3, make([]float32, n))
		run := func(workers int, wanted bool) []float32 {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
			y, stats, dgain, dbias := make([]float32, rows*n), make([]float32, 2*rows), make([]float32, n),
				make([]float32, n)
			LayerNorm(rows, 1e-5, x, n, gain, gain, y, n, stats)
			if !wanted {
				LayerNormGrad(rows, x, n, stats, gain, dy, n, nil, 0, dgain, dbias)
				return slices.Concat(dgain, dbias)
			}
			LayerNormGrad(rows, x, n, stats, gain, dy, n, y, n, dgain, dbias)
			return slices.Concat(dgain, dbias, y)
		}
		want := run(1, true)
		same(t, "three workers", run(3, true), want)
		same(t, "without dX", run(2, false), want[:2*n])
	})
}
