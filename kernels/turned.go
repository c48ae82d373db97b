package kernels

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// A Turned is the transpose of some rows of a CSR. Block.Drop selects from it, in each step, the values that dropout
// keeps.
type Turned struct {
	first, rows int
	word, words int      // range of the rows in a Mask
	ends        []int32  // [column]
	place       []uint32 // [value] its bit, counted from the first row's, and above placeBits its row
	val         []float32
}

const placeBits = 20

// NewTurned transposes rows of a CSR, as Block.Transpose does. ok is false if there are too many rows or values.
func NewTurned(first int, rowPtr []int64, col []int32, val []float32, cols int) (t Turned, ok bool) {
	rows, from, to := len(rowPtr)-1, rowPtr[0], rowPtr[len(rowPtr)-1]
	word := maskWord(from, first)
	t = Turned{first: first, rows: rows, word: word, words: maskWord(to, first+rows) - word}
	if rows > 1<<(32-placeBits) || 16*t.words > 1<<placeBits {
		return Turned{}, false
	}
	ends := make([]int32, cols+2)
	t.place, t.val = make([]uint32, to-from), make([]float32, to-from)
	for _, c := range col[from:to] {
		ends[c+2]++
	}
	for c := 1; c < len(ends); c++ {
		ends[c] += ends[c-1]
	}
	// positions of the columns' next values: after all have been placed, they are the ends
	t.ends = ends[1 : cols+1]
	for i := range rows {
		lo, hi := rowPtr[i], rowPtr[i+1]
		bit := 16 * (maskWord(lo, first+i) - word)
		for k, c := range col[lo:hi] {
			p := t.ends[c]
			t.ends[c] = p + 1
			t.place[p], t.val[p] = uint32(i<<placeBits|bit+k), val[lo:hi][k]
		}
	}
	return t, true
}

// Bytes returns the memory of t.
func (t *Turned) Bytes() int64 { return 4 * int64(cap(t.ends)+cap(t.place)+cap(t.val)) }

// turnRoom is memory in which one worker keeps the bits of a Turned's values.
type turnRoom struct{ bits []uint16 }

var turnRooms = sync.Pool{New: func() any { return new(turnRoom) }}

// DropMore is how many more values than the kept ones Drop needs memory for.
const DropMore = packMore

// Drop makes b the transpose of the values of t's rows that dropout keeps, as Transpose does after DropoutPack. mask is
// the mask of the whole CSR. b uses col and val, which are DropMore values longer than the kept values.
func (b *Block) Drop(t *Turned, p float32, mask Mask, col []int32, val []float32) {
	if t.word+t.words+2 > len(mask) {
		panic(fmt.Sprintf("kernels: mask of Drop must have %d words (got %d)", t.word+t.words+2, len(mask)))
	}
	n := 0
	for _, word := range mask[t.word:][:t.words] {
		n += bits.OnesCount16(word)
	}
	if len(col) != n+DropMore || len(val) != n+DropMore {
		panic(fmt.Sprintf("kernels: room of Drop must be %d values (got %d, %d)", n+DropMore, len(col), len(val)))
	}
	cols := len(t.ends)
	b.first, b.rows = t.first, t.rows
	b.ends, b.col, b.val = slices.Grow(b.ends[:0], cols+2)[:cols+2], col[:n], val[:n]
	r := turnRooms.Get().(*turnRoom)
	groups := len(t.place)/16 + 1
	r.bits = slices.Grow(r.bits[:0], groups)[:groups]
	if got := active.turnKept(&mask[t.word], 1/(1-p), t.place, t.val, col, val, &r.bits[0]); got != n {
		panic(fmt.Sprintf("kernels: mask of Drop must keep %d values (got %d)", got, n))
	}
	n, group := 0, int32(0)
	for c, end := range t.ends { // number of kept values before it
		for ; group < end/16; group++ {
			n += bits.OnesCount16(r.bits[group])
		}
		b.ends[c+1] = int64(n + bits.OnesCount16(r.bits[group]&(1<<(end%16)-1)))
	}
	b.ends[0], b.ends[cols+1] = 0, 0
	turnRooms.Put(r)
}
