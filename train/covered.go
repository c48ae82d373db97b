package train

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

// CoverLayers asks other peers for covers that serve all layers whose sums of other peers' rows can be computed once,
// if that saves bytes over all of these layers; exchange is one of Exchanges. raw: the first layer reads the features
// as they are.
func (s *Sender) CoverLayers(ctx context.Context, layers []*nn.Layer, raw bool, exchange string) (*Covers, error) {
	own, each := s.shard, 0 // bytes of a row in all exchanges
	for i, l := range layers {
		width := s.RowLen(l.Spec.In)
		if x := own.X.Sparse; i == 0 && x != nil && raw {
			width = min(width, 4+8*x.NNZ()/max(x.Rows, 1)) // other peers' rows are like this peer's
		}
		if l.Sums() && l.Frozen() {
			each += max(l.Spec.Hops, 1) * width
		}
	}
	c, err := s.AgreeCovers(ctx, "covers of rows", own.Boundary,
		func(q int) *graph.CSR { return own.From(&own.Adj, q) },
		func(fewer, bytes int) bool { return exchange == "cover" || fewer*each > bytes })
	if err == nil {
		c.choose = exchange == "auto"
	}
	return c, err
}

// Sources returns what a hop of layer l sums over v: own rows x and the rows of other peers, and the edges over these.
// With covers c (nil = none) the rows include sums that this peer makes for others and sums that others send. mixed,
// the same at all peers: rows are sparse or were once. Then v has the degrees of the halo, and a peer that is asked for
// sums may send rows if they take no more bytes (exchange auto). Otherwise the owners of rows multiply them by their
// factors (GraphView.Weigh).
func (s *Sender) Sources(ctx context.Context, c *Covers, v GraphView, l *nn.Layer, x graph.Features, mixed bool,
	what string) (src graph.Features, edges *graph.CSR, err error) {
	edges = v.SourceEdges(l, mixed)
	toDst, toSrc := v.Factors(l.Edges)
	if l.Edges == graph.GCN && !mixed {
		x.Dense, toSrc = weighed(x.Dense, toSrc), nil // rows have it in them
	}
	if c == nil {
		src, err = s.Halo(ctx, x, mixed, what)
		return src, edges, err
	}
	own, give := c.WithSums(x, s.shard.Boundary, toSrc)
	rows := make([]bool, s.shard.Parts)
	if mixed && c.choose {
		if rows, err = s.chooseRows(ctx, c, own, give); err != nil {
			return src, nil, err
		}
	}
	to, virtual, ptr := c.Places(s.shard, own.Rows(), rows)
	if src, err = s.Rows(ctx, give, ptr, own, mixed, what); err != nil {
		return src, nil, err
	}
	return src, shard.WithSums(edges.Relabel(mat.EveryRow(s.shard.Owned), to, ptr[s.shard.Parts]), virtual, toDst), nil
}

// chooseRows sends rows instead of a cover if they take no more bytes, and informs the peers: sums of sparse rows have
// more values than the rows. rows[q] reports whether peer q sends rows.
func (s *Sender) chooseRows(ctx context.Context, c *Covers, own graph.Features,
	give [][]int32) (rows []bool, err error) {
	const what = "rows or sums"
	out := make([][]byte, s.shard.Parts)
	for q, cover := range c.Give {
		if cover == nil {
			continue
		}
		out[q] = []byte{0}
		asRows := s.messageLen(own, s.shard.Boundary[q])
		if err := ctx.Err(); err != nil { // a message of wide rows takes long
			return nil, err
		}
		if asRows <= s.messageLen(own, give[q]) {
			out[q], give[q] = []byte{1}, s.shard.Boundary[q]
		}
	}
	in, err := s.group.SendRecv(ctx, comm.Control, what, out, 1)
	if err != nil {
		return nil, err
	}
	rows = make([]bool, s.shard.Parts)
	for q, b := range in {
		if c.Take[q] == nil {
			continue
		}
		if len(b) != 1 || b[0] > 1 {
			return nil, &comm.PeerError{Rank: q, Op: what, Err: fmt.Errorf("the message must be 0 or 1 (got % x)", b)}
		}
		rows[q] = b[0] == 1
	}
	return rows, nil
}
