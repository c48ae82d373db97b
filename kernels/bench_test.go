package kernels

import (
	"fmt"
	"testing"
)

// With one thread and two: go test -run xxx -bench . -cpu 1,2 ./kernels

func rate(b *testing.B, perOp float64, unit string) {
	b.ReportMetric(perOp*float64(b.N)/b.Elapsed().Seconds()/1e9, unit)
}

func BenchmarkGemm(b *testing.B) {
	for _, c := range []struct {
		form    string
		run     gemmFunc
		m, n, k int
	}{
		{"NN", GemmNN, 512, 512, 512}, {"NN", GemmNN, 1024, 1024, 1024}, {"NN", GemmNN, 2048, 2048, 2048},
		{"NN", GemmNN, 140, 256, 1433}, {"NN", GemmNN, 18333, 15, 64}, {"NN", GemmNN, 18333, 64, 100},
		{"NN", GemmNN, 2708, 7, 256}, {"NN", GemmNN, 20000, 256, 100}, {"NN", GemmNN, 20000, 47, 256},
		{"NN", GemmNN, 140, 7, 256}, {"TN", GemmTN, 256, 7, 140}, {"TN", GemmTN, 1433, 256, 140},
		{"TN", GemmTN, 64, 15, 18333}, {"TN", GemmTN, 256, 47, 20000}, {"NT", GemmNT, 18333, 64, 15},
		{"NT", GemmNT, 20000, 256, 47}, {"NT", GemmNT, 140, 256, 7}, {"NT", GemmNT, 1024, 1024, 1024},
	} {
		b.Run(fmt.Sprintf("%s_%dx%dx%d", c.form, c.m, c.n, c.k), func(b *testing.B) {
			x, w, y := noise(1, make([]float32, c.m*c.k)), noise(2, make([]float32, c.n*c.k)), make([]float32, c.m*c.n)
			lda, ldb := c.k, c.n
			if c.form == "TN" {
				lda = c.m
			} else if c.form == "NT" {
				ldb = c.k
			}
			for b.Loop() {
				c.run(c.m, c.n, c.k, x, lda, w, ldb, y, c.n, false)
			}
			rate(b, 2*float64(c.m)*float64(c.n)*float64(c.k), "GFLOP/s")
		})
	}
}

// BenchmarkSpMM uses a graph of random neighbours (the worst case for caches) and one whose table fits in the caches.
func BenchmarkSpMM(b *testing.B) {
	for _, c := range []struct{ nodes, degree, n int }{
		{3000, 4, 64}, {3000, 18, 256}, {20000, 30, 7}, {20000, 30, 47}, {20000, 30, 64}, {20000, 30, 256},
		{200000, 20, 64}, {100000, 20, 256},
	} {
		b.Run(fmt.Sprintf("%dx%d_width%d", c.nodes, c.degree, c.n), func(b *testing.B) {
			lengths := make([]int, c.nodes)
			for i := range lengths {
				lengths[i] = c.degree
			}
			rowPtr, col := sparse(1, lengths, c.nodes)
			val := noise(2, make([]float32, len(col)))
			x, y := noise(3, make([]float32, c.nodes*c.n)), make([]float32, c.nodes*c.n)
			for b.Loop() {
				SpMM(rowPtr, col, val, c.n, x, c.n, y, c.n, false)
			}
			rate(b, float64(len(col)*c.n*4), "gathered_GB/s")
			rate(b, float64(2*len(col)*c.n), "GFLOP/s")
		})
	}
}

func BenchmarkVector(b *testing.B) {
	const n = 1433 * 256 // size of a weight matrix
	x, y, m, v := noise(1, make([]float32, n)), noise(2, make([]float32, n)), make([]float32, n), make([]float32, n)
	for _, c := range []struct {
		name  string
		bytes float64 // memory traffic of an element
		run   func()
	}{
		{"Axpy", 12, func() { Axpy(1e-6, x, y) }},
		{"Dot", 8, func() { Dot(x, y) }},
		{"ReLU", 8, func() { ReLU(x, y) }},
		{"ReLUGrad", 12, func() { ReLUGrad(x, y, m) }},
		{"AdamStep", 28, func() { AdamStep(x, y, m, v, 1, 1e-3, 0.9, 0.999, 1e-8, 0.1, 0.001, 0, 0) }},
		{"Dropout", 8, func() { dropRow(1, 0.5, x, y, false) }},
		{"LayerNorm", 8, func() { LayerNorm(1433, 1e-5, x, 256, y[:256], y[:256], m, 256, v[:2*1433]) }},
		{"LayerNormGrad", 28,
			func() { LayerNormGrad(1433, x, 256, v[:2*1433], y[:256], y, 256, m, 256, v[5000:5256], v[6000:6256]) }},
		{"ExpSum", 8, func() { ExpSum(1, x, y) }},
		{"ExpSum of 16", 8, func() {
			for i := 0; i < n; i += 16 {
				ExpSum(Max(x[i:i+16]), x[i:i+16], y[i:i+16])
			}
		}},
		{"SumColumns", 4, func() { SumColumns(1433, x, 256, m[:256], false) }},
		{"GatherRows", 12, func() { GatherRows(64, gatherIndex, x, 64, y, 64) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.run()
			}
			rate(b, c.bytes*n, "GB/s")
		})
	}
}

var gatherIndex = func() []int32 { // every row of a matrix with 64 columns, in another order
	index := make([]int32, 1433*256/64)
	for i := range index {
		index[i] = int32(i * 2311 % len(index))
	}
	return index
}()
