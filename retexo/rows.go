package retexo

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/mat"
)

// exchange returns own, the rows of the owned nodes, followed by the halo rows that their owners send. Dense rows
// travel as they are, 4 bytes a value; sparse rows as appendSparse codes them.
func exchange(ctx context.Context, g *comm.Group, s *partition.Shard, own graph.Features, what string) (graph.Features, error) {
	if s.Parts == 1 {
		return own, nil
	}
	if own.Sparse != nil {
		return exchangeSparse(ctx, g, s, own.Sparse, what)
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

func exchangeSparse(ctx context.Context, g *comm.Group, s *partition.Shard, own *mat.Sparse, what string) (graph.Features, error) {
	out := make([][]byte, s.Parts)
	largest := 0
	for q := range s.Parts {
		if q != s.Rank {
			out[q] = appendSparse(nil, own, s.Boundary[q])
			largest = max(largest, s.HaloPtr[q+1]-s.HaloPtr[q])
		}
	}
	in, err := g.SendRecv(ctx, comm.Halo, what, out, 1+largest*(4+8*own.Cols))
	if err != nil {
		return graph.Features{}, err
	}
	x := &mat.Sparse{Rows: s.Owned, Cols: own.Cols, RowPtr: own.RowPtr[: s.Owned+1 : s.Owned+1], Col: own.Col[:len(own.Col):len(own.Col)], Val: own.Val[:len(own.Val):len(own.Val)]}
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

// Codes of a sparse message: what follows the row lengths and columns.
const (
	manyValues = 0 // a value a column
	oneValue   = 1 // one value, that of every column: bags of words are mostly this
)

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
		n := int(binary.LittleEndian.Uint32(lengths[4*i:]))
		if n > s.Cols {
			return fmt.Errorf("row %d has %d columns, of %d there are", i, n, s.Cols)
		}
		total += n
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
			if v != v || math.IsInf(float64(v), 0) {
				return fmt.Errorf("row %d, column %d: %g is not a number to train on", i, j, v)
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
