package retexo

import (
	"context"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// The trainer's work between the rounds of two stages: it counts labels, finds components, exchanges and aggregates
// rows, and computes the input of the stage after a finished one.

// countLabels counts the labels of all peers, chooses the validation nodes, and returns the number of labelled training
// nodes.
func (t *Trainer) countLabels(ctx context.Context, w work) (float64, error) {
	err := t.CountLabels(ctx, t.id(ofLabels, w))
	if err == nil {
		t.learnFrom()
	}
	return t.Labels.Labelled, err
}

// learnFrom sets what depends on the label counts: the nodes that train and validate.
func (t *Trainer) learnFrom() {
	t.shard, t.model.Spec.Units, t.config.Metric = t.Labels.HoldOut(t.Whole), t.Labels.Units, t.Metric
	t.metric = eval.NewAccumulator(t.Metric, t.shard.Labels, train.SelectionBins)
	if t.Group != nil {
		t.sender = train.NewSender(t.Group, t.shard, t.config.Rows)
	}
}

// project computes the closed form's logits and, unless the model starts from another one, the components.
func (t *Trainer) project(ctx context.Context, w work, e *event) (err error) {
	enc, x := t.model.Encoder, t.input
	if c := t.config.Classes; c != nil {
		within := classmeans.Within{Config: *c, Labels: t.Labels, Generation: t.Generation, OnEvent: t.Report}
		if t.classes, err = within.Logits(ctx, enc.Classes, t.Whole, t.Group, t.Reducer); err != nil ||
			t.config.Init != "" {
			return err // a model that training starts from keeps its components
		}
	}
	if t.config.Inductive {
		var present []int32
		for i, split := range t.shard.Split {
			if split != graph.Val && split != graph.Test {
				present = append(present, int32(i))
			}
		}
		x = x.Select(present)
	}
	v, err := linear.Components(ctx, t.Reducer, t.id(ofProducts, w), x, float64(t.shard.Nodes)-float64(t.shard.Owned),
		enc.Proj.W.Value.Cols, t.config.PCAPasses, comm.SumBits(t.config.Sums), t.key.FoldString("pca"))
	if err != nil {
		return err
	}
	enc.Proj.W.Value.CopyFrom(v)
	// All peers have the same bits of the sums, but each decomposes them itself, and processors may round differently.
	err = t.reduce(ctx, &comm.Contribution{ID: t.id(ofComponents, w), Meta: state(nil, t.held(w)[0])})
	e.Digests = t.digests
	return err
}

func (t *Trainer) exchange(ctx context.Context, w work) error {
	l := t.model.Layers[w.Stage-1]
	what := fmt.Sprintf("rows of stage %d, hop %d", w.Stage, w.Hop)
	covers, err := t.agreeCovers(ctx, l)
	if err != nil {
		return err
	}
	// both views have the same rows, whether own or received
	shared := w.Hop == 0 && w.Stage == 1 && t.base != t.full
	if !shared {
		err = t.full.fetch(ctx, t.sender, covers, l, w.Hop, what)
	} else if err = t.base.fetch(ctx, t.sender, nil, l, 0, what); err == nil {
		// the edges of the two views differ, and with them the weights
		err = t.full.adopt(ctx, t.sender, l, t.base)
	}
	if err != nil {
		return err
	}
	if w.Hop > 0 {
		if t.training == t.full {
			return nil
		}
		return t.training.fetch(ctx, t.sender, nil, l, w.Hop, what)
	}
	if t.base != t.full && !shared {
		if err := t.base.fetch(ctx, t.sender, nil, l, 0, what); err != nil {
			return err
		}
	}
	t.training = t.base
	return nil
}

func (t *Trainer) aggregate(w work) {
	l := t.model.Layers[w.Stage-1]
	t.full.aggregate(l)
	if t.training != t.full {
		t.training.aggregate(l)
	}
}

// freeze ends a stage: it takes its best parameters, computes the input of the next stage, and sums the metric over all
// validation and test nodes.
func (t *Trainer) freeze(ctx context.Context, w work) error {
	if w.Stage == 0 && t.config.Spec.Encoder.Kind != "mlp" {
		t.encode()
		return nil
	}
	st := t.stage
	if !w.Keep {
		st.swap()
	}
	if err := t.measure(ctx, w); err != nil {
		return err
	}
	hidden, logits, next := t.outputs(t.full)
	t.logits[w.Stage] = logits
	switch {
	case !t.KeepHidden:
	case st.head != nil:
		t.hidden[w.Stage] = hidden
	case w.Stage > 1:
		t.hidden[w.Stage] = t.full.own.Dense
	case st.layer.Frozen():
		t.hidden[w.Stage] = st.layer.Reads(t.full.all(st.layer, t.shard))
	}
	if t.heads = t.heads[:t.config.headsBefore(w.Stage)]; t.config.headsBefore(w.Stage+1) > len(t.heads) {
		for _, p := range st.head.Params() {
			t.heads = append(t.heads, p.Value.Clone().Data...)
		}
	}
	t.enterViews(w.Stage, next)
	if t.stage = nil; w.Stage+1 < t.config.Stages() {
		return nil
	}
	return t.correct(ctx, w)
}

// encode makes the output of an untrained encoder the input of the next stage.
func (t *Trainer) encode() {
	if t.config.Spec.Encoder.Kind == "pca" {
		t.full.own = t.model.Encoder.Encode(t.shard.X)
	}
	if t.config.Classes != nil {
		t.full.own = t.model.Encoder.WithClasses(t.full.own, t.classes)
	}
}

// outputs returns the hidden rows and logits of own nodes after the current stage, and which of both the next stage
// reads.
func (t *Trainer) outputs(v *view) (hidden, logits mat.Dense, next graph.Features) {
	hidden, logits = t.stage.rows(v.all(t.stage.layer, t.shard), t.shard.Owned, nil)
	if t.config.Spec.LayerOutput == nn.Logits {
		return hidden, logits, graph.Features{Dense: logits}
	}
	return hidden, logits, graph.Features{Dense: hidden}
}

// enterViews makes next, the output of stage k over the whole graph, the next stage's input. If training sees less of
// the graph, it gets its own output.
func (t *Trainer) enterViews(k int, next graph.Features) {
	if t.base != t.full {
		_, _, seen := t.outputs(t.training)
		t.base = &view{GraphView: t.base.GraphView, own: seen}
	}
	t.full = &view{GraphView: t.full.GraphView, own: next}
	if !t.config.Inductive || k == 0 {
		t.base = t.full
	}
	t.training = t.base
}

// measure sums the metric of the finished stage over all validation and test nodes, and reports the end of the stage.
func (t *Trainer) measure(ctx context.Context, w work) error {
	e := train.Event{Kind: train.StageEnd, Stage: w.Stage, Round: w.Round, Metric: string(t.Metric),
		BestRound: t.machine.Position().BestRound}
	if err := t.sumMetrics(ctx, t.id(ofStage, w), &e, func(split graph.Split) mat.Dense {
		if split == graph.Val {
			return t.stage.forward(t.stage.val)
		}
		return t.stage.forward(t.stage.test)
	}); err != nil {
		return err
	}
	e.Sent = t.Sent()
	t.Report(e)
	curve := t.Measured.Stages[len(t.Measured.Stages)-1].Curve
	if e.BestRound == t.config.Rounds && !t.hasty && !slices.ContainsFunc(curve,
		func(p train.Point) bool { return !(t.Metric.Gain(e.Val, p.Val) > 0) }) {
		t.hasty = true
		t.Report(train.Event{Kind: train.Warning, Stage: w.Stage,
			Text: "the best round is the last: more rounds or a larger lr may help"})
	}
	return nil
}

// sumMetrics sums the metrics in e over all validation and test nodes.
func (t *Trainer) sumMetrics(ctx context.Context, id comm.ReduceID, e *train.Event,
	logits func(graph.Split) mat.Dense) (err error) {
	final := eval.NewAccumulator(t.Metric, t.shard.Labels, eval.DefaultBins)
	size := final.Size()
	v := make([]int64, 2*size)
	for k, split := range []graph.Split{graph.Val, graph.Test} {
		batch{labels: t.shard.Labels.Select(t.shard.NodesIn(split))}.measure(final, v[k*size:], logits(split))
	}
	if err := t.reduce(ctx,
		&comm.Contribution{ID: id, Counts: v, CountBits: t.countBits, Wide: final.Wide}); err != nil {
		return err
	}
	if e.Val, e.ValLoss, _, err = t.readMetric(final, v[:size]); err == nil {
		e.Test, e.TestLoss, _, err = final.Read(v[size:])
		e.ValBound, e.TestBound = final.Bound(v[:size]), final.Bound(v[size:])
	}
	return err
}
