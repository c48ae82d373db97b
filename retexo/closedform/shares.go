package closedform

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/shares"
)

// ShareCounts returns how many counts the two sums have by which logits are moved to the classes' shares (package shares); 0:
// they never are.
func (c Config) ShareCounts() (first, second int) {
	if c.Epsilon > 0 || c.Balanced || c.ClassWeights != nil {
		return 0, 0
	}
	kind, _ := target.Named(c.Task)
	first, second, _ = shares.Counts(kind, c.Metric, c.Classes, false)
	return first, second
}

// moved returns what is added to the logits of each class; nil: nothing.
func (t *Trainer) moved(ctx context.Context) ([]float32, error) {
	if n, _ := t.config.ShareCounts(); n == 0 || t.Leaves || !shares.DrawnByClass(t.labels) {
		return nil, nil
	}
	m := shares.Mover{Reducer: t.reducer, ID: func(kind string) comm.ReduceID { return t.id(kind, 0, 0) }, Shard: t.shard, Labels: t.labels,
		Logits: t.best(), Inductive: t.config.Inductive, Temperature: 1.0 / closed.Sharpness}
	move, err := m.Find(ctx)
	if err == nil && move.By != nil {
		t.note(train.Note, "%s", move.Text)
	}
	return move.By, err
}
