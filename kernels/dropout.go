package kernels

import (
	"fmt"
	"math"
	"sync"
)

// Dropout multiplies an element by 1/(1−p), or with probability p by 0. Which ones is a function of
// the key of its row, 64 random bits, and of its column: the same in any order, alone or in its
// row, on every instruction set. p is in [0, 1).

// golden tells columns apart: 2³² over the golden ratio.
const golden = 0x9e3779b9

// Dropout writes to Y, which may be X, what is left of the rows of X from first on, n values each,
// or adds it; their keys are keys.
func Dropout(keys []uint64, p float32, first, n int, x []float32, ldx int, y []float32, ldy int, add bool) {
	if first < 0 {
		panic(fmt.Sprintf("kernels: Dropout begins with row %d", first))
	}
	checkMatrix("X of Dropout", first+len(keys), n, ldx, x)
	checkMatrix("Y of Dropout", first+len(keys), n, ldy, y)
	dropoutRows(keys, p, first, n, x, ldx, y, ldy, add, !add && n%16 == 0 && past(x, y, n, ldy))
}

func dropoutRows(keys []uint64, p float32, first, n int, x []float32, ldx int, y []float32, ldy int, add, past bool) {
	limit, up := dropLimit(p), 1/(1-p)
	for k, key := range keys {
		i := first + k
		dropoutRow(key, limit, up, x[i*ldx:][:n], y[i*ldy:][:n], add, past)
	}
	if past {
		active.fence()
	}
}

func dropoutRow(key uint64, limit uint32, up float32, x, y []float32, add, past bool) {
	reads(x)
	writes(y)
	active.dropout(uint32(key), uint32(key>>32), limit, up, x, y, add, past)
}

// DropoutKept writes to kept how many values of each row of a CSR, x at the columns col, Dropout leaves other than 0; keys are
// those of the rows.
func DropoutKept(keys []uint64, p float32, rowPtr []int64, col []int32, x []float32, kept []int64) {
	checkLength("kept of DropoutKept", len(kept), len(keys))
	checkRows("DropoutKept", keys, rowPtr, col, x)
	r := packRooms.Get().(*packRoom)
	for k := range keys {
		kept[k] = int64(r.pack(&keys[k], p, col[rowPtr[k]:rowPtr[k+1]], x[rowPtr[k]:rowPtr[k+1]], nil, nil))
	}
	packRooms.Put(r)
}

// DropoutPack writes what DropoutKept has counted: the values that Dropout leaves of row k, and their columns, from place
// into[k] of y and at on. into has one element more than keys.
func DropoutPack(keys []uint64, p float32, rowPtr []int64, col []int32, x []float32, into []int64, at []int32, y []float32) {
	checkRows("DropoutPack", keys, rowPtr, col, x)
	checkRows("what DropoutPack writes", keys, into, at, y)
	r := packRooms.Get().(*packRoom)
	for k := range keys {
		lo, hi := into[k], into[k+1]
		if n := r.pack(&keys[k], p, col[rowPtr[k]:rowPtr[k+1]], x[rowPtr[k]:rowPtr[k+1]], at[lo:hi], y[lo:hi]); n != int(hi-lo) {
			panic(fmt.Sprintf("kernels: DropoutPack has room for %d values of a row (got %d)", hi-lo, n))
		}
	}
	packRooms.Put(r)
}

// checkRows panics where rows of a CSR, as many as there are keys, lie outside of its columns and values.
func checkRows(name string, keys []uint64, rowPtr []int64, col []int32, x []float32) {
	if len(rowPtr) != len(keys)+1 {
		panic(fmt.Sprintf("kernels: row pointers of %s must be %d (got %d)", name, len(keys)+1, len(rowPtr)))
	}
	for k, end := range rowPtr {
		if end < 0 || end > int64(min(len(col), len(x))) || k > 0 && end < rowPtr[k-1] {
			panic(fmt.Sprintf("kernels: %s: row pointer %d is %d, before the one before it or out of the %d values", name, k, end, min(len(col), len(x))))
		}
	}
}

// packLen is how many values are packed at a time.
const packLen = 512

// packRoom is what one worker packs values in. A vector may be written past those that are kept.
type packRoom struct {
	x, y [packLen + 16]float32
	at   [packLen + 16]int32
}

var packRooms = sync.Pool{New: func() any { return new(packRoom) }}

// pack returns how many values of a row Dropout leaves, and writes them where there is room.
func (r *packRoom) pack(key *uint64, p float32, col []int32, x []float32, at []int32, y []float32) (n int) {
	lo, hi, limit, up := uint32(*key), uint32(*key>>32), dropLimit(p), 1/(1-p)
	reads(col)
	reads(x)
	writes(at)
	writes(y)
	for len(col) > 0 {
		some := min(len(col), packLen)
		active.dropCols(lo, hi, limit, up, col[:some], x[:some], r.x[:some])
		left := active.compact(col[:some], r.x[:some], &r.at, &r.y)
		if n+left <= len(at) {
			copy(at[n:], r.at[:left])
			copy(y[n:], r.y[:left])
		}
		n += left
		col, x = col[some:], x[some:]
	}
	return n
}

// dropLimit is the number of 32 bits below which one with probability p is.
func dropLimit(p float32) uint32 { return uint32(min(float64(p)*0x1p32, math.MaxUint32)) }

// dropMix returns the random bits of a place.
func dropMix(z uint32) uint32 {
	z = (z ^ z>>16) * 0x7feb352d
	z = (z ^ z>>15) * 0x846ca68b
	return z ^ z>>16
}

// dropFactor is up, or 0 where the bits z are below limit; without a branch, which a processor
// could not predict.
func dropFactor(z, limit, up uint32) float32 {
	return math.Float32frombits(up &^ uint32((int64(z)-int64(limit))>>63))
}

// maskGeneric writes the factors of the columns of a row.
func maskGeneric(lo, hi, limit uint32, up float32, keep []float32) {
	for c := range keep {
		keep[c] = dropFactor(dropMix((lo+uint32(c)*golden)^hi), limit, math.Float32bits(up))
	}
}

func dropoutGeneric(lo, hi, limit uint32, up float32, x, y []float32, add, _ bool) {
	y = y[:len(x)]
	for c, v := range x {
		v = float32(v * dropFactor(dropMix((lo+uint32(c)*golden)^hi), limit, math.Float32bits(up)))
		if add {
			v += y[c]
		}
		y[c] = v
	}
}

func dropColumnsGeneric(lo, hi, limit uint32, up float32, col []int32, x, y []float32) {
	x, y = x[:len(col)], y[:len(col)]
	for k, c := range col {
		y[k] = x[k] * dropFactor(dropMix((lo+uint32(c)*golden)^hi), limit, math.Float32bits(up))
	}
}

// compactGeneric writes the values of x that are not 0 to y, and their columns to at; without a branch, which a processor could
// not predict.
func compactGeneric(col []int32, x []float32, at *[packLen + 16]int32, y *[packLen + 16]float32) (n int) {
	x = x[:len(col)]
	for k, c := range col {
		v := math.Float32bits(x[k])
		at[n], y[n] = c, x[k]
		n += int((v<<1 | -(v << 1)) >> 31)
	}
	return n
}
