package kernels

import (
	"math"
	"runtime"
	"slices"
	"testing"
)

// TestCrossEntropy compares with float64, and the bits with those of plain Go.
func TestCrossEntropy(t *testing.T) {
	each(t, func(t *testing.T) {
		shapes := [][2]int{{0, 3}, {1, 1}, {7, 3}, {5, 16}, {9, 47}, {2500, 7}}
		for n := 1; n <= 130; n++ {
			shapes = append(shapes, [2]int{16 + n%7, n})
		}
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
		for _, d := range shapes {
			rows, n := d[0], d[1]
			ld := n + rows%3
			size := max(0, (rows-1)*ld+n)
			s, weight, class := noise(1, make([]float32, size)), noise(2, make([]float32, n)), make([]int32, rows)
			for i := range class {
				class[i] = int32(i%(n+1)) - 1
			}
			for _, w := range [][]float32{nil, weight} {
				g, check := fenced(t, rows%7, size)
				noise(3, g)
				before := slices.Clone(g)
				loss, count := CrossEntropy(rows, n, s, ld, class, w, g, ld)
				check()
				var want, wantCount float64
				for i, y := range class {
					row, wy := s[i*ld:][:n], 1.0
					var sum float64
					for _, v := range row {
						sum += math.Exp(float64(v))
					}
					if y >= 0 && w != nil {
						wy = float64(w[y])
					}
					if y >= 0 {
						want += wy * (math.Log(sum) - float64(row[y]))
						wantCount += wy
					}
					for c, v := range row {
						slope := wy * math.Exp(float64(v)) / sum
						if int(y) == c {
							slope -= wy
						}
						if y < 0 {
							slope = 0
						}
						if math.Abs(float64(g[i*ld+c])-slope) > 1e-6 {
							t.Fatalf("%v: gradient at %d, %d is %g, want %g", d, i, c, g[i*ld+c], slope)
						}
					}
					for c := i*ld + n; c < min((i+1)*ld, size); c++ {
						if g[c] != before[c] {
							t.Fatalf("%v: wrote between rows at %d", d, c)
						}
					}
				}
				if math.Abs(loss-want) > 1e-6*(1+math.Abs(want)) || math.Abs(count-wantCount) > 1e-9*float64(rows) {
					t.Fatalf("%v: loss %g over %g, want %g over %g", d, loss, count, want, wantCount)
				}
				set := active
				active = generic
				again := slices.Clone(before)
				loss2, _ := CrossEntropy(rows, n, s, ld, class, w, again, ld)
				active = set
				only, _ := CrossEntropy(rows, n, s, ld, class, w, nil, 0)
				if loss2 != loss || only != loss {
					t.Fatalf("%v: loss %v, in plain Go %v, without the gradient and with three workers %v", d, loss, loss2, only)
				}
				same(t, "gradient", g, again)
			}
		}
		s := []float32{1, float32(math.NaN()), 3, 1, 2, 3}
		loss, _ := CrossEntropy(1, 3, s, 3, []int32{0}, nil, nil, 0)
		if loss == loss {
			t.Errorf("loss of a row with NaN is %g", loss)
		}
		panics(t, "class[1] = 3", func() { CrossEntropy(2, 3, s, 3, []int32{0, 3}, nil, nil, 0) })
		panics(t, "class of CrossEntropy", func() { CrossEntropy(2, 3, s, 3, []int32{0}, nil, nil, 0) })
		panics(t, "G of CrossEntropy", func() { CrossEntropy(2, 3, s, 3, []int32{0, 1}, nil, s[:5], 3) })
		panics(t, "weight of CrossEntropy", func() { CrossEntropy(2, 3, s, 3, []int32{0, 1}, s, nil, 0) })
	})
}

// TestCrossEntropyExtremes holds that rows with values that are not finite, or far apart, are those of plain Go, and that rows
// beside them are as if alone.
func TestCrossEntropyExtremes(t *testing.T) {
	each(t, func(t *testing.T) {
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		for _, n := range []int{3, 16, 47, 64, 100} {
			const rows = 21
			s, class := noise(1, make([]float32, rows*n)), make([]int32, rows)
			for i := range class {
				class[i] = int32(i % n)
			}
			class[4] = -1
			for i, v := range map[int]float32{2: nan, 4: nan, 6: inf, 8: -inf, 11: math.MaxFloat32, 12: -math.MaxFloat32} {
				s[i*n+n-1] = v
			}
			for c := range n {
				s[3*n+c], s[5*n+c], s[7*n+c] = -inf, nan, -200*float32(c)/float32(n)
				s[9*n+c], s[10*n+c] = -87-float32(c)/float32(n), inf
			}
			s[9*n] = 0
			g, want := make([]float32, len(s)), make([]float32, len(s))
			loss, _ := CrossEntropy(rows, n, s, n, class, nil, g, n)
			if loss == loss {
				t.Errorf("loss of rows with NaN is %g", loss)
			}
			set := active
			active = generic
			for i := range rows {
				CrossEntropy(1, n, s[i*n:], n, class[i:i+1], nil, want[i*n:], n)
			}
			active = set
			same(t, "gradient", g, want)
			for c, v := range g[4*n : 5*n] {
				if v != 0 {
					t.Fatalf("gradient of a row without a class is %g at %d", v, c)
				}
			}
		}
	})
}
