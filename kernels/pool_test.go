package kernels

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type tally struct {
	done []atomic.Int32
}

func (w *tally) run(part int) { w.done[part].Add(1) }

// TestPool checks that every part runs once, with any number of calls at the same time, and that helpers end.
func TestPool(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var p pool
	var wg sync.WaitGroup
	for caller := range 20 { // more calls than the pool's jobs
		wg.Go(func() {
			for round := range 50 {
				w := &tally{make([]atomic.Int32, 1+(caller+round)%9)}
				p.do(w, len(w.done))
				for i := range w.done {
					if n := w.done[i].Load(); n != 1 {
						t.Errorf("part %d of %d ran %d times", i, len(w.done), n)
					}
				}
			}
		})
	}
	wg.Wait()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		live, idle := p.live, p.idle
		p.mu.Unlock()
		if live == 0 && idle == 0 {
			break
		}
		if live > 3 || time.Now().After(deadline) {
			t.Fatalf("%d helpers, %d idle: must be at most 3, and none in the end", live, idle)
		}
	}
	for i := range p.jobs {
		if j := &p.jobs[i]; j.taken || j.work != nil || j.inside.Load() != 0 {
			t.Errorf("job %d was left: %+v", i, j)
		}
	}
}

// TestWorkers checks that results have the same bits for any number of workers and any other rows.
func TestWorkers(t *testing.T) {
	each(t, func(t *testing.T) {
		const m, n, k = 331, 75, 300
		a, b := noise(1, make([]float32, m*k)), noise(2, make([]float32, k*n))
		at := make([]float32, m*k)
		for i := range m {
			for p := range k {
				at[p*m+i] = a[i*k+p]
			}
		}
		rowPtr, col := sparse(1, slices.Repeat([]int{0, 40, 3, 200, 1}, 60), m)
		x := noise(3, make([]float32, m*n))
		run := func(workers int) (out []float32) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
			c, d, y := make([]float32, m*n), make([]float32, m*n), make([]float32, 300*n)
			GemmNN(m, n, k, a, k, b, n, c, n, false)
			GemmTN(m, n, k, at, m, b, n, d, n, false)
			SpMM(rowPtr, col, nil, n, x, n, y, n, false)
			return slices.Concat(c, d, y)
		}
		want := run(1)
		for _, w := range []int{2, 3, 8} {
			same(t, "workers", run(w), want)
		}
		same(t, "TN as NN", want[m*n:2*m*n], want[:m*n])
		row := make([]float32, n)
		for _, i := range []int{0, 5, 13, 14, 220, 330} {
			GemmNN(1, n, k, a[i*k:], k, b, n, row, n, false)
			same(t, "a row alone", row, want[i*n:][:n])
		}
		part := make([]float32, m*5)
		for j := 0; j+5 <= n; j += 35 {
			GemmNN(m, 5, k, a, k, b[j:], n, part, 5, false)
			for i := range m {
				same(t, "columns alone", part[i*5:][:5], want[i*n+j:][:5])
			}
		}
	})
}

// TestSets checks that AVX2, AVX-512 and NEON agree to the bit where the package documents it.
func TestSets(t *testing.T) {
	each(t, func(t *testing.T) {
		if Name() == "generic" {
			return
		}
		const m, n, k = 61, 47, 333
		c, y := make([]float32, m*n), make([]float32, m*n)
		GemmNT(m, n, k, noise(1, make([]float32, m*k)), k, noise(2, make([]float32, k*n)), k, c, n, false)
		rowPtr, col := sparse(1, slices.Repeat([]int{30}, m), k)
		SpMM(rowPtr, col, noise(4, make([]float32, len(col))), n, noise(3, make([]float32, k*n)), n, y, n, false)
		hash := fnv.New64a()
		for _, v := range slices.Concat(c, y) {
			hash.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
		if got, want := hash.Sum64(), uint64(0x8a16e3b76a0f087b); got != want {
			t.Errorf("bits of the products: %#x, must be %#x", got, want)
		}
	})
}

func TestChoose(t *testing.T) {
	sets := []*set{{name: "slow"}, {name: "fast"}}
	for _, c := range []struct{ ask, want, err string }{
		{"", "fast", ""}, {"slow", "slow", ""}, {"fast", "fast", ""},
		{"neon", "fast", `HEDDLE_KERNELS must be one of slow, fast on this machine (got "neon")`},
	} {
		s, err := choose(c.ask, sets)
		if s.name != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %s, %v; must be %s, %q", c.ask, s.name, err, c.want, c.err)
		}
	}
	if !slices.Contains(Usable(), Name()) {
		t.Errorf("%s in use, not among the usable %v", Name(), Usable())
	}
}
