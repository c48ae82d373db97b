package retexo

import (
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// stage is one stage in training: parameters in a slab, frozen inputs in batches.
type stage struct {
	layer *nn.Layer
	head  tape.Operator // turns hidden rows into logits (nil = they are the logits)
	slab  *tape.FlatParams
	opt   *optim.Optimizer
	best  []float32 // the best state's parameters

	train, val, test batch
	tape, infer      *tape.Tape
	// sent in a round: update (in the slab's gradients), loss, labels and metric, statement
	round  *comm.Contribution
	count  float64   // number of labels in the sum of updates
	weight []float32 // weight of each class, or nil
	most   float64   // largest of them

	// residual is the rounding error of this peer's updates in fixed point so far. The current round's error is in
	// round.Residual, which replaces it when the round is applied.
	residual []float32

	// The state before the round's local steps, so that a round that does not commit changes nothing.
	start   []float32
	moments [][]float32
	steps   int64
	begun   int // round whose steps were taken but not applied (−1 = none)
}

// batch is some owned nodes with the inputs of their rows.
type batch struct {
	in     nn.Input
	labels graph.Labels
	rows   int
}

func newBatch(v *view, l *nn.Layer, s *shard.Shard, split graph.Split) batch {
	rows := s.NodesIn(split)
	return batch{in: v.batch(l, s, rows), labels: s.Labels.Select(rows), rows: len(rows)}
}

// measure writes the contribution of b's logits to the metric and the mean loss to v.
func (b batch) measure(a eval.Accumulator, v []int64, logits mat.Dense) {
	sum, count := nn.Loss(mat.Dense{}, logits, b.labels, nil)
	a.Write(v, sum, count, logits, b.labels)
}

// rows is the forward pass of a stage: it returns the rows of n nodes and the head's logits, which are the rows if
// there is no head. If t is nil, the rows are not in a tape's memory.
func (st *stage) rows(in nn.Input, n int, t *tape.Tape) (hidden, logits mat.Dense) {
	hidden = t.Scratch(n, st.layer.Spec.Out)
	st.layer.Forward(hidden, in, t)
	if st.head == nil {
		return hidden, hidden
	}
	if t.Training() {
		t.Nodes = in.Nodes[:n] // destinations are the first sources
	}
	_, classes := st.head.Dims()
	logits = t.Scratch(n, classes)
	st.head.Forward(logits, hidden, t)
	return hidden, logits
}

// forward returns the logits of b's nodes in inference; they are valid until the next call.
func (st *stage) forward(b batch) mat.Dense {
	st.infer.Reset()
	_, logits := st.rows(b.in, b.rows, st.infer)
	return logits
}

// gradient writes the gradient of the loss, summed over b, to the slab.
func (st *stage) gradient(b batch, key rng.Key) (sum, count float64) {
	st.slab.ZeroGrad()
	if b.rows == 0 {
		return 0, 0
	}
	t := st.tape
	t.Reset()
	t.Key = key
	hidden, logits := st.rows(b.in, b.rows, t)
	d := t.Scratch(b.rows, logits.Cols)
	sum, count = nn.Loss(d, logits, b.labels, st.weight)
	if st.head != nil {
		dh := t.Scratch(b.rows, hidden.Cols)
		st.head.Backward(dh, d, t)
		d = dh
	}
	st.layer.Backward(mat.Dense{}, d, t)
	return sum, count
}

// update writes this peer's contribution to the round to the slab's gradients: the gradient (one local step), or the
// change by several local steps times the training labels. It returns the first step's loss.
func (st *stage) update(c Config, key rng.Key, round int) (sum, count float64) {
	if c.LocalSteps == 1 {
		return st.gradient(st.train, key.Fold(0))
	}
	copy(st.start, st.slab.Value)
	st.begun = round
	var moments [][]float32
	st.steps, moments = st.opt.State()
	for i, m := range moments {
		copy(st.moments[i], m)
	}
	for step := range c.LocalSteps {
		s, k := st.gradient(st.train, key.Fold(uint64(step)))
		if k == 0 {
			break
		}
		if step == 0 {
			sum, count = s, k
		}
		st.opt.StepScaled(st.slab.Value, st.slab.Grad, float32(1/k),
			c.Optimizer.LR*c.Schedule.At(round*c.LocalSteps+step))
	}
	w := float32(count)
	for i, v := range st.slab.Value {
		st.slab.Grad[i] = w * (v - st.start[i])
	}
	copy(st.slab.Value, st.start)
	return sum, count
}

// feedBack adds the rounding error of earlier updates to this peer's update, if it keeps that. An update that is not
// finite becomes zeros: no grid can represent it, and a secure sum needs an update.
func (st *stage) feedBack() (finite bool) {
	if st.residual != nil {
		kernels.Axpy(1, st.residual, st.slab.Grad)
	}
	if finite = kernels.MaxAbs(st.slab.Grad) <= math.MaxFloat32; !finite {
		clear(st.slab.Grad)
	}
	return finite
}

// keep remembers the state that the current round started from and validated.
func (st *stage) keep() { copy(st.best, st.slab.Value) }

// swap exchanges the current parameters with the best ones.
func (st *stage) swap() {
	for i, v := range st.best {
		st.best[i], st.slab.Value[i] = st.slab.Value[i], v
	}
}

// apply makes the round's sum over all peers' count labels the next parameters.
func (st *stage) apply(c Config, round int, count float64) {
	st.begun = -1
	st.residual, st.round.Residual = st.round.Residual, st.residual
	mean := float32(1 / count)
	if c.LocalSteps == 1 {
		st.opt.StepScaled(st.slab.Value, st.slab.Grad, mean, c.Optimizer.LR*c.Schedule.At(round))
		return
	}
	kernels.Axpy(mean, st.slab.Grad, st.slab.Value)
}

// undo reverts local steps of a round that did not commit.
func (st *stage) undo(c Config) error {
	if c.LocalSteps == 1 || st.begun < 0 {
		return nil
	}
	st.begun = -1
	return st.opt.Restore(st.steps, st.moments)
}
