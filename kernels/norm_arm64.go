package kernels

import (
	"math"
	"slices"
)

//go:noescape
func sum16NEON(x []float32, l *lanes)

//go:noescape
func sumSquares16NEON(x []float32, mean float32, l *lanes)

//go:noescape
func normSums16NEON(x, dy, gain []float32, mean, inv float32, a, b *lanes)

//go:noescape
func normalise4NEON(x, gain, bias, y []float32, mean, inv float32)

//go:noescape
func normGrad4NEON(x, dy, gain, dx []float32, mean, inv, ma, mb float32)

//go:noescape
func addNorm4NEON(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, gain, bias []float64)

//go:noescape
func max4NEON(x []float32, top *[4]float32)

//go:noescape
func expSum16NEON(shift float32, x, y []float32, l *lanes)

// The rest of a row, after multiples of sixteen or four, is computed in Go, which rounds in the same way.

func sumNEON(x []float32) (sum float64) {
	for part := range slices.Chunk(x, sumColumns) {
		var l lanes
		n := len(part) &^ 15
		sum16NEON(part[:n], &l)
		l.sum(part[n:])
		sum += l.fold()
	}
	return sum
}

func sumSquaresNEON(x []float32, mean float32) (sum float64) {
	for part := range slices.Chunk(x, sumColumns) {
		var l lanes
		n := len(part) &^ 15
		sumSquares16NEON(part[:n], mean, &l)
		l.sumSquares(part[n:], mean)
		sum += l.fold()
	}
	return sum
}

func normSumsNEON(x, dy, gain []float32, mean, inv float32) (a, b float64) {
	for ; len(x) > 0; x, dy, gain = x[min(sumColumns, len(x)):], dy[min(sumColumns, len(dy)):],
		gain[min(sumColumns, len(gain)):] {
		var la, lb lanes
		part := x[:min(sumColumns, len(x))]
		n := len(part) &^ 15
		normSums16NEON(part[:n], dy, gain, mean, inv, &la, &lb)
		normSums(part[n:], dy[n:], gain[n:], mean, inv, &la, &lb)
		a += la.fold()
		b += lb.fold()
	}
	return a, b
}

func normaliseNEON(x, gain, bias, y []float32, mean, inv float32, _ bool) {
	n := len(x) &^ 3
	normalise4NEON(x[:n], gain, bias, y, mean, inv)
	normaliseGeneric(x[n:], gain[n:], bias[n:], y[n:], mean, inv, false)
}

func normGradNEON(x, dy, gain, dx []float32, mean, inv, ma, mb float32) {
	n := len(x) &^ 3
	normGrad4NEON(x[:n], dy, gain, dx, mean, inv, ma, mb)
	normGradGeneric(x[n:], dy[n:], gain[n:], dx[n:], mean, inv, ma, mb)
}

func addNormNEON(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, gain, bias []float64) {
	n := len(gain) &^ 3
	addNorm4NEON(rows, x, ldx, dy, lddy, stats, gain[:n], bias)
	if n < len(gain) {
		addNormGeneric(rows, x[n:], ldx, dy[n:], lddy, stats, gain[n:], bias[n:])
	}
}

func maxNEON(x []float32) float32 {
	none := float32(math.Inf(-1))
	top := [4]float32{none, none, none, none}
	n := len(x) &^ 3
	max4NEON(x[:n], &top)
	return max(maxGeneric(top[:]), maxGeneric(x[n:]))
}

func expSumNEON(shift float32, x, y []float32) (sum float64) {
	for at := 0; at < len(x); at += sumColumns {
		var l lanes
		part, y := x[at:min(at+sumColumns, len(x))], y[at:]
		n := len(part) &^ 15
		expSum16NEON(shift, part[:n], y, &l)
		l.expSum(shift, part[n:], y[n:])
		sum += l.fold()
	}
	return sum
}
