package kernels

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// If rows of S have many columns, as with sparse features times weights, Y = S·X processes a panel of rows of X at a
// time. The panel is copied to L1 and used by panelRows rows of S, whose rows of Y stay in L2. The order of a sum is
// unchanged.
const (
	panelCols = 128 // columns of X at most; their sums are in registers
	panelTall = 96  // rows of X, which leave space in L1 for the rest
	panelRows = 512
	// edges of a row within a panel, on average: with fewer, reading and writing its row of Y once more takes too long
	panelEdges = 6
)

// panels is a kernel and the number of columns that it sums.
type panels struct {
	run  panelAsm
	cols int
}

// A panelAsm processes the columns of a panel. For each of `rows` rows of Y it sums edges from at[i] on, before
// ends[i], as long as their columns are in [first, first+tall); x has these rows of X. It sets at[i] to where it
// stopped, and prefetches the edge at at[i+4].
type panelAsm func(rows int, at, ends, col, val unsafe.Pointer, first, tall int, x unsafe.Pointer, ldx int,
	y unsafe.Pointer, ldy int, acc bool)

// SpMMPanels is SpMM for an S whose columns ascend in each row and that has values.
func SpMMPanels(rowPtr []int64, col []int32, val []float32, n int, x []float32, ldx int, y []float32, ldy int,
	acc bool) {
	c := panelCalls.Get().(*panelCall)
	s := &c.spmm
	s.init("SpMMPanels", rowPtr, col, n, len(x), ldx)
	if !s.panels(len(val)) {
		*s = spmm{}
		panelCalls.Put(c)
		SpMM(rowPtr, col, val, n, x, ldx, y, ldy, acc)
		return
	}
	s.x, s.val, s.y, s.ldy, s.acc = x, val, y, ldy, acc
	checkMatrix("Y of SpMMPanels", s.rows(), n, ldy, y)
	c.piece = panelRows
	if threads := runtime.GOMAXPROCS(0); threads > 1 {
		c.piece = min(panelRows, s.rows()/(2*threads)+1)
	}
	shared.do(c, n/active.panel.cols*((s.rows()+c.piece-1)/c.piece))
	if s.broken.Load() {
		s.explain("SpMMPanels")
	}
	if i := c.astray.Load(); i > 0 {
		panic(fmt.Sprintf("kernels: SpMMPanels: columns of row %d must ascend", i-1))
	}
	*c = panelCall{}
	panelCalls.Put(c)
}

// panels reports whether panels are faster.
func (s *csr) panels(values int) bool {
	edges, rows := s.rowPtr[s.rows()]-s.rowPtr[0], int64(s.rows())
	return active.panel.run != nil && values >= len(s.col) && s.n > 0 && s.n%active.panel.cols == 0 &&
		s.tall > panelTall && edges*panelTall >= panelEdges*rows*int64(s.tall)
}

type panelCall struct {
	spmm
	piece  int          // rows of Y in a part
	astray atomic.Int64 // 1 + a row whose columns do not ascend
}

// panelStrip is the memory of one part.
type panelStrip struct {
	x  [panelTall * panelCols]float32 // the first field, so that it is aligned to cache lines
	at [panelRows + 4]int64
}

var (
	panelCalls  = sync.Pool{New: func() any { return new(panelCall) }}
	panelStrips = sync.Pool{New: func() any { return new(panelStrip) }}
)

// run computes some columns of some rows of Y.
func (c *panelCall) run(part int) {
	cols := active.panel.cols
	strips := c.n / cols
	j, lo := part%strips*cols, part/strips*c.piece
	hi := min(lo+c.piece, c.rows())
	t := panelStrips.Get().(*panelStrip)
	defer panelStrips.Put(t)
	ends := c.rowPtr[lo : hi+1]
	for i, at := range ends {
		if at < 0 || at > int64(len(c.col)) || i > 0 && at < ends[i-1] {
			c.broken.Store(true)
			return
		}
	}
	copy(t.at[:], ends[:hi-lo])
	if raceEnabled {
		reads(ends)
		reads(c.val[ends[0]:ends[hi-lo]])
		reads(c.col[ends[0]:ends[hi-lo]])
		for i := range c.tall {
			reads(c.x[i*c.ldx+j:][:cols])
		}
		for i := lo; i < hi; i++ {
			writes(c.y[i*c.ldy+j:][:cols])
		}
	}
	for first := 0; first < c.tall; first += panelTall {
		some := min(panelTall, c.tall-first)
		active.tiles.lay(some, cols, unsafe.Pointer(&c.x[first*c.ldx+j]), c.ldx, unsafe.Pointer(&t.x[0]), cols)
		active.panel.run(hi-lo, unsafe.Pointer(&t.at[0]), unsafe.Pointer(&ends[1]),
			unsafe.Pointer(unsafe.SliceData(c.col)), unsafe.Pointer(unsafe.SliceData(c.val)), first, some,
			unsafe.Pointer(&t.x[0]), cols, unsafe.Pointer(&c.y[lo*c.ldy+j]), c.ldy, c.acc || first > 0)
	}
	for i, end := range ends[1:] {
		switch at := t.at[i]; {
		case at == end:
		case c.col[at] < 0 || int(c.col[at]) >= c.tall:
			c.broken.Store(true)
		default:
			c.astray.Store(int64(lo+i) + 1)
		}
	}
}
