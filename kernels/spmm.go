package kernels

import (
	"fmt"
	"math"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
)

// SpMM computes Y = S·X, or Y += S·X if acc is set. S is a CSR of len(rowPtr)-1 rows with columns col and values val
// (nil = all 1); X has rows of n values with stride ldx, Y with stride ldy. It computes neighbour sums (S is the
// adjacency, X the rows of nodes) and sparse inputs (S is the features, X the weights).
func SpMM(rowPtr []int64, col []int32, val []float32, n int, x []float32, ldx int, y []float32, ldy int, acc bool) {
	if val != nil && len(val) < len(col) {
		panic(fmt.Sprintf("kernels: SpMM has %d values for %d columns", len(val), len(col)))
	}
	s := spmmCalls.Get().(*spmm)
	s.init("SpMM", rowPtr, col, n, len(x), ldx)
	s.x, s.val, s.y, s.ldy, s.acc = x, val, y, ldy, acc
	checkMatrix("Y of SpMM", s.rows(), s.n, s.ldy, s.y)
	if s.cut(); s.n > 0 && s.rows() > 0 {
		parts := s.split()
		if width := s.stripWidth(); width > 0 {
			s.strips(width)
		} else {
			shared.do(s, parts)
		}
	}
	if s.broken.Load() {
		s.explain("SpMM")
	}
	*s = spmm{}
	spmmCalls.Put(s)
}

// SpMax computes the maximum of the rows of X over the columns of each row of S, element by element, and writes it to
// Y. arg gets the column of the maximum (the first one in a tie). A row of S without columns does not change its row of
// Y and arg, so that blocks can be processed one after another: begin with −Inf and −1. NaN is ignored.
func SpMax(rowPtr []int64, col []int32, n int, x []float32, ldx int, y []float32, ldy int, arg []int32, lda int) {
	s := spmaxCalls.Get().(*spmax)
	s.init("SpMax", rowPtr, col, n, len(x), ldx)
	s.x, s.y, s.ldy, s.arg, s.lda = x, y, ldy, arg, lda
	checkMatrix("Y of SpMax", s.rows(), n, ldy, y)
	if s.rows() > 0 && n > 0 && (len(arg) < n || s.rows() > 1 && (lda < n || (len(arg)-n)/lda < s.rows()-1)) {
		panic(fmt.Sprintf("kernels: arg of SpMax, %d×%d with stride %d, has only %d values", s.rows(), n, lda,
			len(arg)))
	}
	s.do(s)
	if s.broken.Load() {
		s.explain("SpMax")
	}
	*s = spmax{}
	spmaxCalls.Put(s)
}

// SpMaxGrad computes the gradient of each edge's row from the gradient x of the maxima. Edge k is edge at[k] in arg,
// SpMax's output: y_k = x_row[k] where arg_row[k] = at[k], else 0. Rows have n values; it is sequential.
func SpMaxGrad(row, at []int32, n int, arg []int32, lda int, x []float32, ldx int, y []float32, ldy int) {
	checkLength("at of SpMaxGrad", len(at), len(row))
	checkMatrix("Y of SpMaxGrad", len(row), n, ldy, y)
	for k, i := range row {
		a, from, to := arg[int(i)*lda:][:n], x[int(i)*ldx:][:n], y[k*ldy:][:n]
		reads(a)
		reads(from)
		writes(to)
		active.where(at[k], a, from, to)
	}
}

// csr is the sparse operand of a call, and the size of its X.
type csr struct {
	rowPtr []int64
	col    []int32
	n      int
	ldx    int

	tall    int // rows of X
	parts   int // rows are cut into
	hubs    [maxHubs]hub
	nHubs   int
	checked bool        // its indices are valid
	broken  atomic.Bool // a part met a fault, which explain reports
}

type spmm struct {
	csr
	x, val, y []float32
	ldy       int
	acc       bool
}

type spmax struct {
	csr
	x, y     []float32
	arg      []int32
	ldy, lda int
}

var (
	spmmCalls  = sync.Pool{New: func() any { return new(spmm) }}
	spmaxCalls = sync.Pool{New: func() any { return new(spmax) }}
)

// init checks the lengths; size is X's. The indices are checked block by block, just before a block is used.
func (s *csr) init(name string, rowPtr []int64, col []int32, n, size, ldx int) {
	if len(rowPtr) == 0 {
		panic("kernels: " + name + " must have one row pointer more than rows (got none)")
	}
	if n < 0 || ldx < n {
		panic(fmt.Sprintf("kernels: X of %s has rows of %d values with stride %d", name, n, ldx))
	}
	s.rowPtr, s.col, s.n, s.ldx = rowPtr, col, n, ldx
	if s.tall = 0; n == 0 {
		s.tall = math.MaxInt32
	} else if size >= n {
		s.tall = (size-n)/ldx + 1
	}
	if first, last := rowPtr[0], rowPtr[s.rows()]; first < 0 || last < first || last > int64(len(col)) {
		s.explain(name)
	}
}

func (s *csr) rows() int { return len(s.rowPtr) - 1 }

// hub is a row with so many edges that it has its own parts: each computes some of the columns, so that the order of a
// sum is unchanged.
type hub struct{ row, cols, parts int }

const maxHubs = 16

// do runs w, which contains s, in parts of about equally many edges.
func (s *csr) do(w work) {
	if s.cut(); s.n > 0 && s.rows() > 0 {
		shared.do(w, s.parts)
	}
}

// cut chooses the number of parts.
func (s *csr) cut() {
	const alone = 1 << 18 // edges × columns: some 50 µs
	s.parts = 1
	if size := s.size() * int64(s.n); size >= alone {
		s.parts = int(min(size/(alone/4), int64(4*runtime.GOMAXPROCS(0))))
	}
}

// split makes hubs of the rows that have more than twice a part's share of the edges. It returns the number of parts,
// including the hubs'; a hub's part has at least 16 columns.
func (s *csr) split() (parts int) {
	parts, s.nHubs = s.parts, 0
	share := s.size() / int64(s.parts)
	for i := 1; i < s.parts && s.n >= 32 && s.nHubs < maxHubs; i++ {
		row := s.start(i) - 1 // a hub that contains the beginning of a part
		if row < 0 || s.nHubs > 0 && s.hubs[s.nHubs-1].row == row {
			continue
		}
		if edges := s.rowPtr[row+1] - s.rowPtr[row]; edges > 2*share {
			n := int(min((edges+share-1)/share, int64(s.n/16)))
			cols := ((s.n+n-1)/n + 15) &^ 15
			n = (s.n + cols - 1) / cols
			s.hubs[s.nHubs] = hub{row, cols, n}
			s.nHubs++
			parts += n
		}
	}
	return parts
}

// part returns the rows of a part: it begins at the first row that has the part's share of edges and rows before it.
func (s *csr) part(i int) (lo, hi int) {
	if hi = s.rows(); i+1 < s.parts {
		hi = s.start(i + 1)
	}
	if i > 0 {
		lo = s.start(i)
	}
	return lo, hi
}

func (s *csr) start(i int) int {
	share := s.size() * int64(i) / int64(s.parts)
	return sort.Search(s.rows(), func(r int) bool { return s.rowPtr[r]-s.rowPtr[0]+int64(r) >= share })
}

// size is the number of edges and rows.
func (s *csr) size() int64 { return s.rowPtr[s.rows()] - s.rowPtr[0] + int64(s.rows()) }

// block returns the end of the next block of rows. Its edges stay in L2 while they are checked and then read once for
// each range of columns. ok is false if the rows are not those of a valid CSR.
func (s *csr) block(lo, hi int) (end int, ok bool) {
	const edges, rows = 16 << 10, 4 << 10
	hi = min(hi, lo+rows)
	first := s.rowPtr[lo]
	end = lo
	for e := first; end < hi && (e-first < edges); {
		end++
		if s.rowPtr[end] < e || s.rowPtr[end] > int64(len(s.col)) {
			return 0, false
		}
		e = s.rowPtr[end]
	}
	if first < 0 {
		return 0, false
	}
	if s.checked {
		return end, true
	}
	col := s.col[first:s.rowPtr[end]]
	reads(col)
	reads(s.rowPtr[lo : end+1])
	return end, len(col) == 0 || uint64(active.maxIndex(col)) < uint64(s.tall)
}

// run computes the rows of a part except hubs, or some columns of a hub.
func (s *spmm) run(part int) {
	if part >= s.parts {
		s.hub(part - s.parts)
		return
	}
	for lo, hi := s.part(part); lo < hi; {
		stop := hi
		for _, h := range s.hubs[:s.nHubs] {
			if lo <= h.row && h.row < stop {
				stop = h.row
			}
		}
		if stop == lo {
			lo++
			continue
		}
		end, ok := s.block(lo, stop)
		if !ok {
			s.broken.Store(true)
			return
		}
		s.sum(lo, end)
		lo = end
	}
}

// hub computes one part of a hub.
func (s *spmm) hub(part int) {
	k := 0
	for ; part >= s.hubs[k].parts; k++ {
		part -= s.hubs[k].parts
	}
	h := s.hubs[k]
	if _, ok := s.block(h.row, h.row+1); !ok {
		s.broken.Store(true)
		return
	}
	c := spmmCalls.Get().(*spmm)
	c.rowPtr, c.col, c.ldx, c.val, c.ldy, c.acc = s.rowPtr, s.col, s.ldx, s.val, s.ldy, s.acc
	from := part * h.cols
	c.n, c.x, c.y = min(h.cols, s.n-from), s.x[from:], s.y[from:]
	c.sum(h.row, h.row+1)
	*c = spmm{}
	spmmCalls.Put(c)
}

// sum computes the rows [lo, end).
func (s *spmm) sum(lo, end int) {
	if raceEnabled {
		if s.val != nil {
			reads(s.val[s.rowPtr[lo]:s.rowPtr[end]])
		}
		s.tell(lo, end, s.x, s.y, s.ldy)
	}
	active.spmm(s, lo, end)
}

func (s *spmax) run(part int) {
	for lo, hi := s.part(part); lo < hi; {
		end, ok := s.block(lo, hi)
		if !ok {
			s.broken.Store(true)
			return
		}
		if raceEnabled {
			s.tell(lo, end, s.x, s.y, s.ldy)
			for i := lo; i < end; i++ {
				writes(s.arg[i*s.lda:][:s.n])
			}
		}
		active.spmax(s, lo, end)
		lo = end
	}
}

// tell informs the race detector which rows of x and y the rows [lo, hi) of S use.
func (s *csr) tell(lo, hi int, x, y []float32, ldy int) {
	for i := lo; i < hi; i++ {
		writes(y[i*ldy:][:s.n])
	}
	for _, j := range s.col[s.rowPtr[lo]:s.rowPtr[hi]] {
		reads(x[int(j)*s.ldx:][:s.n])
	}
}

// explain panics with the first fault of s.
func (s *csr) explain(name string) {
	for i, end := range s.rowPtr {
		if end < 0 || i > 0 && end < s.rowPtr[i-1] || end > int64(len(s.col)) {
			panic(fmt.Sprintf("kernels: %s: row pointer %d is %d, before the one before it or out of the %d columns",
				name, i, end, len(s.col)))
		}
	}
	for k, j := range s.col[s.rowPtr[0]:s.rowPtr[s.rows()]] {
		if j < 0 || int(j) >= s.tall {
			panic(fmt.Sprintf("kernels: %s: column %d of edge %d is out of the %d rows of X", name, j,
				int(s.rowPtr[0])+k, s.tall))
		}
	}
	panic("kernels: " + name + ": the CSR was changed during the call")
}
