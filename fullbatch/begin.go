package fullbatch

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/train"
)

// first is how the first layer gets the features of the halo, which never change.
type first int

const (
	fetched    first = iota // they are fetched once and kept
	aggregated              // their aggregate is computed once and kept; the features themselves are not kept
	stream                  // they are fetched whenever the layer is computed, as the rows of the other layers are
)

// prepare makes what a run needs before its first epoch. Every worker takes part in each step.
func (t *Trainer) prepare(ctx context.Context, r comm.Reducer) error {
	if t.links != nil {
		n, err := t.links.Begin(ctx, t.line.group, t.line.sender, r, t.ID(ofLinks, 0))
		if err != nil {
			return err
		}
		t.count = float64(n)
	} else if err := t.countLabels(ctx); err != nil {
		return err
	}
	s := t.shard
	t.full = &graphView{GraphView: train.WholeGraph(s)}
	if err := t.learnDegrees(ctx, t.full); err != nil {
		return err
	}
	t.seen = t.full
	if t.config.Inductive {
		seen, err := t.line.sender.InductiveView(ctx)
		if err != nil {
			return err
		}
		t.seen = &graphView{GraphView: seen}
		if err := t.learnDegrees(ctx, t.seen); err != nil {
			return err
		}
	}
	if err := t.hops(ctx, r, t.full, 0); err != nil {
		return err
	}
	if t.seen.beside = t.full.beside; t.seen.Adj != t.full.Adj {
		if err := t.hops(ctx, r, t.seen, 1); err != nil {
			return err
		}
	}
	if err := t.firstLayer(ctx, r); err != nil {
		return err
	}
	// A BatchNorm's statistics are over all nodes, labelled or not.
	var err error
	if t.train, err = t.look(ctx, r, graph.Train, t.seen, t.links != nil || t.config.Spec.BatchNormed()); err != nil {
		return err
	}
	t.findLabelInputs()
	t.count *= 1 - float64(t.Model.Spec.Encoder.Labels) // labels that are given as inputs are not learned
	if t.val, err = t.look(ctx, r, graph.Val, t.full, t.links != nil); err != nil {
		return err
	}
	t.shard.Forget() // a step reads copies of features and edges
	return t.plan(ctx)
}

// learnDegrees asks the other workers for the degrees of a's halo, if the weight of an edge depends on the degrees of
// both ends.
func (t *Trainer) learnDegrees(ctx context.Context, a *graphView) (err error) {
	if weighs(t.Model) && t.shard.Parts > 1 {
		a.GraphView, err = t.line.sender.WithDegrees(ctx, a.GraphView)
	}
	return err
}

// countLabels counts the training labels of all workers by class.
func (t *Trainer) countLabels(ctx context.Context) error {
	if err := t.CountLabels(ctx, ofLabels); err != nil {
		return err
	}
	all := t.Labels
	if all.HeldOut > 0 || all.Units != nil || all.Positive() == 0 {
		t.learnFrom(all.HoldOut(t.Whole))
		t.line.sender = train.NewSender(t.line.group, t.shard, t.config.Rows)
	}
	t.count = all.Labelled
	t.weight = nn.ClassWeights(all.Classes, t.config.Balanced, t.config.ClassWeights)
	if t.weight != nil && !t.shard.Labels.Multi() {
		t.count = 0
		for k, w := range t.weight {
			t.count += float64(w) * all.Classes[k]
		}
	}
	return nil
}

// firstLayer fetches what the first layer needs of the halo's features, or their aggregate.
func (t *Trainer) firstLayer(ctx context.Context, r comm.Reducer) error {
	if !t.constant(0) {
		return nil
	}
	l := t.units[0].layer
	switch {
	case l.Frozen() && l.Spec.Dropout == 0 && t.input.Sparse == nil && t.Model.Spec.Encoder.Labels == 0:
		t.first = aggregated
	case t.shard.Parts > 1 && l.Spec.Hops > 1:
		t.first = stream // dropout comes before the first hop, so the second hop changes with it
	default:
		over := []int64{0}
		if m := t.config.Memory; m > 0 && size(t.input)*int64(t.shard.Halo()) > m*int64(max(t.shard.Owned, 1)) {
			over[0] = 1
		}
		if err := sumCounts(ctx, r, t.ID(ofMemory, 0), over); err != nil {
			return err
		}
		if t.first = fetched; over[0] > 0 && t.input.Sparse == nil {
			t.first = stream
		}
	}
	t.rows = t.input
	switch t.first {
	case fetched:
		var err error
		if t.rows, err = t.line.sender.Features(ctx, t.input, "features of the halo"); err != nil {
			return err
		}
		if n := t.shard.Owned; t.rows.Sparse == nil { // one copy is enough
			t.input.Dense = t.rows.Dense.RowRange(0, n)
		} else {
			own := t.rows.Sparse.First(n)
			t.input.Sparse = &own
		}
	case aggregated:
		if err := t.aggregate(t.full); err != nil {
			return err
		}
		if t.seen.z = t.full.z; t.seen.Adj != t.full.Adj {
			return t.aggregate(t.seen)
		}
	}
	return nil
}

// size returns how many bytes the rows take.
func size(f graph.Features) int64 {
	if f.Sparse != nil {
		return 8 * int64(f.Sparse.NNZ())
	}
	return 4 * int64(f.Rows()) * int64(f.Cols())
}

// aggregate computes the first layer's aggregate of the features.
func (t *Trainer) aggregate(a *graphView) error {
	t.first = stream // edges are read, split by the owner of the source
	p, err := t.part(0, a, t.wholeField())
	t.first = aggregated
	if err != nil {
		return err
	}
	if p.far != nil {
		p.far.what = "features of the halo"
	}
	l, z := t.units[0].layer, t.input.Dense
	for range max(l.Spec.Hops, 1) {
		h := mat.New(t.shard.Owned, z.Cols)
		hop := &aggregate.Hop{Agg: l.Conv.Agg, H: h, G: p.near, Rows: z}
		hop.Begin(nil)
		if err := p.sum(hop); err != nil {
			return err
		}
		hop.End()
		z = h
	}
	a.z = graph.Features{Dense: z}
	return nil
}

// plan decides which fetched rows are kept for the backward pass, if that reads them. It informs the peers which of
// their rows will be fetched again.
func (t *Trainer) plan(ctx context.Context) error {
	s, left := t.shard, t.config.Memory
	out := make([][]byte, s.Parts)
	for k, u := range t.units {
		again := make([]byte, s.Parts)
		if u.layer.Conv.Agg != nil {
			t.Report(t.keep(k, &left, again))
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
			return &comm.PeerError{Rank: q, Op: "plan",
				Err: fmt.Errorf("flags must name %d layers (got %d)", len(t.units), len(flags))}
		}
		for k, f := range flags {
			if h := t.train.parts[k].far; h != nil {
				h.again[q] = f == 1
			}
		}
	}
	return nil
}

// keep decides which rows of unit k are kept within the bytes that are left, and marks the peers whose rows are fetched
// again.
func (t *Trainer) keep(k int, left *int64, again []byte) train.Event {
	l, h := t.units[k].layer, t.train.parts[k].far
	p := train.Event{Kind: train.HaloPlan, Layer: l.Name, Width: l.SentWidth()}
	switch {
	case h == nil && t.shard.Parts == 1:
		p.Text = "one worker has the whole graph"
		return p
	case h == nil && t.first == aggregated:
		p.Kept, p.Text = size(t.seen.z), "the aggregate of the features never changes"
		return p
	case h == nil:
		p.Rows, p.Width, p.Kept, p.Text = t.shard.Halo(), t.input.Cols(), size(t.rows)-size(t.input),
			"the features never change"
		return p
	}
	for _, b := range h.blocks {
		p.Rows += len(b.nodes)
	}
	if !l.Conv.Agg.Properties().NeedsSource {
		p.Text = "the gradient does not read the rows"
		return p
	}
	for i := range h.blocks {
		b := &h.blocks[i]
		bytes := 4 * int64(len(b.nodes)) * int64(p.Width)
		b.keep = t.config.Fetch == "sa" || t.config.Fetch == "oneshot" ||
			t.config.Fetch == "auto" && (t.config.Memory == 0 || bytes <= *left)
		if b.keep {
			*left -= bytes
			p.Kept += bytes
			continue
		}
		p.Refetched += len(b.nodes)
		for _, q := range b.from {
			again[q] = 1
		}
	}
	switch {
	case t.config.Fetch != "auto":
		p.Text = "fetch " + t.config.Fetch
	case t.config.Memory == 0:
		p.Text = "the gradient reads the rows, and memory has no bound"
	default:
		p.Text = fmt.Sprintf("the gradient reads the rows; %d of %d bytes of memory are left", *left, t.config.Memory)
	}
	return p
}
