package kernels

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// linger is how long a helper without work looks for more before it ends. Waking a thread costs about 100 µs, so a
// helper that stayed is worth that much of a core; and as it then ends, none outlives the work by more.
const linger = 100 * time.Microsecond

// work is what a call is cut into: parts that write disjoint outputs, in any order.
type work interface{ run(part int) }

// job is a call whose parts are up for the taking.
type job struct {
	work   work
	parts  int32        // guarded by pool.mu; 0: not to be joined
	next   atomic.Int32 // the first part not yet taken
	inside atomic.Int32 // helpers at work; grows only under pool.mu while parts > 0
	taken  bool         // guarded by pool.mu
}

// pool shares the parts of a call among its caller and helper goroutines, of which there are at most GOMAXPROCS−1.
// The caller always works too, and takes all the parts where no helper comes: nothing ever waits for the pool.
type pool struct {
	mu    sync.Mutex
	jobs  [8]job       // calls at the same time; a ninth runs alone
	live  int          // helpers
	idle  int          // helpers that look for work
	posts atomic.Int64 // jobs ever posted: what an idle helper watches
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

// retire closes j to helpers and waits for those inside, each of which has one part to finish at most.
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

// help joins one job after another until there has been none for a while.
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

// join picks a job that has parts left. The caller holds p.mu.
func (p *pool) join() (*job, int32) {
	for i := range p.jobs {
		if j := &p.jobs[i]; j.next.Load() < j.parts {
			j.inside.Add(1)
			return j, j.parts
		}
	}
	return nil, 0
}

// mostYields bounds how often a helper looks for more: time stands still in a bubble of package synctest while any of
// its goroutines runs, and the helper is one of them if a test in a bubble posted its job. Outside, linger is over long
// before.
const mostYields = 1 << 14

// await reports whether a job was posted since seen before linger is over. It yields, so that whatever else can run
// (the network first of all) does.
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
