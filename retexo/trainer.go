package retexo

import (
	"context"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// Trainer feeds one peer's machine: it does the work that the machine asks for.
type Trainer struct {
	OnEvent     func(train.Event) // called synchronously, must not block; nil: nobody listens
	Checkpoints *checkpoint.Store // nil: none are written
	KeepHidden  bool              // for Hidden

	config     Config
	shard      *shard.Shard // with the split that this run trains by
	whole      *shard.Shard // as it was given
	model      *nn.Model
	input      graph.Features // of the owned nodes, as the encoder sees them
	classes    mat.Dense      // [Owned × C] the closed form's logits of them, with Config.Classes
	machine    *machine
	key        rng.Key
	group      *comm.Group
	sender     *train.Sender
	covers     *train.Covers // nil: not yet agreed
	coverGroup *comm.Group   // whose members have agreed on covers
	reducer    comm.Reducer
	generation uint64      // the last that this process had a part in: a part of the name of every reduction
	before     comm.Counts // sent before this start, up to the checkpoint that it goes on from

	full      *view // the whole graph
	base      *view // what training may see of it: the same, or (inductive) the graph without held-out nodes
	training  *view // what the stage at hand trains on: base, as it was exchanged
	stage     *stage
	metric    eval.Accumulator
	countBits int // of the counts of a metric that travel
	labels    labels.Counts
	result    train.Result
	logits    map[int]mat.Dense    // of own nodes, by the stage that computed them
	hidden    map[int]mat.Dense    // the same of the rows that they are made of, with KeepHidden
	said      []recovery.Statement // of each peer, with the last reduction
	digest    []uint32             // among it
	names     []string             // of the stages
	heads     []float32            // of the stages that have ended, one after the other: Config.headsBefore
	hasty     bool                 // a stage's best round was its last
	warned    bool                 // of the costs of closed forms
	moved     bool                 // the logits of stage result.Ends, which the model ends with
	pending   *recovery.Snapshot   // parameters and optimiser of a stage whose rows are not in place; nil: they are in stage, or new
	done      bool                 // the model is final
	nudge     func([]float32)      // tests: rounds apart what this peer computes from sums; nil
}

// New returns the trainer of the peer that holds s. m is the model of c.Spec, made with the same key on every peer; it
// is changed in place.
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
	whole := wholeView(s, input)
	t := &Trainer{config: c, shard: s, whole: s, model: m, input: input, machine: machine, key: rng.New(c.Seed),
		metric: eval.NewAccumulator(c.Metric, s.Labels, train.SelectionBins), full: whole, base: whole, training: whole, names: names, logits: map[int]mat.Dense{}, hidden: map[int]mat.Dense{}}
	t.result.Ends, t.countBits = len(m.Layers), comm.CountBits(s.Nodes)
	for _, cost := range t.costs() {
		if err := cost.Err(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Run trains until the model is done, ctx ends or a peer is lost; then the error says why, and the run can be resumed
// from the checkpoints. Halo rows travel over g, updates through r.
func (t *Trainer) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	t.join(g, r)
	t.warnOfCosts()
	for {
		ready, ok := t.machine.Ready()
		if !ok {
			return fmt.Errorf("retexo: the machine has no work and is not finished")
		}
		if err := ctx.Err(); err != nil {
			return t.stop(ready.Work, err)
		}
		if ready.Save {
			if err := t.save(); err != nil {
				return err
			}
		}
		if ready.Work.Kind == doFinish {
			return t.finish(ctx)
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

// finish ends a run. Every member has saved the finished state when one of them passes the barrier: from there on
// nobody can come back and train another model. Until then the model is not final.
func (t *Trainer) finish(ctx context.Context) error {
	if err := t.group.Barrier(ctx); err != nil {
		return err
	}
	t.result.Sent, t.done, t.machine.at.Round = t.sent(), true, recovery.Final
	if text := t.end(); text != "" {
		t.report(train.Event{Kind: train.Note, Stage: t.result.Ends, Text: text})
	}
	return t.save()
}

// Resume takes up a final model that the checkpoints have, and reports whether there is one; session.Session asks for it.
func (t *Trainer) Resume() (done bool, err error) {
	c, err := t.participant().Newest()
	if c == nil || err != nil || !t.participant().Shape.Final(c.At) {
		return false, err
	}
	if err := t.takeUp(c); err != nil {
		return false, err
	}
	t.result.Sent = t.before
	t.end()
	return t.done, nil
}

// Done reports whether the model is final; session.Session asks for it. What Run returned then concerns the other peers
// only: the last of them may need what this one holds.
func (t *Trainer) Done() bool { return t.done }

// end finds the stage that the model ends with, and returns what there is to say of it.
func (t *Trainer) end() (text string) {
	if !t.config.KeepLast && !t.moved {
		text = t.result.EndWithBest(t.config.Metric)
	}
	return text
}

// Model returns the trained model when Run has returned: that of New, or one with its first layers.
func (t *Trainer) Model() (*nn.Model, error) {
	k := t.result.Ends
	if k == len(t.model.Layers) {
		return t.model, nil
	}
	return t.model.Until(k, t.heads[t.config.headsBefore(k):t.config.headsBefore(k+1)])
}

// Logits returns those of own nodes by the model that Model returns, [Owned × C], computed with the rows of other peers. It
// is empty until Run has returned, and where this peer has the model from another one.
func (t *Trainer) Logits() mat.Dense { return t.logits[t.result.Ends] }

// Hidden returns the rows of own nodes that the last linear map of that model reads, [Owned × H], where KeepHidden asked for
// them before Run: those before a head; without one the last layer's input, or of an only layer all that it reads.
func (t *Trainer) Hidden() mat.Dense { return t.hidden[t.result.Ends] }

// join makes g and r the way to the other peers.
func (t *Trainer) join(g *comm.Group, r comm.Reducer) {
	t.group, t.reducer, t.sender = g, r, train.NewSender(g, t.shard, t.config.Rows)
}

// Result returns what Run measured so far.
func (t *Trainer) Result() train.Result { return t.result }

// report records an event and passes it on.
func (t *Trainer) report(e train.Event) {
	e.Positive = t.labels.PositiveName(t.whole.Labels.Names)
	if e.Stage < len(t.names) { // a finished run stands behind the last stage
		e.StageName = t.names[e.Stage]
	}
	t.result.Record(e)
	if t.OnEvent != nil {
		t.OnEvent(e)
	}
}

// stop ends the run for cause while work w was to be done. Where the parameters at hand are those the round began with,
// they are saved first, so that the run can be resumed from here.
func (t *Trainer) stop(w work, cause error) error {
	if t.stage == nil || w.Kind != doRound && w.Kind != doApply && w.Kind != doEvaluate {
		return cause
	}
	if w.Kind != doEvaluate {
		if err := t.stage.undo(t.config); err != nil {
			return errors.Join(cause, err)
		}
	}
	if w.Kind == doApply && w.Keep {
		t.stage.keep() // the position says that they are the best
	}
	return errors.Join(cause, t.save())
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
		e.Greetings, err = t.hello(ctx)
	case doCountLabels:
		e.Labels, err = t.countLabels(ctx, w)
	case doRestore:
		e.Position, err = t.restore(w.Seq)
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
		t.apply(w)
	case doSync:
		err = t.sync(ctx, w)
	case doEvaluate:
		err = t.evaluate(ctx, w, &e)
	case doFreeze:
		err = t.freeze(ctx, w)
	}
	return e, err
}

// sent is what this peer has sent in the run, before an interruption too.
func (t *Trainer) sent() comm.Counts { return t.before.Plus(t.group.Bytes()) }
