package kernels

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// GatherRows copies row index[i] of src to row i of dst, for all i; rows have n values.
func GatherRows(n int, index []int32, src []float32, lds int, dst []float32, ldd int) {
	checkMatrix("dst of GatherRows", len(index), n, ldd, dst)
	if n == 0 || len(index) == 0 {
		return
	}
	if lds < n {
		panic(fmt.Sprintf("kernels: src of GatherRows has rows of %d values with stride %d", n, lds))
	}
	g := gatherCalls.Get().(*gather)
	g.n, g.index, g.src, g.lds, g.dst, g.ldd = n, index, src, lds, dst, ldd
	if len(src) >= n {
		g.tall = (len(src)-n)/lds + 1
	}
	g.piece = len(index)
	if size := len(index) * n; size >= aloneRows {
		parts := min(4*runtime.GOMAXPROCS(0), size/(aloneRows/4))
		g.piece = (len(index) + parts - 1) / parts
	}
	shared.do(g, (len(index)+g.piece-1)/g.piece)
	if g.broken.Load() {
		for i, j := range index {
			if j < 0 || int(j) >= g.tall {
				panic(fmt.Sprintf("kernels: GatherRows: index[%d] = %d is out of the %d rows of src", i, j, g.tall))
			}
		}
	}
	*g = gather{}
	gatherCalls.Put(g)
}

// aloneRows is how many values a row operation moves without helpers: some 50 µs.
const aloneRows = 1 << 18

// some runs the parts of work on `values` values, without helpers if they are few.
func (p *pool) some(w work, parts, values int) {
	if values >= aloneRows {
		p.do(w, parts)
		return
	}
	for i := range parts {
		w.run(i)
	}
}

type gather struct {
	n        int
	index    []int32
	src, dst []float32
	lds, ldd int
	tall     int // rows of src
	piece    int
	broken   atomic.Bool
}

var gatherCalls = sync.Pool{New: func() any { return new(gather) }}

func (g *gather) run(part int) {
	lo, hi := part*g.piece, min((part+1)*g.piece, len(g.index))
	if m := active.maxIndex(g.index[lo:hi]); uint64(m) >= uint64(g.tall) {
		g.broken.Store(true)
		return
	}
	for i := lo; i < hi; i++ {
		copy(g.dst[i*g.ldd:][:g.n], g.src[int(g.index[i])*g.lds:])
	}
}

// AddBias adds b, unless it is nil, to each of `rows` rows of n values and, if relu is set, replaces negative values by
// 0.
func AddBias(rows, n int, y []float32, ldy int, b []float32, relu bool) {
	checkMatrix("Y of AddBias", rows, n, ldy, y)
	if b != nil {
		checkLength("b of AddBias", len(b), n)
	}
	for i := range rows {
		row := y[i*ldy:][:n]
		writes(row)
		if b != nil {
			active.add(b, row)
		}
		if relu {
			active.relu(row, row)
		}
	}
}

// SumColumns computes dst[j] = Σᵢ X[i,j], or adds the sum to dst if acc is set: a bias's gradient. X has rows of
// len(dst) values. Sums are float64 and rounded once.
func SumColumns(rows int, x []float32, ldx int, dst []float32, acc bool) {
	checkMatrix("X of SumColumns", rows, len(dst), ldx, x)
	if len(dst) == 0 {
		return
	}
	c := columnsCalls.Get().(*columns)
	*c = columns{rows, x, ldx, dst, acc, blockN}
	if rows*len(dst) >= aloneRows {
		// Pieces are whole cache lines: a narrow matrix is bound by memory, not by the processor.
		c.piece = min(blockN, max(64, (len(dst)/runtime.GOMAXPROCS(0)+63)&^63))
	}
	shared.do(c, (len(dst)+c.piece-1)/c.piece)
	*c = columns{}
	columnsCalls.Put(c)
}

type columns struct {
	rows  int
	x     []float32
	ldx   int
	dst   []float32
	acc   bool
	piece int // columns of a piece
}

var columnsCalls = sync.Pool{New: func() any { return new(columns) }}

func (c *columns) run(part int) {
	lo, hi := part*c.piece, min((part+1)*c.piece, len(c.dst))
	s := scratches.Get().(*scratch)
	sum, dst := s.wide[:hi-lo], c.dst[lo:hi]
	clear(sum)
	for i := range c.rows {
		row := c.x[i*c.ldx+lo : i*c.ldx+hi]
		reads(row)
		active.addWide(row, sum)
	}
	for j, v := range sum {
		if c.acc {
			v += float64(dst[j])
		}
		dst[j] = float32(v)
	}
	scratches.Put(s)
}
