package train

import (
	"context"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// Covers is what peers have agreed to send one another for a layer that sums rows. An edge between two peers needs
// either the row of its source or the sum of its destination over the rows of the source's owner. Owners send the
// smallest set of rows and sums that serves all edges (shard.Cover). A nil cover means all rows.
type Covers struct {
	Give []*shard.Cover // [Parts] of the rows that each peer would be sent
	Take []*shard.Cover // [Parts] of the rows that each peer would send

	choose bool // whether sparse rows are sent instead of sums if they take no more bytes
}

// AgreeCovers asks other peers for covers. edges returns the edges from peer q's rows, which are their sources, and
// give[q] has own rows that q would read. The last argument reports whether saving `fewer` rows justifies a request of
// `bytes` bytes now.
func (s *Sender) AgreeCovers(ctx context.Context, what string, give [][]int32, edges func(q int) *graph.CSR,
	worth func(fewer, bytes int) bool) (*Covers, error) {
	c, rows := &Covers{Take: make([]*shard.Cover, len(give))}, make([]int, len(give))
	weighted := false
	for q := range give {
		rows[q] = len(give[q])
		adj := edges(q)
		weighted = weighted || adj.Weight != nil
		cover := shard.NewCover(adj)
		if fewer := adj.NumSrc - cover.Len(); fewer > 0 && worth(fewer, len(cover.Append(nil))) {
			c.Take[q] = cover
		}
	}
	var err error
	c.Give, err = shard.Agree(c.Take, rows, weighted, func(out [][]byte, limit int) ([][]byte, error) {
		return s.group.SendRecv(ctx, comm.Halo, what, out, limit)
	})
	return c, err
}

// Split returns which of rows[q] go to each peer q as they are, and the sums over n rows that go to it after them (nil
// = none). src weighs the rows in sums (graph.Factors).
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

// WithSums returns x, own rows, with the sums below it that other peers get, and which of these rows go to which peer;
// rows and src are as in Split.
func (c *Covers) WithSums(x graph.Features, rows [][]int32, src []float64) (all graph.Features, give [][]int32) {
	give, terms := c.sums(rows, src, x.Rows())
	if terms == nil {
		return x, give
	}
	return below(x, aggregate.Features(aggregate.Sum{}, terms, x)), give
}

// sums is Split with the sums stored below the n rows: give[q] lists the rows and sums that go to peer q, and terms are
// the edges from the rows into all sums (nil = no sums).
func (c *Covers) sums(rows [][]int32, src []float64, n int) (give [][]int32, terms *graph.CSR) {
	give, sums := c.Split(rows, src, n)
	list := []*graph.CSR{{NumSrc: n, RowPtr: []int64{0}}}
	next := int32(n)
	for q, g := range sums {
		if g == nil {
			continue
		}
		list = append(list, g)
		for range g.NumDst {
			give[q] = append(give[q], next)
			next++
		}
	}
	if int(next) == n {
		return give, nil
	}
	stacked := graph.Stack(list)
	return give, &stacked
}

// Places returns where the sources of s's edges lie among the own rows and, from source first on, what others send:
// to[j] is the place of source j, −1 if it is in sums only; virtual[i] are the sums of own node i; peer q's are the
// sources [ptr[q], ptr[q+1]). With rows[q] peer q sends rows all the same.
func (c *Covers) Places(s *shard.Shard, first int, rows []bool) (to []int32, virtual [][]int32, ptr []int) {
	to, virtual, ptr = make([]int32, len(s.Global)), make([][]int32, s.Owned), []int{first}
	copy(to, mat.EveryRow(s.Owned))
	for q := range s.Parts {
		from, base := to[s.HaloPtr[q]:s.HaloPtr[q+1]], ptr[q]
		if cover := c.Take[q]; cover != nil && (rows == nil || !rows[q]) {
			ptr = append(ptr, cover.Place(from, virtual, base))
			continue
		}
		for k := range from {
			from[k] = int32(base + k)
		}
		ptr = append(ptr, base+len(from))
	}
	return to, virtual, ptr
}

// below returns the rows of a followed by the rows of b, sparse if a is.
func below(a, b graph.Features) graph.Features {
	if a.Sparse == nil {
		x := mat.New(a.Rows()+b.Rows(), a.Cols())
		x.RowRange(0, a.Rows()).CopyFrom(a.Dense)
		x.RowRange(a.Rows(), x.Rows).CopyFrom(b.Dense)
		return graph.Features{Dense: x}
	}
	x, under := *a.Sparse, NonZeros(b)
	x.Rows += under.Rows
	x.RowPtr = slices.Clone(x.RowPtr)
	for _, end := range under.RowPtr[1:] {
		x.RowPtr = append(x.RowPtr, a.Sparse.RowPtr[a.Sparse.Rows]+end)
	}
	x.Col, x.Val = slices.Concat(x.Col, under.Col), slices.Concat(x.Val, under.Val)
	return graph.Features{Sparse: &x}
}
