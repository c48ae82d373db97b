package retexo

import (
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/pace"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// kind is a kind of work that a machine asks for.
type kind uint8

// The kinds. All but doAggregate and doApply are collective: every peer does them at the same place of the order.
const (
	doHello       kind = iota // tell everyone who I am and what I hold, hear the same of them
	doCountLabels             // count the labels of all peers
	doRestore                 // take up the checkpoint Seq
	doProject                 // find the components of encoder pca
	doPrepare                 // learn what the training view needs to know of halo nodes (inductive only)
	doExchange                // fetch halo rows: the stage's input after Hop aggregations
	doAggregate               // aggregate them
	doRound                   // local steps from the parameters at hand, validation of those parameters; sum both
	doApply                   // make the round's sum the next parameters; with Keep, remember those it started from first
	doSync                    // take the parameters of peer From; they differ somewhere
	doEvaluate                // validate the last parameters of the stage
	doWarm                    // begin the stage's layer from a closed form
	doSolve                   // sum the Gram matrix, solve for each penalty, validate each
	doChoose                  // take solution Choice
	doFreeze                  // take the best parameters; compute the rows the next stage sees; sum the test counts
	doFinish                  // the model is trained; it is final when all peers have saved it

	// Of runs that go on without lost peers, when a generation begins or ends.
	doFetch      // take up the state of peer From, where ours is another
	doHold       // find what rows of the stage all have
	doCarry      // compute the rows of own nodes that the next stage sees once more
	doRevalidate // validate the best state once more: the validation nodes are others
	doRegroup    // end the generation: a lost peer is back
)

var kindNames = [...]string{"hello", "count labels", "restore", "project", "prepare", "exchange", "aggregate", "round", "apply", "sync",
	"evaluate", "warm start", "solve", "choose", "freeze", "finish", "fetch", "hold", "carry", "revalidate", "regroup"}

func (k kind) String() string { return kindNames[k] }

// work is one thing to do. Only the fields that its Kind speaks of are set.
type work struct {
	Kind              kind
	Stage, Hop, Round int
	From, Choice      int
	Peer              int // sync: the lowest rank that holds other parameters than peer From
	Seq               uint64
	Eval              bool // round: look at the validation nodes too
	Keep              bool // apply, freeze: the parameters at hand are the best so far

	Share float64 // round: of its training nodes that this peer takes its steps from; 0: all
}

// ready is what to do now.
type ready struct {
	Work work
	Save bool // write a checkpoint first: Position() and the parameters at hand belong together
}

// event reports work done.
type event struct {
	Work      work
	Greetings []recovery.Greeting // hello: of all peers, by rank
	Position  *train.Position     // restore, fetch: what the checkpoint or the state says
	Have      int                 // hold: the least that a peer has of the stage's rows
	Regroup   bool                // round: some peer asks for another generation
	Loss      float64             // round: mean over all training labels
	Val       float64             // round with Eval, evaluate, revalidate: the metric over all validation labels; NaN: there are none
	ValLoss   float64             // the same: mean loss
	Digests   []uint32            // round, evaluate: of each peer's parameters, by rank
	Times     []float32           // round with straggler adapt: seconds of each peer's own work, by rank
	Labels    float64             // count labels: training labels of all peers; solve: validation labels
	Vals      []float64           // solve: the metric of each penalty; NaN: no validation labels
}

// machine is the protocol of one peer: which work comes next, and what is decided from the sums that all peers see.
// It has no goroutine, clock, socket, disk or kernel in it. All peers' machines see the same sums and so take the
// same way.
//
//	hello ─┬ restore ────────────────────────────────────────────────── round …
//	       └ count labels ─ (project) ─ freeze 0 ─┐
//	┌─────────────────────────────────────────────┘
//	└ (exchange ─ aggregate)×hops ─ (warm start) ─ (round ─ apply | round ─ sync)×rounds ─ evaluate ─ freeze ─ next stage … finish
//
// Where a run goes on without lost peers, each generation begins with hello and goes on with what its members hold:
//
//	hello ─ fetch ─ hold ─┬ rows are in place ─────────────────────────────── (revalidate) ─ round …
//	                      ├ own rows are: (exchange ─ aggregate)×hops ──────── (revalidate) ─ round …
//	                      └ a peer has none: carry ─ ((exchange ─ aggregate)×hops ─ carry)×stages …
type machine struct {
	config  Config
	frozen  []bool               // by stage: the aggregate is computed once
	who     recovery.Participant // without a shape, or checkpoints
	at      train.Position
	next    ready
	waiting bool       // next has been handed out
	choice  int        // ridge: the solution to take
	synced  int        // syncs since the last round that committed
	warm    bool       // the stage's layer has begun from its closed form
	pace    *pace.Pace // straggler adapt: who is given how much of its work; nil: all of it

	// Of runs that go on without lost peers.
	members []int // ranks, of this generation
	held    bool  // there is something to go on from
	rebuild int   // stage whose rows are being computed once more, with those of all before it; 0: none
	stale   bool  // the best state was validated over other members
	regroup bool  // the generation ends after this round

	unjudged train.Position // at, before the last state of the stage was compared with the best
}

// newMachine returns the machine of peer rank of size. frozen says of each layer whether its aggregate can be
// computed once (nn.Layer.Frozen).
func newMachine(c Config, frozen []bool, rank, size int, partition [32]byte) (*machine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if len(frozen) != len(c.Spec.Layers) || size < 1 || rank < 0 || rank >= size {
		return nil, fmt.Errorf("retexo: %d layers, %d of them described, rank %d of %d peers", len(c.Spec.Layers), len(frozen), rank, size)
	}
	for i, l := range c.Spec.Layers {
		if l.Hops > 1 && !frozen[i] {
			return nil, fmt.Errorf("layers[%d]: hops %d, but %s aggregates with parameters and can do so once a layer only", i, l.Hops, l.Conv)
		}
	}
	if err := c.Survival.Validate(size); err != nil {
		return nil, err
	}
	who := recovery.Participant{Rank: rank, Size: size, Config: c.Fingerprint(), Model: train.Fingerprint(c.Spec), Partition: partition, Own: !c.Survival.On()}
	m := &machine{config: c, frozen: frozen, who: who, at: train.Position{BestRound: -1}, next: ready{Work: work{Kind: doHello}}}
	if c.Survival.Straggler == "adapt" {
		m.pace = pace.New(size)
	}
	return m, nil
}

// Position returns where the run stands.
func (m *machine) Position() train.Position { return m.at }

// Ready returns what to do now, once; ok is false while that is being done, and after doFinish.
func (m *machine) Ready() (r ready, ok bool) {
	if m.waiting {
		return ready{}, false
	}
	m.waiting = true
	return m.next, true
}

// Step reports that the work handed out is done, and decides the next. An error ends the run.
func (m *machine) Step(e event) error {
	if !m.waiting || e.Work != m.next.Work {
		return fmt.Errorf("retexo: %s reported, while %s was asked for", e.Work.Kind, m.next.Work.Kind)
	}
	next, err := m.decide(e)
	if err != nil {
		return err
	}
	m.next, m.waiting = next, false
	return nil
}

func (m *machine) decide(e event) (ready, error) {
	if e.Work.Kind == doSolve { // the choice stands, whoever's solutions are taken
		m.choice, m.unjudged = m.config.Metric.Strongest(e.Vals, e.Labels), m.at
		m.at.Best, m.at.BestRound = e.Vals[m.choice], 0
	}
	if from, peer, ok := m.differs(e.Digests); ok {
		return m.sync(from, peer)
	}
	switch w := e.Work; w.Kind {
	case doHello:
		return m.agree(e.Greetings)
	case doCountLabels:
		if e.Labels == 0 {
			return ready{}, errors.New("no peer has a training node: nothing can be learned")
		}
		return m.begin(), nil
	case doRestore:
		m.at = *e.Position
		return m.resume(), nil
	case doProject, doSolve, doSync:
		return m.agreed(), nil
	case doWarm:
		m.warm = true
		return m.round(), nil
	case doPrepare:
		return m.enter(1, 0), nil
	case doExchange:
		if m.frozen[w.Stage-1] {
			return do(work{Kind: doAggregate, Stage: w.Stage, Hop: w.Hop}), nil
		}
		return m.aggregated(w.Stage), nil
	case doAggregate:
		if w.Hop+1 < m.config.Spec.Layers[w.Stage-1].Hops {
			return m.enter(w.Stage, w.Hop+1), nil
		}
		return m.aggregated(w.Stage), nil
	case doRound:
		m.regroup = e.Regroup
		if m.pace != nil {
			m.pace.Note(e.Times, m.members)
		}
		return m.judge(e), nil
	case doApply:
		m.at.Round, m.synced = w.Round+1, 0
		if m.regroup {
			return do(work{Kind: doRegroup, Stage: w.Stage, Round: m.at.Round}), nil
		}
		r := m.round()
		r.Save = m.config.Checkpoint > 0 && m.at.Round%m.config.Checkpoint == 0
		return r, nil
	case doEvaluate:
		m.unjudged = m.at
		keep := m.at.Improve(m.config.Metric, e.Work.Round, e.Val, e.ValLoss)
		return do(work{Kind: doFreeze, Stage: w.Stage, Keep: keep}), nil
	case doChoose:
		return do(work{Kind: doFreeze, Stage: w.Stage, Keep: true}), nil
	case doFreeze:
		return m.finished(w.Stage), nil
	case doFetch:
		return m.fetched(e.Position), nil
	case doHold:
		return m.placed(e.Have), nil
	case doCarry:
		return m.carried(w.Stage), nil
	case doRevalidate:
		if e.Val == e.Val {
			m.at.Best, m.at.BestLoss = e.Val, e.ValLoss
		}
		return m.round(), nil
	}
	return ready{}, errors.New("retexo: the run is finished")
}

// finished goes on behind a stage whose parameters are final.
func (m *machine) finished(stage int) ready {
	m.held, m.warm = true, false
	m.at = train.Position{Stage: stage + 1, BestRound: -1}
	switch {
	case m.at.Stage == m.config.Stages():
		return ready{Work: work{Kind: doFinish}, Save: true}
	case stage == 0 && m.config.Inductive:
		return do(work{Kind: doPrepare})
	}
	return m.enter(m.at.Stage, 0)
}

// agree continues where the greetings say.
func (m *machine) agree(all []recovery.Greeting) (ready, error) {
	d, err := m.who.Decide(all)
	if err != nil {
		return ready{}, err
	}
	m.members = d.Members
	switch {
	case d.Seq == 0:
		m.at, m.held = train.Position{BestRound: -1}, false
		return do(work{Kind: doCountLabels}), nil
	case m.who.Own:
		return do(work{Kind: doRestore, Seq: d.Seq}), nil
	}
	return do(work{Kind: doFetch, From: d.From}), nil
}

// begin starts stage 0.
func (m *machine) begin() ready {
	switch m.config.Spec.Encoder.Kind {
	case "pca":
		if m.config.Init == "" || m.config.Classes != nil {
			return do(work{Kind: doProject})
		}
	case "mlp":
		return m.train()
	}
	return do(work{Kind: doFreeze})
}

// resume goes on at a restored position.
func (m *machine) resume() ready {
	if m.at.Stage == m.config.Stages() {
		return do(work{Kind: doFinish})
	}
	if m.config.Solver == "ridge" {
		return do(work{Kind: doSolve, Stage: m.at.Stage})
	}
	return m.round()
}

// enter exchanges the rows of a stage.
func (m *machine) enter(stage, hop int) ready {
	return do(work{Kind: doExchange, Stage: stage, Hop: hop})
}

// aggregated goes on when a stage's rows are in place.
func (m *machine) aggregated(stage int) ready {
	if stage < m.rebuild {
		return do(work{Kind: doCarry, Stage: stage})
	}
	return m.train()
}

// train begins the rounds of the stage at hand; its rows are in place, which is worth a checkpoint.
func (m *machine) train() ready {
	m.held, m.rebuild = true, 0
	r := m.round()
	if m.config.Solver == "ridge" {
		r = do(work{Kind: doSolve, Stage: m.at.Stage})
	}
	r.Save = true
	return r
}

func (m *machine) round() ready {
	if m.stale {
		m.stale = false
		return do(work{Kind: doRevalidate, Stage: m.at.Stage, Round: m.at.Round})
	}
	if m.config.WarmStart && m.at.Stage > 0 && m.at.Round == 0 && !m.warm {
		return do(work{Kind: doWarm, Stage: m.at.Stage})
	}
	if m.at.Round >= m.config.Rounds {
		return do(work{Kind: doEvaluate, Stage: m.at.Stage, Round: m.at.Round})
	}
	return do(work{Kind: doRound, Stage: m.at.Stage, Round: m.at.Round, Eval: m.at.Round%m.config.EvalEvery == 0, Share: m.pace.Of(m.who.Rank)})
}

// judge decides what a round's sums mean: a better state, the end of patience, the next step.
func (m *machine) judge(e event) ready {
	keep := e.Work.Eval && m.at.Improve(m.config.Metric, e.Work.Round, e.Val, e.ValLoss)
	if p := m.config.Patience; p > 0 && e.Work.Eval && !keep && m.at.BestRound >= 0 && e.Work.Round-m.at.BestRound >= p {
		return do(work{Kind: doFreeze, Stage: m.at.Stage})
	}
	return do(work{Kind: doApply, Stage: m.at.Stage, Round: e.Work.Round, Keep: keep})
}

// sync asks for the parameters of peer from, since those of another differ, and gives up where that does not help.
func (m *machine) sync(from, peer int) (ready, error) {
	if m.synced++; m.synced > 3 {
		return ready{}, fmt.Errorf("stage %d, round %d: parameters of peer %d still differ from those of peer %d after %d syncs", m.at.Stage, m.at.Round, peer, from, m.synced-1)
	}
	return do(work{Kind: doSync, Stage: m.at.Stage, Round: m.at.Round, From: from, Peer: peer}), nil
}

// agreed goes on where all peers hold the same: a round is run (again), what was solved in one go is taken as it is.
func (m *machine) agreed() ready {
	switch {
	case m.at.Stage == 0 && m.config.Spec.Encoder.Kind == "pca":
		return do(work{Kind: doFreeze})
	case m.config.Solver == "ridge":
		return do(work{Kind: doChoose, Stage: m.at.Stage, Choice: m.choice})
	}
	return m.round()
}

// differs reports whether the members' digests are not all equal, the lowest rank among those that most agree with, and
// the lowest rank of the others.
func (m *machine) differs(digests []uint32) (from, peer int, ok bool) {
	if len(digests) == 0 {
		return 0, 0, false
	}
	most := 0
	for _, r := range m.members {
		votes := 0
		for _, q := range m.members {
			if digests[q] == digests[r] {
				votes++
			}
		}
		if votes > most {
			from, most = r, votes
		}
	}
	for _, r := range m.members {
		if digests[r] != digests[from] {
			return from, r, true
		}
	}
	return from, from, false
}

func do(w work) ready { return ready{Work: w} }
