package kernels

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"
)

// A Block is the transpose of some rows of a CSR, made by Transpose. Its columns are rows [first, first+rows) of X,
// counted from first. All blocks of a call have as many rows as Y.
type Block struct {
	first, rows int
	ends        []int64 // rowPtr, and one element more
	col         []int32
	val         []float32
}

// Transpose makes b the transpose of rows of a CSR with `cols` columns, in b's own memory. rowPtr has one element more
// than there are rows and begins at row first; X has a row for each row of the CSR.
func (b *Block) Transpose(first int, rowPtr []int64, col []int32, val []float32, cols int) {
	if first < 0 {
		panic(fmt.Sprintf("kernels: Transpose begins with row %d", first))
	}
	from, to := rowPtr[0], rowPtr[len(rowPtr)-1]
	n := int(to - from)
	b.first, b.rows = first, len(rowPtr)-1
	b.ends, b.col, b.val = slices.Grow(b.ends[:0], cols+2)[:cols+2], slices.Grow(b.col[:0], n)[:n],
		slices.Grow(b.val[:0], n)[:n]
	clear(b.ends)
	next := b.ends[2:] // shifted by one: after all values have been placed, ends are right
	for _, c := range col[from:to] {
		next[c]++
	}
	for c := 1; c < len(next); c++ {
		next[c] += next[c-1]
	}
	next = b.ends[1:]
	for i := range b.rows {
		lo, hi := rowPtr[i], rowPtr[i+1]
		row := val[lo:hi]
		for k, c := range col[lo:hi] {
			p := next[c]
			next[c] = p + 1
			b.col[p], b.val[p] = int32(i), row[k]
		}
	}
}

// CSR returns b's matrix as a CSR.
func (b *Block) CSR() (rowPtr []int64, col []int32, val []float32) { return b.rowPtr(), b.col, b.val }

// Bytes returns the memory of b.
func (b *Block) Bytes() int64 { return 8*int64(cap(b.ends)) + 4*int64(cap(b.col)+cap(b.val)) }

func (b *Block) rowPtr() []int64 { return b.ends[:max(0, len(b.ends)-1)] }

// How much of X stays in L1, or in L2, while a block is processed: rows, with some columns each.
const (
	blockRoom = 32 << 10 / 4  // values in L1
	blockCols = 128           // columns of a row at most: as many as are summed in registers at a time
	tallRoom  = 512 << 10 / 4 // values in L2
	tallCols  = 64
)

// BlockRows returns how many rows of X, with n columns, a Block should cover: as many as stay in L1, and as many as
// stay in L2.
func BlockRows(n int) (near, tall int) {
	return blockRoom / max(16, min(n, blockCols)), tallRoom / max(16, min(n, tallCols))
}

// SpMMBlocks computes Y += Σ S·X over blocks S, in order. Y has rows of n values with stride ldy, X with stride ldx. It
// is faster than one SpMM if each row of X is read many times. Rows are read from a copy in L1 or L2; in X itself, rows
// a power of two apart would share a few cache sets.
func SpMMBlocks(blocks []Block, n int, x []float32, ldx int, y []float32, ldy int) {
	if len(blocks) == 0 || n == 0 {
		return
	}
	c := blockCalls.Get().(*blockCall)
	*c = blockCall{blocks: blocks, n: n, x: x, ldx: ldx, y: y, ldy: ldy, rows: len(blocks[0].rowPtr()) - 1}
	c.check()
	cols := blockCols
	if near, _ := BlockRows(n); slices.ContainsFunc(blocks, func(b Block) bool { return b.rows > near }) {
		cols = tallCols
	}
	strips := (n + cols - 1) / cols
	c.width = ((n+strips-1)/strips + 15) &^ 15
	c.ranges = 1
	if threads := runtime.GOMAXPROCS(0); threads > 1 {
		c.ranges = max(1, min(c.rows, (2*threads+strips-1)/strips))
	}
	shared.do(c, strips*c.ranges)
	*c = blockCall{}
	blockCalls.Put(c)
}

type blockCall struct {
	blocks   []Block
	rows, n  int
	x, y     []float32
	ldx, ldy int
	width    int // columns of a part
	ranges   int // number of ranges of Y's rows
}

// blockStrip is the memory of one part.
type blockStrip struct {
	x    [blockRoom]float32 // the first field, so that it is aligned to cache lines
	tall []float32          // rows of a tall block
	s    spmm
}

var (
	blockCalls  = sync.Pool{New: func() any { return new(blockCall) }}
	blockStrips = sync.Pool{New: func() any { return new(blockStrip) }}
)

func (c *blockCall) check() {
	checkMatrix("Y of SpMMBlocks", max(0, c.rows), c.n, c.ldy, c.y)
	for k := range c.blocks {
		b := &c.blocks[k]
		if c.rows < 0 || len(b.rowPtr()) != c.rows+1 {
			panic(fmt.Sprintf("kernels: block %d of SpMMBlocks must have %d rows (got %d)", k, c.rows,
				len(b.rowPtr())-1))
		}
		checkMatrix("X of SpMMBlocks", b.first+b.rows, c.n, c.ldx, c.x)
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
		rowPtr := b.rowPtr()
		if rowPtr[lo] == rowPtr[hi] {
			continue
		}
		s.rowPtr, s.col, s.val, s.n, s.tall = rowPtr, b.col, b.val, cols, b.rows
		s.y, s.ldy, s.acc = c.y[j:], c.ldy, true
		s.x, s.ldx = c.x[b.first*c.ldx+j:], c.ldx
		switch size := b.rows * c.width; {
		case size <= blockRoom:
			t.copy(b.rows, c.width, t.x[:])
		case size <= tallRoom:
			if t.tall == nil {
				t.tall = make([]float32, tallRoom)
			}
			t.copy(b.rows, c.width, t.tall)
		}
		s.sum(lo, hi) // without a check: Transpose made the columns
	}
	t.s = spmm{}
	blockStrips.Put(t)
}

// copy copies the strip's rows of X to consecutive memory.
func (t *blockStrip) copy(rows, width int, to []float32) {
	s := &t.s
	if raceEnabled {
		for i := range rows {
			reads(s.x[i*s.ldx:][:s.n])
		}
	}
	if active.tiles.lay != nil {
		active.tiles.lay(rows, s.n, unsafe.Pointer(&s.x[0]), s.ldx, unsafe.Pointer(&to[0]), width)
	} else {
		for i := range rows {
			copy(to[i*width:][:s.n], s.x[i*s.ldx:])
		}
	}
	s.x, s.ldx = to[:rows*width], width
}
