package kernels

import (
	"fmt"
	"math"
	"sync"
	"unsafe"
)

// CrossEntropy returns Σ w(y)·(ln Σ_c exp s_c − s_y) over the rows of S that have a class y ≥ 0, and count = Σ w(y). S
// has rows of n scores, class one value a row, weight n values (nil = all 1). Unless G is nil, the gradient of the sum
// overwrites its rows: w(y)·(softmax(s) − onehot(y)), or 0 without a class. Sums are float64, over 1024 rows at a time.
func CrossEntropy(rows, n int, s []float32, lds int, class []int32, weight []float32, g []float32,
	ldg int) (loss, count float64) {
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
			panic(fmt.Sprintf("kernels: CrossEntropy: class[%d] must be below %d (got %d)", i, n, y))
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
	shared.some(c, parts, 8*rows*n) // an exponential takes as long as moving eight values
	for _, p := range c.sums {
		loss += p[0]
		count += p[1]
	}
	*c = entropy{sums: c.sums}
	entropyCalls.Put(c)
	return loss, count
}

const (
	entropyRows = 1024 // rows of a part, for any number of workers
	softmaxRows = 32   // rows of a call of set.softmax
	softmaxCols = 64   // scores of these rows at most
)

type entropy struct {
	n, rows  int
	s, g     []float32
	lds, ldg int
	class    []int32
	weight   []float32
	sums     [][2]float64 // by part: loss and count
}

var entropyCalls = sync.Pool{New: func() any { return new(entropy) }}

func (c *entropy) run(part int) {
	b := entropyBlocks.Get().(*entropyBlock)
	b.loss, b.count = 0, 0
	lo := part * entropyRows
	k := 0
	for i, y := range c.class[lo:min(lo+entropyRows, c.rows)] {
		if y < 0 {
			if c.g != nil {
				g := c.g[(lo+i)*c.ldg:][:c.n]
				writes(g)
				clear(g)
			}
			continue
		}
		b.row[k], b.class[k], b.w[k] = lo+i, y, 1
		if c.weight != nil {
			b.w[k] = c.weight[y]
		}
		if k++; k == softmaxRows {
			b.add(c, k)
			k = 0
		}
	}
	if k > 0 {
		b.add(c, k)
	}
	c.sums[part] = [2]float64{b.loss, b.count}
	entropyBlocks.Put(b)
}

// entropyBlock has inputs and outputs of set.softmax for a few rows that have a class.
type entropyBlock struct {
	// exponentials and scratch; the first field, so that it is aligned to cache lines
	room          [softmaxRows*softmaxCols + 16*16 + softmaxRows]float32
	row           [softmaxRows]int
	class         [softmaxRows]int32
	w, top, score [softmaxRows]float32
	sum           [softmaxRows]float64 // of the row's exponentials
	loss, count   float64              // over all blocks so far
}

var entropyBlocks = sync.Pool{New: func() any { return new(entropyBlock) }}

// add computes the block's first rows and adds their losses. For rows of equal weight it takes one logarithm of the
// product of their sums. 32 sums, each between 1 and 2³¹, cannot overflow a float64.
func (b *entropyBlock) add(c *entropy, rows int) {
	if c.n <= softmaxCols && active.softmax != nil {
		b.softmaxes(c, rows)
	} else {
		for k := range rows {
			b.softmax(c, k)
		}
	}
	product, loss, count, w := 1.0, 0.0, 0.0, b.w[0]
	for k, v := range b.w[:rows] {
		if v != w {
			loss += float64(float64(w) * math.Log(product))
			product, w = 1, v
		}
		product *= b.sum[k]
		loss += float64(float64(v) * (float64(b.top[k]) - float64(b.score[k])))
		count += float64(v)
	}
	b.loss += loss + float64(float64(w)*math.Log(product))
	b.count += count
}

// softmaxes runs softmax for each of the block's first rows.
func (b *entropyBlock) softmaxes(c *entropy, rows int) {
	first := b.row[0]
	for k := rows; k < softmaxRows; k++ { // set.softmax processes all rows: the others repeat the first
		b.row[k], b.class[k], b.w[k] = first, b.class[0], b.w[0]
	}
	var g unsafe.Pointer
	if c.g != nil {
		g = unsafe.Pointer(&c.g[0])
	}
	if raceEnabled {
		for _, i := range b.row[:rows] {
			reads(c.s[i*c.lds:][:c.n])
			if c.g != nil {
				writes(c.g[i*c.ldg:][:c.n])
			}
		}
	}
	active.softmax(b, c.n, unsafe.Pointer(&c.s[0]), c.lds, g, c.ldg)
}

// softmax computes the maximum of the block's row k, the score of its class and the sum of its exponentials. Unless G
// is nil, it writes w·(softmax − onehot) to the row of G.
func (b *entropyBlock) softmax(c *entropy, k int) {
	s := c.s[b.row[k]*c.lds:][:c.n]
	reads(s)
	b.top[k], b.score[k] = active.max(s), s[b.class[k]]
	if c.g != nil {
		g := c.g[b.row[k]*c.ldg:][:c.n]
		writes(g)
		b.sum[k] = active.expSum(b.top[k], s, g)
		active.scale(float32(float64(b.w[k])/b.sum[k]), g)
		g[b.class[k]] -= b.w[k]
		return
	}
	b.sum[k] = 0
	for len(s) > 0 {
		n := min(len(s), len(b.room))
		b.sum[k] += active.expSum(b.top[k], s[:n], b.room[:n])
		s = s[n:]
	}
}
