package train

import (
	"context"
	"errors"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// agreeGroups asks every peer for sums over at least so many of its rows, and for no row (shard.NewGroups). Whoever owns
// the rows decides: the sums that it refuses are in no cover.
func (s *Sender) agreeGroups(ctx context.Context, adj *graph.CSR, norm graph.Norm, what string, least int) (*Covers, error) {
	own := s.shard
	c := &Covers{Take: make([]*shard.Cover, own.Parts)}
	rows := make([]int, own.Parts)
	for q := range rows {
		if rows[q] = len(own.Boundary[q]); q != own.Rank {
			c.Take[q] = shard.NewGroups(own.From(adj, q), least)
		}
	}
	var err error
	c.Give, err = shard.Agree(c.Take, rows, adj.Weight != nil, func(out [][]byte, limit int) ([][]byte, error) {
		return s.group.SendRecv(ctx, comm.Halo, what, out, limit)
	})
	if err != nil {
		return nil, err
	}
	out, most := make([][]byte, own.Parts), 0
	for q := range c.Give {
		switch {
		case q == own.Rank:
			continue
		case c.Take[q] == nil:
			return nil, errors.New("the list of sums is too long: make least_in_sum larger, or 1")
		case c.Give[q] == nil:
			return nil, &comm.PeerError{Rank: q, Op: what, Err: errors.New("it must say which sums it reads")}
		}
		if err := c.Give[q].Grouped(least); err != nil {
			return nil, &comm.PeerError{Rank: q, Op: what, Err: err}
		}
		refused := s.refused(q, c.Give[q], adj, norm, least)
		out[q] = make([]byte, len(refused))
		for k, no := range refused {
			if no {
				out[q][k] = 1
			}
		}
		c.Give[q] = c.Give[q].Without(refused)
		most = max(most, len(refused), c.Take[q].Len())
	}
	in, err := s.group.SendRecv(ctx, comm.Halo, what+", refused ones", out, most)
	if err != nil {
		return nil, err
	}
	for q, b := range in {
		if q == own.Rank {
			continue
		}
		if len(b) != c.Take[q].Len() {
			return nil, &comm.PeerError{Rank: q, Op: what, Err: errors.New("it must answer for each sum")}
		}
		refused := make([]bool, len(b))
		for k := range b {
			refused[k] = b[k] != 0
		}
		c.Take[q] = c.Take[q].Without(refused)
	}
	return c, nil
}

// refused reports which sums of a cover peer q does not get: those whose rows, one hop on, are sums over fewer than so
// many nodes that are not its own, but over some.
func (s *Sender) refused(q int, c *shard.Cover, adj *graph.CSR, norm graph.Norm, least int) []bool {
	own, refused := s.shard, make([]bool, c.Sums.NumDst)
	seen := make([]int32, len(own.Global)) // in sum k if it is k+1
	for k := range refused {
		mine, others := 0, 0
		see := func(j int32) {
			switch at := int(j); {
			case seen[j] == int32(k+1) || at >= own.HaloPtr[q] && at < own.HaloPtr[q+1]:
				return
			case at < own.Owned:
				mine++
			default:
				others++ // an edge that may be left out
			}
			seen[j] = int32(k + 1)
		}
		col, _ := c.Sums.Row(k)
		for _, j := range col {
			v := own.Boundary[q][j]
			if norm == graph.GCN {
				see(v)
			}
			sources, _ := adj.Row(int(v))
			for _, u := range sources {
				see(u)
			}
		}
		refused[k] = mine < least && mine+others > 0
	}
	return refused
}

// only returns adj without the edges from other peers' nodes that are in no sum; no row crosses.
func (c *Covers) only(s *shard.Shard, adj *graph.CSR) *graph.CSR {
	in := make([]int32, len(s.Global)) // destination of the sum that a source is in, from 1
	for q, cover := range c.Take {
		if cover == nil {
			continue
		}
		for k, i := range cover.Dst {
			col, _ := cover.Sums.Row(k)
			for _, j := range col {
				in[s.HaloPtr[q]+int(j)] = i + 1
			}
		}
	}
	out := &graph.CSR{NumDst: adj.NumDst, NumSrc: adj.NumSrc, RowPtr: make([]int64, adj.NumDst+1)}
	for i := range adj.NumDst {
		col, weight := adj.Row(i)
		for k, j := range col {
			if int(j) >= s.Owned && in[j] != int32(i+1) {
				continue
			}
			if out.Col = append(out.Col, j); weight != nil {
				out.Weight = append(out.Weight, weight[k])
			}
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return out
}
