package kernels

import "sync"

// BatchNorm (Ioffe and Szegedy, ICML 2015) is made of sums over rows, which add up over blocks and peers, and of passes
// with one or a few factors a column. With N rows, mean = Σx/N, inv = 1/√(Σx²/N − mean² + eps) and x̂ = (x − mean)·inv,
//
//	y  = gain·x̂ + bias                       = scale·x + shift,  scale = gain·inv, shift = bias − mean·scale
//	dx = gain·inv·(dy − Σdy/N − x̂·Σ(dy·x̂)/N) = a·dy + b·x + c,   a = gain·inv,     b = −a·inv·Σ(dy·x̂)/N,
//	                                                              c = −a·Σdy/N − b·mean
//
// where Σ(dy·x̂) = inv·(Σ dy·x − mean·Σ dy) is also the gain's gradient, and Σ dy the bias's.

// ColumnSums adds Σ dy and Σ dy·x over the rows to sum and product, column by column: with X for dY, a column's moments.
// Products are rounded to float32 and summed in float64.
func ColumnSums(rows int, x []float32, ldx int, dy []float32, lddy int, sum, product []float64) {
	n := len(sum)
	checkLength("product of ColumnSums", len(product), n)
	checkMatrix("X of ColumnSums", rows, n, ldx, x)
	checkMatrix("dY of ColumnSums", rows, n, lddy, dy)
	batches(batch{step: batchSums, rows: rows, n: n, x: x, ldx: ldx, dy: dy, lddy: lddy}, sum, product)
}

// BatchNorm writes y = scale·x + shift for each of the rows, which are len(scale) wide. Y may be X.
func BatchNorm(rows int, x []float32, ldx int, scale, shift, y []float32, ldy int) {
	n := len(scale)
	checkLength("shift of BatchNorm", len(shift), n)
	checkMatrix("X of BatchNorm", rows, n, ldx, x)
	checkMatrix("Y of BatchNorm", rows, n, ldy, y)
	batches(batch{step: batchForward, rows: rows, n: n, x: x, ldx: ldx, a: scale, c: shift, out: y, ldo: ldy}, nil, nil)
}

// BatchNormGrad adds a·dy + b·x + c to dX, for rows len(a) wide.
func BatchNormGrad(rows int, x []float32, ldx int, dy []float32, lddy int, a, b, c, dx []float32, lddx int) {
	n := len(a)
	checkLength("b of BatchNormGrad", len(b), n)
	checkLength("c of BatchNormGrad", len(c), n)
	checkMatrix("X of BatchNormGrad", rows, n, ldx, x)
	checkMatrix("dY of BatchNormGrad", rows, n, lddy, dy)
	checkMatrix("dX of BatchNormGrad", rows, n, lddx, dx)
	batches(batch{step: batchBackward, rows: rows, n: n, x: x, ldx: ldx, dy: dy, lddy: lddy, a: a, b: b, c: c, out: dx, ldo: lddx}, nil, nil)
}

type batchStep uint8

const (
	batchForward batchStep = iota
	batchSums
	batchBackward
)

type batch struct {
	step           batchStep
	rows, n        int
	x, dy, out     []float32
	ldx, lddy, ldo int
	a, b, c        []float32
	sums           []float64 // of each part: columns of the sum, then of the product
}

var batchCalls = sync.Pool{New: func() any { return new(batch) }}

// batches does b, in parts of as many rows as LayerNorm's.
func batches(b batch, sum, product []float64) {
	if b.rows == 0 || b.n == 0 {
		return
	}
	c := batchCalls.Get().(*batch)
	sums := c.sums
	*c = b
	parts := (b.rows + normRows - 1) / normRows
	if b.step == batchSums {
		if cap(sums) < 2*b.n*parts {
			sums = make([]float64, 2*b.n*parts)
		}
		c.sums = sums[:2*b.n*parts]
	}
	shared.some(c, parts, b.rows*b.n)
	for rest := c.sums; len(rest) > 0; rest = rest[2*b.n:] {
		for j := range b.n {
			sum[j] += rest[j]
			product[j] += rest[b.n+j]
		}
	}
	*c = batch{sums: sums}
	batchCalls.Put(c)
}

// asIs are the mean and the inverse deviation of rows that are taken as they are.
var asIs = func() (stats [2 * normBlock]float32) {
	for i := range normBlock {
		stats[2*i+1] = 1
	}
	return stats
}()

func (c *batch) run(part int) {
	lo, hi := part*normRows, min((part+1)*normRows, c.rows)
	if c.step == batchSums {
		sums := c.sums[2*c.n*part:][:2*c.n]
		clear(sums)
		for ; lo < hi; lo += normBlock {
			end := min(lo+normBlock, hi)
			for i := lo; i < end && raceEnabled; i++ {
				reads(c.x[i*c.ldx:][:c.n])
				reads(c.dy[i*c.lddy:][:c.n])
			}
			active.addNorm(end-lo, c.x[lo*c.ldx:], c.ldx, c.dy[lo*c.lddy:], c.lddy, asIs[:], sums[c.n:], sums[:c.n])
		}
		return
	}
	room := scratches.Get().(*scratch)
	for i := lo; i < hi; i++ {
		for j := 0; j < c.n; j += blockN {
			c.columns(i, j, min(j+blockN, c.n), room.b[:blockN])
		}
	}
	scratches.Put(room)
}

// columns does columns [lo, hi) of row i.
func (c *batch) columns(i, lo, hi int, room []float32) {
	x, out := c.x[i*c.ldx:][lo:hi], c.out[i*c.ldo:][lo:hi]
	reads(x)
	writes(out)
	if c.step == batchForward {
		active.normalise(x, c.a[lo:hi], c.c[lo:hi], out, 0, 1)
		return
	}
	dy, room := c.dy[i*c.lddy:][lo:hi], room[:hi-lo]
	reads(dy)
	active.normalise(x, c.b[lo:hi], c.c[lo:hi], room, 0, 1)
	active.normalise(dy, c.a[lo:hi], room, room, 0, 1)
	active.add(room, out)
}
