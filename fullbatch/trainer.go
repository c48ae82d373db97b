package fullbatch

import (
	"context"
	"errors"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// Trainer trains one model at one worker.
type Trainer struct {
	*train.Epochs

	config Config
	shard  *shard.Shard // with the split for this run
	key    rng.Key
	units  []unit
	input  graph.Features // features of owned nodes as the first unit reads them
	rows   graph.Features // the same rows and, depending on first, the rows of the halo
	first  first
	line   *haloLine
	begins []int                   // [unit] index in the slab from which gradients are complete after its backward pass
	beside bool                    // gradients are summed while rows are sent
	bucket int                     // the least number of gradients that are summed at once
	tape   *tape.Tape              // for training steps
	infer  *tape.Tape              // for validation
	merged int                     // how many statistics this step has summed
	split  map[graph.Split][]int32 // owned nodes of each split
	full   *graphView              // the whole graph
	seen   *graphView              // the part that training may see
	train  *view                   // the nodes that a training step computes
	given  *labelInputs            // labels in the training input (nil = none)
	own    *ownRows                // learned rows of nodes without features (nil = the encoder has none)
	val    *view                   // the nodes that validation computes
	weight []float32               // weight of each class, or nil
	count  float64                 // weighted number of training labels of all workers
	links  *links.Learner          // for link prediction (nil = nodes have labels)
}

// unit is one stage of the jointly trained chain: the encoder's layer or a graph layer, with its head if the model
// keeps one.
type unit struct {
	layer *nn.Layer
	head  tape.Operator // (nil = none)
}

// Train implements train.Method.
func (c Config) Train(ctx context.Context, at *train.Place, own *shard.Shard) (*train.Trained, error) {
	return train.Train(ctx, at, c, own, New)
}

// New returns the trainer of the worker that owns s. m is the model of c.Spec, made with the same key at every worker;
// training changes it.
func New(c Config, s *shard.Shard, m *nn.Model) (*Trainer, error) {
	if err := errors.Join(c.Validate(), c.Fits(s)); err != nil {
		return nil, err
	}
	steps := tape.New()
	t := &Trainer{config: c, key: rng.New(c.Seed), tape: steps, infer: steps.Inference()}
	messages := s
	var err error
	if c.Links != nil {
		if t.links, err = links.New(*c.Links, c.Seed, s); err != nil {
			return nil, err
		}
		messages = t.links.Messages()
	}
	var own train.Kept
	if t.own, err = newOwnRows(c, messages, t.key); err != nil {
		return nil, err
	}
	if t.own != nil {
		own = t.own
	}
	if t.Epochs, err = train.NewEpochs(c.Config, c.Fingerprint(), s, m, m.Params(), own); err != nil {
		return nil, err
	}
	t.learnFrom(messages)
	if t.links == nil && s.Parts == 1 && len(t.split[graph.Train]) == 0 {
		return nil, errors.New("the graph has no training node: nothing can be learned")
	}
	t.chain()
	t.begins, t.bucket = begins(t.Params.Params, t.units), bucket
	return t, nil
}

// learnFrom makes s the shard of this run, for training and validation.
func (t *Trainer) learnFrom(s *shard.Shard) {
	t.shard, t.split = s, make(map[graph.Split][]int32)
	for i, split := range s.Split {
		t.split[split] = append(t.split[split], int32(i))
	}
	t.input = t.Model.Encoder.Input(t.Model.Spec.Reads(s.X))
	if spec := t.Model.Spec; spec.Encoder.Labels > 0 {
		t.input = graph.Columns([]graph.Features{t.input, graph.OneHot(graph.ClassIn(graph.Train, s.Labels, s.Split),
			spec.Classes)})
	}
}

// chain lists the layers as units.
func (t *Trainer) chain() {
	if e := t.Model.Encoder; e.Layer != nil {
		u := unit{layer: e.Layer}
		if t.Model.Spec.LayerOutput == nn.Logits || len(t.Model.Layers) == 0 {
			u.head = e.Layer.Head
		}
		t.units = append(t.units, u)
	}
	for k, l := range t.Model.Layers {
		t.units = append(t.units, unit{layer: l, head: t.Model.Head(k)})
	}
}

// Run trains until the epochs or the patience are used up, ctx ends or a worker is lost. In the last two cases it
// leaves a checkpoint and returns an error. Rows and their gradients are sent over g, sums through r.
func (t *Trainer) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	t.line = &haloLine{ctx: ctx, group: g, sender: train.NewSender(g, t.shard, t.config.Rows),
		fixed: t.config.Order == "fixed", ahead: t.config.Prefetch}
	if err := t.Begin(ctx, g, r); err != nil {
		return err
	}
	if err := t.prepare(ctx, r); err != nil {
		return err
	}
	t.beside = r == comm.Reducer(g) && g.Size() > 1
	if t.beside {
		g.Dup()
	}
	if t.At.Stage == 0 {
		err := t.Rounds(ctx, t.config.Config, 0, t.config.Rounds,
			func(bool) (val, loss float64, err error) { return t.validate(ctx, r) },
			func() (float64, error) { return t.stepOnce(ctx, r) })
		if err != nil {
			return err
		}
		copy(t.Params.Value, t.Best)
		t.own.takeBest()
	}
	if err := t.evaluate(ctx, r); err != nil {
		return err
	}
	return t.End(ctx)
}

// stepOnce makes one optimizer step and returns the mean loss over the training labels before it.
func (t *Trainer) stepOnce(ctx context.Context, r comm.Reducer) (float64, error) {
	t.Params.ZeroGrad()
	t.own.zeroGrad()
	t.tape.Reset()
	t.merged = 0
	t.tape.Key = t.key.FoldString("dropout").Fold(uint64(t.At.Round))
	t.drawLabelInputs()
	v := t.train
	sums := t.reduction(ctx, r)
	w := t.pass(v, t.tape, t.statistics(r))
	scores, err := w.forward()
	if err != nil {
		return 0, sums.end(err)
	}
	grad := t.tape.Scratch(scores.Rows, scores.Cols)
	loss, err := t.lose(grad, scores)
	if err != nil {
		return 0, sums.end(err)
	}
	eval.PutReal(sums.loss[:], loss)
	if err := sums.end(w.backward(grad, sums.ready)); err != nil {
		return 0, err
	}
	if loss, err = sums.sum(); err != nil {
		return 0, err
	}
	n := t.Params.Trained
	scale, lr := float32(1/t.count), t.config.Optimizer.LR*t.config.Schedule.At(t.At.Round)
	t.Opt.StepScaled(t.Params.Value[:n], t.Params.Grad[:n], scale, lr)
	t.own.stepRows(scale, lr)
	for _, u := range t.units {
		u.layer.Settle()
	}
	return loss / t.count, nil
}

// lose returns the loss of a step's scores of own nodes or links, and adds its gradient to grad.
func (t *Trainer) lose(grad, scores mat.Dense) (float64, error) {
	if t.links != nil {
		return t.links.Learn(t.line.ctx, t.Model.Decoder, t.At.Round, grad, scores)
	}
	v := t.train
	some, d := scores, grad
	if v.rows != nil {
		some, d = t.pick(scores, v.rows, t.tape), t.tape.Scratch(len(v.rows), scores.Cols)
	}
	loss, _ := nn.Loss(d, some, v.labels, t.weight)
	for k, i := range v.rows {
		copy(grad.Row(int(i)), d.Row(k))
	}
	return loss, nil
}

// statistics returns a function that sums statistics of layers over the workers within a step, while no rows are sent.
func (t *Trainer) statistics(r comm.Reducer) func(x []float32) error {
	return func(x []float32) error {
		id := t.ID(ofStatistics, t.merged)
		t.merged++
		_, err := r.Reduce(t.line.ctx, &comm.Contribution{ID: id, Update: x})
		return err
	}
}

// pick returns the given rows of scores in the tape's memory.
func (t *Trainer) pick(scores mat.Dense, rows []int32, tape *tape.Tape) mat.Dense {
	some := tape.Scratch(len(rows), scores.Cols)
	for k, i := range rows {
		copy(some.Row(k), scores.Row(int(i)))
	}
	return some
}

// validate computes the metric of the validation nodes and keeps the parameters if they are the best so far.
func (t *Trainer) validate(ctx context.Context, r comm.Reducer) (val, loss float64, err error) {
	val, loss, err = t.measure(ctx, r)
	if err != nil {
		return 0, 0, err
	}
	if t.Improve(val, loss) {
		t.own.keepBest()
	}
	return val, loss, nil
}

func (t *Trainer) measure(ctx context.Context, r comm.Reducer) (metric, loss float64, err error) {
	t.infer.Reset()
	v := t.val
	scores, err := t.pass(v, t.infer, nil).forward()
	if err != nil {
		return 0, 0, err
	}
	if t.links != nil {
		return t.links.Validate(ctx, &t.RunState, t.Model.Decoder, t.ID(ofValidation, 0), scores)
	}
	if v.rows != nil {
		scores = t.pick(scores, v.rows, t.infer)
	}
	metric, loss, _, err = t.Compare(ctx, t.ID(ofValidation, 0), scores, v.labels, train.SelectionBins)
	return metric, loss, err
}

// evaluate reports the metrics of the best state over the whole graph. With one worker they equal inference's to the
// last bit.
func (t *Trainer) evaluate(ctx context.Context, r comm.Reducer) (err error) {
	a := *t.full
	a.plain = t.shard.Parts == 1
	v, err := t.look(ctx, r, graph.Val, &a, true)
	if err != nil {
		return err
	}
	t.infer.Reset()
	w := t.pass(v, t.infer, nil)
	if t.KeepHidden {
		w.keep = &t.Epochs.Rows
	}
	scores, err := w.forward()
	if err != nil {
		return err
	}
	if c := t.Model.Spec.CorrectSmooth; c != nil {
		sums := -1
		spread := t.line.sender.Spread(ctx, t.full.GraphView, func(x []float64) error {
			sums++
			return comm.SumReals(ctx, r, t.ID(ofSmoothing, sums), x)
		})
		class := graph.ClassIn(graph.Train, t.shard.Labels, t.shard.Split)
		if scores, err = c.Apply(scores, class, spread); err != nil {
			return err
		}
	}
	t.Scores = scores.Clone()
	return t.Evaluate(func(split graph.Split) (metric, loss, bound float64, err error) {
		if t.links != nil {
			return t.links.Rank(ctx, &t.RunState, t.Model.Decoder, t.ID(ofResult, int(split)), split, scores)
		}
		return t.Compare(ctx, t.ID(ofResult, int(split)), t.pick(scores, t.split[split], t.infer),
			t.shard.Labels.Select(t.split[split]), eval.DefaultBins)
	})
}
