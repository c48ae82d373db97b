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
	tape   *nn.Tape
	best   []float32
	at     position
	rows   map[graph.Split][]int32
	labels graph.Labels // of the training nodes
	weight []float32    // of each class, or nil
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
	t := &Trainer{config: c, shard: s, model: m, key: rng.New(c.Seed), tape: nn.NewTape(), at: position{BestEpoch: -1}}
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
	t.labels = s.Labels.Select(t.rows[graph.Train])
	if c.Balanced {
		t.weight = nn.ClassWeights(t.labels.Count())
	}
	t.input = m.Encoder.Input(s.X)
	t.chain()
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
	outs := t.forward(t.tape, false)
	scores := outs[len(outs)-1]
	grad := t.tape.Scratch(scores.Rows, scores.Cols)
	rows := t.rows[graph.Train]
	some, d := t.tape.Scratch(len(rows), scores.Cols), t.tape.Scratch(len(rows), scores.Cols)
	for k, i := range rows {
		copy(some.Row(k), scores.Row(int(i)))
	}
	sum, count := nn.Loss(d, some, t.labels, t.weight)
	if count == 0 {
		return math.NaN()
	}
	for k, i := range rows {
		copy(grad.Row(int(i)), d.Row(k))
	}
	t.backward(grad)
	inv := float32(1 / count)
	for i := range t.slab.Grad {
		t.slab.Grad[i] *= inv
	}
	t.opt.Step(t.slab.Value, t.slab.Grad, t.config.Optimizer.LR*t.config.Schedule.At(t.at.Epoch))
	return sum / count
}

// forward returns what each unit hands on, the last one's being the scores of all nodes. Where full is false and the
// training is inductive, held-out nodes have no edges. With a nil tape it is inference.
func (t *Trainer) forward(tape *nn.Tape, full bool) []mat.Dense {
	n := t.shard.Owned
	outs := make([]mat.Dense, 0, len(t.units))
	x := t.input
	for _, u := range t.units {
		g := u.train
		if full {
			g = u.full
		}
		h := tape.Scratch(n, u.layer.Spec.Out)
		u.layer.Forward(h, nn.Input{G: g, X: x, Nodes: t.shard.Global}, tape)
		if u.head != nil {
			_, c := u.head.Dims()
			scores := tape.Scratch(n, c)
			u.head.Forward(scores, h, tape)
			h = scores
		}
		outs = append(outs, h)
		x = graph.Features{Dense: h}
	}
	return outs
}

// backward adds to the slab's gradients, from d, the gradient of the scores.
func (t *Trainer) backward(d mat.Dense) {
	n := t.shard.Owned
	for k := len(t.units) - 1; k >= 0; k-- {
		u := t.units[k]
		if u.head != nil {
			dh := t.tape.Scratch(n, u.layer.Spec.Out)
			u.head.Backward(dh, d, t.tape)
			d = dh
		}
		var dx mat.Dense
		if k > 0 {
			dx = t.tape.Scratch(n, u.layer.Spec.In)
		}
		u.layer.Backward(dx, d, t.tape)
		d = dx
	}
}

// validate scores the validation nodes and keeps the parameters if they are the best so far: a higher metric, or the
// same with a lower loss. Without validation labels the last state is the best.
func (t *Trainer) validate(ctx context.Context, r comm.Reducer) (val, loss float64, err error) {
	outs := t.forward(nil, true)
	val, loss, err = t.measure(ctx, r, outs[len(outs)-1], graph.Val, selectionBins)
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

func (t *Trainer) measure(ctx context.Context, r comm.Reducer, scores mat.Dense, split graph.Split, bins int) (metric, loss float64, err error) {
	rows := t.rows[split]
	tally := eval.NewTally(t.config.Metric, t.shard.Labels, bins)
	v := make([]float32, tally.Size())
	labels, some := t.shard.Labels.Select(rows), scores.Select(rows)
	sum, count := nn.Loss(mat.Dense{}, some, labels, nil)
	tally.Write(v, sum, count, some, labels)
	if _, err := r.Reduce(ctx, uint64(t.at.Epoch), v); err != nil {
		return 0, 0, err
	}
	return tally.Read(v)
}

func (t *Trainer) finish(ctx context.Context, r comm.Reducer, g *comm.Group) (err error) {
	outs := t.forward(nil, true)
	scores := outs[len(outs)-1]
	t.result.BestEpoch = t.at.BestEpoch
	if t.result.Val, t.result.ValLoss, err = t.measure(ctx, r, scores, graph.Val, eval.DefaultBins); err != nil {
		return err
	}
	t.result.Test, t.result.TestLoss, err = t.measure(ctx, r, scores, graph.Test, eval.DefaultBins)
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
