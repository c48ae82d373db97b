package kernels

import (
	"math"
	"unsafe"
)

// usable returns the sets that this processor supports, the slowest first. Go requires NEON on arm64.
func usable() []*set { return []*set{generic, neon} }

var neon = &set{
	name: "neon",

	axpy:     axpyNEON,
	dot:      dotNEON,
	add:      addNEON,
	scale:    scaleNEON,
	relu:     reluNEON,
	reluGrad: reluGradNEON,
	where:    whereNEON,
	leakyDot: leakyDotGeneric, leakyGrad: leakyGradGeneric, leakySource: leakySourceGeneric,
	elu:      eluNEON,
	eluGrad:  eluGradNEON,
	waves:    wavesGeneric,
	adam:     adamNEON,
	dropout:  dropoutNEON,
	kept:     keptGeneric,
	packKept: packKeptGeneric,
	turnKept: turnKeptGeneric,
	addWide:  addWideNEON,
	sumWide:  sumWideGeneric,
	integers: integersNEON,
	maxIndex: maxIndexNEON,

	toBF16:   toBF16NEON,
	fromBF16: fromBF16NEON,
	maxAbs:   maxAbsNEON,
	toInt8:   toInt8NEON,
	fromInt8: fromInt8NEON,
	toFixed:  toFixedGeneric,
	fixed:    fixedGeneric,

	sum:        sumNEON,
	sumSquares: sumSquaresNEON,
	normalise:  normaliseNEON,
	normSums:   normSumsNEON,
	normGrad:   normGradNEON,
	addNorm:    addNormNEON,
	max:        maxNEON,
	expSum:     expSumNEON,

	pick:       pickGeneric,
	logits:     logitsNEON,
	weights:    weightsNEON,
	drop:       dropEdgesNEON,
	attend:     attendNEON,
	attendDots: attendDotsNEON,
	logitGrads: logitGradsNEON,
	addPicked:  addPickedGeneric,

	gemm:  gemmBlocked,
	tiles: tiles{rows: 8, cols: 8, height: func(int) int { return 8 }, run: tileNEON},
	spmm:  spmmNEON,
	spmax: spmaxNEON,
}

// tileNEON computes a partial tile in other memory and copies it to C.
func tileNEON(_, rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, _ int, c unsafe.Pointer, ldc, _ int,
	acc bool) {
	if rows == 8 && cols == 8 {
		fullTileNEON(k, a, rs, cs, b, c, ldc, acc)
		return
	}
	var e edge
	out := unsafe.Slice((*float32)(c), (rows-1)*ldc+cols)
	if acc {
		e.get(rows, cols, out, ldc)
	}
	fullTileNEON(k, a, rs, cs, b, unsafe.Pointer(&e), 8, acc)
	e.put(rows, cols, out, ldc)
}

// edge is the memory for a partial tile of C.
type edge [8][8]float32

func (e *edge) get(rows, cols int, c []float32, ldc int) {
	for i := range rows {
		copy(e[i][:cols], c[i*ldc:])
	}
}

func (e *edge) put(rows, cols int, c []float32, ldc int) {
	for i := range rows {
		copy(c[i*ldc:], e[i][:cols])
	}
}

func fullTileNEON(k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool) {
	if cs == 1 {
		gemm8x8NEON(k, a, rs, b, c, ldc, acc)
	} else {
		gemm8x8TNEON(k, a, cs, b, c, ldc, acc)
	}
}

// spmmNEON processes the edges once for every 64 columns, and again for each part of the remaining columns.
func spmmNEON(s *spmm, lo, hi int) {
	for j := 0; j < s.n; {
		switch left := s.n - j; {
		case left >= 64:
			j = s.columns(spmm64NEON, lo, hi, j, 64)
		case left >= 16:
			j = s.columns(spmm16NEON, lo, hi, j, 16)
		case left >= 4:
			j = s.columns(spmm4NEON, lo, hi, j, 4)
		case left >= 2:
			j = s.columns(spmm2NEON, lo, hi, j, 2)
		default:
			j = s.columns(spmm1NEON, lo, hi, j, 1)
		}
	}
}

// The loops process fours in assembly and the last values in Go, which rounds in the same way.

func axpyNEON(a float32, x, y []float32) {
	n := len(x) &^ 3
	axpy4NEON(a, x[:n], y)
	axpyGeneric(a, x[n:], y[n:])
}

func dotNEON(x, y []float32) float32 {
	n := len(x) &^ 3
	return dot4NEON(x[:n], y) + dotGeneric(x[n:], y[n:])
}

func addNEON(x, y []float32) {
	n := len(x) &^ 3
	add4NEON(x[:n], y)
	addGeneric(x[n:], y[n:])
}

func mulNEON(x, y []float32) {
	n := len(x) &^ 3
	mul4NEON(x[:n], y)
	for i, v := range x[n:] {
		y[n+i] *= v
	}
}

func scaleNEON(a float32, x []float32) {
	n := len(x) &^ 3
	scale4NEON(a, x[:n])
	scaleGeneric(a, x[n:])
}

func reluNEON(x, y []float32) {
	n := len(x) &^ 3
	relu4NEON(x[:n], y)
	reluGeneric(x[n:], y[n:])
}

func whereNEON(e int32, arg []int32, x, y []float32) {
	n := len(arg) &^ 3
	where4NEON(e, arg[:n], x, y)
	whereGeneric(e, arg[n:], x[n:], y[n:])
}

func reluGradNEON(y, dy, dx []float32) {
	n := len(y) &^ 3
	reluGrad4NEON(y[:n], dy, dx)
	reluGradGeneric(y[n:], dy[n:], dx[n:])
}

func eluNEON(x, y []float32) {
	n := len(x) &^ 3
	elu4NEON(x[:n], y)
	eluGeneric(x[n:], y[n:])
}

func eluGradNEON(y, dy, dx []float32) {
	n := len(y) &^ 3
	eluGrad4NEON(y[:n], dy, dx)
	eluGradGeneric(y[n:], dy[n:], dx[n:])
}

func adamNEON(p, g, m, v []float32, c adam) {
	n := len(p) &^ 3
	adam4NEON(p[:n], g, m, v, &c)
	adamGeneric(p[n:], g[n:], m[n:], v[n:], c)
}

func maskNEON(lo, hi, limit uint32, up float32, keep []float32) {
	n := len(keep) &^ 3
	mask4NEON(lo, hi, limit, up, keep[:n])
	maskGeneric(lo+uint32(n)*golden, hi, limit, up, keep[n:])
}

func dropoutNEON(lo, hi, limit uint32, up float32, x, y []float32, add, _ bool) {
	var keep [256]float32
	for at := 0; at < len(x); at += len(keep) {
		x, y := x[at:], y[at:]
		k := keep[:min(len(keep), len(x))]
		maskNEON(lo+uint32(at)*golden, hi, limit, up, k)
		x, y = x[:len(k)], y[:len(k)]
		mulNEON(x, k)
		if add {
			addNEON(k, y)
		} else {
			copy(y, k)
		}
	}
}

func addWideNEON(x []float32, sum []float64) {
	n := len(x) &^ 3
	addWide4NEON(x[:n], sum)
	addWideGeneric(x[n:], sum[n:])
}

func maxIndexNEON(col []int32) uint32 {
	n := len(col) &^ 3
	return max(maxIndex4NEON(col[:n]), maxIndexGeneric(col[n:]))
}

func toBF16NEON(x []float32, y []uint16) {
	n := len(x) &^ 3
	toBF16x4NEON(x[:n], y)
	toBF16Generic(x[n:], y[n:])
}

func fromBF16NEON(x []uint16, y []float32) {
	n := len(x) &^ 3
	fromBF16x4NEON(x[:n], y)
	fromBF16Generic(x[n:], y[n:])
}

func maxAbsNEON(x []float32) float32 {
	n := len(x) &^ 15
	a, b := maxAbs16NEON(x[:n]), maxAbsGeneric(x[n:])
	return math.Float32frombits(max(math.Float32bits(a), math.Float32bits(b)))
}

func toInt8NEON(up float32, x []float32, y []int8) {
	n := len(x) &^ 15
	toInt8x16NEON(up, x[:n], y)
	toInt8Generic(up, x[n:], y[n:])
}

func fromInt8NEON(scale float32, x []int8, y []float32) {
	n := len(x) &^ 15
	fromInt8x16NEON(scale, x[:n], y)
	fromInt8Generic(scale, x[n:], y[n:])
}
