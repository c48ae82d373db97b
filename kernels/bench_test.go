package kernels

import (
	"fmt"
	"testing"
)

// One thread and two: go test -run xxx -bench . -cpu 1,2 ./kernels

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
		{"NN", GemmNN, 140, 256, 1433}, {"NN", GemmNN, 18333, 15, 64}, {"NN", GemmNN, 18333, 64, 100}, {"NN", GemmNN, 2708, 7, 256},
		{"NN", GemmNN, 20000, 256, 100}, {"NN", GemmNN, 20000, 47, 256}, {"NN", GemmNN, 140, 7, 256},
		{"TN", GemmTN, 256, 7, 140}, {"TN", GemmTN, 1433, 256, 140}, {"TN", GemmTN, 64, 15, 18333}, {"TN", GemmTN, 256, 47, 20000},
		{"NT", GemmNT, 18333, 64, 15}, {"NT", GemmNT, 20000, 256, 47}, {"NT", GemmNT, 140, 256, 7}, {"NT", GemmNT, 1024, 1024, 1024},
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
