package kernels

import (
	"runtime"
	"sync"
	"unsafe"
)

// If rows of X are read many times and X is larger than L2, Y = S·X is computed one strip of columns after another.
// Each strip is first copied to consecutive memory: the copy fits in L2, or nearly, or in L3, or needs fewer pages. In
// X itself, rows a power of two apart would share few cache sets. Rows of a few columns that do not begin at a cache
// line are copied so that they do. The order of a sum is unchanged.
const (
	stripCols = 64
	stripFrom = 4 << 20  // bytes of X at least
	stripMost = 32 << 20 // bytes of a copy at most
	stripUses = 24       // edges for each row of X from which on a copy saves time
	alignUses = 16       // the same if rows are only aligned to cache lines
	alignMost = 4 << 20  // bytes of an aligned copy at most
)

// stripWidth returns how many columns of X to copy at a time, including padding to cache lines, or 0 if X is read in
// place.
func (s *spmm) stripWidth() int {
	if active.tiles.lay == nil || s.nHubs > 0 || s.tall == 0 {
		return 0
	}
	edges := s.rowPtr[s.rows()] - s.rowPtr[0]
	switch {
	case s.n >= 2*stripCols:
		count := (s.n + stripCols/2) / stripCols
		width := ((s.n+count-1)/count + 15) &^ 15
		if edges >= stripUses*int64(s.tall) && 4*s.n*s.tall >= stripFrom && 4*width*s.tall <= stripMost {
			return width
		}
	case 8 < s.n && s.n < stripCols && s.n%8 != 0:
		if width := (s.n + 15) &^ 15; edges >= alignUses*int64(s.tall) && 4*width*s.tall <= alignMost {
			return width
		}
	}
	return 0
}

// strip is some columns of X and their copy.
type strip struct {
	from    *spmm
	j, cols int
	x       []float32 // rows of width values
	width   int
	piece   int // rows that are copied at a time
}

var stripCalls = sync.Pool{New: func() any { return new(strip) }}

// strips computes Y, `width` columns at a time.
func (s *spmm) strips(width int) {
	c, t := stripCalls.Get().(*strip), spmmCalls.Get().(*spmm)
	if size := s.tall * width; len(c.x) < size {
		c.x = onLargePages(size)
	}
	c.from, c.width, c.piece = s, width, s.tall
	if size := s.tall * width; size >= aloneRows {
		parts := min(4*runtime.GOMAXPROCS(0), size/(aloneRows/4))
		c.piece = (s.tall + parts - 1) / parts
	}
	for c.j = 0; c.j < s.n && !s.broken.Load(); c.j += width {
		c.cols = min(width, s.n-c.j)
		shared.do(c, (s.tall+c.piece-1)/c.piece)
		t.rowPtr, t.col, t.val, t.tall, t.checked = s.rowPtr, s.col, s.val, s.tall, c.j > 0
		t.n, t.x, t.ldx, t.y, t.ldy, t.acc = c.cols, c.x, width, s.y[c.j:], s.ldy, s.acc
		t.cut()
		shared.do(t, t.split())
		if t.broken.Load() {
			s.broken.Store(true)
		}
	}
	*t = spmm{}
	spmmCalls.Put(t)
	c.from = nil
	stripCalls.Put(c)
}

// run copies some rows.
func (c *strip) run(part int) {
	s, lo := c.from, part*c.piece
	hi := min(lo+c.piece, s.tall)
	if raceEnabled {
		for i := lo; i < hi; i++ {
			reads(s.x[i*s.ldx+c.j:][:c.cols])
		}
	}
	active.tiles.lay(hi-lo, c.cols, unsafe.Pointer(&s.x[lo*s.ldx+c.j]), s.ldx, unsafe.Pointer(&c.x[lo*c.width]),
		c.width)
}

// onLargePages is Room with an address that begins at a large page: memory that fits in one or two would otherwise be
// on none.
func onLargePages(n int) []float32 {
	x := Room(n + 2*largePage/4)
	past := uintptr(unsafe.Pointer(unsafe.SliceData(x))) % largePage
	return x[(largePage-past)%largePage/4:]
}
