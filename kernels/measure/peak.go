package measure

import (
	"runtime"
	"sync"
)

// onAll runs f on every thread at once and returns the seconds until the last one is done.
func onAll(clock Clock, f func(thread int)) float64 {
	var wg sync.WaitGroup
	begin := clock()
	for t := range runtime.GOMAXPROCS(0) {
		wg.Go(func() { f(t) })
	}
	wg.Wait()
	return (clock() - begin).Seconds()
}

// fma measures 10⁹ operations a second of multiply-adds in registers; 0 if unknown.
func fma(clock Clock) float64 {
	const rounds = 1 << 19 // some milliseconds: a thread wakes up in a tenth of one
	if !vectors {
		return 0
	}
	seconds := onAll(clock, func(int) { fmas(rounds) })
	return float64(fmaFlops()) * rounds * float64(runtime.GOMAXPROCS(0)) / seconds / 1e9
}

// Slab is the length of each array: larger than every cache.
const Slab = 32 << 20

var arrays = sync.OnceValue(func() [2][]float32 { return [2][]float32{Values(Slab), Values(Slab)} })

// triad measures 10⁹ bytes a second of a = a + s·b. The output has been read, so that no traffic goes uncounted.
func triad(clock Clock) float64 {
	a := arrays()
	piece := Slab / runtime.GOMAXPROCS(0) &^ 63
	bytes := 12 * float64(piece*runtime.GOMAXPROCS(0))
	seconds := onAll(clock, func(t int) {
		lo, hi := t*piece, (t+1)*piece
		triads(a[0][lo:hi], a[0][lo:hi], a[1][lo:hi])
	})
	if !vectors {
		return 0
	}
	return bytes / seconds / 1e9
}

// Gather returns a measure of 10⁹ bytes a second for reading rows of `row` bytes, whole cache lines, in the given
// order. The table has as many rows as order names, at most 128 MB. It is the bound of a neighbour sum that does
// nothing else.
func Gather(order []int32, row int) func(Clock) float64 {
	return func(clock Clock) float64 { return gathered(clock, order, row) }
}

func gathered(clock Clock, order []int32, row int) float64 {
	if !vectors {
		return 0
	}
	const ahead = 16 // gathers read 16 rows past the end
	lines := max(row/4, 16) / 16
	index := make([]int32, len(order)+ahead)
	for i, r := range order {
		index[i] = r * int32(lines)
	}
	x := arrays()[0]
	threads := runtime.GOMAXPROCS(0)
	piece := len(order) / threads
	seconds := onAll(clock, func(t int) { gathers(index[t*piece:(t+1)*piece], x, lines) })
	return float64(piece*threads) * float64(row) / seconds / 1e9
}
