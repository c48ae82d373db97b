package fullbatch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
)

// Trainer trains one model on one worker.
type Trainer struct {
	Observer    Observer
	Checkpoints *checkpoint.Store // nil: none are written

	config Config
	shard  *partition.Shard
	model  *nn.Model
	key    rng.Key
	units  []unit
	input  graph.Features // what the first unit sees
	slab   *nn.Slab
	opt    *optim.Optimizer
	tape   *nn.Tape // of steps
	infer  *nn.Tape // of validation
	best   []float32
	at     position
	rows   map[graph.Split][]int32
	train  *view     // what a step computes
	val    *view     // what is validated
	weight []float32 // of each class, or nil
	result Result
}

// unit is one stage of the chain that is trained jointly: the encoder's layer or a graph layer, with its head where the
// model keeps one.
type unit struct {
	layer       *nn.Layer
	head        nn.Rows    // nil: none
	train, full *graph.CSR // normalised as the layer wants it; nil: it sees no edge
}

// position is where a run stands: enough, with the parameters, to go on.
type position struct {
	Epoch     int     `json:"epoch"`
	Best      float64 `json:"best"`
	BestLoss  float64 `json:"best_loss"`
	BestEpoch int     `json:"best_epoch"` // −1: no state has been validated yet
}

// New returns the trainer of model m, made from c.Spec, over the whole graph s. More than one part is refused.
func New(c Config, s *partition.Shard, m *nn.Model) (*Trainer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if s.Parts != 1 {
		return nil, fmt.Errorf("fullbatch: shard %d of %d: training all layers jointly over more than one worker is not built yet", s.Rank, s.Parts)
	}
	if f := s.X.Cols(); f != c.Spec.Features {
		return nil, fmt.Errorf("fullbatch: the graph has %d features a node, the model takes %d", f, c.Spec.Features)
	}
	if s.Labels.Classes != c.Spec.Classes || s.Labels.Multi() != (c.Spec.Task == "multi") {
		return nil, fmt.Errorf("fullbatch: the graph has %d classes (several a node: %t), the model %d (task %s)", s.Labels.Classes, s.Labels.Multi(), c.Spec.Classes, c.Spec.Task)
	}
	t := &Trainer{config: c, shard: s, model: m, key: rng.New(c.Seed), tape: nn.NewTape(), infer: nn.NewInference(), at: position{BestEpoch: -1}}
	t.rows = make(map[graph.Split][]int32)
	for i, split := range s.Split {
		t.rows[split] = append(t.rows[split], int32(i))
	}
	if len(t.rows[graph.Train]) == 0 {
		return nil, errors.New("fullbatch: the graph has no training node: nothing can be learned")
	}
	t.slab = nn.NewSlab(m.Params())
	t.best = make([]float32, len(t.slab.Value))
	var err error
	if t.opt, err = optim.New(c.Optimizer, len(t.slab.Value)); err != nil {
		return nil, err
	}
	t.input = m.Encoder.Input(s.X)
	t.chain()
	t.train, t.val = t.blocks(t.rows[graph.Train], c.Inductive), t.blocks(t.rows[graph.Val], false)
	if c.Balanced {
		t.weight = nn.ClassWeights(t.train.labels.Count())
	}
	return t, nil
}

// chain lines up the layers and the adjacency each of them sees.
func (t *Trainer) chain() {
	scores := t.model.Spec.Carry == "scores"
	if e := t.model.Encoder; e.Layer != nil {
		u := unit{layer: e.Layer}
		if scores || len(t.model.Layers) == 0 {
			u.head = e.Layer.Head
		}
		t.units = append(t.units, u)
	}
	full, degree := &t.shard.Adj, t.shard.Degree
	train, trainDegree := full, degree
	if t.config.Inductive {
		train = full.Without(t.shard.Split, graph.Val, graph.Test)
		trainDegree = train.Degrees()
	}
	made := make(map[graph.Norm][2]*graph.CSR) // layers of one kind share an adjacency, and its transpose
	for k, l := range t.model.Layers {
		pair, ok := made[l.Edges]
		if !ok {
			pair[0] = graph.Normalise(full, degree, l.Edges)
			pair[1] = pair[0]
			if t.config.Inductive {
				pair[1] = graph.Normalise(train, trainDegree, l.Edges)
			}
			made[l.Edges] = pair
		}
		u := unit{layer: l, full: pair[0], train: pair[1]}
		if scores || k == len(t.model.Layers)-1 {
			u.head = l.Head
		}
		t.units = append(t.units, u)
	}
}

// Run trains until the epochs or the patience are used up or ctx ends; then a checkpoint is left and the error says so.
func (t *Trainer) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	if err := t.restore(); err != nil {
		return err
	}
	final := t.config.Epochs
	for t.at.Epoch < final {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, t.save())
		}
		info := EpochInfo{Epoch: t.at.Epoch, Val: math.NaN(), ValLoss: math.NaN()}
		if t.at.Epoch%t.config.EvalEvery == 0 {
			var err error
			if info.Val, info.ValLoss, err = t.validate(ctx, r); err != nil {
				return err
			}
			if p := t.config.Patience; p > 0 && t.at.BestEpoch >= 0 && t.at.Epoch-t.at.BestEpoch >= p {
				break
			}
		}
		info.Loss = t.step()
		t.observe(info)
		t.at.Epoch++
		if c := t.config.Checkpoint; c > 0 && t.at.Epoch%c == 0 {
			if err := t.save(); err != nil {
				return err
			}
		}
	}
	if t.at.Epoch == final {
		if _, _, err := t.validate(ctx, r); err != nil {
			return err
		}
	}
	copy(t.slab.Value, t.best)
	return t.finish(ctx, r, g)
}

// step makes one step of the optimiser and returns the mean loss over the training labels before it.
func (t *Trainer) step() float64 {
	t.slab.ZeroGrad()
	t.tape.Reset()
	t.tape.Key = t.key.FoldString("dropout").Fold(uint64(t.at.Epoch))
	v := t.train
	scores := t.forward(v, t.tape)
	grad := t.tape.Scratch(scores.Rows, scores.Cols)
	some, d := scores, grad
	if v.rows != nil {
		some, d = t.pick(scores, v.rows, t.tape), t.tape.Scratch(len(v.rows), scores.Cols)
	}
	sum, count := nn.Loss(d, some, v.labels, t.weight)
	if count == 0 {
		return math.NaN()
	}
	for k, i := range v.rows {
		copy(grad.Row(int(i)), d.Row(k))
	}
	t.backward(v, grad)
	t.opt.StepScaled(t.slab.Value, t.slab.Grad, float32(1/count), t.config.Optimizer.LR*t.config.Schedule.At(t.at.Epoch))
	return sum / count
}

// pick returns the given rows of scores in the tape's memory.
func (t *Trainer) pick(scores mat.Dense, rows []int32, tape *nn.Tape) mat.Dense {
	some := tape.Scratch(len(rows), scores.Cols)
	for k, i := range rows {
		copy(some.Row(k), scores.Row(int(i)))
	}
	return some
}

// forward returns the scores of v's nodes.
func (t *Trainer) forward(v *view, tape *nn.Tape) mat.Dense {
	x := v.input
	for k, u := range t.units {
		n := x.Rows()
		if v.graphs[k] != nil {
			n = v.graphs[k].NumDst
		}
		h := tape.Scratch(n, u.layer.Spec.Out)
		u.layer.Forward(h, nn.Input{G: v.graphs[k], X: x, Nodes: v.nodes[k]}, tape)
		if u.head != nil {
			_, c := u.head.Dims()
			scores := tape.Scratch(n, c)
			u.head.Forward(scores, h, tape)
			h = scores
		}
		x = graph.Features{Dense: h}
	}
	return x.Dense
}

// backward adds to the slab's gradients, from d, the gradient of the scores.
func (t *Trainer) backward(v *view, d mat.Dense) {
	for k := len(t.units) - 1; k >= 0; k-- {
		u := t.units[k]
		if u.head != nil {
			dh := t.tape.Scratch(d.Rows, u.layer.Spec.Out)
			u.head.Backward(dh, d, t.tape)
			d = dh
		}
		var dx mat.Dense
		if k > 0 {
			n := d.Rows
			if v.graphs[k] != nil {
				n = v.graphs[k].NumSrc
			}
			dx = t.tape.Scratch(n, u.layer.Spec.In)
		}
		u.layer.Backward(dx, d, t.tape)
		d = dx
	}
}

// validate scores the validation nodes and keeps the parameters if they are the best so far: a higher metric, or the
// same with a lower loss. Without validation labels the last state is the best.
func (t *Trainer) validate(ctx context.Context, r comm.Reducer) (val, loss float64, err error) {
	val, loss, err = t.measure(ctx, r, t.val, selectionBins)
	if err != nil {
		return 0, 0, err
	}
	if val != val || t.at.BestEpoch < 0 || val > t.at.Best || val == t.at.Best && loss < t.at.BestLoss {
		t.at.BestEpoch = t.at.Epoch
		if val == val { // NaN does not travel in JSON
			t.at.Best, t.at.BestLoss = val, loss
		}
		copy(t.best, t.slab.Value)
	}
	return val, loss, nil
}

// selectionBins is the resolution of AUC and AP while states are compared; what is reported has eval.DefaultBins.
const selectionBins = 256

func (t *Trainer) measure(ctx context.Context, r comm.Reducer, v *view, bins int) (metric, loss float64, err error) {
	t.infer.Reset()
	scores := t.forward(v, t.infer)
	if v.rows != nil {
		scores = t.pick(scores, v.rows, t.infer)
	}
	tally := eval.NewTally(t.config.Metric, t.shard.Labels, bins)
	x := make([]float32, tally.Size())
	sum, count := nn.Loss(mat.Dense{}, scores, v.labels, nil)
	tally.Write(x, sum, count, scores, v.labels)
	if _, err := r.Reduce(ctx, uint64(t.at.Epoch), x); err != nil {
		return 0, 0, err
	}
	return tally.Read(x)
}

// finish reports the best state over the whole graph, as whoever uses the model will compute it: to the last bit.
func (t *Trainer) finish(ctx context.Context, r comm.Reducer, g *comm.Group) (err error) {
	t.result.BestEpoch = t.at.BestEpoch
	if t.result.Val, t.result.ValLoss, err = t.measure(ctx, r, t.whole(t.rows[graph.Val], false), eval.DefaultBins); err != nil {
		return err
	}
	t.result.Test, t.result.TestLoss, err = t.measure(ctx, r, t.whole(t.rows[graph.Test], false), eval.DefaultBins)
	t.result.Bytes = g.Bytes()
	return err
}

func (t *Trainer) observe(info EpochInfo) {
	t.result.Epochs = append(t.result.Epochs, info)
	if t.Observer.EpochEnd != nil {
		t.Observer.EpochEnd(info)
	}
}

// Result returns what Run measured so far.
func (t *Trainer) Result() Result { return t.result }
