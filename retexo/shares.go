package retexo

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train"
)

// correct corrects the trained model's logits for the shares of the classes, and measures the model again. It ends the
// last stage: it changes nothing before everything has been summed, and the next checkpoint has all changes.
func (t *Trainer) correct(ctx context.Context, w work) error {
	if n, _, _, _ := t.config.ShareCounts(); n == 0 {
		return nil
	}
	text := t.end()
	k := t.Measured.Ends
	bias := t.outputBias(k)
	if bias == nil {
		return nil
	}
	logits := t.logits[k].Clone()
	m := train.ShareMover{Reducer: t.Reducer, ID: func(kind string) comm.ReduceID { return t.id(kind, w) },
		Shard: t.shard, Labels: t.Labels, Logits: logits, Inductive: t.config.Inductive}
	c, err := m.Find(ctx)
	if err != nil || c.Bias == nil && c.Sites == nil {
		return err
	}
	e := train.Event{Kind: train.StageEnd}
	if err := t.sumMetrics(ctx, t.id(ofMoved, w), &e,
		func(split graph.Split) mat.Dense { return logits.Select(t.shard.NodesIn(split)) }); err != nil {
		return err
	}
	if t.model.Spec.SiteShares = c.Sites; c.Bias != nil {
		kernels.Add(c.Bias, bias)
	}
	t.logits[k], t.moved = logits, true
	t.Measured.Remeasure(k, e)
	if text != "" {
		t.Report(train.Event{Kind: train.Note, Stage: k, Text: text})
	}
	for _, text := range c.Notes {
		t.Report(train.Event{Kind: train.Note, Stage: k, Text: text})
	}
	return nil
}

// outputBias returns the constants that a model with last stage k adds to its logits, or nil if the stage has none.
func (t *Trainer) outputBias(k int) []float32 {
	if n := t.config.headsBefore(k + 1); n > t.config.headsBefore(k) {
		return t.heads[n-t.config.Spec.Classes : n]
	}
	layer := t.model.Encoder.Layer
	if k > 0 {
		layer = t.model.Layers[k-1]
	}
	return layer.OutputBias()
}
