package classmeans

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

// ShareCounts returns train.ShareCounts of this run: 0 where its logits are never moved.
func (c Config) ShareCounts() (first, second, sites int) {
	if c.Epsilon > 0 || c.Balanced || c.ClassWeights != nil {
		return 0, 0, 0
	}
	kind, _ := graph.KindNamed(c.Task)
	first, second, sites, _ = train.ShareCounts(kind, c.Metric, c.Classes, false)
	return first, second, sites
}

// correct corrects the final logits for the shares of the classes, and returns what is added to the logits of each
// class (nil = nothing).
func (t *Trainer) correct(ctx context.Context) ([]float32, error) {
	if n, _, _ := t.config.ShareCounts(); n == 0 || t.Leaves {
		return nil, nil
	}
	m := train.ShareMover{Reducer: t.Reducer, ID: func(kind string) comm.ReduceID { return t.id(kind, 0, 0) },
		Shard: t.shard, Labels: t.Labels, Logits: t.Scores, Inductive: t.config.Inductive,
		Temperature: 1.0 / closed.Sharpness}
	c, err := m.Find(ctx)
	if err != nil {
		return nil, fmt.Errorf("shares of the classes: %w", err)
	}
	t.model.Spec.SiteShares = c.Sites
	for _, text := range c.Notes {
		t.Log(train.Note, "%s", text)
	}
	return c.Bias, nil
}
