package fullbatch

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/mat"
)

// exchange returns own, the rows of the owned nodes, followed by the halo rows that their owners send: sparse where own
// is, at all workers or none.
func exchange(ctx context.Context, g *comm.Group, k *wire.Coder, s *partition.Shard, own graph.Features, what string) (graph.Features, error) {
	x, err := k.Exchange(ctx, g, wire.Halo{Give: s.Boundary, Ptr: s.HaloPtr}, wire.Block(own), own.Sparse != nil, what)
	if own.Sparse != nil && x.Sparse == nil && err == nil { // some peer's rows take fewer bytes as dense ones
		x.Sparse = x.NonZeros()
	}
	return graph.Features(x), err
}

// numbers is exchange of one number a node, which no coding may round.
func numbers(ctx context.Context, g *comm.Group, s *partition.Shard, own []float32, what string) ([]float32, error) {
	x, err := exchange(ctx, g, new(wire.Coder), s, graph.Features{Dense: mat.View(s.Owned, 1, own)}, what)
	return x.Dense.Data, err
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
