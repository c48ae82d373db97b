package retexo

import (
	"context"

	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
)

// For an edge between peers, a layer that sums its neighbours' rows needs either the source's row or the sum of its
// destination over that peer. Owners send the smallest set of both (shard.Cover) instead of the halo's rows.

// covered reports whether peers may send sums instead of rows of l's inputs. Training must see the whole graph:
// otherwise the rows of the halo, which both views share, are fewer than the sums of both views.
func (t *Trainer) covered(l *nn.Layer) bool {
	return t.config.Exchange != "halo" && t.shard.Parts > 1 && !t.config.Inductive && l.Sums() && l.Frozen()
}

// agreeCovers returns the covers with which l's rows are sent (nil = none). A resumed run agrees on the same covers at
// any layer, and continues with the same bits.
func (t *Trainer) agreeCovers(ctx context.Context, l *nn.Layer) (c *train.Covers, err error) {
	if !t.covered(l) {
		return nil, nil
	}
	if t.covers == nil || t.coverGroup != t.Group {
		t.coverGroup = t.Group
		raw := t.config.Spec.Encoder.Kind == "raw"
		t.covers, err = t.sender.CoverLayers(ctx, t.model.Layers, raw, t.config.Exchange)
	}
	return t.covers, err
}
