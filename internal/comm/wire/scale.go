package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// round writes to y the multiples of a scale that are nearest to the values of a row, ties to even, and returns the
// scale. It is 0 if all are 0 or too small, and not finite if one of them is not.
func (c coding) round(row []float32, y []int8) (scale float32) {
	if c.Values == "int8" {
		return kernels.ToInt8(row, y)
	}
	var top float32
	for _, v := range row {
		top = greater(top, v)
	}
	scale = c.scale(top)
	for i, v := range row {
		y[i] = multiple(v, scale)
	}
	return scale
}

// scale is the scale of values whose greatest magnitude is top.
func (c coding) scale(top float32) float32 {
	if top < 0x1p-100 {
		return 0
	}
	if c.Values == "int4" {
		return top / 7
	}
	return top / 127
}

// greater returns the greater of top and the magnitude of v, or a number that is not finite if one
// of them is.
func greater(top, v float32) float32 {
	if v = max(v, -v); v > top || v != v {
		return v
	}
	return top
}

// multiple returns v over scale, rounded; 0 without a scale, and if the scale is not finite.
func multiple(v, scale float32) int8 {
	if scale == 0 || !finite(scale) {
		return 0
	}
	return int8(math.RoundToEven(float64(v) / float64(scale)))
}

// appendSmall appends multiples to b, a byte each or, of int4, two a byte, the first in its lower
// half.
func (c coding) appendSmall(b []byte, small []int8) []byte {
	if c.Values == "int8" {
		for _, v := range small {
			b = append(b, byte(v))
		}
		return b
	}
	for i, v := range small {
		if i%2 == 0 {
			b = append(b, byte(v)&0xf)
		} else {
			b[len(b)-1] |= byte(v) << 4
		}
	}
	return b
}

// readSmall is the inverse of appendSmall.
func (c coding) readSmall(b []byte, small []int8) {
	if c.Values == "int8" {
		for i := range small {
			small[i] = int8(b[i])
		}
		return
	}
	for i := range small {
		small[i] = int8(b[i/2]<<(4-i%2*4)) >> 4
	}
}

// appendColumns appends a message of the given rows of x with a scale for each column.
func (k *Coder) appendColumns(b []byte, x Block, rows []int32) []byte {
	b = append(b, columnRows|k.coding.values())
	if len(rows) == 0 {
		return b
	}
	if x.Sparse != nil {
		x, rows = Block{Dense: nonZeros(x, rows).Dense()}, mat.EveryRow(len(rows))
	}
	scales := make([]float32, x.Cols())
	for _, i := range rows {
		for j, v := range x.Dense.Row(int(i)) {
			scales[j] = greater(scales[j], v)
		}
	}
	for j, top := range scales {
		scales[j] = k.coding.scale(top)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scales[j]))
	}
	b = slices.Grow(b, k.coding.valuesLen(len(rows)*len(scales)))
	var small []int8
	for some := range slices.Chunk(rows, evenRows) {
		small = small[:0]
		for _, i := range some {
			for j, v := range x.Dense.Row(int(i)) {
				small = append(small, multiple(v, scales[j]))
			}
		}
		b = k.coding.appendSmall(b, small)
	}
	return b
}

// evenRows is how many rows are multiples at a time: an even number, since a byte may have two of them.
const evenRows = 1024

func (k *Coder) parseColumns(x mat.Dense, b []byte) error {
	rows, cols := x.Rows, x.Cols
	if want := k.coding.MaxLen(rows, cols) - 1; len(b) != want {
		return fmt.Errorf("%d rows of %d columns with a scale each must have %d bytes (got %d)",
			rows, cols, want, len(b))
	}
	if rows == 0 {
		return nil
	}
	scales, small := make([]float32, cols), make([]int8, min(rows, evenRows)*cols)
	for j := range scales {
		scales[j] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*j:]))
		if !(scales[j] >= 0 && finite(scales[j])) {
			return fmt.Errorf("scale of column %d must be finite and at least 0 (got %g)", j, scales[j])
		}
	}
	for i := range rows {
		if i%evenRows == 0 {
			k.coding.readSmall(b[4*cols+k.coding.valuesLen(i*cols):], small[:min(evenRows, rows-i)*cols])
		}
		row := x.Row(i)
		for j, v := range small[i%evenRows*cols:][:cols] {
			if row[j] = scales[j] * float32(v); !finite(row[j]) {
				return notFinite(i, j, row[j])
			}
		}
	}
	return nil
}
