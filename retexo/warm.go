package retexo

import (
	"context"

	"github.com/heddle-gnn/heddle/train/linear"
)

// warmPenalty is the penalty of the regression that a layer begins from, in units of linear.Ridge.
const warmPenalty = 0.1

// warmStart begins the layer of stage w.Stage from the ridge regression of the labels on its input, which one reduction
// finds. It may be repeated before the first round, with the same result.
func (t *Trainer) warmStart(ctx context.Context, w work) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	bits := 0
	if t.config.UpdateBits(t.shard.Parts) > 0 {
		bits = 16 // 8 bits would leave small columns of the Gram matrix too little precision
	}
	sums, z, y, err := t.equations(ctx, t.id(ofWarmStart, w), w.Stage, bits)
	if err != nil {
		return err
	}
	solutions, _, err := linear.Ridge(ctx, sums, z.Cols, y.Cols, []float64{warmPenalty})
	if err != nil {
		return err
	}
	t.stage.layer.Point(solutions[0])
	return nil
}
