package retexo

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/train"
)

// Kind is a kind of work that a Machine asks for.
type Kind uint8

// The kinds. All but Aggregate and Apply are collective: every peer does them at the same place of the order.
const (
	Hello       Kind = iota // tell everyone who I am and what I hold, hear the same of them
	CountLabels             // count the labels of all peers
	Restore                 // take up the checkpoint Seq
	Project                 // find the components of encoder pca
	Prepare                 // learn what the training view needs to know of halo nodes (inductive only)
	Exchange                // fetch halo rows: the stage's input after Hop aggregations
	Aggregate               // aggregate them
	Round                   // local steps from the parameters at hand, validation of those parameters; sum both
	Apply                   // make the round's sum the next parameters; with Keep, remember those it started from first
	Sync                    // take the parameters of peer From; they differ somewhere
	Evaluate                // validate the last parameters of the stage
	Solve                   // sum the Gram matrix, solve for each penalty, validate each
	Choose                  // take solution Choice
	Freeze                  // take the best parameters; compute the rows the next stage sees; sum the test counts
	Finish                  // the model is trained; it is final when all peers have saved it

	// Of runs that go on without lost peers, when a generation begins or ends.
	Fetch      // take up the state of peer From, where ours is another
	Hold       // find what rows of the stage all have
	Carry      // compute the rows of own nodes that the next stage sees once more
	Revalidate // validate the best state once more: the validation nodes are others
	Regroup    // end the generation: a lost peer is back
)

var kindNames = [...]string{"hello", "count labels", "restore", "project", "prepare", "exchange", "aggregate", "round", "apply", "sync",
	"evaluate", "solve", "choose", "freeze", "finish", "fetch", "hold", "carry", "revalidate", "regroup"}

func (k Kind) String() string { return kindNames[k] }

// Work is one thing to do. Only the fields that its Kind speaks of are set.
type Work struct {
	Kind              Kind
	Stage, Hop, Round int
	From, Choice      int
	Peer              int // Sync: the lowest rank that holds other parameters than peer From
	Seq               uint64
	Eval              bool // Round: look at the validation nodes too
	Keep              bool // Apply, Freeze: the parameters at hand are the best so far

	Share float64 // Round: of its training nodes that this peer takes its steps from; 0: all
}

// Ready is what to do now.
type Ready struct {
	Work Work
	Save bool // write a checkpoint first: Position() and the parameters at hand belong together
}

// Greeting is what a peer says of itself before anything else.
type Greeting struct {
	Rank, Size  int
	Config      [32]byte // Config.Fingerprint
	Partition   [32]byte // shard.Shard.Fingerprint
	Checkpoints []uint64 // that the peer can restore, any order

	Generation uint64 // the highest that the peer had a part in

	// Of runs that go on without lost peers, in place of Checkpoints: what the peer would go on from, of Generation, in
	// which it was agreed on last.
	Seq   uint64   // train.Position.Seq of it; 0: nothing
	State [32]byte // SHA-256 of it
}

// Event reports work done.
type Event struct {
	Work      Work
	Greetings []Greeting      // Hello: of all peers, by rank
	Position  *train.Position // Restore, Fetch: what the checkpoint or the state says
	Have      int             // Hold: the least that a peer has of the stage's rows
	Regroup   bool            // Round: some peer asks for another generation
	Loss      float64         // Round: mean over all training labels
	Val       float64         // Round with Eval, Evaluate, Revalidate: the metric over all validation labels; NaN: there are none
	ValLoss   float64         // the same: mean loss
	Digests   []uint32        // Round, Evaluate: of each peer's parameters, by rank
	Times     []float32       // Round with straggler adapt: seconds of each peer's own work, by rank
	Labels    float64         // CountLabels: training labels of all peers; Solve: validation labels
	Vals      []float64       // Solve: the metric of each penalty; NaN: no validation labels
}

// Machine is the protocol of one peer: which work comes next, and what is decided from the sums that all peers see.
// It has no goroutine, clock, socket, disk or kernel in it. All peers' machines see the same sums and so take the
// same way.
//
//	Hello ─ CountLabels ─ Restore? ─ (Project) ─ Freeze 0 ─┐
//	┌────────────────────────────────────────────────┘
//	└ (Exchange ─ Aggregate)×hops ─ (Round ─ Apply | Round ─ Sync)×rounds ─ Evaluate ─ Freeze ─ next stage … Finish
//
// Where a run goes on without lost peers, each generation begins with Hello and goes on with what its members hold:
//
//	Hello ─ Fetch ─ Hold ─┬ rows are in place ─────────────────────────────── (Revalidate) ─ Round …
//	                      ├ own rows are: (Exchange ─ Aggregate)×hops ──────── (Revalidate) ─ Round …
//	                      └ a peer has none: Carry ─ ((Exchange ─ Aggregate)×hops ─ Carry)×stages …
type Machine struct {
	config     Config
	frozen     []bool // by stage: the aggregate is computed once
	rank, size int
	partition  [32]byte
	at         train.Position
	next       Ready
	waiting    bool   // next has been handed out
	newest     uint64 // checkpoint that all peers have; 0: none
	choice     int    // ridge: the solution to take
	synced     int    // syncs since the last round that committed
	pace       *pace  // straggler adapt: who is given how much of its work; nil: all of it

	// Of runs that go on without lost peers.
	members []int // ranks, of this generation
	held    bool  // there is something to go on from
	rebuild int   // stage whose rows are being computed once more, with those of all before it; 0: none
	stale   bool  // the best state was validated over other members
	regroup bool  // the generation ends after this round

	unjudged train.Position // at, before the last state of the stage was compared with the best
}

// NewMachine returns the machine of peer rank of size. frozen says of each layer whether its aggregate can be
// computed once (nn.Layer.Frozen).
func NewMachine(c Config, frozen []bool, rank, size int, partition [32]byte) (*Machine, error) {
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
	m := &Machine{config: c, frozen: frozen, rank: rank, size: size, partition: partition,
		at: train.Position{BestRound: -1}, next: Ready{Work: Work{Kind: Hello}}}
	if c.Survival.Straggler == "adapt" {
		m.pace = newPace(size)
	}
	return m, nil
}

// Position returns where the run stands.
func (m *Machine) Position() train.Position { return m.at }

// Ready returns what to do now, once; ok is false while that is being done, and after Finish.
func (m *Machine) Ready() (r Ready, ok bool) {
	if m.waiting {
		return Ready{}, false
	}
	m.waiting = true
	return m.next, true
}

// Step reports that the work handed out is done, and decides the next. An error ends the run.
func (m *Machine) Step(e Event) error {
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

func (m *Machine) decide(e Event) (Ready, error) {
	if e.Work.Kind == Solve { // the choice stands, whoever's solutions are taken
		m.choice, m.unjudged = strongest(e.Vals, e.Labels), m.at
		m.at.Best, m.at.BestRound = e.Vals[m.choice], 0
	}
	if from, peer, ok := m.differs(e.Digests); ok {
		return m.sync(from, peer)
	}
	switch w := e.Work; w.Kind {
	case Hello:
		return m.agree(e.Greetings)
	case CountLabels:
		if e.Labels == 0 {
			return Ready{}, errors.New("no peer has a training node: nothing can be learned")
		}
		if m.newest > 0 {
			return do(Work{Kind: Restore, Seq: m.newest}), nil
		}
		return m.begin(), nil
	case Restore:
		m.at = *e.Position
		return m.resume()
	case Project, Solve, Sync:
		return m.agreed(), nil
	case Prepare:
		return m.enter(1, 0), nil
	case Exchange:
		if m.frozen[w.Stage-1] {
			return do(Work{Kind: Aggregate, Stage: w.Stage, Hop: w.Hop}), nil
		}
		return m.aggregated(w.Stage), nil
	case Aggregate:
		if w.Hop+1 < m.config.Spec.Layers[w.Stage-1].Hops {
			return m.enter(w.Stage, w.Hop+1), nil
		}
		return m.aggregated(w.Stage), nil
	case Round:
		m.regroup = e.Regroup
		if m.pace != nil {
			m.pace.note(e.Times, m.members)
		}
		return m.judge(e), nil
	case Apply:
		m.at.Round, m.synced = w.Round+1, 0
		if m.regroup {
			return do(Work{Kind: Regroup, Stage: w.Stage, Round: m.at.Round}), nil
		}
		r := m.round()
		r.Save = m.config.Checkpoint > 0 && m.at.Round%m.config.Checkpoint == 0
		return r, nil
	case Evaluate:
		m.unjudged = m.at
		keep := m.at.Improve(e.Work.Round, e.Val, e.ValLoss)
		return do(Work{Kind: Freeze, Stage: w.Stage, Keep: keep}), nil
	case Choose:
		return do(Work{Kind: Freeze, Stage: w.Stage, Keep: true}), nil
	case Freeze:
		return m.finished(w.Stage), nil
	case Fetch:
		return m.fetched(e.Position)
	case Hold:
		return m.placed(e.Have)
	case Carry:
		return m.carried(w.Stage), nil
	case Revalidate:
		if e.Val == e.Val {
			m.at.Best, m.at.BestLoss = e.Val, e.ValLoss
		}
		return m.round(), nil
	}
	return Ready{}, errors.New("retexo: the run is finished")
}

// finished goes on behind a stage whose parameters are final.
func (m *Machine) finished(stage int) Ready {
	m.held = true
	m.at = train.Position{Stage: stage + 1, BestRound: -1}
	switch {
	case m.at.Stage == m.config.Stages():
		return Ready{Work: Work{Kind: Finish}, Save: true}
	case stage == 0 && m.config.Inductive:
		return do(Work{Kind: Prepare})
	}
	return m.enter(m.at.Stage, 0)
}

// agree compares greetings and finds the newest checkpoint that all peers have.
func (m *Machine) agree(all []Greeting) (Ready, error) {
	if len(all) != m.size {
		return Ready{}, fmt.Errorf("retexo: %d greetings for %d peers", len(all), m.size)
	}
	config := m.config.Fingerprint()
	m.members = m.members[:0:0]
	for r, g := range all {
		if m.config.Survival.On() && g.Size == 0 {
			continue
		}
		m.members = append(m.members, r)
		switch {
		case g.Rank != r || g.Size != m.size:
			return Ready{}, fmt.Errorf("peer %d takes itself for rank %d of %d, expected %d of %d", r, g.Rank, g.Size, r, m.size)
		case g.Config != config:
			return Ready{}, fmt.Errorf("peer %d has another plan: its fingerprint is %x, ours %x", r, g.Config[:6], config[:6])
		case g.Partition != m.partition:
			return Ready{}, fmt.Errorf("peer %d holds a shard of another partition: its fingerprint is %x, ours %x", r, g.Partition[:6], m.partition[:6])
		}
	}
	if m.config.Survival.On() {
		return m.source(all)
	}
	for _, s := range all[0].Checkpoints {
		if s > m.newest && !slices.ContainsFunc(all, func(g Greeting) bool { return !slices.Contains(g.Checkpoints, s) }) {
			m.newest = s
		}
	}
	return do(Work{Kind: CountLabels}), nil
}

// begin starts stage 0.
func (m *Machine) begin() Ready {
	switch m.config.Spec.Encoder.Kind {
	case "pca":
		return do(Work{Kind: Project})
	case "mlp":
		return m.train()
	}
	return do(Work{Kind: Freeze})
}

// resume goes on at a restored position.
func (m *Machine) resume() (Ready, error) {
	if m.at.Stage == m.config.Stages() {
		return do(Work{Kind: Finish}), nil
	}
	if m.at.Stage < 0 || m.at.Stage > m.config.Stages() || m.at.Round < 0 || m.at.Round > m.config.Rounds {
		return Ready{}, fmt.Errorf("retexo: checkpoint of stage %d, round %d, of %d stages of %d rounds", m.at.Stage, m.at.Round, m.config.Stages(), m.config.Rounds)
	}
	if m.config.Solver == "ridge" {
		return do(Work{Kind: Solve, Stage: m.at.Stage}), nil
	}
	return m.round(), nil
}

// enter exchanges the rows of a stage.
func (m *Machine) enter(stage, hop int) Ready {
	return do(Work{Kind: Exchange, Stage: stage, Hop: hop})
}

// aggregated goes on when a stage's rows are in place.
func (m *Machine) aggregated(stage int) Ready {
	if stage < m.rebuild {
		return do(Work{Kind: Carry, Stage: stage})
	}
	return m.train()
}

// train begins the rounds of the stage at hand; its rows are in place, which is worth a checkpoint.
func (m *Machine) train() Ready {
	m.held, m.rebuild = true, 0
	r := m.round()
	if m.config.Solver == "ridge" {
		r = do(Work{Kind: Solve, Stage: m.at.Stage})
	}
	r.Save = true
	return r
}

func (m *Machine) round() Ready {
	if m.stale {
		m.stale = false
		return do(Work{Kind: Revalidate, Stage: m.at.Stage, Round: m.at.Round})
	}
	if m.at.Round >= m.config.Rounds {
		return do(Work{Kind: Evaluate, Stage: m.at.Stage, Round: m.at.Round})
	}
	return do(Work{Kind: Round, Stage: m.at.Stage, Round: m.at.Round, Eval: m.at.Round%m.config.EvalEvery == 0, Share: m.pace.of(m.rank)})
}

// judge decides what a round's sums mean: a better state, the end of patience, the next step.
func (m *Machine) judge(e Event) Ready {
	keep := e.Work.Eval && m.at.Improve(e.Work.Round, e.Val, e.ValLoss)
	if p := m.config.Patience; p > 0 && e.Work.Eval && !keep && m.at.BestRound >= 0 && e.Work.Round-m.at.BestRound >= p {
		return do(Work{Kind: Freeze, Stage: m.at.Stage})
	}
	return do(Work{Kind: Apply, Stage: m.at.Stage, Round: e.Work.Round, Keep: keep})
}

// strongest returns the last of the penalties, which ascend, whose metric is within half a standard error of the best:
// a difference that n labels cannot tell is better spent on a simpler model (after the one-standard-error rule of
// Breiman, Friedman, Olshen and Stone 1984, §3.4.3). Without validation labels (NaN) it is the one in the middle.
func strongest(metric []float64, n float64) int {
	best := metric[0]
	for _, v := range metric {
		best = max(best, v)
	}
	if best != best {
		return len(metric) / 2
	}
	margin := math.Sqrt(max(best*(1-best), 0)/n) / 2
	choice := 0
	for i, v := range metric {
		if v >= best-margin {
			choice = i
		}
	}
	return choice
}

// sync asks for the parameters of peer from, since those of another differ, and gives up where that does not help.
func (m *Machine) sync(from, peer int) (Ready, error) {
	if m.synced++; m.synced > 3 {
		return Ready{}, fmt.Errorf("stage %d, round %d: parameters of peer %d still differ from those of peer %d after %d syncs", m.at.Stage, m.at.Round, peer, from, m.synced-1)
	}
	return do(Work{Kind: Sync, Stage: m.at.Stage, Round: m.at.Round, From: from, Peer: peer}), nil
}

// agreed goes on where all peers hold the same: a round is run (again), what was solved in one go is taken as it is.
func (m *Machine) agreed() Ready {
	switch {
	case m.at.Stage == 0 && m.config.Spec.Encoder.Kind == "pca":
		return do(Work{Kind: Freeze})
	case m.config.Solver == "ridge":
		return do(Work{Kind: Choose, Stage: m.at.Stage, Choice: m.choice})
	}
	return m.round()
}

// differs reports whether the members' digests are not all equal, the lowest rank among those that most agree with, and
// the lowest rank of the others.
func (m *Machine) differs(digests []uint32) (from, peer int, ok bool) {
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

func do(w Work) Ready { return Ready{Work: w} }
