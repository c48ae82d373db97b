package retexo

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/linear"
)

// solve finds the linear layer of least squares over the training nodes of all peers (linear.Ridge) in one reduction:
// from the layer's input, [own ‖ aggregate ‖ 1] where it has a map of its own rows, to the one-hot labels. A second
// reduction validates the solutions of all penalties at once.
func (t *Trainer) solve(ctx context.Context, w work, e *event) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	st := t.stage
	z, y := st.design(st.train), targets(st.train.labels)
	if d := z.Cols; d > linear.MaxRidge {
		return fmt.Errorf("solver ridge takes at most %d columns (got %d): use encoder pca", linear.MaxRidge, d)
	}
	weight := make([]float32, z.Rows)
	for i := range weight {
		weight[i] = rowWeight(st.train.labels, i, st.weight)
	}
	sums := linear.Equations(z, y, weight)
	if err := t.reduce(ctx, &comm.Contribution{ID: t.id(ofEquations, w), Update: sums}); err != nil {
		return err
	}
	var err error
	if st.solutions, st.solved, err = linear.Ridge(sums, z.Cols, y.Cols, t.config.Lambdas); err != nil {
		return err
	}
	if t.nudge != nil {
		t.nudge(st.solved)
	}
	// With the metrics go the digests of the solutions: each peer solves by itself, and processors may round apart.
	size := t.metric.Size()
	vals := make([]int64, len(st.solutions)*size)
	zv := st.design(st.val)
	for k, s := range st.solutions {
		logits := mat.New(zv.Rows, s.Cols)
		kernels.GemmNN(zv.Rows, s.Cols, zv.Cols, zv.Data, zv.Cols, s.Data, s.Cols, logits.Data, s.Cols, false)
		st.val.measure(t.metric, vals[k*size:], logits)
	}
	err = t.reduce(ctx, &comm.Contribution{ID: t.id(ofSolutions, w), Counts: vals, Meta: statement{digest: train.Digest(st.solved)}.encode(nil)})
	if err != nil {
		return err
	}
	for k := range st.solutions {
		metric, _, labels, err := t.metric.Read(vals[k*size:])
		if err != nil {
			return err
		}
		e.Vals, e.Labels = append(e.Vals, metric), float64(labels)
	}
	e.Digests = t.digests()
	return nil
}

// design returns the rows [own ‖ aggregate ‖ 1] of b, without own where the layer has no map of it.
func (st *stage) design(b batch) mat.Dense {
	self, nbr, _ := st.layer.Affine()
	parts := make([]graph.Features, 0, 2)
	if self != nil {
		parts = append(parts, b.in.X)
	}
	if nbr != nil {
		parts = append(parts, b.in.Z)
	}
	d := 1
	for _, p := range parts {
		d += p.Cols()
	}
	z := mat.New(b.rows, d)
	for i := range b.rows {
		row := z.Row(i)
		row[d-1] = 1
		at := 0
		for _, p := range parts {
			if p.Sparse != nil {
				col, val := p.Sparse.Row(i)
				for k, j := range col {
					row[at+int(j)] = val[k]
				}
			} else {
				copy(row[at:], p.Dense.Row(i))
			}
			at += p.Cols()
		}
	}
	return z
}

// targets returns the labels as rows of zeros and ones.
func targets(labels graph.Labels) mat.Dense {
	c := labels.Classes
	if labels.Multi() {
		y := mat.New(len(labels.Bits)/c, c)
		for i, b := range labels.Bits {
			y.Data[i] = float32(b)
		}
		return y
	}
	y := mat.New(len(labels.Class), c)
	for i, k := range labels.Class {
		if k >= 0 {
			y.Set(i, int(k), 1)
		}
	}
	return y
}

// rowWeight returns how much node i counts: its class's weight where there are weights (nil: 1), nothing without a label.
// A node of several classes counts once, whatever they weigh: a class's own weight would only scale its penalty.
func rowWeight(labels graph.Labels, i int, weight []float32) float32 {
	switch {
	case labels.Multi():
		return 1
	case labels.Class[i] < 0:
		return 0
	case weight == nil:
		return 1
	}
	return weight[labels.Class[i]]
}

// choose writes solution k to the layer.
func (st *stage) choose(k int) {
	self, nbr, _ := st.layer.Affine()
	s, at := st.solutions[k], 0
	for _, l := range []*nn.Linear{self, nbr} {
		if l == nil {
			continue
		}
		n := l.W.Value.Rows
		l.W.Value.CopyFrom(s.RowRange(at, at+n))
		at += n
		if l.B != nil {
			l.B.Value.Zero()
		}
	}
	for _, l := range []*nn.Linear{self, nbr} {
		if l != nil && l.B != nil { // the constant goes to one of the biases
			l.B.Value.CopyFrom(s.RowRange(at, at+1))
			break
		}
	}
}
