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
	shard  *shard.Shard // with the split that this run trains by
	key    rng.Key
	units  []unit
	input  graph.Features // of the owned nodes, what the first unit sees
	rows   graph.Features // the same and, according to first, of the halo
	first  first
	line   *haloLine
	begins []int                   // [unit] of the gradients: what is whole when its backward pass is done
	beside bool                    // sums are taken while rows are sent
	bucket int                     // the least of gradients that are summed at once
	tape   *tape.Tape              // of steps
	infer  *tape.Tape              // of validation
	merged int                     // sums of statistics that this step has taken
	split  map[graph.Split][]int32 // owned nodes
	full   *graphView              // the whole graph
	seen   *graphView              // what training may see of it
	train  *view                   // what a step computes
	given  *labelInputs            // labels among its input (nil = none)
	own    *ownRows                // of nodes without features (nil = the encoder has none)
	val    *view                   // what is validated
	weight []float32               // of each class, or nil
	count  float64                 // training labels of all workers, by weight
	links  *links.Learner          // (nil = nodes have labels)
}

// unit is one stage of the chain that is trained jointly: the encoder's layer or a graph layer, with its head where the
// model keeps one.
type unit struct {
	layer *nn.Layer
	head  tape.Operator // (nil = none)
}

// Train implements train.Method.
func (c Config) Train(ctx context.Context, at *train.Place, own *shard.Shard) (*train.Trained, error) {
	return train.Train(ctx, at, c, own, New)
}

// New returns the trainer of the worker that owns s. m is the model of c.Spec, made with the same key at every worker;
// it is changed in place.
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

// learnFrom makes s, this worker's shard, what the run learns from and validates by.
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

// chain lines up the layers.
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

// Run trains until the epochs or the patience are used up, ctx ends or a worker is lost; then it leaves a checkpoint
// and returns an error. Rows and their gradients are sent over g, sums through r.
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

// stepOnce makes one step of the optimiser and returns the mean loss over the training labels before it.
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

// lose returns the loss of a step's scores, of own nodes or links, and adds its gradient to grad.
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

// statistics adds up statistics of layers over the workers within a step, when no rows are sent.
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

// validate scores the validation nodes and keeps the parameters if they are the best so far.
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

// evaluate reports the best state over the whole graph; with one worker, as inference computes it, to the last bit.
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
