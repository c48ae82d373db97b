package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Block is rows, dense or sparse.
type Block struct {
	Dense  mat.Dense
	Sparse *mat.Sparse // if not nil the rows, and Dense is unused
}

// Rows returns the number of rows.
func (x Block) Rows() int {
	if x.Sparse != nil {
		return x.Sparse.Rows
	}
	return x.Dense.Rows
}

// Cols returns the number of columns.
func (x Block) Cols() int {
	if x.Sparse != nil {
		return x.Sparse.Cols
	}
	return x.Dense.Cols
}

// A message of rows begins with one byte, a code: the layout and 16 times the values.
const (
	manyValues = 0 // u32 stored columns of each row · u32 columns of all rows · values of all columns
	oneValue   = 1 // the same, but one value for all columns, always f32: bags of words are mostly this
	denseRows  = 2 // values of all columns, row by row
	columnRows = 3 // f32 scales of all columns · values of all columns, row by row (nothing if there are no rows)

	float32s = 0 << 4 // 4 bytes a value
	bf16s    = 1 << 4 // 2 bytes a value
	int8s    = 2 << 4 // 1 byte a value; an f32 scale before each dense row, or all scales first if rows are sparse
	int4s    = 3 << 4 // as int8s, 2 values a byte

	packed = 1 << 7 // what follows the byte is a zstd frame of it
)

func (c coding) values() byte {
	switch c.Values {
	case "bf16":
		return bf16s
	case "int8":
		return int8s
	case "int4":
		return int4s
	}
	return float32s
}

// Append appends to b a message of the given rows of x, in the layout that takes the fewest bytes or the layout with
// scales of columns. So the same rows always have the same bytes. Sparse layouts store no zeros.
func (k *Coder) Append(b []byte, x Block, rows []int32) []byte {
	at := len(b)
	b = k.append(b, x, rows)
	if k.enc == nil {
		return b
	}
	if frame := k.pack(nil, b[at+1:]); len(frame) < len(b)-at-1 {
		b[at] |= packed
		b = append(b[:at+1], frame...)
	}
	return b
}

func (k *Coder) append(b []byte, x Block, rows []int32) []byte {
	if k.coding.Columns {
		return k.appendColumns(b, x, rows)
	}
	s := nonZeros(x, rows)
	layout, values, size := byte(oneValue), s.Val[:min(1, len(s.Val))], 0
	for _, v := range s.Val {
		if v != values[0] {
			layout, values = manyValues, s.Val
			break
		}
	}
	switch n := len(values); {
	case layout == oneValue:
		size = 4 * n
	case k.coding.scaled():
		size = 4*s.Rows + k.coding.valuesLen(n)
	default:
		size = k.coding.valuesLen(n)
	}
	if k.coding.RowLen(s.Cols)*s.Rows < 4*(s.Rows+s.NNZ())+size {
		b = append(b, denseRows|k.coding.values())
		d := s.Dense()
		l := lane{Coder: k, cols: s.Cols}
		var room buffers
		for i := range d.Rows {
			n := len(b)
			b = append(b, make([]byte, k.coding.RowLen(s.Cols))...)
			l.encode(b[n:], d.Row(i), 0, &room)
		}
		return b
	}
	if layout == oneValue {
		b = append(b, oneValue)
	} else {
		b = append(b, manyValues|k.coding.values())
	}
	for i := range s.Rows {
		b = binary.LittleEndian.AppendUint32(b, uint32(s.RowPtr[i+1]-s.RowPtr[i]))
	}
	for _, j := range s.Col {
		b = binary.LittleEndian.AppendUint32(b, uint32(j))
	}
	switch {
	case layout == oneValue || k.coding.Values == "":
		b = append(b, comm.FloatBytes(values)...)
	case k.coding.Values == "bf16":
		half := make([]uint16, len(values))
		kernels.ToBF16(values, half)
		for _, v := range half {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
	default:
		small := make([]int8, len(values))
		for i := range s.Rows {
			lo, hi := s.RowPtr[i], s.RowPtr[i+1]
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(k.coding.round(values[lo:hi], small[lo:hi])))
		}
		b = k.coding.appendSmall(b, small)
	}
	return b
}

// NonZeros returns all rows sparsely.
func (x Block) NonZeros() *mat.Sparse { return nonZeros(x, mat.EveryRow(x.Rows())) }

// nonZeros returns the given rows of x without their zeros.
func nonZeros(x Block, rows []int32) *mat.Sparse {
	s := &mat.Sparse{Rows: len(rows), Cols: x.Cols(), RowPtr: make([]int64, 1, len(rows)+1)}
	count := 0 // so that both arrays are made once
	for _, i := range rows {
		if x.Sparse != nil {
			count += int(x.Sparse.RowPtr[i+1] - x.Sparse.RowPtr[i])
			continue
		}
		for _, v := range x.Dense.Row(int(i)) {
			if v != 0 {
				count++
			}
		}
	}
	s.Col, s.Val = make([]int32, 0, count), make([]float32, 0, count)
	for _, i := range rows {
		if x.Sparse != nil {
			col, val := x.Sparse.Row(int(i))
			for k, j := range col {
				if val[k] != 0 {
					s.Col, s.Val = append(s.Col, j), append(s.Val, val[k])
				}
			}
		} else {
			for j, v := range x.Dense.Row(int(i)) {
				if v != 0 {
					s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
				}
			}
		}
		s.RowPtr = append(s.RowPtr, int64(len(s.Col)))
	}
	return s
}

// Parse returns the rows×cols values of a message. b comes from a peer: all of it is checked, and
// only the values of this Coder's coding are accepted.
func (k *Coder) Parse(b []byte, rows, cols int) (x Block, err error) {
	return k.parse(b, rows, cols, mat.Dense{})
}

// parse is Parse, which writes columns that have a scale each into the last argument, unless that is empty.
func (k *Coder) parse(b []byte, rows, cols int, into mat.Dense) (x Block, err error) {
	if len(b) == 0 {
		return x, errors.New("message must have at least 1 byte (got 0)")
	}
	code, body := b[0], b[1:]
	if code&packed != 0 {
		if body, err = k.unpack(nil, body, k.coding.MaxLen(rows, cols)-1); err != nil {
			return x, err
		}
		code &^= packed
	}
	switch values := k.coding.values(); {
	case k.coding.Columns && code == columnRows|values:
		if x.Dense = into; into.Empty() {
			x.Dense = mat.New(rows, cols)
		}
		err = k.parseColumns(x.Dense, body)
	case !k.coding.Columns && code == denseRows|values:
		x.Dense, err = k.parseDense(body, rows, cols)
	case !k.coding.Columns && (code == manyValues|values || code == oneValue):
		x.Sparse, err = k.parseSparse(body, rows, cols, code == oneValue)
	default:
		return x, fmt.Errorf("code of the rows must be known (got %d)", b[0])
	}
	if err != nil {
		return Block{}, err
	}
	if k.coding != (coding{}) { // rounded and compressed rows have more than one coding
		return x, nil
	}
	if !bytes.Equal(b, k.append(make([]byte, 0, len(b)), x, mat.EveryRow(rows))) {
		return Block{}, fmt.Errorf("rows must be in their shortest layout, without zeros (got code %d)", b[0])
	}
	return x, nil
}

func (k *Coder) parseDense(b []byte, rows, cols int) (mat.Dense, error) {
	n := k.coding.RowLen(cols)
	if len(b) != n*rows {
		return mat.Dense{}, fmt.Errorf("%d dense rows of %d columns must have %d bytes (got %d)",
			rows, cols, n*rows, len(b))
	}
	x := mat.New(rows, cols)
	var room buffers
	l := lane{Coder: k, cols: cols, take: func(_, i, _ int, values []float32) { copy(x.Row(i), values) }}
	for i := range rows {
		l.decode(b[i*n:][:n], i, 0, 0, &room)
		for j, v := range x.Row(i) {
			if !finite(v) {
				return mat.Dense{}, notFinite(i, j, v)
			}
		}
	}
	return x, nil
}

func (k *Coder) parseSparse(b []byte, rows, cols int, one bool) (*mat.Sparse, error) {
	if len(b) < 4*rows {
		return nil, fmt.Errorf("lengths of %d rows must have %d bytes (got %d)", rows, 4*rows, len(b))
	}
	lengths, rest := b[:4*rows], b[4*rows:]
	s := &mat.Sparse{Rows: rows, Cols: cols, RowPtr: make([]int64, 1, rows+1)}
	total := 0
	for i := range rows {
		n := binary.LittleEndian.Uint32(lengths[4*i:])
		if n > uint32(cols) {
			return nil, fmt.Errorf("row %d must have at most %d columns (got %d)", i, cols, n)
		}
		total += int(n)
		s.RowPtr = append(s.RowPtr, int64(total))
	}
	size := k.coding.valuesLen(total)
	switch {
	case one:
		size = 4 * min(1, total)
	case k.coding.scaled():
		size += 4 * rows
	}
	if len(rest) != 4*total+size {
		return nil, fmt.Errorf("%d rows with %d values must have %d bytes (got %d)",
			rows, total, 4*total+size, len(rest))
	}
	cells, values := rest[:4*total], rest[4*total:]
	s.Col, s.Val = make([]int32, total), make([]float32, total)
	k.sparseValues(s, values, one)
	for i := range rows {
		last := -1
		for at := s.RowPtr[i]; at < s.RowPtr[i+1]; at++ {
			j := binary.LittleEndian.Uint32(cells[4*at:])
			if j >= uint32(cols) || int(j) <= last {
				return nil, fmt.Errorf("row %d: columns must ascend and be below %d (got %d)", i, cols, j)
			}
			if v := s.Val[at]; !finite(v) {
				return nil, notFinite(i, int(j), v)
			}
			s.Col[at], last = int32(j), int(j)
		}
	}
	return s, nil
}

// sparseValues fills in the values of s, whose length has been checked.
func (k *Coder) sparseValues(s *mat.Sparse, b []byte, one bool) {
	f32 := func(at int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[at:])) }
	switch {
	case one:
		for i := range s.Val {
			s.Val[i] = f32(0)
		}
	case k.coding.Values == "bf16":
		for i := range s.Val {
			s.Val[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
		}
	case k.coding.scaled():
		small := make([]int8, len(s.Val))
		k.coding.readSmall(b[4*s.Rows:], small)
		for i := range s.Rows {
			lo, hi := s.RowPtr[i], s.RowPtr[i+1]
			kernels.FromInt8(f32(4*i), small[lo:hi], s.Val[lo:hi])
		}
	default:
		for i := range s.Val {
			s.Val[i] = f32(4 * i)
		}
	}
}

func finite(v float32) bool { return math.Abs(float64(v)) <= math.MaxFloat32 }

func notFinite(i, j int, v float32) error {
	return fmt.Errorf("row %d, column %d must be finite (got %g)", i, j, v)
}
