package kernels

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// A Block is a CSR whose columns are rows [First, First+Rows) of X, counted from First. All blocks of a call have as many
// rows as Y.
type Block struct {
	First, Rows int
	RowPtr      []int64
	Col         []int32
	Val         []float32
}

// What lies in L1 while a block is gone through: rows of X, some columns of them.
const (
	blockRoom = 32 << 10 / 4 // values
	blockCols = 128          // at most, of a row: as many as are summed in registers at a time
)

// BlockRows returns how many rows of X, of n columns, a Block should pick: as many as stay in the nearest cache.
func BlockRows(n int) int { return blockRoom / max(16, min(n, blockCols)) }

// SpMMBlocks computes Y += Σ S·X over blocks S, in their order. Y has rows of n values with stride ldy, X with stride ldx. Where rows
// of X are picked many times each, that takes less time than one SpMM: they are picked from a copy in L1, in which rows a power
// of two apart do not fall on the same few lines of the cache.
func SpMMBlocks(blocks []Block, n int, x []float32, ldx int, y []float32, ldy int) {
	if len(blocks) == 0 || n == 0 {
		return
	}
	c := blockCalls.Get().(*blockCall)
	*c = blockCall{blocks: blocks, n: n, x: x, ldx: ldx, y: y, ldy: ldy, rows: len(blocks[0].RowPtr) - 1}
	c.check()
	strips := (n + blockCols - 1) / blockCols
	c.width = ((n+strips-1)/strips + 15) &^ 15
	c.ranges = 1
	if threads := runtime.GOMAXPROCS(0); threads > 1 {
		c.ranges = max(1, min(c.rows, (2*threads+strips-1)/strips))
	}
	shared.do(c, strips*c.ranges)
	if c.broken != nil {
		c.broken.explain("SpMMBlocks")
	}
	*c = blockCall{}
	blockCalls.Put(c)
}

type blockCall struct {
	blocks   []Block
	rows, n  int
	x, y     []float32
	ldx, ldy int
	width    int // columns of a part
	ranges   int // parts that the rows of Y are cut into

	mu     sync.Mutex
	broken *csr
}

// blockStrip is what one part works in.
type blockStrip struct {
	x [blockRoom]float32 // first, and so not across lines of the caches
	s spmm
}

var (
	blockCalls  = sync.Pool{New: func() any { return new(blockCall) }}
	blockStrips = sync.Pool{New: func() any { return new(blockStrip) }}
)

func (c *blockCall) check() {
	checkMatrix("Y of SpMMBlocks", max(0, c.rows), c.n, c.ldy, c.y)
	for k, b := range c.blocks {
		switch {
		case len(b.RowPtr) != c.rows+1 || c.rows < 0:
			panic(fmt.Sprintf("kernels: block %d of SpMMBlocks must have %d row pointers (got %d)", k, c.rows+1, len(b.RowPtr)))
		case len(b.Val) < len(b.Col):
			panic(fmt.Sprintf("kernels: block %d of SpMMBlocks has %d values for %d columns", k, len(b.Val), len(b.Col)))
		case b.First < 0 || b.Rows < 0:
			panic(fmt.Sprintf("kernels: block %d of SpMMBlocks picks %d rows from row %d on", k, b.Rows, b.First))
		}
		checkMatrix("X of SpMMBlocks", b.First+b.Rows, c.n, c.ldx, c.x)
	}
}

// run computes some columns of some rows of Y.
func (c *blockCall) run(part int) {
	t := blockStrips.Get().(*blockStrip)
	s := &t.s
	j, lo, hi := part/c.ranges*c.width, part%c.ranges*c.rows/c.ranges, (part%c.ranges+1)*c.rows/c.ranges
	cols := min(c.width, c.n-j)
	for k := range c.blocks {
		b := &c.blocks[k]
		if b.Rows == 0 || b.RowPtr[lo] == b.RowPtr[hi] {
			continue
		}
		s.rowPtr, s.col, s.val, s.n, s.tall = b.RowPtr, b.Col, b.Val, cols, b.Rows
		s.y, s.ldy, s.acc = c.y[j:], c.ldy, true
		s.x, s.ldx = c.x[b.First*c.ldx+j:], c.ldx
		if b.Rows*c.width <= blockRoom {
			t.copy(b.Rows, c.width)
		}
		if !s.each(lo, hi) {
			c.mu.Lock()
			c.broken = &csr{rowPtr: b.RowPtr, col: b.Col, tall: b.Rows}
			c.mu.Unlock()
			break
		}
	}
	t.s = spmm{}
	blockStrips.Put(t)
}

// copy makes the strip's rows of X follow one another.
func (t *blockStrip) copy(rows, width int) {
	s := &t.s
	if raceEnabled {
		for i := range rows {
			reads(s.x[i*s.ldx:][:s.n])
		}
	}
	if active.tiles.lay != nil {
		active.tiles.lay(rows, s.n, unsafe.Pointer(&s.x[0]), s.ldx, unsafe.Pointer(&t.x[0]), width)
	} else {
		for i := range rows {
			copy(t.x[i*width:][:s.n], s.x[i*s.ldx:])
		}
	}
	s.x, s.ldx = t.x[:rows*width], width
}

// each computes rows [lo, hi) of Y, and reports false where they are not those of a CSR.
func (s *spmm) each(lo, hi int) bool {
	for lo < hi {
		end, ok := s.block(lo, hi)
		if !ok {
			return false
		}
		s.sum(lo, end)
		lo = end
	}
	return true
}
