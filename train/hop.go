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
	norm   graph.Norm
	degree []float32  // of own nodes
	terms  *graph.CSR // of averages that others read, over own rows (nil = none)
	give   [][]int32  // [Parts] which of own rows, and of averages below them, each peer reads
	ptr    []int      // [Parts+1] what peer q sends are the sources [ptr[q], ptr[q+1]) of edges
	edges  *graph.CSR // of the view, with loops
	to     []int32    // by source of edges: its place among own rows and what others send, or −1
	sums   *graph.CSR // edges from averages that others send
	times  []float32  // by place: what makes an average a sum (0 = no average)
	most   float32    // magnitude of a value that is sent (0 = any finite one)

	space []float32 // of the rows of a hop, which the next one uses again
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
func (s *Sender) NewHop(ctx context.Context, v GraphView, norm graph.Norm, what string, c Crossing) (*Hop, error) {
	own := s.shard
	h := &Hop{sender: s, norm: norm, degree: v.Degree[:own.Owned], edges: graph.WithLoops(v.Adj, norm), most: c.Most}
	covers := &Covers{Give: make([]*shard.Cover, own.Parts), Take: make([]*shard.Cover, own.Parts)} // of all rows
	if own.Parts > 1 && c.Worth != nil {
		var err error
		if covers, err = s.AgreeCovers(ctx, what, own.Boundary,
			func(q int) *graph.CSR { return own.From(v.Adj, q) }, c.Worth); err != nil {
			return nil, err
		}
	}
	if h.give, h.terms = covers.sums(own.Boundary, nil, own.Owned); h.terms != nil {
		h.terms, _ = h.terms.Averages()
	}
	var virtual [][]int32
	h.to, virtual, h.ptr = covers.Places(own, own.Owned, nil)
	h.sums = shard.WithSums(&graph.CSR{NumDst: own.Owned, RowPtr: make([]int64, own.Owned+1)}, virtual, nil)
	h.times = make([]float32, h.ptr[own.Parts])
	for q, cover := range covers.Take {
		if cover != nil {
			_, totals := cover.Sums.Averages()
			copy(h.times[h.ptr[q]+len(cover.Rows):], totals)
		}
	}
	return h, nil
}

// columnsAtOnce returns how many columns of a hop one message has, in a graph of that many nodes. In a large graph it
// is half of them: the rows of other sites take the most memory of class means.
func columnsAtOnce(nodes int64, columns int) int {
	if nodes < 1<<19 {
		return columns
	}
	return (columns + 1) / 2
}

// Aggregate writes into y, for each own node, the weighted sum of its neighbours' rows. x has the rows of own nodes.
func (h *Hop) Aggregate(ctx context.Context, y, x mat.Dense, what string) error {
	at := columnsAtOnce(h.sender.shard.Nodes, x.Cols)
	for lo := 0; lo < x.Cols; lo += at {
		hi := min(lo+at, x.Cols)
		if err := h.some(ctx, y.ColRange(lo, hi), x.ColRange(lo, hi), what); err != nil {
			return err
		}
	}
	return nil
}

// some is Aggregate of some columns. All rows have one matrix: own ones and what others send, which takes the place of
// the averages sent to them.
func (h *Hop) some(ctx context.Context, y, x mat.Dense, what string) error {
	all, sent := len(h.times), x.Rows
	if h.terms != nil {
		sent += h.terms.NumDst
	}
	if n := max(all, sent) * x.Cols; len(h.space) < n {
		h.space = make([]float32, n)
	}
	own, into := mat.View(sent, x.Cols, h.space), mat.View(all, x.Cols, h.space)
	rows := own.RowRange(0, x.Rows)
	rows.CopyFrom(x)
	_, toSrc := graph.Factors(h.degree, h.norm)
	weigh(rows, toSrc)
	if h.terms != nil {
		aggregate.Into(own.RowRange(x.Rows, sent), aggregate.Sum{}, h.terms, rows)
	}
	if h.most > 0 {
		for i, v := range own.Data {
			own.Data[i] = min(max(v, -h.most), h.most)
		}
	}
	src, err := h.sender.rows(ctx, wire.Halo{Give: h.give, Ptr: h.ptr, Into: into}, graph.Features{Dense: own}, false,
		what)
	if err == nil && h.most > 0 {
		err = within(src, h.ptr, h.sender.shard.Rank, h.most, what)
	}
	if err == nil {
		h.sum(y, src.Dense)
	}
	return err
}

// Forget gives back the space that hops share.
func (h *Hop) Forget() { h.space = nil }

// destinationsAtOnce is how many destinations have weighed edges at a time.
const destinationsAtOnce = 1 << 12

// sum writes the sums over all edges into y. Weighed edges are made for some destinations at a time: all of them would
// take twice the memory of the graph's.
func (h *Hop) sum(y, src mat.Dense) {
	var some graph.CSR
	for lo := 0; lo < y.Rows; lo += destinationsAtOnce {
		hi := min(lo+destinationsAtOnce, y.Rows)
		some = graph.CSR{NumDst: hi - lo, NumSrc: src.Rows, RowPtr: append(some.RowPtr[:0], 0), Col: some.Col[:0],
			Weight: some.Weight[:0]}
		toDst, _ := graph.Factors(h.degree[lo:hi], h.norm)
		for i, f := range toDst {
			h.appendEdges(&some, lo+i, f)
		}
		aggregate.Into(y.RowRange(lo, hi), aggregate.Sum{}, &some, src)
		h.sender.shard.Forget()
	}
}

// appendEdges appends the edges into own node i, weighed by f, in the order of their places.
func (h *Hop) appendEdges(g *graph.CSR, i int, f float64) {
	add := func(place int32, w float32) {
		w = float32(float64(w) * f)
		if f := h.times[place]; f != 0 {
			w *= f
		}
		g.Col, g.Weight = append(g.Col, place), append(g.Weight, w)
	}
	col, weight := h.edges.Row(i)
	sums, _ := h.sums.Row(i)
	for k, j := range col { // ascending, and so are the places
		place := h.to[j]
		if place < 0 {
			continue
		}
		for ; len(sums) > 0 && sums[0] < place; sums = sums[1:] {
			add(sums[0], 1)
		}
		w := float32(1)
		if weight != nil {
			w = weight[k]
		}
		add(place, w)
	}
	for _, place := range sums {
		add(place, 1)
	}
	g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
}
