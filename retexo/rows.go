package retexo

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/mat"
)

// exchange returns own, the dense rows of the owned nodes, followed by the halo rows that their owners send. They
// travel as they are, 4 bytes a value.
func exchange(ctx context.Context, g *comm.Group, s *partition.Shard, own graph.Features, what string) (graph.Features, error) {
	if s.Parts == 1 {
		return own, nil
	}
	d := own.Cols()
	x := mat.New(len(s.Global), d)
	x.RowRange(0, s.Owned).CopyFrom(own.Dense)
	out, in := make([][]float32, s.Parts), make([][]float32, s.Parts)
	for q := range s.Parts {
		if q == s.Rank {
			continue
		}
		out[q] = own.Dense.Select(s.Boundary[q]).Data
		in[q] = x.Data[s.HaloPtr[q]*d : s.HaloPtr[q+1]*d]
	}
	if err := g.Exchange(ctx, comm.Halo, what, out, in); err != nil {
		return graph.Features{}, err
	}
	return graph.Features{Dense: x}, nil
}

// exchangeCoded is exchange of rows that were sparse before they were aggregated. Whether they still are each peer finds
// for itself, so a message says what it holds; the result is sparse where all of it is.
func exchangeCoded(ctx context.Context, g *comm.Group, s *partition.Shard, own graph.Features, what string) (graph.Features, error) {
	if s.Parts == 1 {
		return own, nil
	}
	d := own.Cols()
	out := make([][]byte, s.Parts)
	largest := 0
	for q := range s.Parts {
		if q != s.Rank {
			out[q] = appendRows(nil, own, s.Boundary[q])
			largest = max(largest, s.HaloPtr[q+1]-s.HaloPtr[q])
		}
	}
	in, err := g.SendRecv(ctx, comm.Halo, what, out, 1+largest*(4+8*d))
	if err != nil {
		return graph.Features{}, err
	}
	isDense := func(b []byte) bool { return len(b) > 0 && b[0] == denseRows }
	if own.Sparse == nil || slices.ContainsFunc(in, isDense) {
		x := mat.New(len(s.Global), d)
		if own.Sparse != nil {
			own.Dense = own.Sparse.Dense()
		}
		x.RowRange(0, s.Owned).CopyFrom(own.Dense)
		for q := range s.Parts {
			if q == s.Rank {
				continue
			}
			if err := readRows(x.RowRange(s.HaloPtr[q], s.HaloPtr[q+1]), in[q]); err != nil {
				return graph.Features{}, &comm.PeerError{Rank: q, Op: what, Err: err}
			}
		}
		return graph.Features{Dense: x}, nil
	}
	w := own.Sparse
	x := &mat.Sparse{Rows: s.Owned, Cols: d, RowPtr: slices.Clip(w.RowPtr), Col: slices.Clip(w.Col), Val: slices.Clip(w.Val)}
	for q := range s.Parts {
		if q == s.Rank {
			continue
		}
		if err := readSparse(x, in[q], s.HaloPtr[q+1]-s.HaloPtr[q]); err != nil {
			return graph.Features{}, &comm.PeerError{Rank: q, Op: what, Err: err}
		}
	}
	return graph.Features{Sparse: x}, nil
}

// Codes of a message of rows. With the first two, row lengths and columns follow.
const (
	manyValues = 0 // then a value a column, not all the same
	oneValue   = 1 // then one value, that of every column: bags of words are mostly this
	denseRows  = 2 // f32 values row by row: what remains of sparse rows after some hops
)

// appendRows appends to b the given rows of f, as it holds them.
func appendRows(b []byte, f graph.Features, rows []int32) []byte {
	switch {
	case len(rows) == 0:
		return append(b, oneValue)
	case f.Sparse != nil:
		return appendSparse(b, f.Sparse, rows)
	}
	b = append(b, denseRows)
	for _, i := range rows {
		for _, v := range f.Dense.Row(int(i)) {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

// readRows writes to x the rows that b holds by any code. b is a peer's: nothing in it is believed.
func readRows(x mat.Dense, b []byte) error {
	if len(b) == 0 || b[0] != denseRows {
		s := &mat.Sparse{Cols: x.Cols, RowPtr: []int64{0}}
		if err := readSparse(s, b, x.Rows); err != nil {
			return err
		}
		x.CopyFrom(s.Dense())
		return nil
	}
	if b = b[1:]; len(b) != 4*x.Rows*x.Cols {
		return fmt.Errorf("%d dense rows of %d columns take %d bytes, got %d", x.Rows, x.Cols, 4*x.Rows*x.Cols, len(b))
	}
	for i := range x.Rows {
		row := x.Row(i)
		for j := range row {
			v := math.Float32frombits(binary.LittleEndian.Uint32(b[4*(i*x.Cols+j):]))
			if !finite(v) {
				return notFinite(i, j, v)
			}
			row[j] = v
		}
	}
	return nil
}

func finite(v float32) bool { return math.Abs(float64(v)) <= math.MaxFloat32 }

func notFinite(i, j int, v float32) error {
	return fmt.Errorf("row %d, column %d: %g is not a number to train on", i, j, v)
}

// appendSparse appends to b the given rows of s:
//
//	u8 code · u32 length of each row · u32 columns of all rows · f32 values of all columns, or the one
func appendSparse(b []byte, s *mat.Sparse, rows []int32) []byte {
	code, first, any := byte(oneValue), float32(0), false
	for _, i := range rows {
		_, val := s.Row(int(i))
		for _, v := range val {
			if !any {
				first, any = v, true
			}
			if math.Float32bits(v) != math.Float32bits(first) {
				code = manyValues
			}
		}
	}
	b = append(b, code)
	for _, i := range rows {
		b = binary.LittleEndian.AppendUint32(b, uint32(s.RowPtr[i+1]-s.RowPtr[i]))
	}
	for _, i := range rows {
		col, _ := s.Row(int(i))
		for _, j := range col {
			b = binary.LittleEndian.AppendUint32(b, uint32(j))
		}
	}
	if code == oneValue {
		if any {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(first))
		}
		return b
	}
	for _, i := range rows {
		_, val := s.Row(int(i))
		for _, v := range val {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

// readSparse appends to s the given number of rows that b holds. b is a peer's: nothing in it is believed.
func readSparse(s *mat.Sparse, b []byte, rows int) error {
	if len(b) < 1+4*rows {
		return fmt.Errorf("%d bytes cannot hold the lengths of %d rows", len(b), rows)
	}
	code, lengths, rest := b[0], b[1:1+4*rows], b[1+4*rows:]
	total := 0
	for i := range rows {
		n := binary.LittleEndian.Uint32(lengths[4*i:])
		if n > uint32(s.Cols) {
			return fmt.Errorf("row %d has %d columns, of %d there are", i, n, s.Cols)
		}
		total += int(n)
	}
	want := 4 * total
	switch {
	case code == manyValues:
		want *= 2
	case code == oneValue && total > 0:
		want += 4
	case code != oneValue:
		return fmt.Errorf("rows of unknown code %d", code)
	}
	if len(rest) != want {
		return fmt.Errorf("%d rows with %d columns take %d bytes, got %d", rows, total, want, len(rest))
	}
	cols, vals := rest[:4*total], rest[4*total:]
	if code == manyValues && bytes.Equal(vals[min(4, len(vals)):], vals[:max(0, len(vals)-4)]) {
		return fmt.Errorf("%d values that are all the same, want code %d", total, oneValue) // rows have one coding
	}
	k := 0
	for i := range rows {
		n := int(binary.LittleEndian.Uint32(lengths[4*i:]))
		last := -1
		for range n {
			j := int(binary.LittleEndian.Uint32(cols[4*k:]))
			if j <= last || j >= s.Cols {
				return fmt.Errorf("row %d: column %d is not ascending in [0, %d)", i, j, s.Cols)
			}
			at := 0
			if code == manyValues {
				at = 4 * k
			}
			v := math.Float32frombits(binary.LittleEndian.Uint32(vals[at:]))
			if !finite(v) {
				return notFinite(i, j, v)
			}
			s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
			last = j
			k++
		}
		s.RowPtr = append(s.RowPtr, int64(len(s.Col)))
	}
	s.Rows += rows
	return nil
}
