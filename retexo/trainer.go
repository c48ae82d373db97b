package retexo

import (
	"context"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// Trainer does the work that one peer's machine asks for.
type Trainer struct {
	train.RunState

	config     Config
	shard      *shard.Shard // with the split for this run
	model      *nn.Model
	input      graph.Features // features of owned nodes as the encoder reads them
	classes    mat.Dense      // [Owned × C] the closed form's logits, with Config.Classes
	machine    *machine
	key        rng.Key
	sender     *train.Sender
	covers     *train.Covers // (nil = not yet agreed)
	coverGroup *comm.Group   // group whose members have agreed on covers

	full      *view // the whole graph
	base      *view // the part that training may see: full, or (inductive) the graph without held-out nodes
	training  *view // the current stage's training view: base, as it was exchanged
	stage     *stage
	metric    eval.Accumulator
	countBits int               // bits of a metric's counts in messages
	logits    map[int]mat.Dense // logits of own nodes, by stage
	hidden    map[int]mat.Dense // rows that the logits are computed from, by stage, with KeepHidden
	digests   []uint32          // digest of each peer's parameters, from the last reduction
	heads     []float32         // head parameters of the stages that have ended, concatenated (Config.headsBefore)
	hasty     bool              // a stage's best round was its last
	warned    bool              // the warning of slow closed forms was given
	moved     bool              // the logits of stage Measured.Ends, the model's last, were moved
	// parameters and optimizer of a stage whose rows have not been exchanged; nil if they are in stage, or new
	pending *train.Snapshot
}

// Train implements train.Method.
func (c Config) Train(ctx context.Context, at *train.Place, own *shard.Shard) (*train.Trained, error) {
	return train.Train(ctx, at, c, own, New)
}

// New returns the trainer of the peer that owns s. m is the model of c.Spec, made with the same key on every peer;
// training changes it.
func New(c Config, s *shard.Shard, m *nn.Model) (*Trainer, error) {
	frozen := make([]bool, len(m.Layers))
	for i, l := range m.Layers {
		frozen[i] = l.Frozen()
	}
	machine, err := newMachine(c, frozen, s.Rank, s.Parts, s.Fingerprint)
	if err != nil {
		return nil, err
	}
	if err := c.Fits(s); err != nil {
		return nil, err
	}
	names := make([]string, c.Stages())
	for k := range names {
		names[k] = train.StageName(k)
	}
	input := m.Encoder.Input(s.X)
	whole, who := wholeView(s, input), machine.who
	who.Shape = c.shape(m)
	t := &Trainer{RunState: train.NewRunState(who, s, c.Metric, c.Draw(), names...), config: c, shard: s, model: m,
		input: input, machine: machine, key: rng.New(c.Seed),
		metric: eval.NewAccumulator(c.Metric, s.Labels, train.SelectionBins), full: whole, base: whole, training: whole,
		logits: map[int]mat.Dense{}, hidden: map[int]mat.Dense{}}
	t.Measured.Ends, t.countBits = len(m.Layers), comm.CountBits(s.Nodes)
	for _, cost := range t.costs() {
		if err := cost.Err(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Run trains until the model is done, ctx ends or a peer is lost. In the last two cases it returns an error, and the
// run can be resumed from the checkpoints. Halo rows are sent over g, updates through r.
func (t *Trainer) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	t.join(g, r)
	t.warnOfCosts()
	for {
		ready, ok := t.machine.Ready()
		if !ok {
			return fmt.Errorf("the machine has no work and is not finished")
		}
		if err := ctx.Err(); err != nil {
			return t.stop(ready.Work, err)
		}
		if ready.Work.Kind == doFinish {
			return t.finish(ctx)
		}
		if ready.Save {
			if err := t.savePosition(); err != nil {
				return err
			}
		}
		event, err := t.do(ctx, ready.Work)
		if err != nil {
			return t.stop(ready.Work, fmt.Errorf("%s: %w", t.describe(ready.Work), err))
		}
		if err := t.machine.Step(event); err != nil {
			return err
		}
	}
}

// finish ends the run.
func (t *Trainer) finish(ctx context.Context) error {
	t.At = t.machine.Position()
	text := t.end()
	if err := t.Finish(ctx, t); err != nil {
		return err
	}
	if text != "" {
		t.Report(train.Event{Kind: train.Note, Stage: t.Measured.Ends, Text: text})
	}
	return nil
}

// end finds the model's last stage, and returns a text about it.
func (t *Trainer) end() (text string) {
	if !t.config.KeepLast && !t.moved {
		text = t.Measured.EndWithBest(t.Metric)
	}
	t.Scores, t.Rows = t.logits[t.Measured.Ends], t.hidden[t.Measured.Ends]
	return text
}

// Trained returns the trained model after Run has returned: the model that New was given, or its first layers.
func (t *Trainer) Trained() (*nn.Model, error) {
	k := t.Measured.Ends
	if k == len(t.model.Layers) {
		return t.model, nil
	}
	return t.model.Until(k, t.heads[t.config.headsBefore(k):t.config.headsBefore(k+1)])
}

func (t *Trainer) join(g *comm.Group, r comm.Reducer) {
	t.Join(g, r)
	t.sender = train.NewSender(g, t.shard, t.config.Rows)
}

// stop ends the run for cause while work w was to be done. If the current parameters are still the round's first, they
// are saved so that the run can be resumed from here.
func (t *Trainer) stop(w work, cause error) error {
	if t.stage == nil || w.Kind != doRound && w.Kind != doApply && w.Kind != doEvaluate ||
		w.Kind == doEvaluate && w.Round < t.config.Rounds { // a checkpoint has no mark that the rounds are over
		return cause
	}
	if w.Kind != doEvaluate {
		if err := t.stage.undo(t.config); err != nil {
			return errors.Join(cause, err)
		}
	}
	if w.Kind == doApply && w.Keep {
		t.stage.keep() // at this position the current parameters are the best
	}
	return errors.Join(cause, t.savePosition())
}

func (t *Trainer) describe(w work) string {
	switch w.Kind {
	case doHello, doCountLabels, doProject, doPrepare, doRestore:
		return w.Kind.String()
	case doExchange, doAggregate:
		return fmt.Sprintf("%s, stage %d, hop %d", w.Kind, w.Stage, w.Hop)
	}
	return fmt.Sprintf("%s, stage %d, round %d", w.Kind, w.Stage, w.Round)
}

func (t *Trainer) do(ctx context.Context, w work) (e event, err error) {
	e.Work = w
	switch w.Kind {
	case doHello:
		e.Greetings, err = t.Greet(ctx, nil)
	case doCountLabels:
		e.Labels, err = t.countLabels(ctx, w)
	case doRestore:
		e.Position, err = &t.At, t.RestoreFrom(w.Seq, t)
	case doProject:
		err = t.project(ctx, w, &e)
	case doPrepare:
		var seen train.GraphView
		if seen, err = t.sender.InductiveView(ctx); err == nil {
			t.base = &view{GraphView: seen, own: t.full.own}
		}
	case doExchange:
		err = t.exchange(ctx, w)
	case doAggregate:
		t.aggregate(w)
	case doRound:
		err = t.round(ctx, w, &e)
	case doApply:
		if e.Last, err = t.Ended(ctx); err == nil {
			t.apply(w)
		}
	case doSync:
		err = t.sync(ctx, w)
	case doEvaluate:
		err = t.evaluate(ctx, w, &e)
	case doFreeze:
		err = t.freeze(ctx, w)
	}
	return e, err
}
