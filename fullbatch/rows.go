package fullbatch

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

// exchange returns own, the rows of the owned nodes, followed by the halo rows that their owners send.
func exchange(ctx context.Context, g *comm.Group, s *partition.Shard, own graph.Features, what string) (graph.Features, error) {
	switch {
	case s.Parts == 1:
		return own, nil
	case own.Sparse != nil: // on all workers or none
		return exchangeSparse(ctx, g, s, own.Sparse, what)
	}
	d := own.Cols()
	x := mat.New(len(s.Global), d)
	x.RowRange(0, s.Owned).CopyFrom(own.Dense)
	out, in := make([][]float32, s.Parts), make([][]float32, s.Parts)
	for q := range s.Parts {
		if q != s.Rank {
			out[q] = own.Dense.Select(s.Boundary[q]).Data
			in[q] = x.Data[s.HaloPtr[q]*d : s.HaloPtr[q+1]*d]
		}
	}
	return graph.Features{Dense: x}, g.Exchange(ctx, comm.Halo, what, out, in)
}

// exchangeSparse sends, of each row, the number of its columns, then all columns and all values.
func exchangeSparse(ctx context.Context, g *comm.Group, s *partition.Shard, own *mat.Sparse, what string) (graph.Features, error) {
	out, largest := make([][]byte, s.Parts), 0
	for q := range s.Parts {
		if q != s.Rank {
			out[q] = encodeSparse(own.Select(s.Boundary[q]))
			largest = max(largest, len(s.Boundary[q]), s.HaloPtr[q+1]-s.HaloPtr[q]) // the limit is on both ways
		}
	}
	in, err := g.SendRecv(ctx, comm.Halo, what, out, 4*largest+8*largest*own.Cols)
	if err != nil {
		return graph.Features{}, err
	}
	x := own.Select(identity(s.Owned))
	x.Rows = len(s.Global)
	for q := range s.Parts {
		if q == s.Rank {
			continue
		}
		if err := appendSparse(x, in[q], s.HaloPtr[q+1]-s.HaloPtr[q]); err != nil {
			return graph.Features{}, &comm.PeerError{Rank: q, Op: what, Err: err}
		}
	}
	return graph.Features{Sparse: x}, nil
}

func encodeSparse(s *mat.Sparse) []byte {
	b := make([]byte, 0, 4*s.Rows+8*s.NNZ())
	for i := range s.Rows {
		b = binary.LittleEndian.AppendUint32(b, uint32(s.RowPtr[i+1]-s.RowPtr[i]))
	}
	for _, j := range s.Col {
		b = binary.LittleEndian.AppendUint32(b, uint32(j))
	}
	for _, v := range s.Val {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// appendSparse appends to x the rows that b holds. b is a peer's: nothing in it is believed.
func appendSparse(x *mat.Sparse, b []byte, rows int) error {
	if len(b) < 4*rows {
		return fmt.Errorf("%d bytes cannot hold the lengths of %d rows", len(b), rows)
	}
	lengths, rest := b[:4*rows], b[4*rows:]
	total := 0
	for i := range rows {
		n := binary.LittleEndian.Uint32(lengths[4*i:])
		if n > uint32(x.Cols) {
			return fmt.Errorf("row %d has %d columns, of %d there are", i, n, x.Cols)
		}
		total += int(n)
		x.RowPtr = append(x.RowPtr, int64(len(x.Col)+total))
	}
	if len(rest) != 8*total {
		return fmt.Errorf("%d rows with %d columns take %d bytes, got %d", rows, total, 8*total, len(rest))
	}
	k := 0
	for i := range rows {
		last := int64(-1)
		for range binary.LittleEndian.Uint32(lengths[4*i:]) {
			j := binary.LittleEndian.Uint32(rest[4*k:])
			v := math.Float32frombits(binary.LittleEndian.Uint32(rest[4*(total+k):]))
			if j >= uint32(x.Cols) || int64(j) <= last {
				return fmt.Errorf("row %d: column %d is not ascending in [0, %d)", i, j, x.Cols)
			}
			if !(math.Abs(float64(v)) <= math.MaxFloat32) {
				return fmt.Errorf("row %d, column %d: %g is not a number to train on", i, j, v)
			}
			x.Col, x.Val = append(x.Col, int32(j)), append(x.Val, v)
			last = int64(j)
			k++
		}
	}
	return nil
}

// sumCounts adds counts up over the workers, exactly: each travels as five numbers of 12 bits, whose sums over up to
// 4096 workers a float32 holds.
func sumCounts(ctx context.Context, r comm.Reducer, n []int64) error {
	const digits, bits = 5, 12
	x := make([]float32, digits*len(n))
	for i, v := range n {
		for k := range digits {
			x[digits*i+k] = float32(v >> (bits * k) & (1<<bits - 1))
		}
	}
	if _, err := r.Reduce(ctx, 0, x); err != nil {
		return err
	}
	for i := range n {
		n[i] = 0
		for k := range digits {
			n[i] += int64(x[digits*i+k]) << (bits * k)
		}
	}
	return nil
}

// identity returns 0, 1, …, n−1.
func identity(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}
