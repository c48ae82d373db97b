package train

import (
	"context"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/wire"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/closed"
)

// Hop sums rows of few columns over the edges of a view, one hop at a time. Each owner multiplies its rows by what a
// source puts into the weights (graph.Factors), so that nobody needs the degree of another peer's node.
type Hop struct {
	sender *Sender
	src    []float64  // by own node; nil: 1
	terms  *graph.CSR // of averages that others read, over own rows (nil = none)
	give   [][]int32  // [Parts] which of own rows, and of averages below them, each peer reads
	ptr    []int      // [Parts+1] what peer q sends are the sources [ptr[q], ptr[q+1]) of edges
	edges  *graph.CSR // from own rows, own averages (no edges) and what others send
	most   float32    // magnitude of a value that is sent (0 = any finite one)
}

// A Crossing decides what peers send each other instead of rows.
type Crossing struct {
	// reports whether saving `fewer` rows justifies a request of `bytes` bytes now (AgreeCovers). If it is nil, which
	// all peers must agree on, all rows are sent.
	Worth func(fewer, bytes int) bool
	// Most is the largest magnitude of a value that is sent (0 = any finite value). The owner clips larger values; the
	// receiver refuses them (comm.ErrRefused).
	Most float32
}

// MostCrossing is the largest value of a column of class means that is sent, in deviations of it.
const MostCrossing = 1 << 20

// NewColumnHop agrees with every peer on what is sent in each hop of class means with layout m, for this many rounds
// and classes: rows, or sums if the hops of the rounds that any run has repay the request for them. exchange is one of
// Exchanges.
func (s *Sender) NewColumnHop(ctx context.Context, v GraphView, m closed.Layout, rounds, classes int, exchange string) (
	*Hop, error) {
	each := 0 // bytes of a row in those hops
	for r := m.Alone; r < min(rounds, m.Alone+2); r++ {
		each += m.LogitHopsOf(r)*s.RowLen(m.Width(classes)) + m.Hops*s.RowLen(m.MapWidth(r, classes))
	}
	crossing := Crossing{Most: MostCrossing}
	if exchange != "halo" {
		crossing.Worth = func(fewer, bytes int) bool { return fewer*each > bytes }
	}
	return s.NewHop(ctx, v, m.Edges(), "covers of rows", crossing)
}

// NewHop agrees with every peer on what is sent. A sum is sent as the average of its terms: it is as large as a row and
// is rounded like one.
func (s *Sender) NewHop(ctx context.Context, v GraphView, norm graph.Norm, what string,
	c Crossing) (h *Hop, err error) {
	own := s.shard
	h = &Hop{sender: s, give: own.Boundary, ptr: own.HaloPtr, most: c.Most}
	var covers *Covers
	if own.Parts > 1 && c.Worth != nil {
		rows := make([]int, own.Parts)
		for q := range rows {
			rows[q] = len(own.Boundary[q])
		}
		covers, err = s.AgreeCovers(ctx, what, rows, func(q int) *graph.CSR { return own.From(v.Adj, q) }, c.Worth)
		if err != nil {
			return nil, err
		}
	}
	toDst, toSrc := v.Factors(norm)
	h.src, h.edges = toSrc, graph.WithLoops(v.Adj, norm)
	if covers == nil {
		h.edges = graph.WeighDestinations(h.edges, toDst)
	} else {
		h.through(covers, toDst)
	}
	return h, nil
}

// through makes of a hop of rows one of what the covers say.
func (h *Hop) through(covers *Covers, toDst []float64) {
	own := h.sender.shard
	h.give, h.terms = covers.sums(own.Boundary, nil, own.Owned)
	first := own.Owned
	if h.terms != nil {
		first += h.terms.NumDst
		h.terms, _ = averages(h.terms)
	}
	to, virtual, ptr := covers.Places(own, first, nil)
	h.ptr = ptr
	// Weights come last: copies of edges without them take half the space.
	h.edges = h.edges.Relabel(mat.EveryRow(own.Owned), to, ptr[own.Parts])
	h.edges = graph.WeighDestinations(shard.WithSums(h.edges, virtual, nil), toDst)
	times := make([]float32, ptr[own.Parts])
	for q, cover := range covers.Take {
		if cover != nil {
			_, length := averages(&cover.Sums)
			copy(times[ptr[q]+len(cover.Rows):], length)
		}
	}
	for k, j := range h.edges.Col {
		if f := times[j]; f != 0 {
			h.edges.Weight[k] *= f
		}
	}
}

// averages returns sums with weights that add up to 1, and what they added up to; a sum of no weight stays.
func averages(sums *graph.CSR) (*graph.CSR, []float32) {
	out := *sums
	length := sums.Degrees()
	out.Weight = make([]float32, len(sums.Col))
	for i, total := range length {
		if total == 0 {
			length[i], total = 1, 1
		}
		for k := sums.RowPtr[i]; k < sums.RowPtr[i+1]; k++ {
			w := float32(1)
			if sums.Weight != nil {
				w = sums.Weight[k]
			}
			out.Weight[k] = w / total
		}
	}
	return &out, length
}

// Aggregate returns for each own node the weighted sum over its neighbours of x, the rows of own nodes, and of those
// that the others have. All rows have one matrix: own ones, sums of them for others, and what others send.
func (h *Hop) Aggregate(ctx context.Context, x mat.Dense, what string) (mat.Dense, error) {
	parts := h.sender.shard.Parts
	all := mat.New(h.ptr[parts], x.Cols)
	own := all.RowRange(0, h.ptr[0])
	rows := own.RowRange(0, x.Rows)
	rows.CopyFrom(x)
	weigh(rows, h.src)
	if h.terms != nil {
		aggregate.Into(own.RowRange(x.Rows, own.Rows), aggregate.Sum{}, h.terms, rows)
	}
	if h.most > 0 {
		for i, v := range own.Data {
			own.Data[i] = min(max(v, -h.most), h.most)
		}
	}
	src, err := h.sender.rows(ctx, wire.Halo{Give: h.give, Ptr: h.ptr, Into: all}, graph.Features{Dense: own}, false,
		what)
	if err == nil && h.most > 0 {
		err = within(src, h.ptr, h.sender.shard.Rank, h.most, what)
	}
	if err != nil {
		return mat.Dense{}, err
	}
	return aggregate.Features(aggregate.Sum{}, h.edges, src).Dense, nil
}
