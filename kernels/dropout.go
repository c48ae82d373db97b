package kernels

import (
	"fmt"
	"math"
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

// DropoutColumns is Dropout of a row's values x at the given columns.
func DropoutColumns(key uint64, p float32, col []int32, x, y []float32) {
	checkLength("x of DropoutColumns", len(x), len(col))
	checkLength("y of DropoutColumns", len(y), len(col))
	reads(x)
	writes(y)
	active.dropCols(uint32(key), uint32(key>>32), dropLimit(p), 1/(1-p), col, x, y)
}

// DropoutRows is Dropout of a column's values x in the given rows, of which keys has the keys.
func DropoutRows(keys []uint64, column int, p float32, row []int32, x, y []float32) {
	checkLength("x of DropoutRows", len(x), len(row))
	checkLength("y of DropoutRows", len(y), len(row))
	if len(row) == 0 {
		return
	}
	if uint64(active.maxIndex(row)) >= uint64(len(keys)) {
		panic("kernels: DropoutRows: a row has no key")
	}
	reads(x)
	writes(y)
	active.dropRows(keys, uint32(column)*golden, dropLimit(p), 1/(1-p), row, x, y)
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

func dropRowsGeneric(keys []uint64, add, limit uint32, up float32, row []int32, x, y []float32) {
	x, y = x[:len(row)], y[:len(row)]
	for k, i := range row {
		key := keys[i]
		y[k] = x[k] * dropFactor(dropMix((uint32(key)+add)^uint32(key>>32)), limit, math.Float32bits(up))
	}
}
