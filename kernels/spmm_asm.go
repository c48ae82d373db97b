//go:build amd64 || arm64

package kernels

import "unsafe"

// An spmmAsm computes cols columns of the rows of Y that rowPtr describes. val advances by step bytes an edge. For the
// first `far` edges, rows of X are prefetched 16 edges ahead.
type spmmAsm func(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy, cols, far int, acc bool)

// one is the value of every edge of an unweighted graph.
var one = float32(1)

// columns computes columns [j, j+cols) of rows [lo, hi) and returns j+cols.
func (s *spmm) columns(f spmmAsm, lo, hi, j, cols int) int {
	// Rows are prefetched if X is larger than L2.
	const ahead, near = 16, 1 << 20 // edges, bytes of X
	if s.rowPtr[lo] == s.rowPtr[hi] && s.acc {
		return j + cols
	}
	val, step, far := unsafe.Pointer(&one), 0, 0
	if s.val != nil {
		val, step = unsafe.Pointer(unsafe.SliceData(s.val)), 4
	}
	x := unsafe.Pointer(unsafe.SliceData(s.x))
	if j < len(s.x) {
		x = unsafe.Pointer(&s.x[j])
	}
	if 4*len(s.x) > near {
		far = max(0, int(s.rowPtr[hi])-ahead)
	}
	f(hi-lo, unsafe.Pointer(&s.rowPtr[lo]), unsafe.Pointer(unsafe.SliceData(s.col)), val, step,
		x, s.ldx, unsafe.Pointer(&s.y[lo*s.ldy+j]), s.ldy, cols, far, s.acc)
	return j + cols
}
