package retexo

import (
	"context"
	"math"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train/linear"
)

// warmPenalty is the penalty of the regression that a layer begins from, in units of linear.Ridge.
const warmPenalty = 0.1

// warmStart begins the layer of stage w.Stage from the ridge regression of the labels on its input, which one reduction
// finds. It may be done again before the first round: it writes the same numbers.
func (t *Trainer) warmStart(ctx context.Context, w work) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	bits := 0
	if t.config.UpdateBits(t.shard.Parts) > 0 {
		bits = 16 // of 8 the small columns of the Gram matrix would have few left
	}
	sums, z, y, err := t.equations(ctx, t.id(ofWarmStart, w), w.Stage, bits)
	if err != nil {
		return err
	}
	solutions, _, err := linear.Ridge(ctx, sums, z.Cols, y.Cols, []float64{warmPenalty})
	if err != nil {
		return err
	}
	t.stage.point(solutions[0])
	return nil
}

// point gives the first columns of the layer's weights the directions of solution s, D×C, one a class: a layer of C
// columns all of them, a wider one their negatives too, since an activation leaves one side of a direction. Their length
// is that of the columns as they were drawn (tape.Glorot). The columns after them, and those of a class without a
// direction, stay as they were drawn.
func (st *stage) point(s mat.Dense) {
	self, nbr, _ := st.layer.Maps()
	length, at := 0.0, 0 // squared
	for _, l := range []*nn.Linear{self, nbr} {
		if l != nil {
			in, out := l.Dims()
			length += 2 * float64(in) / float64(in+out)
			at += in
		}
	}
	norm := make([]float64, s.Cols)
	for i := range at {
		for c, v := range s.Row(i) {
			norm[c] += float64(v) * float64(v)
		}
	}
	at = 0
	for _, l := range []*nn.Linear{self, nbr} {
		if l == nil {
			continue
		}
		in, out := l.Dims()
		for i := range in {
			row := l.W.Value.Row(i)
			for j := range min(2*s.Cols, out) {
				c := j % s.Cols
				if norm[c] == 0 {
					continue
				}
				f := math.Sqrt(length / norm[c])
				if j >= s.Cols {
					f = -f
				}
				row[j] = float32(f * float64(s.At(at+i, c)))
			}
		}
		at += in
	}
}
