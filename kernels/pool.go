package kernels

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// linger is how long an idle helper looks for work before it ends. Waking a thread costs about 100 µs, so waiting that
// long costs no more than it may save. It also bounds how long a helper outlives the work.
const linger = 100 * time.Microsecond

// work is what a call is cut into: parts that write disjoint outputs, in any order.
type work interface{ run(part int) }

// job is a call with parts that have not been taken.
type job struct {
	work   work
	parts  int32        // guarded by pool.mu (0 = cannot be joined)
	next   atomic.Int32 // the first part that has not been taken
	inside atomic.Int32 // helpers at work; it grows only under pool.mu while parts > 0
	taken  bool         // guarded by pool.mu
}

// pool shares the parts of a call among its caller and at most GOMAXPROCS−1 helper goroutines. The caller always works
// too, and runs all the parts if no helper comes: nothing ever waits for the pool.
type pool struct {
	mu    sync.Mutex
	jobs  [8]job       // calls at the same time; a ninth call gets no helpers
	live  int          // helpers
	idle  int          // helpers that look for work
	posts atomic.Int64 // number of jobs posted so far: an idle helper watches it
}

var shared pool

// do runs every part of w and returns when all are done.
func (p *pool) do(w work, parts int) {
	helpers := min(parts, runtime.GOMAXPROCS(0)) - 1
	if helpers > 0 {
		if j := p.post(w, parts, helpers); j != nil {
			j.drain(int32(parts))
			p.retire(j)
			return
		}
	}
	for i := range parts {
		w.run(i)
	}
}

func (p *pool) post(w work, parts, helpers int) *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.jobs {
		j := &p.jobs[i]
		if j.taken {
			continue
		}
		j.taken, j.work, j.parts = true, w, int32(parts)
		j.next.Store(0)
		p.posts.Add(1)
		for range min(helpers-p.idle, runtime.GOMAXPROCS(0)-1-p.live) {
			p.live++
			go p.help()
		}
		return j
	}
	return nil
}

// retire closes j to helpers and waits for its helpers, each of which has at most one part to finish.
func (p *pool) retire(j *job) {
	p.mu.Lock()
	j.parts = 0
	p.mu.Unlock()
	for i := 1; j.inside.Load() > 0; i++ {
		if i%64 == 0 {
			runtime.Gosched()
		}
	}
	p.mu.Lock()
	j.taken, j.work = false, nil
	p.mu.Unlock()
}

func (j *job) drain(parts int32) {
	for {
		i := j.next.Add(1) - 1
		if i >= parts {
			return
		}
		j.work.run(int(i))
	}
}

// help joins one job after another until there is none for a while.
func (p *pool) help() {
	for {
		p.mu.Lock()
		seen := p.posts.Load()
		j, parts := p.join()
		if j == nil {
			p.idle++
		}
		p.mu.Unlock()
		if j != nil {
			j.drain(parts)
			j.inside.Add(-1)
			continue
		}
		more := p.await(seen)
		p.mu.Lock()
		p.idle--
		if !more {
			p.live--
		}
		p.mu.Unlock()
		if !more {
			return
		}
	}
}

// join picks a job with parts left. The caller has locked p.mu.
func (p *pool) join() (*job, int32) {
	for i := range p.jobs {
		if j := &p.jobs[i]; j.next.Load() < j.parts {
			j.inside.Add(1)
			return j, j.parts
		}
	}
	return nil, 0
}

// mostYields bounds how often a helper looks for work. In a bubble of package synctest, time does not advance while any
// of its goroutines runs, and helpers started by a test in a bubble are among them. Outside, linger ends long before.
const mostYields = 1 << 14

// await reports whether a job is posted after `seen` within linger. It yields, so that other goroutines can run (the
// network first of all).
func (p *pool) await(seen int64) bool {
	start := time.Now()
	for range mostYields {
		if time.Since(start) >= linger {
			return false
		}
		for range 32 {
			if p.posts.Load() != seen {
				return true
			}
		}
		runtime.Gosched()
	}
	return false
}
