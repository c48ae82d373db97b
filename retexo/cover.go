package retexo

import (
	"context"

	"github.com/heddle-gnn/heddle/nn"
)

// A layer that sums its neighbours' rows needs of an edge between peers either the source's row or the sum of its
// destination over that peer. The least of both (shard.Cover) travels in place of the halo's rows.

// covered reports whether sums may stand for rows in l's inputs. What training sees of the graph must be all of it: else
// the rows of the halo, which serve both views, are fewer than the sums of two.
func (t *Trainer) covered(l *nn.Layer) bool {
	return t.config.Exchange != "halo" && t.shard.Parts > 1 && !t.config.Inductive && t.config.Neighbours == 0 && l.Sums() && l.Frozen()
}

// fetchCovered is view.fetch by covers: src becomes the own rows, the sums made for others, and what others send; summed
// are the edges over it. A run that is resumed, at whatever layer, agrees on the same covers and goes on with the same bits.
func (t *Trainer) fetchCovered(ctx context.Context, l *nn.Layer, w work, what string) (err error) {
	v := t.full
	if t.covers == nil || t.coverGroup != t.Group {
		t.coverGroup = t.Group
		raw := t.config.Spec.Encoder.Kind == "raw"
		if t.covers, err = t.sender.CoverLayers(ctx, t.model.Layers, raw, t.config.Exchange); err != nil {
			return err
		}
	}
	if err := v.learnDegrees(ctx, t.sender, l); err != nil {
		return err
	}
	v.src, v.summed, err = t.sender.Covered(ctx, t.covers, v.GraphView, l, v.rows(l, w.Hop), v.own.Sparse != nil, t.config.Exchange == "auto", what)
	return err
}
