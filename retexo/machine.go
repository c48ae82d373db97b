package retexo

import (
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/train"
)

// kind is a kind of work that a machine asks for.
type kind uint8

// The kinds. All except doAggregate and doApply are collective: every peer does them at the same point of the order.
const (
	doHello       kind = iota // exchange greetings: each peer's rank and what it has
	doCountLabels             // count the labels of all peers
	doRestore                 // restore the checkpoint Seq
	doProject                 // find the components of encoder pca
	doPrepare                 // fetch what the training view needs of halo nodes (inductive only)
	doExchange                // fetch halo rows: the stage's input after Hop aggregations
	doAggregate               // aggregate them
	doRound                   // take local steps from the current parameters, and validate these; sum both
	// make the round's sum the next parameters; with Keep, first remember the parameters it started from
	doApply
	doSync     // take the parameters of peer From, because they differ somewhere
	doEvaluate // validate the last parameters of the stage
	doFreeze   // take the best parameters; compute the next stage's input; sum the test counts
	doFinish   // the model is trained; it is final when all peers have saved it
)

var kindNames = [...]string{"hello", "count labels", "restore", "project", "prepare", "exchange", "aggregate", "round",
	"apply", "sync", "evaluate", "freeze", "finish"}

func (k kind) String() string { return kindNames[k] }

// work is one thing to do. Only the fields are set that comments name for its Kind.
type work struct {
	Kind              kind
	Stage, Hop, Round int
	From              int
	Peer              int // sync: the lowest rank whose parameters differ from peer From's
	Seq               uint64
	Eval              bool // round: validate, too
	Keep              bool // apply, freeze: the current parameters are the best so far
}

// ready is what to do now.
type ready struct {
	Work work
	Save bool // first write a checkpoint of Position() and the current parameters
}

// event reports work done.
type event struct {
	Work      work
	Greetings []train.Greeting // hello: greetings of all peers, by rank
	Position  *train.Position  // restore: position in the checkpoint
	Loss      float64          // round: mean over all training labels
	Val       float64          // round with Eval, evaluate: the metric over all validation labels (NaN = none)
	ValLoss   float64          // round with Eval, evaluate: mean loss over all validation labels
	Digests   []uint32         // round, evaluate: digest of each peer's parameters, by rank
	Labels    float64          // count labels: training labels of all peers
	Last      bool             // apply: the stage has no further round
}

// machine is the protocol of one peer: it decides which work comes next from the sums that all peers see. It has no
// goroutine, clock, socket, disk or kernel. All peers' machines see the same sums and so decide the same.
//
//	hello ─┬ restore ────────────────────────────────────────────────── round …
//	       └ count labels ─ (project) ─ freeze 0 ─┐
//	┌─────────────────────────────────────────────┘
//	└ (exchange ─ aggregate)×hops ─ (round ─ apply | round ─ sync)×rounds ─ evaluate ─ freeze ─ next stage … finish
type machine struct {
	config  Config
	frozen  []bool            // [stage] the aggregate is computed once
	who     train.Participant // this peer, without shape or checkpoints
	at      train.Position
	next    ready
	waiting bool // the work in next is being done
	synced  int  // syncs since the last committed round
	last    bool // the stage has no further round, regardless of the configuration
}

// newMachine returns the machine of peer rank of size. frozen reports for each layer whether its aggregate can be
// computed once (nn.Layer.Frozen).
func newMachine(c Config, frozen []bool, rank, size int, partition [32]byte) (*machine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if len(frozen) != len(c.Spec.Layers) || size < 1 || rank < 0 || rank >= size {
		return nil, fmt.Errorf("%d layers, %d of them described, rank %d of %d peers", len(c.Spec.Layers),
			len(frozen), rank, size)
	}
	for i, l := range c.Spec.Layers {
		if l.Hops > 1 && !frozen[i] {
			return nil, fmt.Errorf("layers[%d]: hops %d, but %s aggregates with parameters and can do so "+
				"once a layer only", i, l.Hops, l.Conv)
		}
	}
	who := train.Participant{Rank: rank, Size: size, Config: c.Fingerprint(), Model: train.Fingerprint(c.Spec),
		Partition: partition, Own: true}
	return &machine{config: c, frozen: frozen, who: who, at: train.Position{BestRound: -1},
		next: ready{Work: work{Kind: doHello}}}, nil
}

// Position returns the run's position.
func (m *machine) Position() train.Position { return m.at }

// Ready returns the next work, once; ok is false while that work is being done, and after doFinish.
func (m *machine) Ready() (r ready, ok bool) {
	if m.waiting {
		return ready{}, false
	}
	m.waiting = true
	return m.next, true
}

// Step reports that the current work is done, and decides the next. An error ends the run.
func (m *machine) Step(e event) error {
	if !m.waiting || e.Work != m.next.Work {
		return fmt.Errorf("%s reported, while %s was asked for", e.Work.Kind, m.next.Work.Kind)
	}
	next, err := m.decide(e)
	if err != nil {
		return err
	}
	m.next, m.waiting = next, false
	return nil
}

func (m *machine) decide(e event) (ready, error) {
	if from, peer, ok := differs(e.Digests); ok {
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
	case doProject, doSync:
		return m.agreed(), nil
	case doPrepare:
		return m.enter(1, 0), nil
	case doExchange:
		if m.frozen[w.Stage-1] {
			return do(work{Kind: doAggregate, Stage: w.Stage, Hop: w.Hop}), nil
		}
		return m.train(), nil
	case doAggregate:
		if w.Hop+1 < m.config.Spec.Layers[w.Stage-1].Hops {
			return m.enter(w.Stage, w.Hop+1), nil
		}
		return m.train(), nil
	case doRound:
		return m.judge(e), nil
	case doApply:
		m.at.Round, m.synced, m.last = w.Round+1, 0, e.Last
		r := m.round()
		r.Save = !m.last && m.config.Checkpoint > 0 && m.at.Round%m.config.Checkpoint == 0
		return r, nil
	case doEvaluate:
		keep := m.at.Improve(m.config.Metric, e.Work.Round, e.Val, e.ValLoss)
		return do(work{Kind: doFreeze, Stage: w.Stage, Keep: keep}), nil
	case doFreeze:
		return m.finished(w.Stage), nil
	}
	return ready{}, errors.New("the run is finished")
}

// finished continues after a stage whose parameters are final.
func (m *machine) finished(stage int) ready {
	m.at, m.last = train.Position{Stage: stage + 1, BestRound: -1}, false
	switch {
	case m.at.Stage == m.config.Stages():
		return ready{Work: work{Kind: doFinish}, Save: true}
	case stage == 0 && m.config.Inductive:
		return do(work{Kind: doPrepare})
	}
	return m.enter(m.at.Stage, 0)
}

// agree continues at the position that the greetings name.
func (m *machine) agree(all []train.Greeting) (ready, error) {
	d, err := m.who.Decide(all)
	if err != nil {
		return ready{}, err
	}
	if d.Seq == 0 {
		m.at = train.Position{BestRound: -1}
		return do(work{Kind: doCountLabels}), nil
	}
	return do(work{Kind: doRestore, Seq: d.Seq}), nil
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
	return m.round()
}

// enter exchanges the rows of a stage.
func (m *machine) enter(stage, hop int) ready {
	return do(work{Kind: doExchange, Stage: stage, Hop: hop})
}

// train begins the rounds of the current stage. Its rows have been exchanged, so a checkpoint is written.
func (m *machine) train() ready {
	r := m.round()
	r.Save = true
	return r
}

func (m *machine) round() ready {
	if m.at.Round >= m.config.Rounds || m.last {
		return do(work{Kind: doEvaluate, Stage: m.at.Stage, Round: m.at.Round})
	}
	return do(work{Kind: doRound, Stage: m.at.Stage, Round: m.at.Round, Eval: m.at.Round%m.config.EvalEvery == 0})
}

// judge decides from a round's sums whether the state is better, patience has ended, and what comes next.
func (m *machine) judge(e event) ready {
	keep := e.Work.Eval && m.at.Improve(m.config.Metric, e.Work.Round, e.Val, e.ValLoss)
	if p := m.config.Patience; p > 0 && e.Work.Eval && !keep && m.at.BestRound >= 0 && e.Work.Round-
		m.at.BestRound >= p {
		return do(work{Kind: doFreeze, Stage: m.at.Stage})
	}
	return do(work{Kind: doApply, Stage: m.at.Stage, Round: e.Work.Round, Keep: keep})
}

// sync asks for peer from's parameters, since another peer's differ, and gives up if that does not help.
func (m *machine) sync(from, peer int) (ready, error) {
	if m.synced++; m.synced > 3 {
		return ready{}, fmt.Errorf("stage %d, round %d: parameters of peer %d still differ from peer %d's "+
			"after %d syncs", m.at.Stage, m.at.Round, peer, from, m.synced-1)
	}
	return do(work{Kind: doSync, Stage: m.at.Stage, Round: m.at.Round, From: from, Peer: peer}), nil
}

// agreed continues once all peers have the same state: a round is run (again), or components are taken as they are.
func (m *machine) agreed() ready {
	if m.at.Stage == 0 && m.config.Spec.Encoder.Kind == "pca" {
		return do(work{Kind: doFreeze})
	}
	return m.round()
}

// differs reports whether the peers' digests are not all equal. from is the lowest rank with the most frequent digest,
// peer the lowest rank with another one.
func differs(digests []uint32) (from, peer int, ok bool) {
	if len(digests) == 0 {
		return 0, 0, false
	}
	most := 0
	for r := range digests {
		votes := 0
		for q := range digests {
			if digests[q] == digests[r] {
				votes++
			}
		}
		if votes > most {
			from, most = r, votes
		}
	}
	for r := range digests {
		if digests[r] != digests[from] {
			return from, r, true
		}
	}
	return from, from, false
}

func do(w work) ready { return ready{Work: w} }
