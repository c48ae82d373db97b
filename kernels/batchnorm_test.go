package kernels

import (
	"math"
	"runtime"
	"slices"
	"testing"
)

// TestBatchNorm compares results with float64, gradients with finite differences, and bits with plain Go and one
// worker.
func TestBatchNorm(t *testing.T) {
	type result struct {
		mean, square, sum2, product2 []float64
		y, dx                        []float32
	}
	const eps = 1e-3
	for _, d := range [][2]int{{0, 3}, {3, 1}, {5, 7}, {40, 17}, {2600, 130}, {9, 600}} {
		rows, n := d[0], d[1]
		ld := n + rows%3
		size := max(0, (rows-1)*ld+n)
		x, dy := noise(1, make([]float32, size)), noise(2, make([]float32, size))
		gain, bias := noise(3, make([]float32, n)), noise(4, make([]float32, n))
		run := func(t *testing.T) (r result) {
			r.mean, r.square, r.sum2, r.product2 = make([]float64, n), make([]float64, n), make([]float64, n),
				make([]float64, n)
			ColumnMoments(rows, x, ld, r.mean, r.square)
			ColumnSums(rows, x, ld, dy, ld, r.sum2, r.product2)
			scale, shift, b, c := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
			for j := range n {
				mean := r.mean[j]
				inv := 1 / math.Sqrt(r.square[j]/float64(rows)+eps)
				a := float64(gain[j]) * inv
				bj := -a * inv * inv * (r.product2[j] - mean*r.sum2[j]) / float64(rows)
				scale[j], shift[j] = float32(a), float32(float64(bias[j])-mean*a)
				b[j], c[j] = float32(bj), float32(-a*r.sum2[j]/float64(rows)-bj*mean)
			}
			var checkY, checkX func()
			r.y, checkY = fenced(t, rows%7, size)
			BatchNorm(rows, x, ld, scale, shift, r.y, ld)
			checkY()
			r.dx, checkX = fenced(t, rows%5, size)
			noise(5, r.dx)
			BatchNormGrad(rows, x, ld, dy, ld, scale, b, c, r.dx, ld)
			checkX()
			return r
		}
		before := active
		active = generic
		plain := run(t)
		active = before
		each(t, func(t *testing.T) {
			got := run(t)
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
			for _, r := range []result{got, run(t)} {
				same(t, "y", r.y, plain.y)
				same(t, "dx", r.dx, plain.dx)
				if !slices.Equal(r.sum2, plain.sum2) || !slices.Equal(r.product2, plain.product2) ||
					!slices.Equal(r.mean, plain.mean) || !slices.Equal(r.square, plain.square) {
					t.Fatalf("%v: sums differ from those of plain Go", d)
				}
			}
		})
		if rows == 0 || rows > 100 {
			continue
		}
		x64, add := float64s(x), noise(5, make([]float32, size))
		column := func(j int) (y []float64, loss float64) {
			var mean, square float64
			for i := range rows {
				mean += x64[i*ld+j] / float64(rows)
			}
			for i := range rows {
				square += (x64[i*ld+j] - mean) * (x64[i*ld+j] - mean) / float64(rows)
			}
			for i := range rows {
				v := (x64[i*ld+j]-mean)/math.Sqrt(square+eps)*float64(gain[j]) + float64(bias[j])
				y = append(y, v)
				loss += v * float64(dy[i*ld+j])
			}
			return y, loss
		}
		for j := range n {
			y, _ := column(j)
			for i := range rows {
				at, h := i*ld+j, 1e-5
				v := x64[at]
				x64[at] = v + h
				_, up := column(j)
				x64[at] = v - h
				_, down := column(j)
				x64[at] = v
				slope := (up - down) / (2 * h)
				if math.Abs(float64(plain.y[at])-y[i]) > 2e-5 ||
					math.Abs(float64(plain.dx[at]-add[at])-slope) > 1e-4*(1+math.Abs(slope)) {
					t.Fatalf("%v at %d, %d: y %g, must be %g; dx %g, must be %g", d, i, j, plain.y[at], y[i],
						plain.dx[at]-add[at], slope)
				}
			}
		}
	}
	x, s := make([]float32, 12), make([]float64, 4)
	panics(t, "square of ColumnMoments", func() { ColumnMoments(3, x, 4, s, s[:3]) })
	panics(t, "X of ColumnMoments", func() { ColumnMoments(3, x, 5, s, s) })
	panics(t, "product of ColumnSums", func() { ColumnSums(3, x, 4, x, 4, s, s[:3]) })
	panics(t, "dY of ColumnSums", func() { ColumnSums(3, x, 4, x[:11], 4, s, s) })
	panics(t, "shift of BatchNorm", func() { BatchNorm(3, x, 4, x[:4], x[:3], x, 4) })
	panics(t, "Y of BatchNorm", func() { BatchNorm(3, x, 4, x[:4], x[:4], x, 3) })
	panics(t, "dX of BatchNormGrad", func() { BatchNormGrad(3, x, 4, x, 4, x[:4], x[:4], x[:4], x[:11], 4) })
}

// TestColumnMoments: columns whose mean is thousands of times their deviation keep their variance, for one set of rows
// and for two that are merged.
func TestColumnMoments(t *testing.T) {
	const rows, n = 3000, 37
	x := noise(1, make([]float32, rows*n))
	for i := range x {
		x[i] += 4096 * float32(i%n%3)
	}
	each(t, func(t *testing.T) {
		for _, first := range []int{0, 1, 700, 1024, rows} {
			mean, square := make([]float64, n), make([]float64, n)
			mean2, square2 := make([]float64, n), make([]float64, n)
			ColumnMoments(first, x[:first*n], n, mean, square)
			ColumnMoments(rows-first, x[first*n:], n, mean2, square2)
			for j := range n {
				Merge(first, &mean[j], &square[j], rows-first, mean2[j], square2[j])
				var m, sq float64
				for i := range rows {
					m += float64(x[i*n+j]) / rows
				}
				for i := range rows {
					d := float64(x[i*n+j]) - m
					sq += d * d
				}
				if math.Abs(mean[j]-m) > 1e-6 || math.Abs(square[j]-sq) > 1e-5*sq {
					t.Fatalf("%d rows and the rest, column %d: mean %g, squares %g, must be %g, %g", first, j, mean[j],
						square[j], m, sq)
				}
			}
		}
	})
}
