package train

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// Covers is what peers have agreed to send one another for a layer that sums rows. An edge between two peers needs
// either the row of its source or the sum of its destination over the rows of the source's owner; the smallest set of
// both (shard.Cover) travels in place of all rows. A nil cover stands for all rows.
type Covers struct {
	Give []*shard.Cover // [Parts] of the rows that each peer would be sent
	Take []*shard.Cover // [Parts] of the rows that each peer would send
}

// AgreeCovers asks every peer for a cover where that is worth it. edges returns the edges that read the rows of peer q,
// which are their sources; give[q] is how many rows peer q would read of this one. worth tells whether to send so many
// rows fewer is worth a message of so many bytes now.
func (s *Sender) AgreeCovers(ctx context.Context, what string, give []int, edges func(q int) *graph.CSR, worth func(fewer, bytes int) bool) (*Covers, error) {
	c := &Covers{Take: make([]*shard.Cover, len(give))}
	weighted := false
	for q := range give {
		adj := edges(q)
		weighted = weighted || adj.Weight != nil
		cover := shard.NewCover(adj)
		if fewer := adj.NumSrc - cover.Len(); fewer > 0 && worth(fewer, len(cover.Append(nil))) {
			c.Take[q] = cover
		}
	}
	var err error
	c.Give, err = shard.Agree(c.Take, give, weighted, func(out [][]byte, limit int) ([][]byte, error) {
		return s.group.SendRecv(ctx, comm.Halo, what, out, limit)
	})
	return c, err
}

// Split returns which of rows[q] go to each peer q as they are, and the sums over n rows that go to it after them; nil:
// none. src weighs the rows in sums (graph.Factors).
func (c *Covers) Split(rows [][]int32, src []float64, n int) (give [][]int32, sums []*graph.CSR) {
	give, sums = make([][]int32, len(rows)), make([]*graph.CSR, len(rows))
	for q, cover := range c.Give {
		if cover == nil {
			give[q] = rows[q]
			continue
		}
		for _, j := range cover.Rows {
			give[q] = append(give[q], rows[q][j])
		}
		sums[q] = cover.Weigh(src, rows[q], n)
	}
	return give, sums
}
