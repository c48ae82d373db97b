package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/kernels"
)

// Lane returns a lane of a Stream for dense rows of cols values, RowLen(cols) bytes each: send[q]
// of them to peer q and recv[q] from it. row returns the k-th row for a peer. take gets the values
// at, at+1, … of the k-th row from a peer, and may change but not keep them; a row may come in
// several calls, from its first value on. The columns of the coding must have no scales: a row
// leaves before those after it are known.
func (k *Coder) Lane(cols int, send, recv []int, row func(to, k int) []float32,
	take func(from, k, at int, values []float32)) comm.Lane {
	if k.coding.Columns {
		panic("wire: rows of a lane must have their own scales: one leaves before the next is known")
	}
	l := lane{Coder: k, cols: cols, row: row, take: take, room: make([]scratch, len(send))}
	bytes := func(rows []int) []int {
		n := make([]int, len(rows))
		for q, r := range rows {
			n[q] = r * k.coding.RowLen(cols)
		}
		return n
	}
	return comm.Lane{Out: bytes(send), In: bytes(recv), Unit: k.unit(cols),
		Packed: k.enc != nil, Fill: l.fill, Take: l.read}
}

// unit is how many bytes of a dense row can only be decoded together.
func (k *Coder) unit(cols int) int {
	if k.coding.scaled() {
		return k.coding.RowLen(cols)
	}
	return k.coding.valuesLen(1)
}

type lane struct {
	*Coder
	cols int
	row  func(to, k int) []float32
	take func(from, k, at int, values []float32)
	room []scratch // by peer: out and in are worked on at the same time
}

type scratch struct{ out, in buffers }

type buffers struct {
	half   []uint16
	small  []int8
	values []float32
	packed []byte
}

func (l *lane) fill(to, at int, dst []byte) []byte {
	b, n := &l.room[to].out, l.coding.RowLen(l.cols)
	for rest := dst; len(rest) > 0; {
		r, in := at/n, at%n
		part := rest[:min(len(rest), n-in)]
		l.encode(part, l.row(to, r), in, b)
		at, rest = at+len(part), rest[len(part):]
	}
	if l.enc == nil {
		return dst
	}
	packed := l.pack(b.packed, dst)
	if len(packed) < len(dst) {
		b.packed = packed
	}
	return packed
}

// encode writes to dst the bytes of a row from byte at on.
func (l *lane) encode(dst []byte, row []float32, at int, b *buffers) {
	switch l.coding.Values {
	case "bf16":
		row = row[at/2:][:len(dst)/2]
		b.half = grow(b.half, len(row))
		kernels.ToBF16(row, b.half)
		for i, v := range b.half {
			binary.LittleEndian.PutUint16(dst[2*i:], v)
		}
	case "int8", "int4":
		b.small = grow(b.small, len(row))
		binary.LittleEndian.PutUint32(dst, math.Float32bits(l.coding.round(row, b.small)))
		l.coding.appendSmall(dst[:4], b.small)
	default:
		copy(dst, comm.FloatBytes(row[at/4:][:len(dst)/4]))
	}
}

// read decodes the bytes at, …, at+n−1 of the message from a peer, which src has as they are or compressed.
func (l *lane) read(from, at, n int, src []byte) error {
	b, row := &l.room[from].in, l.coding.RowLen(l.cols)
	if len(src) < n {
		var err error
		if b.packed, err = l.unpack(b.packed, src, n); err != nil {
			return err
		}
		if src = b.packed; len(src) != n {
			return fmt.Errorf("zstd frame must have %d bytes (got %d)", n, len(src))
		}
	}
	for len(src) > 0 {
		r, in := at/row, at%row
		part := src[:min(len(src), row-in)]
		l.decode(part, r, in, from, b)
		at, src = at+len(part), src[len(part):]
	}
	return nil
}

// decode passes what part has of row r, from byte at on, to take. Every bit pattern is accepted:
// a value that is not finite ends training when it reaches the loss.
func (l *lane) decode(part []byte, r, at, from int, b *buffers) {
	switch l.coding.Values {
	case "bf16":
		b.half = grow(b.half, len(part)/2)
		for i := range b.half {
			b.half[i] = binary.LittleEndian.Uint16(part[2*i:])
		}
		b.values = grow(b.values, len(b.half))
		kernels.FromBF16(b.half, b.values)
		l.take(from, r, at/2, b.values)
	case "int8", "int4":
		scale := math.Float32frombits(binary.LittleEndian.Uint32(part))
		b.small, b.values = grow(b.small, l.cols), grow(b.values, l.cols)
		l.coding.readSmall(part[4:], b.small)
		kernels.FromInt8(scale, b.small, b.values)
		l.take(from, r, 0, b.values)
	default:
		values, ok := kernels.Floats(part)
		if !ok {
			b.values = grow(b.values, len(part)/4)
			for i := range b.values {
				b.values[i] = math.Float32frombits(binary.LittleEndian.Uint32(part[4*i:]))
			}
			values = b.values
		}
		l.take(from, r, at/4, values)
	}
}

// grow returns n elements, in the memory of b if it is large enough.
func grow[T any](b []T, n int) []T {
	if cap(b) < n {
		b = make([]T, n)
	}
	return b[:n]
}
