package kernels

import "sync"

// Work is cut into parts that write disjoint outputs and may be done in any order, at the same time.
type Work interface{ Run(part int) }

// Parallel runs all parts of w, on the calling goroutine and the helpers of the kernels' own pool, and returns when
// they are done: for loops over rows that are no kernel. A part should be worth some tens of microseconds. How the work
// is cut must not decide a result, for the number of cores does not. w should be a pointer: then nothing is allocated.
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
