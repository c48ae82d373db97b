package retexo

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
)

// A layer that sums its neighbours' rows needs of an edge between peers either the source's row or the sum of its
// destination over that peer. The least of both (shard.Cover) travels in place of the halo's rows.

// covered reports whether sums may stand for rows in l's inputs. What training sees of the graph must be all of it: else
// the rows of the halo, which serve both views, are fewer than the sums of two.
func (t *Trainer) covered(l *nn.Layer) bool {
	if t.config.Survival.FailedRows == "previous" || len(t.group.Members()) < t.shard.Parts {
		return false // rows may have to stand in for others, or edges go
	}
	return t.config.Exchange != "halo" && t.shard.Parts > 1 && !t.config.Inductive && t.config.Neighbours == 0 && l.Sums() && l.Frozen()
}

// agreeCovers asks every peer for a cover where one is worth it over the whole run: a run that is resumed, at whatever
// layer, agrees on the same and goes on with the same bits.
func (t *Trainer) agreeCovers(ctx context.Context) (err error) {
	s := t.shard
	each := 0 // bytes of a row in all exchanges
	for i, l := range t.model.Layers {
		width := t.sender.RowLen(l.Spec.In)
		if x := s.X.Sparse; i == 0 && x != nil && t.config.Spec.Encoder.Kind == "raw" {
			width = min(width, 4+8*x.NNZ()/max(x.Rows, 1)) // others' rows are like ours
		}
		if t.covered(l) {
			each += max(l.Spec.Hops, 1) * width
		}
	}
	rows := make([]int, s.Parts)
	for q := range rows {
		rows[q] = len(s.Boundary[q])
	}
	t.coverGroup = t.group
	t.covers, err = t.sender.AgreeCovers(ctx, "covers of rows", rows, func(q int) *graph.CSR { return s.From(&s.Adj, q) },
		func(fewer, bytes int) bool { return t.config.Exchange == "cover" || fewer*each > bytes })
	return err
}

// fetchCovered is view.fetch by covers: src becomes the own rows, the sums made for others, and what others send; summed
// are the edges over it.
func (t *Trainer) fetchCovered(ctx context.Context, l *nn.Layer, w work, what string) error {
	v, s := t.full, t.shard
	if t.covers == nil || t.coverGroup != t.group {
		if err := t.agreeCovers(ctx); err != nil {
			return err
		}
	}
	if err := v.learnDegrees(ctx, t.sender, l); err != nil {
		return err
	}
	toDst, toSrc := v.Factors(l.Edges)
	if v.weighs(l) {
		toSrc = nil // rows have it in them
	}
	own, give := t.covers.WithSums(v.rows(l, w.Hop), s.Boundary, toSrc)
	mixed := v.own.Sparse != nil // at all peers or none
	rows := make([]bool, s.Parts)
	if mixed && t.config.Exchange == "auto" {
		var err error
		if rows, err = t.chooseRows(ctx, own, give); err != nil {
			return err
		}
	}
	to, virtual, ptr := t.covers.Places(s, own.Rows(), rows)
	var err error
	if v.src, err = t.sender.Rows(ctx, give, ptr, own, mixed, what); err != nil {
		return err
	}
	v.summed = shard.WithSums(v.edges(l).Relabel(every(s.Owned), to, ptr[s.Parts]), virtual, toDst)
	return nil
}

// chooseRows keeps to rows where they take no more bytes than a cover, and tells the peers: sums of sparse rows have more
// values than the rows. rows[q] reports whether peer q sends rows.
func (t *Trainer) chooseRows(ctx context.Context, own graph.Features, give [][]int32) (rows []bool, err error) {
	const what = "rows or sums"
	s := t.shard
	out := make([][]byte, s.Parts)
	for q, cover := range t.covers.Give {
		if cover == nil {
			continue
		}
		out[q] = []byte{0}
		asRows := t.sender.MessageLen(own, s.Boundary[q])
		if err := ctx.Err(); err != nil { // a message of wide rows takes long
			return nil, err
		}
		if asRows <= t.sender.MessageLen(own, give[q]) {
			out[q], give[q] = []byte{1}, s.Boundary[q]
		}
	}
	in, err := t.group.SendRecv(ctx, comm.Control, what, out, 1)
	if err != nil {
		return nil, err
	}
	rows = make([]bool, s.Parts)
	for q, b := range in {
		if t.covers.Take[q] == nil {
			continue
		}
		if len(b) != 1 || b[0] > 1 {
			return nil, &comm.PeerError{Rank: q, Op: what, Err: fmt.Errorf("the message must be 0 or 1 (got % x)", b)}
		}
		rows[q] = b[0] == 1
	}
	return rows, nil
}

// every returns 0, 1, …, n−1.
func every(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}
