package kernels

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// Dropout multiplies an element by 0 with probability p, else by 1/(1−p). The choice is a function of the key of its
// row, 64 random bits, and of its column. So it is the same in any order, for a whole matrix or one row, on every
// instruction set. p is in [0, 1).

// golden gives every column its own hash: 2³² over the golden ratio.
const golden = 0x9e3779b9

// Dropout applies dropout to the rows of X from first on, n values each, with the rows' keys. It writes the result to
// Y, which may be X, or adds it.
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

// A Mask has a bit for each value of a CSR; the bits of row i begin at word rowPtr[i]/16+i.
type Mask []uint16

// NewMask returns an empty mask for `values` values and `rows` rows, in the memory of m if that is large enough.
func NewMask(m Mask, values int64, rows int) Mask {
	n := maskWord(values, rows) + 2 // vectors read words of 32 bits
	m = slices.Grow(m[:0], n)[:n]
	clear(m)
	return m
}

// maskWord returns the first word of row i, whose values begin at index begin.
func maskWord(begin int64, i int) int { return int(begin>>4) + i }

// DropoutKept sets the bits of the values that Dropout keeps other than 0 in mask, and writes their number in each row
// to kept. The values are x, at columns col of a CSR; rowPtr and keys are for the rows from first on.
func DropoutKept(keys []uint64, p float32, first int, rowPtr []int64, col []int32, x []float32, mask Mask,
	kept []int64) {
	checkLength("kept of DropoutKept", len(kept), len(keys))
	checkRows("DropoutKept", len(keys), rowPtr, col, x)
	checkMask("DropoutKept", mask, first, rowPtr)
	limit := dropLimit(p)
	for k, key := range keys {
		lo, hi := rowPtr[k], rowPtr[k+1]
		reads(col[lo:hi])
		reads(x[lo:hi])
		kept[k] = int64(active.kept(uint32(key), uint32(key>>32), limit, col[lo:hi], x[lo:hi],
			&mask[maskWord(lo, first+k)]))
	}
}

// DropoutPack writes the values that DropoutKept has counted, scaled by dropout, and their columns. Row first+k goes to
// y[into[k]:] and at[into[k]:]. into and rowPtr have one element more than there are rows.
func DropoutPack(p float32, first int, rowPtr []int64, col []int32, x []float32, mask Mask, into []int64, at []int32,
	y []float32) {
	rows := len(rowPtr) - 1
	checkRows("DropoutPack", rows, rowPtr, col, x)
	checkRows("what DropoutPack writes", rows, into, at, y)
	checkMask("DropoutPack", mask, first, rowPtr)
	room, up := packRooms.Get().(*packRoom), 1/(1-p)
	for k := range rows {
		lo, hi := rowPtr[k], rowPtr[k+1]
		n := room.pack(mask[maskWord(lo, first+k):], up, col[lo:hi], x[lo:hi], at[into[k]:into[rows]],
			y[into[k]:into[rows]])
		if want := into[k+1] - into[k]; int64(n) != want {
			panic(fmt.Sprintf("kernels: DropoutPack has room for %d values of a row (got %d)", want, n))
		}
	}
	packRooms.Put(room)
}

// checkRows panics if the rows of a CSR are not within its columns and values.
func checkRows(name string, rows int, rowPtr []int64, col []int32, x []float32) {
	if len(rowPtr) != rows+1 || rows < 0 {
		panic(fmt.Sprintf("kernels: row pointers of %s must be %d (got %d)", name, rows+1, len(rowPtr)))
	}
	for k, end := range rowPtr {
		if end < 0 || end > int64(min(len(col), len(x))) || k > 0 && end < rowPtr[k-1] {
			panic(fmt.Sprintf("kernels: %s: row pointer %d is %d, before the one before it or out of the %d values",
				name, k, end, min(len(col), len(x))))
		}
	}
}

// checkMask panics if the rows from first on, given by their pointers, are not within mask.
func checkMask(name string, mask Mask, first int, rowPtr []int64) {
	if rows := len(rowPtr) - 1; first < 0 || maskWord(rowPtr[rows], first+rows)+2 > len(mask) {
		panic(fmt.Sprintf("kernels: mask of %s has %d words, too few for rows %d to %d", name, len(mask), first,
			first+rows))
	}
}

// packMore is how many values a kernel may write past the packed ones.
const packMore = 16

// packRoom is memory in which one worker packs the last values of its rows.
type packRoom struct {
	at [packLen + packMore]int32
	y  [packLen + packMore]float32
}

const packLen = 512

var packRooms = sync.Pool{New: func() any { return new(packRoom) }}

// pack writes the values of a row that mask keeps to at and y, and returns how many they are.
func (r *packRoom) pack(mask Mask, up float32, col []int32, x []float32, at []int32, y []float32) (n int) {
	reads(col)
	reads(x)
	if len(col)+packMore <= len(at) { // the values past the row belong to the next row, which is packed later
		writes(at[:len(col)])
		writes(y[:len(col)])
		return active.packKept(&mask[0], up, col, x, at, y)
	}
	for ; len(col) > 0; mask = mask[min(packLen/16, len(mask)):] {
		some := min(len(col), packLen)
		kept := active.packKept(&mask[0], up, col[:some], x[:some], r.at[:], r.y[:])
		if n+kept <= len(at) {
			copy(at[n:], r.at[:kept])
			copy(y[n:], r.y[:kept])
		}
		n, col, x = n+kept, col[some:], x[some:]
	}
	return n
}

// dropLimit returns the bound such that a random number of 32 bits is below it with probability p.
func dropLimit(p float32) uint32 { return uint32(min(float64(p)*0x1p32, math.MaxUint32)) }

// dropMix returns the random bits of a position.
func dropMix(z uint32) uint32 {
	z = (z ^ z>>16) * 0x7feb352d
	z = (z ^ z>>15) * 0x846ca68b
	return z ^ z>>16
}

// dropFactor returns up, or 0 if the bits z are below limit. It has no branch, which a processor could not predict.
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

func keptGeneric(lo, hi, limit uint32, col []int32, x []float32, mask *uint16) (n int) {
	words := unsafe.Slice(mask, (len(col)+15)/16)
	clear(words)
	x = x[:len(col)]
	for k, c := range col {
		v := math.Float32bits(x[k]) << 1
		bit := (v | -v) >> 31 & math.Float32bits(dropFactor(dropMix((lo+uint32(c)*golden)^hi), limit, 1))
		words[k/16] |= uint16(bit) << (k % 16)
		n += int(bit)
	}
	return n
}

// packKeptGeneric has no branch, which a processor could not predict.
func packKeptGeneric(mask *uint16, up float32, col []int32, x []float32, at []int32, y []float32) (n int) {
	words := unsafe.Slice(mask, (len(col)+15)/16)
	x = x[:len(col)]
	for k, c := range col {
		at[n], y[n] = c, x[k]*up
		n += int(words[k/16] >> (k % 16) & 1)
	}
	return n
}

func turnKeptGeneric(mask *uint16, up float32, place []uint32, x []float32, at []int32, y []float32,
	bits *uint16) (n int) {
	words := unsafe.Slice(bits, (len(place)+15)/16)
	clear(words)
	x = x[:len(place)]
	for k, p := range place {
		b := p & (1<<placeBits - 1)
		word := *(*uint16)(unsafe.Add(unsafe.Pointer(mask), b/16*2))
		at[n], y[n] = int32(p>>placeBits), x[k]*up
		kept := word >> (b % 16) & 1
		words[k/16] |= kept << (k % 16)
		n += int(kept)
	}
	return n
}
