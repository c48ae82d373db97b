package train

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/wire"
	"github.com/heddle-gnn/heddle/mat"
)

// Sender sends rows of this peer's nodes to other peers and receives theirs. Rows leave a trainer through its methods
// only, so this is where a filter (noise, clipping) would have its place; there is none yet.
type Sender struct {
	group *comm.Group
	shard *shard.Shard
	coder *wire.Coder
}

// NewSender returns a sender of rows of s, in the given coding.
func NewSender(g *comm.Group, s *shard.Shard, c comm.Coding) *Sender {
	return &Sender{group: g, shard: s, coder: wire.New(c)}
}

// Halo returns own, one row for each owned node, followed by the halo rows that their owners send. mixed, the same at
// every peer: rows are sparse or were once, and may be dense at some peers by now. Rows of a peer that is not a member
// of the group are zero.
func (s *Sender) Halo(ctx context.Context, own graph.Features, mixed bool, what string) (graph.Features, error) {
	return s.Rows(ctx, s.shard.Boundary, s.shard.HaloPtr, own, mixed, what)
}

// Rows is Halo for any rows: the rows of own in give[q] go to peer q, and rows [ptr[q], ptr[q+1]) of the result come
// from it.
func (s *Sender) Rows(ctx context.Context, give [][]int32, ptr []int, own graph.Features, mixed bool,
	what string) (graph.Features, error) {
	return s.rows(ctx, wire.Halo{Give: give, Ptr: ptr}, own, mixed, what)
}

func (s *Sender) rows(ctx context.Context, h wire.Halo, own graph.Features, mixed bool,
	what string) (graph.Features, error) {
	x, err := s.coder.Exchange(ctx, s.group, h, wire.Block(own), mixed, what)
	return graph.Features(x), err
}

// within returns an error that names a peer that has sent a value of larger magnitude than most: row i of x came from
// peer q where ptr[q] ≤ i < ptr[q+1]. Codings may round up.
func within(x graph.Features, ptr []int, own int, most float32, what string) error {
	for q := range len(ptr) - 1 {
		for i := ptr[q]; i < ptr[q+1] && q != own; i++ {
			for k, v := range x.Dense.Row(i) {
				if !(v <= most*1.01 && v >= -most*1.01) {
					return &comm.PeerError{Rank: q, Op: what,
						Err: comm.Refused("column %d of a row must be between -%g and %g (got %g)", k, most, most, v)}
				}
			}
		}
	}
	return nil
}

// Features is Halo of features that stay as they are: the result is sparse if own is, at all peers or none.
func (s *Sender) Features(ctx context.Context, own graph.Features, what string) (graph.Features, error) {
	x, err := s.Halo(ctx, own, own.Sparse != nil, what)
	if own.Sparse != nil && x.Sparse == nil && err == nil { // some peer's rows took fewer bytes as dense ones
		x = graph.Features{Sparse: NonZeros(x)}
	}
	return x, err
}

// NonZeros returns x as a sparse matrix without explicit zeros.
func NonZeros(x graph.Features) *mat.Sparse { return wire.Block(x).NonZeros() }

// Exact returns a sender of the same rows that rounds no value.
func (s *Sender) Exact() *Sender {
	return &Sender{group: s.group, shard: s.shard, coder: new(wire.Coder)}
}

// Numbers is Halo of one number for each owned node, which is never rounded.
func (s *Sender) Numbers(ctx context.Context, own []float32, what string) ([]float32, error) {
	x, err := s.Exact().Halo(ctx, graph.Features{Dense: mat.View(s.shard.Owned, 1, own)}, false, what)
	return x.Dense.Data, err
}

// MaxColumns is the widest row that a Lane sends in every coding.
const MaxColumns = wire.MaxCols

// Lane returns a lane of a comm.Stream of rows; see wire.Coder.Lane.
func (s *Sender) Lane(cols int, send, recv []int, row func(to, k int) []float32,
	take func(from, k, at int, values []float32)) comm.Lane {
	return s.coder.Lane(cols, send, recv, row, take)
}

// RowLen returns how many bytes a dense row of cols values takes.
func (s *Sender) RowLen(cols int) int { return s.coder.Coding().RowLen(cols) }

// messageLen returns how many bytes the given rows of x take in a message, including its description of their layout.
func (s *Sender) messageLen(x graph.Features, rows []int32) int {
	return len(s.coder.Append(nil, wire.Block(x), rows))
}
