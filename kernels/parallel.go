package kernels

import "sync"

// Work is cut into parts that write disjoint outputs and may run in any order, at the same time.
type Work interface{ Run(part int) }

// Parallel runs all parts of w on the calling goroutine and the helpers of the kernels' pool, and returns when they are
// done. It is for loops over rows outside of this package. A part should take some tens of microseconds. The cut into
// parts must not affect results, since it depends on the number of cores. If w is a pointer, nothing is allocated.
func Parallel(w Work, parts int) {
	if parts <= 0 {
		return
	}
	if parts == 1 {
		w.Run(0)
		return
	}
	o := outsiders.Get().(*outsider)
	o.work = w
	shared.do(o, parts)
	o.work = nil
	outsiders.Put(o)
}

type outsider struct{ work Work }

func (o *outsider) run(part int) { o.work.Run(part) }

var outsiders = sync.Pool{New: func() any { return new(outsider) }}
