package fullbatch

import (
	"context"
	"errors"
	"math"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/nn/task"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/joint"
	"github.com/heddle-gnn/heddle/train/links"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// Trainer trains one model at one worker.
type Trainer struct {
	links.Final // of task links

	OnEvent     func(train.Event) // called synchronously, must not block; nil: nobody listens
	Checkpoints *checkpoint.Store // nil: none are written
	KeepHidden  bool              // for Hidden

	config   Config
	asked    eval.Metric  // before the labels are counted
	positive string       // class of two, once the labels are counted
	shard    *shard.Shard // with the split that this run trains by
	whole    *shard.Shard // as it was given
	model    *nn.Model
	key      rng.Key
	units    []unit
	input    graph.Features // of the owned nodes, what the first unit sees
	rows     graph.Features // the same and, where first says so, of the halo
	first    first
	line     *line
	slab     *tape.FlatParams
	begins   []int // [unit] of the slab's gradients: what is whole when its backward pass is done
	beside   bool  // sums are taken while rows travel
	bucket   int   // the least of gradients that are summed at once
	opt      *optim.Optimizer
	tape     *tape.Tape // of steps
	infer    *tape.Tape // of validation
	merged   int        // sums of statistics that this step has taken
	best     []float32
	at       train.Position          // Round is the epoch
	split    map[graph.Split][]int32 // owned nodes
	full     *graphView              // the whole graph
	seen     *graphView              // what training may see of it
	train    *view                   // what a step computes
	given    *labelInputs            // labels among its input; nil: none
	own      *ownRows                // of nodes without features; nil: the encoder has none
	val      *view                   // what is validated
	weight   []float32               // of each class, or nil
	count    float64                 // training labels of all workers, by weight
	result   train.Result
	logits   mat.Dense   // of own nodes; empty until they are computed by the best state
	hidden   mat.Dense   // of own nodes, with KeepHidden
	before   comm.Counts // sent before an interruption
	done     bool        // the model is final

	links  *links.Task // nil: nodes have labels
	labels []float64   // labels.Counts.Sums, where they say in which units the model learns numbers; nil: labels are classes

	generation uint64 // the last that this process had a part in: a part of the name of every reduction
	agreed     uint64 // the one in which what this worker holds was agreed on
}

// unit is one stage of the chain that is trained jointly: the encoder's layer or a graph layer, with its head where the
// model keeps one.
type unit struct {
	layer *nn.Layer
	head  tape.Operator // nil: none
}

// New returns the trainer of the worker that holds s. m is the model of c.Spec, made with the same key at every worker;
// it is changed in place.
func New(c Config, s *shard.Shard, m *nn.Model) (*Trainer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.Fits(s); err != nil {
		return nil, err
	}
	steps := tape.New()
	t := &Trainer{config: c, asked: c.Metric, whole: s, model: m, key: rng.New(c.Seed), tape: steps,
		infer: steps.Inference(), at: train.Position{BestRound: -1}}
	if c.Links != nil {
		var err error
		if t.links, err = links.New(*c.Links, c.Seed, s); err != nil {
			return nil, err
		}
		s = t.links.Messages()
	}
	t.learnFrom(s)
	if t.links == nil && s.Parts == 1 && len(t.split[graph.Train]) == 0 {
		return nil, errNoTraining
	}
	t.slab = tape.NewFlatParams(m.Params())
	t.best = make([]float32, len(t.slab.Value))
	var err error
	if t.opt, err = optim.New(c.Optimizer, t.slab.Trained); err != nil {
		return nil, err
	}
	if t.own, err = newOwnRows(c, s, t.key); err != nil {
		return nil, err
	}
	t.chain()
	t.begins, t.bucket = begins(t.slab.Params, t.units), bucket
	return t, nil
}

// learnFrom makes s, this worker's shard, what the run learns from and validates by.
func (t *Trainer) learnFrom(s *shard.Shard) {
	t.shard, t.split = s, make(map[graph.Split][]int32)
	for i, split := range s.Split {
		t.split[split] = append(t.split[split], int32(i))
	}
	t.input = t.model.Encoder.Input(t.model.Spec.Reads(s.X))
	if spec := t.model.Spec; spec.Encoder.Labels > 0 {
		t.input = graph.Columns([]graph.Features{t.input, graph.OneHot(graph.ClassIn(graph.Train, s.Labels, s.Split),
			spec.Classes)})
	}
}

var errNoTraining = errors.New("fullbatch: the graph has no training node: nothing can be learned")

// chain lines up the layers.
func (t *Trainer) chain() {
	scores := t.model.Spec.LayerOutput == nn.Logits
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
	t.line = &line{ctx: ctx, group: g, sender: train.NewSender(g, t.shard, t.config.Rows), fixed: t.config.Order == "fixed", ahead: t.config.Prefetch, key: t.key.FoldString("boundary")}
	if err := t.begin(ctx, r); err != nil {
		return err
	}
	t.beside = r == comm.Reducer(g) && g.Size() > 1
	if t.beside {
		g.Dup()
	}
	if t.at.Stage == 0 {
		if err := t.epochs(ctx, r); err != nil {
			return errors.Join(err, t.save()) // a step is taken whole or not at all: the state is that of the epoch's begin
		}
		copy(t.slab.Value, t.best)
		t.own.takeBest()
	}
	if err := t.evaluate(ctx, r); err != nil {
		return err
	}
	t.at = train.Position{Stage: 1, Best: t.at.Best, BestLoss: t.at.BestLoss, BestRound: t.at.BestRound}
	if err := t.save(); err != nil {
		return err
	}
	return t.finish(ctx)
}

// finish ends a run. Every worker has saved the finished state when one of them passes the barrier: from there on nobody
// can come back and train another model. Until then the model is not final.
func (t *Trainer) finish(ctx context.Context) error {
	if err := t.line.group.Barrier(ctx); err != nil {
		return err
	}
	t.result.Sent, t.done, t.at.Round = t.sent(), true, recovery.Final
	return t.save()
}

func (t *Trainer) epochs(ctx context.Context, r comm.Reducer) error {
	for t.at.Round < t.config.Rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := train.Event{Kind: train.RoundEnd, Round: t.at.Round, Metric: string(t.config.Metric), Done: t.at.Round + 1, Total: t.config.Rounds, Val: math.NaN(), ValLoss: math.NaN()}
		if t.at.Round%t.config.EvalEvery == 0 {
			var err error
			if e.Val, e.ValLoss, err = t.validate(ctx, r); err != nil {
				return err
			}
			if p := t.config.Patience; p > 0 && t.at.BestRound >= 0 && t.at.Round-t.at.BestRound >= p {
				return nil
			}
		}
		var err error
		if e.Loss, err = t.step(ctx, r); err != nil {
			return err
		}
		e.Sent = t.sent()
		t.report(e)
		t.at.Round++
		if c := t.config.Checkpoint; c > 0 && t.at.Round%c == 0 {
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
	t.own.begin()
	t.tape.Reset()
	t.merged = 0
	t.line.epoch = uint64(t.at.Round)
	t.tape.Key = t.key.FoldString("dropout").Fold(uint64(t.at.Round))
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
	n := t.slab.Trained
	scale, lr := float32(1/t.count), t.config.Optimizer.LR*t.config.Schedule.At(t.at.Round)
	t.opt.StepScaled(t.slab.Value[:n], t.slab.Grad[:n], scale, lr)
	t.own.step(scale, lr)
	for _, u := range t.units {
		u.layer.Settle()
	}
	return loss / t.count, nil
}

// lose returns the loss of a step's scores, of own nodes or links, and adds its gradient to grad.
func (t *Trainer) lose(grad, scores mat.Dense) (float64, error) {
	if t.links != nil {
		return t.links.Learn(t.line.ctx, t.model.Decoder, t.at.Round, grad, scores)
	}
	v := t.train
	some, d := scores, grad
	if v.rows != nil {
		some, d = t.pick(scores, v.rows, t.tape), t.tape.Scratch(len(v.rows), scores.Cols)
	}
	loss, _ := task.Loss(d, some, v.labels, t.weight)
	for k, i := range v.rows {
		copy(grad.Row(int(i)), d.Row(k))
	}
	return loss, nil
}

// statistics adds up statistics of layers over the workers in the midst of a step, when no rows travel.
func (t *Trainer) statistics(r comm.Reducer) func(x []float32) error {
	return func(x []float32) error {
		id := t.id(ofStatistics, t.merged)
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
	if t.at.Improve(t.config.Metric, t.at.Round, val, loss) {
		copy(t.best, t.slab.Value)
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
		ranks, err := t.links.Measure(ctx, t.model.Decoder, r, t.id(ofValidation, 0), graph.Val, scores, train.SelectionBins, false)
		return ranks.All.Of(t.config.Metric), ranks.All.Loss, err
	}
	if v.rows != nil {
		scores = t.pick(scores, v.rows, t.infer)
	}
	metric, loss, _, err = t.compare(ctx, r, t.id(ofValidation, 0), scores, v.labels, train.SelectionBins)
	return metric, loss, err
}

// compare compares scores with labels, of all workers.
func (t *Trainer) compare(ctx context.Context, r comm.Reducer, id comm.ReduceID, scores mat.Dense, labels graph.Labels,
	bins int) (metric, loss, bound float64, err error) {
	return joint.Compare(ctx, r, id, t.config.Config, t.shard.Nodes, scores, labels, bins)
}

// evaluate reports the best state over the whole graph; with one worker as whoever uses the model will compute it, to the
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
		w.keep = &t.hidden
	}
	scores, err := w.forward()
	if err != nil {
		return err
	}
	if c := t.model.Spec.CorrectSmooth; c != nil {
		if scores, err = c.Apply(scores, graph.ClassIn(graph.Train, t.shard.Labels, t.shard.Split),
			t.spread(ctx, r)); err != nil {
			return err
		}
	}
	t.logits = scores.Clone()
	of := func(split graph.Split) (metric, loss, bound float64, err error) {
		if t.links != nil {
			ranks, err := t.Rank(ctx, t.links, t.model.Decoder, r, t.id(ofResult, int(split)), split, scores)
			return ranks.All.Of(t.config.Metric), ranks.All.Loss, 0, err
		}
		return t.compare(ctx, r, t.id(ofResult, int(split)), t.pick(scores, t.split[split], t.infer), t.shard.Labels.Select(t.split[split]), eval.DefaultBins)
	}
	e := train.Event{Kind: train.StageEnd, Round: len(t.result.Curve()), Metric: string(t.config.Metric), BestRound: t.at.BestRound}
	if e.Val, e.ValLoss, e.ValBound, err = of(graph.Val); err != nil {
		return err
	}
	if e.Test, e.TestLoss, e.TestBound, err = of(graph.Test); err != nil {
		return err
	}
	e.Sent = t.sent()
	t.report(e)
	return nil
}

// allLayers is what the only stage is called.
const allLayers = "all layers"

// report records an event and passes it on.
func (t *Trainer) report(e train.Event) {
	e.StageName, e.Positive = allLayers, t.positive
	t.result.Record(e)
	if t.OnEvent != nil {
		t.OnEvent(e)
	}
}

// Done reports whether the model is final; session.Session asks for it. What Run returned then concerns the other workers
// only: one of them may need what this one holds.
func (t *Trainer) Done() bool { return t.done }

// Logits returns those of own nodes by the final model, [Owned × C], computed with the rows of other workers; empty until
// Run has returned.
func (t *Trainer) Logits() mat.Dense { return t.logits }

// Hidden returns the rows of own nodes that the last linear map of the final model reads, [Owned × H], where KeepHidden asked
// for them before Run: those before a head, else the last layer's input; empty where there is but one layer.
func (t *Trainer) Hidden() mat.Dense { return t.hidden }

// Result returns what Run measured so far.
func (t *Trainer) Result() train.Result { return t.result }
