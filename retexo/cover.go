package retexo

import (
	"context"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

// A layer that sums its neighbours' rows needs of an edge between peers either the source's row or the sum of its
// destination over that peer. The least of both (partition.Cover) travels in place of the halo's rows.

// Exchanges are the ways in which a layer's inputs come from other peers: "halo" is rows, "cover" the fewest rows and
// sums wherever a layer sums, "auto" the same where it takes fewer bytes, those of agreeing on it included.
var Exchanges = []string{"halo", "cover", "auto"}

// covers is what peers have agreed to send one another.
type covers struct {
	group *comm.Group        // whose members have
	give  []*partition.Cover // [Parts] of Boundary's rows; nil: all
	take  []*partition.Cover // [Parts] of the halo's rows; nil: all
}

// covered reports whether sums may stand for rows in l's inputs. What training sees of the graph must be all of it: else
// the rows of the halo, which serve both views, are fewer than the sums of two.
func (t *Trainer) covered(l *nn.Layer) bool {
	if t.config.Survival.LostRows == "previous" || len(t.group.Members()) < t.shard.Parts {
		return false // rows may have to stand in for others, or edges go
	}
	_, sum := l.Conv.Agg.(nn.Sum)
	return t.config.Exchange != "halo" && t.shard.Parts > 1 && !t.config.Inductive && t.config.Neighbours == 0 && sum && l.Frozen()
}

// agree asks every peer for a cover where one is worth it over the whole run: a run that is resumed, at whatever layer, agrees
// on the same and goes on with the same bits.
func (t *Trainer) agree(ctx context.Context) error {
	s := t.shard
	each := 0 // bytes of a row in all exchanges
	for i, l := range t.model.Layers {
		width := t.coder.Coding().RowLen(l.Spec.In)
		if x := s.X.Sparse; i == 0 && x != nil && t.config.Spec.Encoder.Kind == "raw" {
			width = min(width, 4+8*x.NNZ()/max(x.Rows, 1)) // others' rows are like ours
		}
		if t.covered(l) {
			each += max(l.Spec.Hops, 1) * width
		}
	}
	c := &covers{group: t.group, take: make([]*partition.Cover, s.Parts)}
	rows := make([]int, s.Parts)
	for q := range s.Parts {
		rows[q] = len(s.Boundary[q])
		cover := partition.NewCover(s.From(&s.Adj, q))
		saved := s.HaloPtr[q+1] - s.HaloPtr[q] - cover.Len()
		if saved > 0 && (t.config.Exchange == "cover" || saved*each > len(cover.Append(nil))) {
			c.take[q] = cover
		}
	}
	var err error
	c.give, err = partition.Agree(c.take, rows, s.Adj.Weight != nil, func(out [][]byte, limit int) ([][]byte, error) {
		return t.group.SendRecv(ctx, comm.Halo, "covers of rows", out, limit)
	})
	t.covers = c
	return err
}

// cross is view.fetch by covers: src becomes the own rows, the sums made for others, and what others send; met are the
// edges over it.
func (t *Trainer) cross(ctx context.Context, l *nn.Layer, w Work, what string) error {
	v, s := t.full, t.shard
	x := v.own
	if w.Hop > 0 {
		x = v.z
	}
	if t.covers == nil || t.covers.group != t.group {
		if err := t.agree(ctx); err != nil {
			return err
		}
	}
	toDst, toSrc := graph.Factors(v.degree, l.Edges)
	own, give := t.sums(x, toSrc)
	mixed := v.own.Sparse != nil // at all peers or none
	rows := make([]bool, s.Parts)
	if mixed && t.config.Exchange == "auto" {
		var err error
		if rows, err = t.choose(ctx, own, give); err != nil {
			return err
		}
	}
	to, virtual, ptr := make([]int32, len(s.Global)), make([][]int32, s.Owned), []int{own.Rows()}
	for i := range s.Owned {
		to[i] = int32(i)
	}
	for q := range s.Parts {
		from, base := to[s.HaloPtr[q]:s.HaloPtr[q+1]], ptr[q]
		if cover := t.covers.take[q]; cover != nil && !rows[q] {
			ptr = append(ptr, cover.Place(from, virtual, base))
			continue
		}
		for k := range from {
			from[k] = int32(base + k)
		}
		ptr = append(ptr, base+len(from))
	}
	all, err := t.coder.Exchange(ctx, t.group, wire.Halo{Give: give, Ptr: ptr}, wire.Block(own), mixed, what)
	if err != nil {
		return err
	}
	v.src = graph.Features(all)
	near := filter(graph.Normalise(v.adj, v.degree, l.Edges), func(_ int, col []int32, keep []int32) []int32 {
		for k, j := range col {
			if to[j] >= 0 {
				keep = append(keep, int32(k))
			}
		}
		return keep
	})
	v.met = partition.Beside(near.Relabel(every(s.Owned), to, ptr[s.Parts]), virtual, toDst)
	return nil
}

// sums returns x with the sums below it that other peers want of it, and which rows of that go to whom. src weighs the
// rows in sums (graph.Factors).
func (t *Trainer) sums(x graph.Features, src []float64) (all graph.Features, give [][]int32) {
	s := t.shard
	give = slices.Clone(s.Boundary)
	terms := &graph.CSR{NumSrc: s.Owned, RowPtr: []int64{0}}
	for q, cover := range t.covers.give {
		if cover == nil {
			continue
		}
		give[q] = nil
		for _, j := range cover.Rows {
			give[q] = append(give[q], s.Boundary[q][j])
		}
		sums := cover.Weigh(src, s.Boundary[q], s.Owned)
		for i := range sums.NumDst {
			give[q] = append(give[q], int32(s.Owned+terms.NumDst))
			col, weight := sums.Row(i)
			terms.Col, terms.Weight = append(terms.Col, col...), append(terms.Weight, weight...)
			terms.RowPtr = append(terms.RowPtr, int64(len(terms.Col)))
			terms.NumDst++
		}
	}
	if terms.NumDst == 0 {
		return x, give
	}
	return below(x, nn.Aggregate(nn.Sum{}, terms, x)), give
}

// below returns the rows of a and under them those of b, sparse if a is.
func below(a, b graph.Features) graph.Features {
	if a.Sparse == nil {
		x := mat.New(a.Rows()+b.Rows(), a.Cols())
		x.RowRange(0, a.Rows()).CopyFrom(a.Dense)
		x.RowRange(a.Rows(), x.Rows).CopyFrom(b.Dense)
		return graph.Features{Dense: x}
	}
	x, under := *a.Sparse, wire.Block(b).NonZeros()
	x.Rows += under.Rows
	x.RowPtr = slices.Clone(x.RowPtr)
	for _, end := range under.RowPtr[1:] {
		x.RowPtr = append(x.RowPtr, a.Sparse.RowPtr[a.Sparse.Rows]+end)
	}
	x.Col, x.Val = slices.Concat(x.Col, under.Col), slices.Concat(x.Val, under.Val)
	return graph.Features{Sparse: &x}
}

// choose keeps to rows where they take no more bytes than a cover, and tells the peers: sums of sparse rows are fuller
// than they. rows[q] is what peer q sends.
func (t *Trainer) choose(ctx context.Context, own graph.Features, give [][]int32) (rows []bool, err error) {
	s := t.shard
	out := make([][]byte, s.Parts)
	for q, cover := range t.covers.give {
		if cover == nil {
			continue
		}
		out[q] = []byte{0}
		if len(t.coder.Append(nil, wire.Block(own), s.Boundary[q])) <= len(t.coder.Append(nil, wire.Block(own), give[q])) {
			out[q], give[q] = []byte{1}, s.Boundary[q]
		}
	}
	in, err := t.group.SendRecv(ctx, comm.Control, "rows or sums", out, 1)
	if err != nil {
		return nil, err
	}
	rows = make([]bool, s.Parts)
	for q, b := range in {
		if t.covers.take[q] == nil {
			continue
		}
		if len(b) != 1 || b[0] > 1 {
			return nil, &comm.PeerError{Rank: q, Op: "rows or sums", Err: fmt.Errorf("% x, want 0 or 1", b)}
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
