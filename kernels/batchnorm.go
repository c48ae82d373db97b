package kernels

import "sync"

// BatchNorm (Ioffe and Szegedy, ICML 2015) is made of sums over rows, which add up over blocks and peers, and of passes
// with one or a few factors a column. With N rows, mean = Σx/N, inv = 1/√(Σ(x − mean)²/N + eps) and x̂ = (x −
// mean)·inv,
//
//	y  = gain·x̂ + bias                       = scale·x + shift,  scale = gain·inv, shift = bias − mean·scale
//	dx = gain·inv·(dy − Σdy/N − x̂·Σ(dy·x̂)/N) = a·dy + b·x + c,   a = gain·inv,     b = −a·inv·Σ(dy·x̂)/N,
//	                                                              c = −a·Σdy/N − b·mean
//
// where Σ(dy·x̂) = inv·(Σ dy·x − mean·Σ dy) is also the gain's gradient, and Σ dy the bias's.

// ColumnMoments writes each column's mean and its sum of squared deviations from the mean; zeros if there are no rows.
// Deviations are first taken from one of the rows, so that a column far from 0 loses no digits. Parts of the rows are
// merged as in Merge.
func ColumnMoments(rows int, x []float32, ldx int, mean, square []float64) {
	n := len(mean)
	checkLength("square of ColumnMoments", len(square), n)
	checkMatrix("X of ColumnMoments", rows, n, ldx, x)
	clear(mean)
	clear(square)
	batches(batch{step: batchMoments, rows: rows, n: n, x: x, ldx: ldx}, mean, square)
}

// Merge adds a second set of rows to a mean and a sum of squared deviations (Chan, Golub and LeVeque, 1979, eq. 2.1).
// rows and more are the sets' numbers of rows. If both are 0, mean and square must be 0.
func Merge(rows int, mean, square *float64, more int, mean2, square2 float64) {
	if more == 0 {
		return
	}
	d, share := mean2-*mean, float64(more)/float64(rows+more)
	*mean += float64(d * share)
	*square += square2 + float64(float64(d*d)*float64(float64(rows)*share))
}

// ColumnSums adds Σ dy and Σ dy·x over the rows to sum and product, by column. Products are rounded to float32 and
// summed in float64.
func ColumnSums(rows int, x []float32, ldx int, dy []float32, lddy int, sum, product []float64) {
	n := len(sum)
	checkLength("product of ColumnSums", len(product), n)
	checkMatrix("X of ColumnSums", rows, n, ldx, x)
	checkMatrix("dY of ColumnSums", rows, n, lddy, dy)
	batches(batch{step: batchSums, rows: rows, n: n, x: x, ldx: ldx, dy: dy, lddy: lddy}, sum, product)
}

// BatchNorm writes y = scale·x + shift for each of the rows, which have len(scale) values. Y may be X.
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
	batches(batch{step: batchBackward, rows: rows, n: n, x: x, ldx: ldx, dy: dy, lddy: lddy, a: a, b: b, c: c, out: dx,
		ldo: lddx}, nil, nil)
}

type batchStep uint8

const (
	batchForward batchStep = iota
	batchSums
	batchMoments
	batchBackward
)

type batch struct {
	step           batchStep
	rows, n        int
	x, dy, out     []float32
	ldx, lddy, ldo int
	a, b, c        []float32
	sums           []float64 // by part: columns of the sum, then of the product; for moments, of means and squares
}

var batchCalls = sync.Pool{New: func() any { return new(batch) }}

// batches runs b, in parts of as many rows as LayerNorm's parts.
func batches(b batch, sum, product []float64) {
	if b.rows == 0 || b.n == 0 {
		return
	}
	c := batchCalls.Get().(*batch)
	sums := c.sums
	*c = b
	parts := (b.rows + normRows - 1) / normRows
	if b.step == batchSums || b.step == batchMoments {
		if cap(sums) < 2*b.n*parts {
			sums = make([]float64, 2*b.n*parts)
		}
		c.sums = sums[:2*b.n*parts]
	}
	shared.some(c, parts, b.rows*b.n)
	for part := 0; 2*b.n*part < len(c.sums); part++ {
		of := c.sums[2*b.n*part:]
		for j := range b.n {
			if b.step == batchMoments {
				Merge(part*normRows, &sum[j], &product[j], min(normRows, b.rows-part*normRows), of[j], of[b.n+j])
				continue
			}
			sum[j] += of[j]
			product[j] += of[b.n+j]
		}
	}
	*c = batch{sums: sums}
	batchCalls.Put(c)
}

// asIs is a mean of 0 and an inverse deviation of 1 for each row, which leave it unchanged.
var asIs = func() (stats [2 * normBlock]float32) {
	for i := range normBlock {
		stats[2*i+1] = 1
	}
	return stats
}()

func (c *batch) run(part int) {
	lo, hi := part*normRows, min((part+1)*normRows, c.rows)
	if c.step == batchMoments {
		c.moments(part, lo, hi)
		return
	}
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

// ones are factors that change nothing.
var ones = func() (all [blockN]float32) {
	for i := range all {
		all[i] = 1
	}
	return all
}()

// moments computes mean and squares of a part, the rows [lo, hi), by strips of columns. It subtracts the part's first
// row from a block of rows, and sums them and their squares.
func (c *batch) moments(part, lo, hi int) {
	room := scratches.Get().(*scratch)
	sums := c.sums[2*c.n*part:][:2*c.n]
	clear(sums)
	for j := 0; j < c.n; j += blockN {
		n := min(blockN, c.n-j)
		first, less := c.x[lo*c.ldx+j:][:n], room.b[:n]
		reads(first)
		for k, v := range first {
			less[k] = -v
		}
		mean, square := sums[j:][:n], sums[c.n+j:][:n]
		for i := lo; i < hi; i += normBlock {
			end := min(i+normBlock, hi)
			block := room.b[blockN:][:normBlock*n]
			for k := i; k < end; k++ {
				x := c.x[k*c.ldx+j:][:n]
				reads(x)
				active.normalise(x, ones[:n], less, block[(k-i)*n:][:n], 0, 1, false)
			}
			active.addNorm(end-i, block, n, block, n, asIs[:], square, mean)
		}
		rows := float64(hi - lo)
		for k, v := range first {
			square[k] = max(0, square[k]-float64(mean[k]*mean[k])/rows)
			mean[k] = float64(v) + mean[k]/rows
		}
	}
	scratches.Put(room)
}

// columns processes columns [lo, hi) of row i.
func (c *batch) columns(i, lo, hi int, room []float32) {
	x, out := c.x[i*c.ldx:][lo:hi], c.out[i*c.ldo:][lo:hi]
	reads(x)
	writes(out)
	if c.step == batchForward {
		active.normalise(x, c.a[lo:hi], c.c[lo:hi], out, 0, 1, false)
		return
	}
	dy, room := c.dy[i*c.lddy:][lo:hi], room[:hi-lo]
	reads(dy)
	active.normalise(x, c.b[lo:hi], c.c[lo:hi], room, 0, 1, false)
	active.normalise(dy, c.a[lo:hi], room, room, 0, 1, false)
	active.add(room, out)
}
