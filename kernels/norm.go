package kernels

import (
	"math"
	"slices"
	"sync"
)

// LayerNorm writes y = (x − mean)·inv·gain + bias for each of the rows of X and Y, which have len(gain) values. It
// writes two values a row to stats: mean, and inv = 1/√(variance + eps) (Ba, Kiros and Hinton, arXiv 1607.06450). Sums
// of eight terms are float32; these are summed in float64. Y may be X.
func LayerNorm(rows int, eps float64, x []float32, ldx int, gain, bias, y []float32, ldy int, stats []float32) {
	n := len(gain)
	checkLength("bias of LayerNorm", len(bias), n)
	checkLength("stats of LayerNorm", len(stats), 2*rows)
	checkMatrix("X of LayerNorm", rows, n, ldx, x)
	checkMatrix("Y of LayerNorm", rows, n, ldy, y)
	norms(norm{rows: rows, eps: eps, x: x, ldx: ldx, gain: gain, bias: bias, out: y, ldo: ldy, stats: stats,
		past: n%16 == 0 && past(x, y, n, ldy)})
}

// LayerNormGrad adds the gradients of LayerNorm to dX, unless it is nil, to dgain and to dbias. Its inputs are X,
// LayerNorm's stats and the gradient dY. Columns are summed in float64, sixteen rows at a time, and rounded once.
func LayerNormGrad(rows int, x []float32, ldx int, stats, gain, dy []float32, lddy int, dx []float32, lddx int,
	dgain, dbias []float32) {
	n := len(gain)
	checkLength("dgain of LayerNormGrad", len(dgain), n)
	checkLength("dbias of LayerNormGrad", len(dbias), n)
	checkLength("stats of LayerNormGrad", len(stats), 2*rows)
	checkMatrix("X of LayerNormGrad", rows, n, ldx, x)
	checkMatrix("dY of LayerNormGrad", rows, n, lddy, dy)
	if dx != nil {
		checkMatrix("dX of LayerNormGrad", rows, n, lddx, dx)
	}
	norms(norm{rows: rows, x: x, ldx: ldx, gain: gain, dy: dy, lddy: lddy, out: dx, ldo: lddx, stats: stats,
		dgain: dgain, bias: dbias})
}

// normRows is the number of rows of a part. normBlock is how many rows are processed first by rows and then by columns.
// They are constants because bits of the sums by column must not depend on the number of workers.
const (
	normRows  = 1024
	normBlock = 16
)

// norm is a call: forward or, if dgain is not nil, backward.
type norm struct {
	rows           int
	eps            float64
	x, dy, out     []float32
	ldx, lddy, ldo int
	gain, bias     []float32
	dgain          []float32
	stats          []float32
	past           bool      // whether Y is written past the caches
	sums           []float64 // by part, backward: columns of dgain, then of dbias
}

var normCalls = sync.Pool{New: func() any { return new(norm) }}

func norms(g norm) {
	if g.rows == 0 || len(g.gain) == 0 {
		return
	}
	c := normCalls.Get().(*norm)
	sums := c.sums
	*c = g
	parts := (c.rows + normRows - 1) / normRows
	if n := 2 * len(g.gain); g.dgain != nil {
		if cap(sums) < parts*n {
			sums = make([]float64, parts*n)
		}
		c.sums = sums[:parts*n]
	}
	shared.some(c, parts, c.rows*len(c.gain))
	if g.dgain != nil {
		c.add()
	}
	*c = norm{sums: sums}
	normCalls.Put(c)
}

// add adds the parts' sums by column to the gradients of gain and bias.
func (c *norm) add() {
	n := len(c.gain)
	total := c.sums[:2*n]
	for rest := c.sums[2*n:]; len(rest) > 0; rest = rest[2*n:] {
		for j, v := range rest[:2*n] {
			total[j] += v
		}
	}
	for j := range n {
		c.dgain[j] = float32(float64(c.dgain[j]) + total[j])
		c.bias[j] = float32(float64(c.bias[j]) + total[n+j])
	}
}

func (c *norm) run(part int) {
	lo, hi := part*normRows, min((part+1)*normRows, c.rows)
	n := len(c.gain)
	if c.dgain == nil {
		row := func(i int) []float32 { return c.x[i*c.ldx:][:n] }
		reads(row(lo))
		total := active.sum(row(lo))
		for i := lo; i < hi; i++ {
			x, out := row(i), c.out[i*c.ldo:][:n]
			writes(out)
			mean := float32(total / float64(n))
			squares := active.sumSquares(x, mean)
			if i+1 < hi { // now, so that the processor is busy while the squares are summed
				reads(row(i + 1))
				total = active.sum(row(i + 1))
			}
			inv := float32(1 / math.Sqrt(squares/float64(n)+c.eps))
			c.stats[2*i], c.stats[2*i+1] = mean, inv
			active.normalise(x, c.gain, c.bias, out, mean, inv, c.past)
		}
		if c.past {
			active.fence()
		}
		return
	}
	sums := c.sums[2*n*part:][:2*n]
	clear(sums)
	for ; lo < hi; lo += normBlock {
		end := min(lo+normBlock, hi)
		c.backward(lo, end)
		active.addNorm(end-lo, c.x[lo*c.ldx:], c.ldx, c.dy[lo*c.lddy:], c.lddy, c.stats[2*lo:], sums[:n], sums[n:])
	}
}

// backward adds gradients to the rows [lo, hi) of dX.
func (c *norm) backward(lo, hi int) {
	n := len(c.gain)
	for i := lo; i < hi; i++ {
		x, dy := c.x[i*c.ldx:][:n], c.dy[i*c.lddy:][:n]
		reads(x)
		reads(dy)
		if c.out == nil {
			continue
		}
		out := c.out[i*c.ldo:][:n]
		writes(out)
		mean, inv := c.stats[2*i], c.stats[2*i+1]
		a, b := active.normSums(x, dy, c.gain, mean, inv)
		active.normGrad(x, dy, c.gain, out, mean, inv, float32(a/float64(n)), float32(b/float64(n)))
	}
}

// Max returns the greatest of x, ignoring NaN, or −Inf if x is empty.
func Max(x []float32) float32 {
	reads(x)
	return active.max(x)
}

// ExpSum writes exp(x − shift) to y, within 2 units in the last place, and returns the sum: with shift = Max(x), it is
// a softmax without the division. Below −87.6 the exponential is 0, above 88.3 infinite. Sums of eight terms are
// float32; these are summed in float64. y may be x.
func ExpSum(shift float32, x, y []float32) float64 {
	checkLength("y of ExpSum", len(y), len(x))
	reads(x)
	writes(y)
	return active.expSum(shift, x, y)
}

// Sixteen lanes of float32 compute the sums below, column c in lane c modulo 16, over sumColumns columns. Their total,
// added in the order of vector instructions, is float64.

type lanes [16]float32

// sumColumns is eight terms a lane: their rounding error is below the result's.
const sumColumns = 128

func (l *lanes) fold() float64 {
	var w [8]float64
	for c := range w {
		w[c] = float64(l[c]) + float64(l[c+8])
	}
	return ((w[0] + w[4]) + (w[2] + w[6])) + ((w[1] + w[5]) + (w[3] + w[7]))
}

func sumGeneric(x []float32) (sum float64) {
	for part := range slices.Chunk(x, sumColumns) {
		var l lanes
		l.sum(part)
		sum += l.fold()
	}
	return sum
}

func (l *lanes) sum(x []float32) {
	for c, v := range x {
		l[c%16] += v
	}
}

func sumSquaresGeneric(x []float32, mean float32) (sum float64) {
	for part := range slices.Chunk(x, sumColumns) {
		var l lanes
		l.sumSquares(part, mean)
		sum += l.fold()
	}
	return sum
}

func (l *lanes) sumSquares(x []float32, mean float32) {
	for c, v := range x {
		d := v - mean
		l[c%16] += float32(d * d)
	}
}

func normaliseGeneric(x, gain, bias, y []float32, mean, inv float32, _ bool) {
	gain, bias, y = gain[:len(x)], bias[:len(x)], y[:len(x)]
	for c, v := range x {
		y[c] = float32(float32((v-mean)*inv)*gain[c]) + bias[c]
	}
}

func normSumsGeneric(x, dy, gain []float32, mean, inv float32) (a, b float64) {
	for at := 0; at < len(x); at += sumColumns {
		var la, lb lanes
		normSums(x[at:min(at+sumColumns, len(x))], dy[at:], gain[at:], mean, inv, &la, &lb)
		a += la.fold()
		b += lb.fold()
	}
	return a, b
}

func normSums(x, dy, gain []float32, mean, inv float32, la, lb *lanes) {
	dy, gain = dy[:len(x)], gain[:len(x)]
	for c, v := range x {
		w, xhat := float32(dy[c]*gain[c]), float32((v-mean)*inv)
		la[c%16] += w
		lb[c%16] += float32(w * xhat)
	}
}

func normGradGeneric(x, dy, gain, dx []float32, mean, inv, ma, mb float32) {
	dy, gain, dx = dy[:len(x)], gain[:len(x)], dx[:len(x)]
	for c, v := range x {
		w, xhat := float32(dy[c]*gain[c]), float32((v-mean)*inv)
		dx[c] += float32(inv * (w - ma - float32(xhat*mb)))
	}
}

func addNormGeneric(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, gain, bias []float64) {
	for c := range gain {
		var g, b float32
		for i := range rows {
			d := dy[i*lddy+c]
			g += float32(d * float32((x[i*ldx+c]-stats[2*i])*stats[2*i+1]))
			b += d
		}
		gain[c] += float64(g)
		bias[c] += float64(b)
	}
}

func maxGeneric(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

func expSumGeneric(shift float32, x, y []float32) (sum float64) {
	for at := 0; at < len(x); at += sumColumns {
		var l lanes
		l.expSum(shift, x[at:min(at+sumColumns, len(x))], y[at:])
		sum += l.fold()
	}
	return sum
}

func (l *lanes) expSum(shift float32, x, y []float32) {
	y = y[:len(x)]
	for c, v := range x {
		e := exp(v - shift)
		y[c] = e
		l[c%16] += e
	}
}

// exp is 2ᵏ·eʳ with |r| ≤ ln 2/2. eʳ is a polynomial with coefficients from Moshier's Cephes library (expf). No product
// is fused with a sum, so that every set gives the same bits.
func exp(t float32) float32 {
	if t < -88 {
		t = -88
	}
	if t > 89 {
		t = 89
	}
	const round = 3 << 22 // added and subtracted, it rounds to an integer
	k := float32(float32(float32(t*1.44269504088896341)+round) - round)
	r := float32(t-float32(k*0.693359375)) - float32(k*-2.12194440e-4)
	p := float32(1.9875691500e-4*r) + 1.3981999507e-3
	p = float32(p*r) + 8.3334519073e-3
	p = float32(p*r) + 4.1665795894e-2
	p = float32(p*r) + 1.6666665459e-1
	p = float32(p*r) + 5.0000001201e-1
	p = float32(float32(p*float32(r*r))+r) + 1
	return p * math.Float32frombits(uint32(int32(k)+127)<<23)
}
