package kernels

import (
	"runtime"
	"sync"
)

// splitK is a product Aᵀ·B of tall A and B with a small C, cut into slices along k. Each value is read once, whereas
// each rectangle of C would read all of A or all of B. Only the shape decides the cuts, not the number of threads, and
// sums are added in the order of k.
type splitK struct {
	whole  gemm      // or its transpose, Cᵀ = Bᵀ·A
	deep   int       // rows of a slice
	pieces int       // rectangles of C that a slice is cut into if there are more threads than slices
	sums   []float32 // C of each slice
}

var splitKCalls = sync.Pool{New: func() any { return new(splitK) }}

// slices returns the number of slices of k.
func (g *gemm) slices() int {
	const (
		least = 2048 // rows of a slice
		most  = 16
		size  = 1 << 16 // values of C at most
	)
	if g.form != tn || g.m*g.n > size {
		return 1
	}
	return min(most, g.k/least)
}

// inSlices computes g in n slices of k.
func (g *gemm) inSlices(n int) {
	s := splitKCalls.Get().(*splitK)
	turned := g.turned()
	s.whole, s.deep, s.pieces = *g, (g.k+n-1)/n, 1
	w := &s.whole
	if turned {
		w.m, w.n, w.lda, w.ldb, w.a, w.b, w.tiles = g.n, g.m, g.ldb, g.lda, g.b, g.a, active.shape(g.m)
	}
	size := g.m * g.n
	w.ldc, w.acc = w.n, false
	w.high, w.wide, w.across = w.m, w.n, 1
	if threads := runtime.GOMAXPROCS(0); threads > n {
		s.pieces = w.cut((2*threads + n - 1) / n)
	}
	if cap(s.sums) < n*size {
		s.sums = make([]float32, n*size)
	}
	s.sums = s.sums[:n*size]
	shared.do(s, n*s.pieces)
	sum := s.sums[:size]
	for i := 1; i < n; i++ {
		Add(s.sums[i*size:][:size], sum)
	}
	for i := range g.m {
		row := g.c[i*g.ldc:][:g.n]
		if turned {
			for j := range row {
				if g.acc {
					row[j] += sum[j*g.m+i]
				} else {
					row[j] = sum[j*g.m+i]
				}
			}
		} else if g.acc {
			Add(sum[i*g.n:][:g.n], row)
		} else {
			copy(row, sum[i*g.n:])
		}
	}
	s.whole = gemm{}
	splitKCalls.Put(s)
}

func (s *splitK) run(part int) {
	g := gemmCalls.Get().(*gemm)
	*g = s.whole
	slice := part / s.pieces
	from, size := slice*s.deep, g.m*g.n
	g.k = min(s.deep, g.k-from)
	g.a, g.b = g.a[from*g.lda:], g.b[from*g.ldb:]
	g.c = s.sums[slice*size:][:size]
	g.run(part % s.pieces)
	*g = gemm{}
	gemmCalls.Put(g)
}

// turned reports whether Cᵀ leaves much less of its tiles unused than C does.
func (g *gemm) turned() bool {
	if !g.tiles.masks || g.bf16 {
		return false
	}
	vectors := func(t *tiles, m, n int) int {
		rows := 0
		for rows < m {
			rows += t.height(m - rows)
		}
		return rows * ((n + 15) / 16)
	}
	return 10*vectors(active.shape(g.m), g.n, g.m) < 9*vectors(g.tiles, g.m, g.n)
}
