package kernels

import (
	"fmt"
	"math"
	"sync"
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

const entropyRows = 1024 // of a part, whatever the number of workers

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
	var loss, count float64
	room := scratches.Get().(*scratch)
	for i := part * entropyRows; i < min((part+1)*entropyRows, c.rows); i++ {
		y := int(c.class[i])
		var g []float32
		if c.g != nil {
			g = c.g[i*c.ldg:][:c.n]
			writes(g)
		}
		if y < 0 {
			clear(g)
			continue
		}
		w := float32(1)
		if c.weight != nil {
			w = c.weight[y]
		}
		s := c.s[i*c.lds:][:c.n]
		reads(s)
		top := active.max(s)
		var sum float64
		if g != nil {
			sum = active.expSum(top, s, g)
			active.scale(float32(float64(w)/sum), g)
			g[y] -= w
		} else {
			for rest := s; len(rest) > 0; {
				k := min(len(rest), len(room.b))
				sum += active.expSum(top, rest[:k], room.b[:k])
				rest = rest[k:]
			}
		}
		loss += float64(float64(w) * (math.Log(sum) - (float64(s[y]) - float64(top))))
		count += float64(w)
	}
	scratches.Put(room)
	c.sums[part] = [2]float64{loss, count}
}
