package retexo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
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
	nudge    func([]float32) // tests: rounds apart what this peer computes from sums; nil

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
		if t.base, err = trainingView(ctx, t.group, t.shard); err == nil {
			t.base.own = t.full.own
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

// census counts the training labels of all peers, class by class, and the labelled nodes.
func (t *Trainer) census(ctx context.Context) (float64, error) {
	s := t.shard
	c := s.Labels.Classes
	v := make([]float32, c+1)
	var train []int32
	for i, split := range s.Split {
		if split == graph.Train {
			train = append(train, int32(i))
		}
	}
	labels := s.Labels.Select(train)
	for k, n := range labels.Count() {
		v[k] = float32(n)
	}
	v[c] = float32(labels.Labelled())
	if err := t.reduce(ctx, v); err != nil {
		return 0, err
	}
	t.labels = make([]float64, c)
	for k := range t.labels {
		t.labels[k] = float64(v[k])
	}
	return float64(v[c]), nil
}

func (t *Trainer) project(ctx context.Context, w Work, e *Event) error {
	enc, x := t.model.Encoder, t.input
	if t.config.Inductive {
		var present []int32
		for i, split := range t.shard.Split {
			if split != graph.Val && split != graph.Test {
				present = append(present, int32(i))
			}
		}
		x = x.Select(present)
	}
	v, err := components(ctx, t.reducer, x, enc.Spec.Out, t.config.PCAPasses, t.key.FoldString("pca"))
	if err != nil {
		return err
	}
	enc.Proj.W.Value.CopyFrom(v)
	// The sums are the same bits everywhere, but each peer decomposes them itself, and processors may round apart.
	if t.nudge != nil {
		t.nudge(t.held(w)[0])
	}
	mine := make([]float32, t.shard.Parts)
	mine[t.shard.Rank] = float32(digest(t.held(w)[0]))
	err = t.reduce(ctx, mine)
	e.Digests = digests(mine)
	return err
}

func (t *Trainer) exchange(ctx context.Context, w Work) (err error) {
	l := t.model.Layers[w.Stage-1]
	what := fmt.Sprintf("rows of stage %d, hop %d", w.Stage, w.Hop)
	if t.config.Survival.On() {
		if err := t.unplace(w, what); err != nil {
			return err
		}
	}
	if t.covered(l) {
		return t.cross(ctx, l, w, what)
	}
	if err := t.full.fetch(ctx, t.group, t.coder, t.shard, w.Hop, what); err != nil {
		return err
	}
	if t.config.Survival.On() {
		if err := t.standIn(ctx, w, l); err != nil {
			return err
		}
	}
	if w.Hop > 0 {
		if t.training == t.full {
			return nil
		}
		if err := t.training.fetch(ctx, t.group, t.coder, t.shard, w.Hop, what); err != nil {
			return err
		}
		t.fill(t.training)
		return nil
	}
	if same(t.base.own, t.full.own) {
		t.base.src = t.full.src
	} else if err := t.base.fetch(ctx, t.group, t.coder, t.shard, 0, what); err != nil {
		return err
	}
	t.training = t.base
	if n := t.config.Neighbours; n > 0 {
		key := t.key.FoldString("neighbours").Fold(uint64(w.Stage))
		t.training, err = t.base.sampled(ctx, t.group, t.shard, l.Edges, n, key)
	}
	return err
}

func (t *Trainer) aggregate(w Work) {
	l := t.model.Layers[w.Stage-1]
	t.full.aggregate(l)
	if t.training != t.full {
		t.training.aggregate(l)
	}
}

// begin puts stage k together: its rows are in place.
func (t *Trainer) begin(k int) error {
	st := &stage{tape: nn.NewTape(), infer: nn.NewInference(), round: -1}
	if t.config.Balanced {
		st.weight = nn.ClassWeights(t.labels)
	}
	key := t.key.FoldString("init")
	if k == 0 {
		st.layer, st.head = t.model.Encoder.Layer, t.model.Encoder.Layer.Head
	} else {
		st.layer, st.head = t.model.Layers[k-1], t.model.Layers[k-1].Head
	}
	if st.head == nil && k < len(t.model.Layers) && t.config.Solver != "ridge" {
		// A stage whose hidden rows travel trains under a head of its own, which is thrown away with it.
		st.head = nn.NewHead(fmt.Sprintf("head%d", k), st.layer.Spec.Out, []int{t.config.Spec.Classes}, 0, key)
	}
	st.train = newBatch(t.training, st.layer, t.shard, graph.Train)
	st.val = newBatch(t.full, st.layer, t.shard, graph.Val)
	st.test = newBatch(t.full, st.layer, t.shard, graph.Test)
	t.stage = st
	if t.config.Solver == "ridge" {
		return nil
	}
	params := st.layer.Params()
	if st.head != nil {
		params = append(params, st.head.Params()...)
	}
	st.slab = nn.NewSlab(params)
	n := len(st.slab.Value)
	st.best = make([]float32, n)
	st.sum = st.slab.Room(2 + t.tally.Size() + t.shard.Parts + 1)
	opt, err := optim.New(t.config.Optimizer, n)
	if err != nil {
		return err
	}
	st.opt = opt
	if t.config.LocalSteps > 1 {
		st.start = make([]float32, n)
		_, moments := opt.State()
		for range moments {
			st.moments = append(st.moments, make([]float32, n))
		}
	}
	return nil
}

func (t *Trainer) round(ctx context.Context, w Work, e *Event) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	st := t.stage
	n := len(st.slab.Value)
	loss, count := st.update(t.config, t.key.FoldString("dropout").Fold(uint64(w.Stage)).Fold(uint64(w.Round)), w.Round)
	tail := st.sum[n:]
	clear(tail)
	tail[0], tail[1] = float32(loss), float32(count)
	rest := tail[2:]
	if w.Eval {
		st.val.tally(t.tally, rest, st.forward(st.val))
	}
	size := 2
	if w.Eval {
		size += t.tally.Size()
	}
	rest = tail[size : size+t.shard.Parts]
	rest[t.shard.Rank] = float32(digest(st.slab.Value))
	all := st.sum[:n+size+t.shard.Parts]
	if t.config.Survival.On() {
		all = all[:len(all)+1]
		all[len(all)-1] = t.knocks()
		var done context.CancelFunc
		ctx, done = t.roundLimit(ctx)
		defer done()
	}
	if err := t.reduce(ctx, all); err != nil {
		return err
	}
	e.Regroup = t.config.Survival.On() && all[len(all)-1] > 0
	if tail[1] == 0 {
		return errors.New("no peer that is left has a training node")
	}
	e.Loss, st.count = float64(tail[0])/float64(tail[1]), float64(tail[1])
	if w.Eval {
		var err error
		if e.Val, e.ValLoss, err = t.tally.Read(tail[2:size]); err != nil {
			return err
		}
	} else {
		e.Val = math.NaN()
	}
	e.Digests = digests(rest)
	if _, again := t.machine.differs(e.Digests); again {
		return nil // the round does not count
	}
	t.observe(w, e)
	if !(math.Abs(e.Loss) <= math.MaxFloat64) {
		return fmt.Errorf("the loss is %g: training has diverged; lower the learning rate", e.Loss)
	}
	return nil
}

// enter begins the stage unless it has begun.
func (t *Trainer) enter(k int) error {
	t.restoreKept()
	if t.stage != nil {
		return nil
	}
	if err := t.begin(k); err != nil {
		return err
	}
	return t.goOn()
}

func digests(v []float32) []uint32 {
	d := make([]uint32, len(v))
	for i, x := range v {
		d[i] = uint32(x)
	}
	return d
}

func (t *Trainer) apply(w Work) {
	if w.Keep {
		t.stage.keep()
	}
	t.stage.apply(t.config, w.Round, t.stage.count)
}

// sync takes the parameters and, where all peers keep the same, the optimiser's moments of peer w.From.
func (t *Trainer) sync(ctx context.Context, w Work) error {
	held := t.held(w)
	if st := t.stage; st != nil && st.slab != nil {
		if err := st.undo(t.config); err != nil {
			return err
		}
	}
	before := digest(held[0])
	fetched := make([][]float32, len(held)) // all of it or nothing: a peer may be lost in between
	for i, x := range held {
		fetched[i] = slices.Clone(x)
		if err := t.group.Broadcast(ctx, comm.Control, w.From, fetched[i]); err != nil {
			return err
		}
	}
	for i, x := range held {
		copy(x, fetched[i])
	}
	if t.Observer.Sync != nil {
		t.Observer.Sync(w.Stage, w.Round, w.From, digest(held[0]) != before)
	}
	return nil
}

// held returns what all peers hold alike at this point of the run: components, solutions, or parameters and, where they
// all take the same steps, the optimiser's moments. The first of them is what digests are of.
func (t *Trainer) held(w Work) [][]float32 {
	switch {
	case w.Stage == 0 && t.model.Encoder.Proj != nil:
		return [][]float32{t.model.Encoder.Proj.W.Value.Data}
	case t.config.Solver == "ridge":
		return [][]float32{t.stage.solved}
	}
	all := [][]float32{t.stage.slab.Value}
	if t.config.LocalSteps == 1 {
		_, moments := t.stage.opt.State()
		all = append(all, moments...)
	}
	return all
}

func (t *Trainer) evaluate(ctx context.Context, w Work, e *Event) error {
	if err := t.enter(w.Stage); err != nil {
		return err
	}
	size := t.tally.Size()
	v := make([]float32, size+t.shard.Parts)
	t.stage.val.tally(t.tally, v, t.stage.forward(t.stage.val))
	v[size+t.shard.Rank] = float32(digest(t.stage.slab.Value))
	if err := t.reduce(ctx, v); err != nil {
		return err
	}
	var err error
	e.Val, e.ValLoss, err = t.tally.Read(v[:size])
	e.Digests = digests(v[size:])
	return err
}

// freeze ends a stage: its best parameters are taken, the rows that the next stage sees are computed, and the metric
// over all validation and test nodes is summed.
func (t *Trainer) freeze(ctx context.Context, w Work) error {
	if w.Stage == 0 && t.config.Spec.Encoder.Kind != "mlp" {
		t.carry(nil, 0)
		return nil
	}
	st := t.stage
	if !w.Keep && st.slab != nil {
		st.swap()
	}
	if err := t.report(ctx, w); err != nil {
		return err
	}
	t.carry(st, w.Stage)
	t.stage = nil
	return nil
}

// carry computes the rows that the stage after k sees of own nodes. st is stage k's, with its final parameters; nil for
// an encoder that is not trained.
func (t *Trainer) carry(st *stage, k int) {
	if t.config.Survival.On() {
		defer func() { t.own, t.rows = t.placeOf(k+1), place{} }()
	}
	if st == nil {
		if t.config.Spec.Encoder.Kind == "pca" {
			t.full.own = t.model.Encoder.Encode(t.shard.X)
		}
		return
	}
	full := graph.Features{Dense: st.carry(t.full.all(st.layer, t.shard), t.shard.Owned, t.config.Spec.Carry)}
	if t.base != t.full {
		t.base = &view{adj: t.base.adj, degree: t.base.degree,
			own: graph.Features{Dense: st.carry(t.training.all(st.layer, t.shard), t.shard.Owned, t.config.Spec.Carry)}}
	}
	t.full = &view{adj: t.full.adj, degree: t.full.degree, own: full}
	if !t.config.Inductive || k == 0 {
		t.base = t.full
	}
	t.training = t.base
}

// report sums the metric of the finished stage over all validation and test nodes.
func (t *Trainer) report(ctx context.Context, w Work) error {
	final := eval.NewTally(t.config.Metric, t.shard.Labels, eval.DefaultBins)
	size := final.Size()
	v := make([]float32, 2*size)
	t.stage.val.tally(final, v[:size], t.stage.forward(t.stage.val))
	t.stage.test.tally(final, v[size:], t.stage.forward(t.stage.test))
	if err := t.reduce(ctx, v); err != nil {
		return err
	}
	info := StageInfo{Stage: w.Stage, BestRound: t.machine.Position().BestRound}
	var err error
	if info.Val, info.ValLoss, err = final.Read(v[:size]); err != nil {
		return err
	}
	if info.Test, info.TestLoss, err = final.Read(v[size:]); err != nil {
		return err
	}
	info.Bytes = t.sent()
	t.result.Stages = append(t.result.Stages, info)
	if t.Observer.StageEnd != nil {
		t.Observer.StageEnd(info)
	}
	return nil
}

// sent is what this peer has sent in the run, before an interruption too.
func (t *Trainer) sent() comm.Counts {
	b := t.group.Bytes()
	return comm.Counts{Halo: t.before.Halo + b.Halo, Reduce: t.before.Reduce + b.Reduce, Control: t.before.Control + b.Control}
}

func (t *Trainer) observe(w Work, e *Event) {
	info := RoundInfo{Stage: w.Stage, Round: w.Round, Loss: e.Loss, Val: e.Val, ValLoss: e.ValLoss, Bytes: t.sent()}
	t.result.Rounds = append(t.result.Rounds, info)
	if t.Observer.RoundEnd != nil {
		t.Observer.RoundEnd(info)
	}
}
