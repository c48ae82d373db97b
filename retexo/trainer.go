package retexo

import (
	"context"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Trainer feeds one peer's Machine: it does the work that the machine asks for.
type Trainer struct {
	Observer    Observer
	Checkpoints *checkpoint.Store // nil: none are written
	Knock       func() bool       // whether a lost peer asks to be let in again; asked once a round, nil: never

	config  Config
	shard   *partition.Shard
	model   *nn.Model
	input   graph.Features // of the owned nodes, as the encoder sees them
	machine *Machine
	key     rng.Key
	group   *comm.Group
	coder   *wire.Coder
	covers  *covers // nil: not yet agreed
	reducer comm.Reducer
	reduces uint64      // reductions done: the round number that the reducer sees
	before  comm.Counts // sent before this start, up to the checkpoint that it goes on from

	full     *view // the whole graph
	base     *view // what training may see of it: the same, or (inductive) the graph without held-out nodes
	training *view // what the stage at hand trains on: base, or a sample of its edges
	stage    *stage
	tally    eval.Tally
	labels   []float64 // training labels of each class, of all peers
	result   Result
	shares   []float64       // straggler adapt: as they were last reported
	nudge    func([]float32) // tests: rounds apart what this peer computes from sums; nil
	busy     func(nodes int) // tests: works as long as a slow peer does for so many training nodes; nil

	generations // of runs that go on without lost peers
}

// New returns the trainer of the peer that holds s. m is the model of c.Spec, made with the same key on every peer; it
// is changed in place.
func New(c Config, s *partition.Shard, m *nn.Model) (*Trainer, error) {
	frozen := make([]bool, len(m.Layers))
	for i, l := range m.Layers {
		frozen[i] = l.Frozen()
	}
	machine, err := NewMachine(c, frozen, s.Rank, s.Parts, s.Fingerprint)
	if err != nil {
		return nil, err
	}
	if f := s.X.Cols(); f != c.Spec.Features {
		return nil, fmt.Errorf("retexo: shard %d has %d features a node, the model takes %d", s.Rank, f, c.Spec.Features)
	}
	if s.Labels.Classes != c.Spec.Classes || s.Labels.Multi() != (c.Spec.Task == "multi") {
		return nil, fmt.Errorf("retexo: shard %d has %d classes (several a node: %t), the model %d (task %s)", s.Rank, s.Labels.Classes, s.Labels.Multi(), c.Spec.Classes, c.Spec.Task)
	}
	input := m.Encoder.Input(s.X)
	whole := &view{adj: &s.Adj, degree: s.Degree, own: input}
	return &Trainer{config: c, shard: s, model: m, input: input, machine: machine, key: rng.New(c.Seed), coder: wire.New(c.Rows),
		tally: eval.NewTally(c.Metric, s.Labels, selectionBins), full: whole, base: whole, training: whole}, nil
}

// Run trains until the model is done, ctx ends or a peer is lost; then the error says why, and the run can be resumed
// from the checkpoints. Halo rows travel over g, updates through r.
//
// Where the plan lets it go on without lost peers, g is one that has agreed on its members, and Run may be called again,
// with the group of the next generation: after ErrRegroup, and after a *comm.PeerError.
func (t *Trainer) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	if t.config.Survival.On() {
		if err := t.regroup(g); err != nil {
			return err
		}
	}
	t.group, t.reducer = g, r
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
		switch ready.Work.Kind {
		case Finish:
			t.result.Bytes, t.done = t.sent(), true
			if t.config.Survival.On() { // whoever has no model yet may need this peer's
				return g.Barrier(ctx)
			}
			return nil
		case Regroup:
			return ErrRegroup
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

// Result returns what Run measured so far.
func (t *Trainer) Result() Result { return t.result }

// stop ends the run for cause while work w was to be done. Where the parameters at hand are those the round began with,
// they are saved first, so that the run can be resumed from here.
func (t *Trainer) stop(w Work, cause error) error {
	if t.config.Survival.On() {
		t.halt(w)
	}
	if t.stage == nil || w.Kind != Round && w.Kind != Apply && w.Kind != Evaluate {
		return cause
	}
	if w.Kind != Evaluate {
		if err := t.stage.undo(t.config); err != nil {
			return errors.Join(cause, err)
		}
	}
	if w.Kind == Apply && w.Keep {
		t.stage.keep() // the position says that they are the best
	}
	return errors.Join(cause, t.save())
}

func (t *Trainer) describe(w Work) string {
	switch w.Kind {
	case Hello, Census, Project, Prepare, Restore, Fetch:
		return w.Kind.String()
	case Exchange, Aggregate:
		return fmt.Sprintf("%s, stage %d, hop %d", w.Kind, w.Stage, w.Hop)
	}
	return fmt.Sprintf("%s, stage %d, round %d", w.Kind, w.Stage, w.Round)
}

func (t *Trainer) do(ctx context.Context, w Work) (e Event, err error) {
	e.Work = w
	switch w.Kind {
	case Hello:
		e.Greetings, err = t.hello(ctx)
	case Census:
		if e.Labels, err = t.census(ctx); err == nil && t.config.Survival.On() {
			t.begun(t.machine.at)
		}
	case Restore:
		e.Position, err = t.restore(w.Seq)
	case Project:
		err = t.project(ctx, w, &e)
	case Prepare:
		var seen *view
		if seen, err = trainingView(ctx, t.group, t.shard); err == nil {
			seen.own, t.base = t.full.own, seen
		}
	case Exchange:
		if err = t.exchange(ctx, w); err == nil && t.config.Survival.On() {
			t.inPlace(w)
		}
	case Aggregate:
		if t.aggregate(w); t.config.Survival.On() {
			t.inPlace(w)
		}
	case Round:
		err = t.round(ctx, w, &e)
	case Apply:
		t.apply(w)
	case Sync:
		err = t.sync(ctx, w)
	case Evaluate:
		err = t.evaluate(ctx, w, &e)
	case Solve:
		err = t.solve(ctx, w, &e)
	case Choose:
		t.stage.choose(w.Choice)
	case Freeze:
		err = t.freeze(ctx, w)
	case Fetch:
		e.Position, err = t.fetch(ctx, w)
	case Hold:
		e.Have, err = t.hold(ctx, w)
	case Carry:
		err = t.carryAgain(w)
	case Revalidate:
		err = t.revalidate(ctx, w, &e)
	}
	return e, err
}

// reduce sums x over the peers.
func (t *Trainer) reduce(ctx context.Context, x []float32) error {
	t.reduces++
	_, err := t.reducer.Reduce(ctx, t.reduces, x)
	return err
}

// sent is what this peer has sent in the run, before an interruption too.
func (t *Trainer) sent() comm.Counts {
	b := t.group.Bytes()
	return comm.Counts{Halo: t.before.Halo + b.Halo, Reduce: t.before.Reduce + b.Reduce, Control: t.before.Control + b.Control}
}
