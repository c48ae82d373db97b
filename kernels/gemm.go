package kernels

import (
	"runtime"
	"sync"
)

// GemmNN computes C = A·B, or C += A·B if acc is set: A is m×k, B k×n, C m×n, all row-major with strides lda, ldb, ldc.
func GemmNN(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	GemmNNBias(m, n, k, a, lda, b, ldb, c, ldc, acc, nil, false)
}

// GemmNNBias is GemmNN that then adds bias, n values, to every row of C and, if relu is set, applies ReLU. The bits are
// the same as with Add and ReLU, but C is still in the cache. A nil bias adds nothing.
func GemmNNBias(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool, bias []float32,
	relu bool) {
	gemms(gemmNN(m, n, k, a, lda, b, ldb, c, ldc, acc, bias, relu))
}

// GemmTN computes C = Aᵀ·B, or C += Aᵀ·B if acc is set: A is k×m, B k×n, C m×n. It computes a weight's gradient from A,
// the inputs, and B, the gradients of the outputs.
func GemmTN(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	gemms(gemmTN(m, n, k, a, lda, b, ldb, c, ldc, acc))
}

// GemmNT computes C = A·Bᵀ, or C += A·Bᵀ if acc is set: A is m×k, B n×k, C m×n. It computes an input's gradient from A,
// the gradients of the outputs, and B, the weights.
func GemmNT(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	gemms(gemmNT(m, n, k, a, lda, b, ldb, c, ldc, acc))
}

// GemmNNBF16 is GemmNNBias with A and B rounded to bfloat16, as by ToBF16. Products and sums are float32. If the
// processor multiplies pairs of bfloat16, numbers below 2⁻¹²⁶ count as zeros, and sums are not in the order of k.
func GemmNNBF16(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool, bias []float32,
	relu bool) {
	g := gemmNN(m, n, k, a, lda, b, ldb, c, ldc, acc, bias, relu)
	g.bf16 = true
	gemms(g)
}

// GemmTNBF16 is GemmTN with A and B rounded as in GemmNNBF16.
func GemmTNBF16(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	g := gemmTN(m, n, k, a, lda, b, ldb, c, ldc, acc)
	g.bf16 = true
	gemms(g)
}

// GemmNTBF16 is GemmNT with A and B rounded as in GemmNNBF16.
func GemmNTBF16(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	g := gemmNT(m, n, k, a, lda, b, ldb, c, ldc, acc)
	g.bf16 = true
	gemms(g)
}

func gemmNN(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool, bias []float32,
	relu bool) gemm {
	checkMatrix("A of GemmNN", m, k, lda, a)
	checkMatrix("B of GemmNN", k, n, ldb, b)
	if bias != nil {
		checkLength("bias of GemmNNBias", len(bias), n)
	}
	g := gemm{form: nn, m: m, n: n, k: k, lda: lda, ldb: ldb, ldc: ldc, acc: acc, a: a, b: b, c: c, bias: bias,
		add: active.add, tiles: active.shape(n)}
	if relu {
		g.relu = active.relu
	}
	return g
}

func gemmTN(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) gemm {
	checkMatrix("A of GemmTN", k, m, lda, a)
	checkMatrix("B of GemmTN", k, n, ldb, b)
	return gemm{form: tn, m: m, n: n, k: k, lda: lda, ldb: ldb, ldc: ldc, acc: acc, a: a, b: b, c: c,
		tiles: active.shape(n)}
}

func gemmNT(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) gemm {
	checkMatrix("A of GemmNT", m, k, lda, a)
	checkMatrix("B of GemmNT", n, k, ldb, b)
	return gemm{form: nt, m: m, n: n, k: k, lda: lda, ldb: ldb, ldc: ldc, acc: acc, a: a, b: b, c: c,
		tiles: active.shape(n)}
}

// shape returns the tiles for a C with n columns.
func (s *set) shape(n int) *tiles {
	if s.wider.run != nil && n > 32 && n <= 48 {
		return &s.wider
	}
	return &s.tiles
}

type form uint8

const (
	nn form = iota
	tn
	nt
)

// gemm is one call, cut into rectangles of C. It is cut across columns only if there are too few rows, because each
// rectangle packs its own columns of B.
type gemm struct {
	form          form
	m, n, k       int
	lda, ldb, ldc int
	acc           bool
	a, b, c       []float32
	bias          []float32            // [n], or nil
	add, relu     func(x, y []float32) // the set's functions; a nil relu applies none
	tiles         *tiles
	bf16          bool // A and B are rounded

	high, wide, across int // a rectangle's rows and columns; number of rectangles side by side
}

var gemmCalls = sync.Pool{New: func() any { return new(gemm) }}

func gemms(g gemm) {
	const alone = 4 << 20 // flops, some 40 µs: less is not shared
	checkMatrix("C of Gemm", g.m, g.n, g.ldc, g.c)
	if g.m == 0 || g.n == 0 {
		return
	}
	if g.k == 0 { // A and B are empty, whatever their strides, so no part may read them
		for i := 0; i < g.m && !g.acc; i++ {
			clear(g.c[i*g.ldc:][:g.n])
		}
		g.finish(0, g.m, 0, g.n)
		return
	}
	if n := g.slices(); n > 1 {
		g.inSlices(n)
		return
	}
	call := gemmCalls.Get().(*gemm)
	*call = g
	parts := 1
	workers := runtime.GOMAXPROCS(0)
	if flops := 2 * float64(g.m) * float64(g.n) * float64(g.k); flops >= alone && workers > 1 {
		parts = call.cut(int(min(flops/(alone/4), float64(2*workers))))
	} else {
		call.high, call.wide, call.across = g.m, g.n, 1
	}
	shared.do(call, parts)
	*call = gemm{}
	gemmCalls.Put(call)
}

// cut chooses about `parts` rectangles, and returns their number.
func (g *gemm) cut(parts int) int {
	const (
		rows    = 112 // multiple of every tile's rows; with fewer, packing B would take too large a share
		columns = 64  // multiple of every tile's columns
	)
	down := 1
	g.high, g.wide, g.across = g.m, g.n, 1
	for down*g.across < parts {
		tall, broad := g.high >= 2*rows, g.wide >= 2*columns
		switch {
		case tall && (g.high >= g.wide || !broad):
			down *= 2
			g.high = (g.m + down - 1) / down
		case broad:
			g.across *= 2
			g.wide = (g.n + g.across - 1) / g.across
		default:
			parts = 0
		}
	}
	if down > 1 {
		g.high = (g.high + rows/8 - 1) / (rows / 8) * (rows / 8)
	}
	g.wide = (g.wide + columns/2 - 1) / (columns / 2) * (columns / 2)
	down, g.across = (g.m+g.high-1)/g.high, (g.n+g.wide-1)/g.wide
	return down * g.across
}

// run computes one rectangle.
func (g *gemm) run(part int) {
	i0, j0 := part/g.across*g.high, part%g.across*g.wide
	i1, j1 := min(i0+g.high, g.m), min(j0+g.wide, g.n)
	s := scratches.Get().(*scratch)
	g.tell(i0, i1, j0, j1)
	switch {
	case !g.bf16:
		active.gemm(g, s, i0, i1, j0, j1)
	case active.gemmBF16 != nil && tilesAllowed():
		active.gemmBF16(g, s, i0, i1, j0, j1)
	default:
		gemmRounded(g, s, i0, i1, j0, j1)
	}
	scratches.Put(s)
}

// finish adds the bias to rows [i0,i1) and columns [j0,j1) of C, and applies ReLU.
func (g *gemm) finish(i0, i1, j0, j1 int) {
	if g.bias == nil && g.relu == nil {
		return
	}
	for i := i0; i < i1; i++ {
		row := g.c[i*g.ldc+j0 : i*g.ldc+j1]
		if g.bias != nil {
			reads(g.bias[j0:j1])
			g.add(g.bias[j0:j1], row)
		}
		if g.relu != nil {
			g.relu(row, row)
		}
	}
}

// tell informs the race detector what a rectangle reads and writes.
func (g *gemm) tell(i0, i1, j0, j1 int) {
	if !raceEnabled {
		return
	}
	for i := i0; i < i1; i++ {
		writes(g.c[i*g.ldc+j0 : i*g.ldc+j1])
		if g.form != tn {
			reads(g.a[i*g.lda:][:g.k])
		}
	}
	for p := range g.k {
		if g.form == tn {
			reads(g.a[p*g.lda+i0 : p*g.lda+i1])
		}
		if g.form != nt {
			reads(g.b[p*g.ldb+j0 : p*g.ldb+j1])
		}
	}
	if g.form == nt {
		for j := j0; j < j1; j++ {
			reads(g.b[j*g.ldb:][:g.k])
		}
	}
}
