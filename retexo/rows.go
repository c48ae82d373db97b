package retexo

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

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

// exchangeCoded is exchange of rows that are sparse, or were before they were aggregated: how full they are by now
// differs between peers, so every message says how it is coded. The result is sparse where all of it is.
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
			largest = max(largest, len(s.Boundary[q]), s.HaloPtr[q+1]-s.HaloPtr[q]) // the limit is on both ways
		}
	}
	in, err := g.SendRecv(ctx, comm.Halo, what, out, 1+4*largest*d)
	if err != nil {
		return graph.Features{}, err
	}
	parts, sparse := []graph.Features{own}, own.Sparse != nil // those of the peers follow by rank, as the halo does
	for q := range s.Parts {
		if q == s.Rank {
			continue
		}
		part, err := parseRows(in[q], s.HaloPtr[q+1]-s.HaloPtr[q], d)
		if err != nil {
			return graph.Features{}, &comm.PeerError{Rank: q, Op: what, Err: err}
		}
		parts, sparse = append(parts, part), sparse && part.Sparse != nil
	}
	return stack(parts, len(s.Global), d, sparse), nil
}

// stack puts parts, rows×cols in all, one below the other.
func stack(parts []graph.Features, rows, cols int, sparse bool) graph.Features {
	if sparse {
		x := &mat.Sparse{Rows: rows, Cols: cols, RowPtr: []int64{0}}
		for _, p := range parts {
			for _, end := range p.Sparse.RowPtr[1:] {
				x.RowPtr = append(x.RowPtr, int64(len(x.Col))+end)
			}
			x.Col, x.Val = append(x.Col, p.Sparse.Col...), append(x.Val, p.Sparse.Val...)
		}
		return graph.Features{Sparse: x}
	}
	x, at := mat.New(rows, cols), 0
	for _, p := range parts {
		if p.Sparse != nil {
			p.Dense = p.Sparse.Dense()
		}
		x.RowRange(at, at+p.Rows()).CopyFrom(p.Dense)
		at += p.Rows()
	}
	return graph.Features{Dense: x}
}

// Codes of a message of rows.
const (
	manyValues = 0 // u32 stored columns of each row · u32 columns of all rows · f32 values of all columns
	oneValue   = 1 // the same, but of values only one, that of every column: bags of words are mostly this
	denseRows  = 2 // f32 values, row by row
)

// appendRows appends to b the given rows of f: a code in one byte, then what the code says. The code is the one that
// takes the fewest bytes, so that rows have one coding; zeros are not stored.
func appendRows(b []byte, f graph.Features, rows []int32) []byte {
	s := nonZeros(f, rows)
	code, values := byte(oneValue), s.Val[:min(1, len(s.Val))]
	for _, v := range s.Val {
		if v != values[0] {
			code, values = manyValues, s.Val
			break
		}
	}
	if dense := s.Rows * s.Cols; dense < s.Rows+s.NNZ()+len(values) {
		return appendFloats(append(b, denseRows), s.Dense().Data)
	}
	b = append(b, code)
	for i := range s.Rows {
		b = binary.LittleEndian.AppendUint32(b, uint32(s.RowPtr[i+1]-s.RowPtr[i]))
	}
	for _, j := range s.Col {
		b = binary.LittleEndian.AppendUint32(b, uint32(j))
	}
	return appendFloats(b, values)
}

func appendFloats(b []byte, values []float32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// nonZeros returns the given rows of f without their zeros.
func nonZeros(f graph.Features, rows []int32) *mat.Sparse {
	s := &mat.Sparse{Rows: len(rows), Cols: f.Cols(), RowPtr: make([]int64, 1, len(rows)+1)}
	for _, i := range rows {
		if f.Sparse != nil {
			col, val := f.Sparse.Row(int(i))
			for k, j := range col {
				if val[k] != 0 {
					s.Col, s.Val = append(s.Col, j), append(s.Val, val[k])
				}
			}
		} else {
			for j, v := range f.Dense.Row(int(i)) {
				if v != 0 {
					s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
				}
			}
		}
		s.RowPtr = append(s.RowPtr, int64(len(s.Col)))
	}
	return s
}

// parseRows returns the rows×cols values that b holds. b is a peer's: nothing in it is believed.
func parseRows(b []byte, rows, cols int) (f graph.Features, err error) {
	switch {
	case len(b) == 0:
		return f, fmt.Errorf("no bytes, want at least a code")
	case b[0] == denseRows:
		f.Dense, err = parseDense(b[1:], rows, cols)
	case b[0] == manyValues || b[0] == oneValue:
		f.Sparse, err = parseSparse(b[1:], rows, cols, b[0] == oneValue)
	default:
		return f, fmt.Errorf("rows of unknown code %d", b[0])
	}
	if err != nil {
		return graph.Features{}, err
	}
	all := make([]int32, rows)
	for i := range all {
		all[i] = int32(i)
	}
	if !bytes.Equal(b, appendRows(make([]byte, 0, len(b)), f, all)) {
		return graph.Features{}, fmt.Errorf("rows of code %d have zeros stored or take more bytes than they need", b[0])
	}
	return f, nil
}

func parseDense(b []byte, rows, cols int) (mat.Dense, error) {
	if len(b) != 4*rows*cols {
		return mat.Dense{}, fmt.Errorf("%d dense rows of %d columns take %d bytes, got %d", rows, cols, 4*rows*cols, len(b))
	}
	x := mat.New(rows, cols)
	for k := range x.Data {
		v := math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:]))
		if !finite(v) {
			return mat.Dense{}, notFinite(k/cols, k%cols, v)
		}
		x.Data[k] = v
	}
	return x, nil
}

func parseSparse(b []byte, rows, cols int, one bool) (*mat.Sparse, error) {
	if len(b) < 4*rows {
		return nil, fmt.Errorf("%d bytes cannot hold the lengths of %d rows", len(b), rows)
	}
	lengths, rest := b[:4*rows], b[4*rows:]
	total := 0
	for i := range rows {
		n := binary.LittleEndian.Uint32(lengths[4*i:])
		if n > uint32(cols) {
			return nil, fmt.Errorf("row %d has %d columns, of %d there are", i, n, cols)
		}
		total += int(n)
	}
	values := total
	if one {
		values = min(1, total)
	}
	if len(rest) != 4*(total+values) {
		return nil, fmt.Errorf("%d rows with %d columns take %d bytes, got %d", rows, total, 4*(total+values), len(rest))
	}
	cells, rest := rest[:4*total], rest[4*total:]
	s := &mat.Sparse{Rows: rows, Cols: cols, RowPtr: make([]int64, 1, rows+1), Col: make([]int32, total), Val: make([]float32, total)}
	k := 0
	for i := range rows {
		last := -1
		for range binary.LittleEndian.Uint32(lengths[4*i:]) {
			j := binary.LittleEndian.Uint32(cells[4*k:])
			if j >= uint32(cols) || int(j) <= last {
				return nil, fmt.Errorf("row %d: column %d is not ascending in [0, %d)", i, j, cols)
			}
			at := 4 * k
			if one {
				at = 0
			}
			v := math.Float32frombits(binary.LittleEndian.Uint32(rest[at:]))
			if !finite(v) {
				return nil, notFinite(i, int(j), v)
			}
			s.Col[k], s.Val[k] = int32(j), v
			last = int(j)
			k++
		}
		s.RowPtr = append(s.RowPtr, int64(k))
	}
	return s, nil
}

func finite(v float32) bool { return math.Abs(float64(v)) <= math.MaxFloat32 }

func notFinite(i, j int, v float32) error {
	return fmt.Errorf("row %d, column %d: %g is not a number to train on", i, j, v)
}
