package kernels

import (
	"fmt"
	"math"
	"sync"
	"unsafe"
)

// CrossEntropy returns Σ w(y)·(ln Σ_c exp s_c − s_y) over the rows of S that have a class y ≥ 0, and count = Σ w(y).
// S has rows of n scores, class one value a row, weight n values (nil: all 1). The gradient of the sum,
// w(y)·(softmax(s) − onehot(y)) and 0 without a class, overwrites the rows of G, unless that is nil. Sums are kept in
// float64, 1024 rows at a time.
func CrossEntropy(rows, n int, s []float32, lds int, class []int32, weight []float32, g []float32, ldg int) (loss, count float64) {
	checkMatrix("S of CrossEntropy", rows, n, lds, s)
	checkLength("class of CrossEntropy", len(class), rows)
	if weight != nil {
		checkLength("weight of CrossEntropy", len(weight), n)
	}
	if g != nil {
		checkMatrix("G of CrossEntropy", rows, n, ldg, g)
	}
	for i, y := range class {
		if int(y) >= n {
			panic(fmt.Sprintf("kernels: CrossEntropy: class[%d] = %d, want one of %d", i, y, n))
		}
	}
	if rows == 0 {
		return 0, 0
	}
	c := entropyCalls.Get().(*entropy)
	c.n, c.rows, c.s, c.lds, c.class, c.weight, c.g, c.ldg = n, rows, s, lds, class, weight, g, ldg
	parts := (rows + entropyRows - 1) / entropyRows
	if cap(c.sums) < parts {
		c.sums = make([][2]float64, parts)
	}
	c.sums = c.sums[:parts]
	shared.some(c, parts, rows*n)
	for _, p := range c.sums {
		loss += p[0]
		count += p[1]
	}
	*c = entropy{sums: c.sums}
	entropyCalls.Put(c)
	return loss, count
}

const (
	entropyRows = 1024 // of a part, whatever the number of workers
	softmaxRows = 16   // of a call of set.softmax
	softmaxCols = 64   // at most, of those rows
)

type entropy struct {
	n, rows  int
	s, g     []float32
	lds, ldg int
	class    []int32
	weight   []float32
	sums     [][2]float64 // of each part: loss and count
}

var entropyCalls = sync.Pool{New: func() any { return new(entropy) }}

func (c *entropy) run(part int) {
	b := entropyBlocks.Get().(*entropyBlock)
	b.loss, b.count = 0, 0
	for i := part * entropyRows; i < min((part+1)*entropyRows, c.rows); i++ {
		y := c.class[i]
		if y < 0 {
			if c.g != nil {
				g := c.g[i*c.ldg:][:c.n]
				writes(g)
				clear(g)
			}
			continue
		}
		b.row[b.rows], b.w[b.rows] = i, 1
		if c.weight != nil {
			b.w[b.rows] = c.weight[y]
		}
		if b.rows++; b.rows == len(b.row) {
			b.add(c)
		}
	}
	b.add(c)
	c.sums[part] = [2]float64{b.loss, b.count}
	entropyBlocks.Put(b)
}

// entropyBlock is what becomes of a few rows that have a class.
type entropyBlock struct {
	room        [softmaxRows * softmaxCols]float32 // exponentials; first, and so not across lines of the caches
	rows        int
	row         [softmaxRows]int
	w, top      [softmaxRows]float32
	sum         [softmaxRows]float64 // of the exponentials
	loss, count float64              // of all blocks so far
}

var entropyBlocks = sync.Pool{New: func() any { return new(entropyBlock) }}

// add computes the block's rows, adds what they lose, and empties the block. Of sums whose rows weigh the same, the logarithm
// is taken of their product, which 16 sums cannot drive out of range, each between 1 and 2³¹.
func (b *entropyBlock) add(c *entropy) {
	if b.rows == 0 {
		return
	}
	if c.g != nil && c.n <= softmaxCols && active.softmax != nil {
		b.gradients(c)
	} else {
		for k := range b.rows {
			b.softmax(c, k)
		}
	}
	product, w := 1.0, b.w[0]
	for k, i := range b.row[:b.rows] {
		y := int(c.class[i])
		if c.g != nil {
			c.g[i*c.ldg+y] -= b.w[k]
		}
		if b.w[k] != w {
			b.loss += float64(float64(w) * math.Log(product))
			product, w = 1, b.w[k]
		}
		product *= b.sum[k]
		b.loss -= float64(float64(w) * (float64(c.s[i*c.lds+y]) - float64(b.top[k])))
		b.count += float64(w)
	}
	b.loss += float64(float64(w) * math.Log(product))
	b.rows = 0
}

// gradients writes w·softmax of the block's rows to those of G.
func (b *entropyBlock) gradients(c *entropy) {
	if raceEnabled {
		for _, i := range b.row[:b.rows] {
			reads(c.s[i*c.lds:][:c.n])
			writes(c.g[i*c.ldg:][:c.n])
		}
	}
	active.softmax(b.rows, c.n, &b.row[0], unsafe.Pointer(&c.s[0]), c.lds, unsafe.Pointer(&c.g[0]), c.ldg, &b.w[0], &b.top[0], &b.sum[0], &b.room[0])
}

// softmax finds the maximum of the block's row k and the sum of its exponentials, and writes w·softmax to that of G, unless that
// is nil.
func (b *entropyBlock) softmax(c *entropy, k int) {
	s := c.s[b.row[k]*c.lds:][:c.n]
	reads(s)
	b.top[k] = active.max(s)
	if c.g != nil {
		g := c.g[b.row[k]*c.ldg:][:c.n]
		writes(g)
		b.sum[k] = active.expSum(b.top[k], s, g)
		active.scale(float32(float64(b.w[k])/b.sum[k]), g)
		return
	}
	b.sum[k] = 0
	for len(s) > 0 {
		n := min(len(s), len(b.room))
		b.sum[k] += active.expSum(b.top[k], s[:n], b.room[:n])
		s = s[n:]
	}
}
