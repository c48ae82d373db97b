package fullbatch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
)

// Trainer trains one model at one worker.
type Trainer struct {
	Observer    Observer
	Checkpoints *checkpoint.Store // nil: none are written

	config Config
	shard  *partition.Shard
	model  *nn.Model
	key    rng.Key
	units  []unit
	input  graph.Features // of the owned nodes, what the first unit sees
	rows   graph.Features // the same and, where first says so, of the halo
	first  first
	line   *line
	slab   *nn.Slab
	sum    []float32 // the slab's gradients and what travels with them
	begins []int     // [unit] of what is whole in sum when its backward pass is done
	beside bool      // sums are taken while rows travel
	bucket int       // the least of gradients that are summed at once
	opt    *optim.Optimizer
	tape   *nn.Tape // of steps
	infer  *nn.Tape // of validation
	best   []float32
	at     position
	steps  int                     // that this run has made
	split  map[graph.Split][]int32 // owned nodes
	full   *sight                  // the whole graph
	seen   *sight                  // what training may see of it
	train  *view                   // what a step computes
	hints  *hints                  // labels among its input; nil: none
	val    *view                   // what is validated
	weight []float32               // of each class, or nil
	count  float64                 // training labels of all workers, by weight
	result Result
	before comm.Counts // sent before an interruption
}

// unit is one stage of the chain that is trained jointly: the encoder's layer or a graph layer, with its head where the
// model keeps one.
type unit struct {
	layer *nn.Layer
	head  nn.Rows // nil: none
}

// position is where a run stands: enough, with the parameters, to go on.
type position struct {
	Epoch     int     `json:"epoch"`
	Best      float64 `json:"best"`
	BestLoss  float64 `json:"best_loss"`
	BestEpoch int     `json:"best_epoch"` // −1: no state has been validated yet
}

// New returns the trainer of the worker that holds s. m is the model of c.Spec, made with the same key at every worker;
// it is changed in place.
func New(c Config, s *partition.Shard, m *nn.Model) (*Trainer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if f := s.X.Cols(); f != c.Spec.Features {
		return nil, fmt.Errorf("fullbatch: shard %d has %d features a node, the model takes %d", s.Rank, f, c.Spec.Features)
	}
	if s.Labels.Classes != c.Spec.Classes || s.Labels.Multi() != (c.Spec.Task == "multi") {
		return nil, fmt.Errorf("fullbatch: shard %d has %d classes (several a node: %t), the model %d (task %s)", s.Rank, s.Labels.Classes, s.Labels.Multi(), c.Spec.Classes, c.Spec.Task)
	}
	for _, l := range c.Spec.Layers {
		if l.Relations > 0 && l.Relations != s.Typed.Count() {
			return nil, fmt.Errorf("fullbatch: shard %d has %d relations, the model %d", s.Rank, s.Typed.Count(), l.Relations)
		}
	}
	tape := nn.NewTape()
	t := &Trainer{config: c, shard: s, model: m, key: rng.New(c.Seed), tape: tape, infer: tape.Inference(), at: position{BestEpoch: -1}}
	t.split = make(map[graph.Split][]int32)
	for i, split := range s.Split {
		t.split[split] = append(t.split[split], int32(i))
	}
	if s.Parts == 1 && len(t.split[graph.Train]) == 0 {
		return nil, errNoTraining
	}
	t.slab = nn.NewSlab(m.Params())
	t.sum = t.slab.Room(2 + s.Parts)
	t.best = make([]float32, len(t.slab.Value))
	var err error
	if t.opt, err = optim.New(c.Optimizer, t.slab.Trained); err != nil {
		return nil, err
	}
	t.input = m.Encoder.Input(s.X)
	if m.Spec.Encoder.Labels > 0 {
		t.input = nn.Columns([]graph.Features{t.input, nn.OneHot(nn.TrainClass(s.Labels, s.Split), m.Spec.Classes)})
	}
	t.chain()
	t.begins, t.bucket = begins(t.slab.Params, t.units), bucket
	return t, nil
}

var errNoTraining = errors.New("fullbatch: the graph has no training node: nothing can be learned")

// chain lines up the layers.
func (t *Trainer) chain() {
	scores := t.model.Spec.Carry == "scores"
	if e := t.model.Encoder; e.Layer != nil {
		u := unit{layer: e.Layer}
		if scores || len(t.model.Layers) == 0 {
			u.head = e.Layer.Head
		}
		t.units = append(t.units, u)
	}
	for k, l := range t.model.Layers {
		u := unit{layer: l}
		if scores || k == len(t.model.Layers)-1 {
			u.head = l.Head
		}
		t.units = append(t.units, u)
	}
}

// Run trains until the epochs or the patience are used up, ctx ends or a worker is lost; then a checkpoint is left and
// the error says why. Rows and their gradients travel over g, sums through r.
func (t *Trainer) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	t.line = &line{ctx: ctx, group: g, coder: wire.New(t.config.Rows), fixed: t.config.Order == "fixed", ahead: t.config.Prefetch, key: t.key.FoldString("boundary")}
	t.tape.Others = t.others(r)
	if err := t.begin(ctx, r); err != nil {
		return err
	}
	t.beside = r == comm.Reducer(g) && g.Size() > 1
	if t.beside {
		g.Beside()
	}
	if err := t.epochs(ctx, r); err != nil {
		return errors.Join(err, t.save()) // a step is taken whole or not at all: the state is that of the epoch's begin
	}
	copy(t.slab.Value, t.best)
	return t.finish(ctx, r)
}

func (t *Trainer) epochs(ctx context.Context, r comm.Reducer) error {
	final := t.config.Epochs
	for t.at.Epoch < final {
		if err := ctx.Err(); err != nil {
			return err
		}
		info := EpochInfo{Epoch: t.at.Epoch, Val: math.NaN(), ValLoss: math.NaN()}
		if t.at.Epoch%t.config.EvalEvery == 0 {
			var err error
			if info.Val, info.ValLoss, err = t.validate(ctx, r); err != nil {
				return err
			}
			if p := t.config.Patience; p > 0 && t.at.BestEpoch >= 0 && t.at.Epoch-t.at.BestEpoch >= p {
				return nil
			}
		}
		var err error
		if info.Loss, err = t.step(ctx, r); err != nil {
			return err
		}
		info.Bytes = t.sent()
		t.observe(info)
		t.at.Epoch++
		if c := t.config.Checkpoint; c > 0 && t.at.Epoch%c == 0 {
			if err := t.save(); err != nil {
				return err
			}
		}
	}
	_, _, err := t.validate(ctx, r)
	return err
}

// step makes one step of the optimiser and returns the mean loss over the training labels before it.
func (t *Trainer) step(ctx context.Context, r comm.Reducer) (float64, error) {
	t.slab.ZeroGrad()
	t.tape.Reset()
	t.line.epoch = uint64(t.at.Epoch)
	t.tape.Key = t.key.FoldString("dropout").Fold(uint64(t.at.Epoch))
	t.dealHints()
	v := t.train
	sums := t.reduction(ctx, r)
	w := t.pass(v, t.tape)
	scores := w.forward()
	grad := t.tape.Scratch(scores.Rows, scores.Cols)
	some, d := scores, grad
	if v.rows != nil {
		some, d = t.pick(scores, v.rows, t.tape), t.tape.Scratch(len(v.rows), scores.Cols)
	}
	loss, _ := nn.Loss(d, some, v.labels, t.weight)
	for k, i := range v.rows {
		copy(grad.Row(int(i)), d.Row(k))
	}
	t.tail(loss)
	w.backward(grad, sums.ready)
	if err := sums.end(t.line.err); err != nil {
		return 0, err
	}
	loss, err := t.reduced()
	if err != nil {
		return 0, err
	}
	for k := range v.parts {
		if far := v.parts[k].far; far != nil {
			far.settle(t.steps == 0)
		}
	}
	t.steps++
	n := t.slab.Trained
	t.opt.StepScaled(t.slab.Value[:n], t.slab.Grad[:n], float32(1/t.count), t.config.Optimizer.LR*t.config.Schedule.At(t.at.Epoch))
	for _, u := range t.units {
		u.layer.Settle()
	}
	return loss / t.count, nil
}

// others is how a layer adds up statistics over the workers in the midst of a step, when no rows travel; nil: there are none.
func (t *Trainer) others(r comm.Reducer) *nn.Others {
	if t.shard.Parts == 1 {
		return nil
	}
	return &nn.Others{Rank: t.shard.Rank, Size: t.shard.Parts, Sum: func(x []float32) {
		if t.line.err == nil {
			_, t.line.err = r.Reduce(t.line.ctx, uint64(t.at.Epoch), x)
		}
	}}
}

// tail sets what is summed with the gradients: this worker's loss, and a checksum of the parameters that it holds.
func (t *Trainer) tail(loss float64) {
	tail := t.sum[len(t.slab.Grad):]
	clear(tail)
	tail[0] = float32(loss)
	tail[1] = float32(loss - float64(tail[0])) // what the first leaves
	if t.shard.Parts > 1 {
		tail[2+t.shard.Rank] = digest(t.slab.Value)
	}
}

// reduced returns the loss of all workers, and makes sure that they hold the same parameters.
func (t *Trainer) reduced() (float64, error) {
	tail := t.sum[len(t.slab.Grad):]
	digests := tail[2:]
	for q, d := range digests {
		if d != digests[t.shard.Rank] {
			return 0, &comm.PeerError{Rank: q, Op: fmt.Sprintf("epoch %d", t.at.Epoch), Err: errors.New("its parameters differ from this worker's: the processors round apart, or a memory is at fault")}
		}
	}
	loss := float64(tail[0]) + float64(tail[1])
	if !(math.Abs(loss) <= math.MaxFloat64) {
		return 0, fmt.Errorf("fullbatch: the loss is %g: training has diverged; lower the learning rate", loss)
	}
	return loss, nil
}

// digest is a checksum of 24 bits, which a float32 holds.
func digest(x []float32) float32 {
	b := make([]byte, 0, 4*256)
	var sum uint32
	for part := range slices.Chunk(x, 256) {
		b = b[:0]
		for _, v := range part {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		sum = crc32.Update(sum, crc32.IEEETable, b)
	}
	return float32(sum >> 8)
}

// pick returns the given rows of scores in the tape's memory.
func (t *Trainer) pick(scores mat.Dense, rows []int32, tape *nn.Tape) mat.Dense {
	some := tape.Scratch(len(rows), scores.Cols)
	for k, i := range rows {
		copy(some.Row(k), scores.Row(int(i)))
	}
	return some
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
	scores := t.pass(v, t.infer).forward()
	if t.line.err != nil {
		return 0, 0, t.line.err
	}
	if v.rows != nil {
		scores = t.pick(scores, v.rows, t.infer)
	}
	return t.compare(ctx, r, scores, v.labels, bins)
}

// compare compares scores with labels, of all workers.
func (t *Trainer) compare(ctx context.Context, r comm.Reducer, scores mat.Dense, labels graph.Labels, bins int) (metric, loss float64, err error) {
	tally := eval.NewTally(t.config.Metric, t.shard.Labels, bins)
	x := make([]float32, tally.Size())
	sum, count := nn.Loss(mat.Dense{}, scores, labels, nil)
	tally.Write(x, sum, count, scores, labels)
	if _, err := r.Reduce(ctx, uint64(t.at.Epoch), x); err != nil {
		return 0, 0, err
	}
	return tally.Read(x)
}

// finish reports the best state over the whole graph; with one worker as whoever uses the model will compute it, to the
// last bit.
func (t *Trainer) finish(ctx context.Context, r comm.Reducer) (err error) {
	t.result.BestEpoch = t.at.BestEpoch
	a := *t.full
	a.plain = t.shard.Parts == 1
	v, err := t.look(ctx, r, t.split[graph.Val], &a, true)
	if err != nil {
		return err
	}
	t.infer.Reset()
	scores := t.pass(v, t.infer).forward()
	if err := t.line.err; err != nil {
		return err
	}
	if c := t.model.Spec.CorrectSmooth; c != nil {
		if scores, err = c.Apply(scores, nn.TrainClass(t.shard.Labels, t.shard.Split), t.spread(ctx, r)); err != nil {
			return err
		}
	}
	of := func(split graph.Split) (metric, loss float64, err error) {
		return t.compare(ctx, r, t.pick(scores, t.split[split], t.infer), t.shard.Labels.Select(t.split[split]), eval.DefaultBins)
	}
	if t.result.Val, t.result.ValLoss, err = of(graph.Val); err != nil {
		return err
	}
	t.result.Test, t.result.TestLoss, err = of(graph.Test)
	t.result.Bytes, t.result.Memory = t.sent(), t.memory()
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
