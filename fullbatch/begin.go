package fullbatch

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

// first is how the first layer comes by the features of the halo, which never change.
type first int

const (
	rows      first = iota // they are fetched once and kept
	aggregate              // their aggregate is computed once and kept; they are not
	stream                 // they are fetched whenever the layer is computed, as the rows of the other layers are
)

// begin makes what a run needs before its first epoch. Every worker takes part in each step.
func (t *Trainer) begin(ctx context.Context, r comm.Reducer) error {
	resume, err := t.hello(ctx)
	if err != nil {
		return err
	}
	if err := t.census(ctx, r); err != nil {
		return err
	}
	s := t.shard
	t.full = &sight{adj: &s.Adj, typed: &s.Typed.Adj, degree: s.Degree, share: 1, normed: make(map[edges]*graph.CSR)}
	t.seen = t.full
	if t.config.Inductive {
		if t.seen, err = t.trainingSight(ctx); err != nil {
			return err
		}
	}
	if share, _ := t.config.Share(); share == 0 && s.Parts > 1 {
		t.seen = t.aloneSight()
	} else if share < 1 {
		seen := *t.seen
		seen.share = share
		t.seen = &seen
	}
	if err := t.hops(ctx, r, t.full); err != nil {
		return err
	}
	if t.seen.beside = t.full.beside; t.seen.adj != t.full.adj {
		if err := t.hops(ctx, r, t.seen); err != nil {
			return err
		}
	}
	if err := t.firstLayer(ctx, r); err != nil {
		return err
	}
	// A BatchNorm's statistics are those of all nodes, wherever the labels are.
	if t.train, err = t.look(ctx, r, t.split[graph.Train], t.seen, t.config.Spec.BatchNormed()); err != nil {
		return err
	}
	t.findHints()
	t.count *= 1 - float64(t.model.Spec.Encoder.Labels) // labels that are given are not learned
	if gamma, is := t.config.Stale(); is {
		for k := range t.train.parts {
			if far := t.train.parts[k].far; far != nil {
				far.stale = &stale{gamma: gamma}
			}
		}
	}
	if t.val, err = t.look(ctx, r, t.split[graph.Val], t.full, false); err != nil {
		return err
	}
	if err := t.plan(ctx); err != nil {
		return err
	}
	return t.restore(ctx, resume)
}

// census counts the training labels of all workers, class by class.
func (t *Trainer) census(ctx context.Context, r comm.Reducer) error {
	labels := t.shard.Labels.Select(t.split[graph.Train])
	c := labels.Classes
	n := make([]int64, c+2)
	for k, v := range labels.Count() {
		n[k] = int64(v)
	}
	n[c], n[c+1] = int64(labels.Labelled()), int64(len(t.split[graph.Train]))
	if err := sumCounts(ctx, r, n); err != nil {
		return err
	}
	if n[c+1] == 0 || n[c] == 0 {
		return errNoTraining
	}
	t.count = float64(n[c])
	if !t.config.Balanced {
		return nil
	}
	share := make([]float64, c)
	for k := range share {
		share[k] = float64(n[k])
	}
	t.weight = nn.ClassWeights(share)
	if !labels.Multi() {
		t.count = 0
		for k, w := range t.weight {
			t.count += float64(w) * share[k]
		}
	}
	return nil
}

// trainingSight returns the graph without its validation and test nodes: their edges are gone on both sides, and the
// degrees are those of what is left. Two numbers a halo row travel for it: whether it is there, and its degree.
func (t *Trainer) trainingSight(ctx context.Context) (*sight, error) {
	s := t.shard
	held := make([]float32, s.Owned)
	for i, split := range s.Split {
		if split == graph.Val || split == graph.Test {
			held[i] = 1
		}
	}
	absent, err := numbers(ctx, t.line.group, s, held, "which halo nodes are held out")
	if err != nil {
		return nil, err
	}
	split := make([]graph.Split, len(s.Global))
	for j := range split {
		if absent[j] != 0 {
			split[j] = graph.Test
		}
	}
	adj, typed := s.Adj.Without(split, graph.Test), &s.Typed.Adj
	if s.Typed.Count() > 0 {
		typed = s.Typed.Without(split, graph.Test)
	}
	degree, err := numbers(ctx, t.line.group, s, adj.Degrees(), "degrees among training nodes")
	if err != nil {
		return nil, err
	}
	return &sight{adj: adj, typed: typed, degree: degree, share: 1, normed: make(map[edges]*graph.CSR)}, nil
}

// aloneSight returns what training sees without the edges between workers.
func (t *Trainer) aloneSight() *sight {
	s := t.shard
	to := make([]int32, t.seen.adj.NumSrc)
	for j := range to {
		if to[j] = int32(j); j >= s.Owned {
			to[j] = -1
		}
	}
	adj := columns(t.seen.adj, identity(s.Owned), to, len(to))
	degree := append(adj.Degrees(), make([]float32, s.Halo())...)
	typed := columns(t.seen.typed, identity(t.seen.typed.NumDst), to, len(to))
	return &sight{adj: adj, typed: typed, degree: degree, share: 1, alone: true, normed: make(map[edges]*graph.CSR)}
}

// firstLayer fetches what the first layer needs of the halo's features, or their aggregate.
func (t *Trainer) firstLayer(ctx context.Context, r comm.Reducer) error {
	if !t.constant(0) {
		return nil
	}
	l := t.units[0].layer
	switch {
	case l.Frozen() && l.Spec.Dropout == 0 && t.input.Sparse == nil && t.model.Spec.Encoder.Labels == 0:
		t.first = aggregate
	case t.shard.Parts > 1 && l.Spec.Hops > 1:
		t.first = stream // dropout comes before the first hop, so that the second one changes with it
	default:
		over := []int64{0}
		if m := t.config.Memory; m > 0 && size(t.input)*int64(t.shard.Halo()) > m*int64(max(t.shard.Owned, 1)) {
			over[0] = 1
		}
		if err := sumCounts(ctx, r, over); err != nil {
			return err
		}
		if t.first = rows; over[0] > 0 && t.input.Sparse == nil {
			t.first = stream
		}
	}
	t.rows = t.input
	switch t.first {
	case rows:
		var err error
		t.rows, err = exchange(ctx, t.line.group, t.line.coder, t.shard, t.input, "features of the halo")
		return err
	case aggregate:
		t.aggregate(t.full)
		if t.seen.z = t.full.z; t.seen.adj != t.full.adj {
			t.aggregate(t.seen)
		}
	}
	return t.line.err
}

// size returns the bytes of some rows.
func size(f graph.Features) int64 {
	if f.Sparse != nil {
		return 8 * int64(f.Sparse.NNZ())
	}
	return 4 * int64(f.Rows()) * int64(f.Cols())
}

// aggregate computes the first layer's aggregate of the features.
func (t *Trainer) aggregate(a *sight) {
	t.first = stream // the edges are wanted, cut by where the rows are
	p, err := t.part(0, a, t.everything())
	t.first = aggregate
	if err != nil {
		t.line.err = err
		return
	}
	agg, z := t.units[0].layer.Conv.Agg, t.input.Dense
	for range max(t.units[0].layer.Spec.Hops, 1) {
		var acc nn.Acc
		h := mat.New(t.shard.Owned, z.Cols)
		agg.Begin(&acc, z)
		near := func() { agg.Add(&acc, p.near, z) }
		if p.far == nil {
			near()
		} else {
			p.far.what, p.far.share = "features of the halo", 1
			p.far.Add(z, near, func(g *graph.CSR, _ []int64, z mat.Dense) { agg.Add(&acc, g, z) })
		}
		agg.End(h, &acc)
		z = h
	}
	a.z = graph.Features{Dense: z}
}

// plan decides which fetched rows are kept until the gradient has been computed, where that reads them, and tells the
// peers which of theirs will be fetched again.
func (t *Trainer) plan(ctx context.Context) error {
	s, left := t.shard, t.config.Memory
	out := make([][]byte, s.Parts)
	for k, u := range t.units {
		again := make([]byte, s.Parts)
		if u.layer.Conv.Agg != nil {
			p := t.keep(k, &left, again)
			if t.Observer.Planned != nil {
				t.Observer.Planned(p)
			}
		}
		for q := range out {
			out[q] = append(out[q], again[q])
		}
	}
	in, err := t.line.group.SendRecv(ctx, comm.Control, "which rows are fetched again", out, len(t.units))
	if err != nil {
		return err
	}
	for q, flags := range in {
		if q == s.Rank {
			continue
		}
		if len(flags) != len(t.units) {
			return &comm.PeerError{Rank: q, Op: "plan", Err: fmt.Errorf("%d layers, want %d", len(flags), len(t.units))}
		}
		for k, f := range flags {
			if h := t.train.parts[k].far; h != nil {
				h.again[q] = f == 1
			}
		}
	}
	return nil
}

// keep decides which rows of unit k are kept, within the bytes left, and marks the peers from whom they are fetched again.
func (t *Trainer) keep(k int, left *int64, again []byte) Plan {
	l, h := t.units[k].layer, t.train.parts[k].far
	p := Plan{Layer: l.Name, Width: width(l)}
	switch {
	case h == nil && t.shard.Parts == 1:
		p.Why = "one worker has the whole graph"
		return p
	case h == nil && t.seen.alone && !t.constant(k):
		p.Why = "boundary none"
		return p
	case h == nil && t.first == aggregate:
		p.Kept, p.Why = size(t.seen.z), "the aggregate of the features never changes"
		return p
	case h == nil:
		p.Rows, p.Width, p.Kept, p.Why = t.shard.Halo(), t.input.Cols(), size(t.rows)-size(t.input), "the features never change"
		return p
	}
	for _, b := range h.blocks {
		p.Rows += len(b.nodes)
	}
	if h.stale != nil {
		p.Kept, p.Why = 8*int64(p.Rows)*int64(p.Width), "boundary "+t.config.Boundary+": those of the step before, and those that come"
		return p
	}
	if !l.Conv.Agg.NeedsSource() {
		p.Why = "the gradient does not read the rows"
		return p
	}
	for i := range h.blocks {
		b := &h.blocks[i]
		bytes := 4 * int64(len(b.nodes)) * int64(p.Width)
		b.keep = t.config.Fetch == "sa" || t.config.Fetch == "oneshot" || t.config.Fetch == "auto" && (t.config.Memory == 0 || bytes <= *left)
		if b.keep {
			*left -= bytes
			p.Kept += bytes
			continue
		}
		p.Again += len(b.nodes)
		for _, q := range b.from {
			again[q] = 1
		}
	}
	switch {
	case t.config.Fetch != "auto":
		p.Why = "fetch " + t.config.Fetch
	case t.config.Memory == 0:
		p.Why = "the gradient reads the rows, and memory has no bound"
	default:
		p.Why = fmt.Sprintf("the gradient reads the rows; %d of %d bytes of memory are left", *left, t.config.Memory)
	}
	return p
}

// width is how many values of a row travel where a layer's sources are far.
func width(l *nn.Layer) int {
	if l.Conv.Pre != nil {
		_, w := l.Conv.Pre.Dims()
		return w
	}
	if lin, ok := l.Conv.Nbr.(*nn.Linear); ok {
		in, out := lin.Dims()
		return min(in, out)
	}
	return l.Spec.In
}
