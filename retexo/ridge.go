package retexo

import (
	"context"
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	hmat "github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

// maxRidge bounds the columns that ridge takes: the Gram matrix has their square of numbers.
const maxRidge = 1 << 13

// solve finds the linear layer that minimises Σ‖zW − y‖² + λ‖W‖² over the training nodes of all peers, y the one-hot
// labels, exactly and in one reduction: of the upper triangle of ZᵀZ and of ZᵀY (Hoerl and Kennard 1970). z is the
// layer's input, [own ‖ aggregate ‖ 1] where it has a map of its own rows; the constant is not penalised. λ is each of
// the config's penalties times the mean diagonal of ZᵀZ, so that a scale of the input does not matter. A second
// reduction validates all solutions at once.
func (t *Trainer) solve(ctx context.Context, w Work, e *Event) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	st := t.stage
	z, y := st.design(st.train), targets(st.train.labels)
	d, c := z.Cols, y.Cols
	if d > maxRidge {
		return fmt.Errorf("ridge over %d columns, want at most %d: use encoder pca", d, maxRidge)
	}
	gram, cross := hmat.New(d, d), hmat.New(d, c)
	weighted := z.Clone()
	for i := range z.Rows {
		kernels.Scale(rowWeight(st.train.labels, i, st.weight), weighted.Row(i))
	}
	kernels.GemmTN(d, d, z.Rows, z.Data, d, weighted.Data, d, gram.Data, d, false)
	kernels.GemmTN(d, c, z.Rows, weighted.Data, d, y.Data, c, cross.Data, c, false)
	sum := make([]float32, 0, d*(d+1)/2+d*c)
	for i := range d {
		sum = append(sum, gram.Row(i)[i:]...)
	}
	sum = append(sum, cross.Data...)
	if err := t.reduce(ctx, sum); err != nil {
		return err
	}
	if err := st.solutionsOf(sum, d, c, t.config.Lambdas); err != nil {
		return err
	}

	if t.nudge != nil {
		t.nudge(st.solved)
	}
	// The metrics, and behind them the digests of the solutions: each peer solves by itself, and processors may round apart.
	vals := make([]float32, len(st.solutions)*t.tally.Size()+t.shard.Parts)
	own := vals[len(st.solutions)*t.tally.Size():]
	own[t.shard.Rank] = float32(digest(st.solved))
	zv := st.design(st.val)
	for k, s := range st.solutions {
		scores := hmat.New(zv.Rows, c)
		kernels.GemmNN(zv.Rows, c, d, zv.Data, d, s.Data, c, scores.Data, c, false)
		st.val.tally(t.tally, vals[k*t.tally.Size():], scores)
	}
	if err := t.reduce(ctx, vals); err != nil {
		return err
	}
	for k := range st.solutions {
		v := vals[k*t.tally.Size() : (k+1)*t.tally.Size()]
		metric, _, err := t.tally.Read(v)
		if err != nil {
			return err
		}
		e.Vals, e.Labels = append(e.Vals, metric), float64(v[1])
	}
	e.Digests = digests(own)
	return nil
}

// design returns the rows [own ‖ aggregate ‖ 1] of b, without own where the layer has no map of it.
func (st *stage) design(b batch) hmat.Dense {
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
	z := hmat.New(b.rows, d)
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
func targets(labels graph.Labels) hmat.Dense {
	c := labels.Classes
	if labels.Multi() {
		y := hmat.New(len(labels.Bits)/c, c)
		for i, b := range labels.Bits {
			y.Data[i] = float32(b)
		}
		return y
	}
	y := hmat.New(len(labels.Class), c)
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

// solutionsOf solves the normal equations, packed in sum, for each penalty (Cholesky in float64).
func (st *stage) solutionsOf(sum []float32, d, c int, lambdas []float64) error {
	for _, v := range sum {
		if !finite(v) {
			return errors.New("ridge: the squares of the features of all peers together overflow; scale their columns")
		}
	}
	gram, cross := mat.NewSymDense(d, nil), mat.NewDense(d, c, nil)
	at, trace := 0, 0.0
	for i := range d {
		for j := i; j < d; j++ {
			gram.SetSym(i, j, float64(sum[at]))
			at++
		}
		if i < d-1 {
			trace += gram.At(i, i)
		}
	}
	for i := range d {
		for j := range c {
			cross.Set(i, j, float64(sum[at]))
			at++
		}
	}
	st.solutions, st.solved = nil, make([]float32, len(lambdas)*d*c)
	for k, lambda := range lambdas {
		a := mat.NewSymDense(d, nil)
		a.CopySym(gram)
		for i := range d - 1 {
			a.SetSym(i, i, a.At(i, i)+lambda*max(trace/float64(d-1), 1e-12))
		}
		var chol mat.Cholesky
		var w mat.Dense
		if !chol.Factorize(a) {
			return fmt.Errorf("ridge: the equations are singular with penalty %g; want a larger one", lambda)
		}
		if err := chol.SolveTo(&w, cross); err != nil {
			if _, ok := err.(mat.Condition); !ok {
				return fmt.Errorf("ridge: penalty %g: %w", lambda, err)
			}
		}
		s := hmat.View(d, c, st.solved[k*d*c:])
		for i := range d {
			for j := range c {
				s.Set(i, j, float32(w.At(i, j)))
			}
		}
		st.solutions = append(st.solutions, s)
	}
	return nil
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
