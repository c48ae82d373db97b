package retexo

import (
	"context"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/mat"
)

// exchange returns own, the rows of the owned nodes, followed by the halo rows that their owners send. mixed says that
// rows are sparse, or were before they were aggregated, at every peer.
func exchange(ctx context.Context, g *comm.Group, k *wire.Coder, s *partition.Shard, own graph.Features, mixed bool, what string) (graph.Features, error) {
	x, err := k.Exchange(ctx, g, wire.Halo{Give: s.Boundary, Ptr: s.HaloPtr}, wire.Block(own), mixed, what)
	return graph.Features(x), err
}

// numbers is exchange of one number a node, which no coding may round.
func numbers(ctx context.Context, g *comm.Group, s *partition.Shard, own []float32, what string) ([]float32, error) {
	x, err := exchange(ctx, g, new(wire.Coder), s, graph.Features{Dense: mat.View(s.Owned, 1, own)}, false, what)
	return x.Dense.Data, err
}

func finite(v float32) bool { return math.Abs(float64(v)) <= math.MaxFloat32 }
