package heddle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Train partitions g by p's policy and trains over its parts, with a peer for each part in this
// process. A fault of p or g is an *InputError.
func Train(ctx context.Context, g *graph.Graph, p Plan) (*Result, error) {
	shards, err := Split(g, p)
	if err != nil {
		return nil, err
	}
	return Local{Plan: p, Shards: shards}.Train(ctx)
}

// Split returns the parts of g by rank, as p's Policy, Peers and Seed determine them; one part is
// all of g. The plan may have members for Join: then there is a part for each, by their order, unless Peers sets
// another number. Nodes without features get a one-hot column each, so that the first layer learns a row for each node.
// Errors are of type *InputError.
func Split(g *graph.Graph, p Plan) ([]*shard.Shard, error) {
	if g == nil {
		return nil, input(errNoGraph)
	}
	p, _ = p.ForGraph(g)
	policy, err := partition.ParsePolicy(p.Policy)
	if err != nil {
		return nil, input(fmt.Errorf("%w; auto chooses one", err))
	}
	if err := g.Valid(); err != nil {
		return nil, input(fmt.Errorf("%s: %w", g.Name, err))
	}
	g = g.Numbered()
	parts := p.Peers
	switch {
	case parts != plan.AutoPeers:
	case len(p.Members) > 0:
		parts = len(p.Members)
	case p.Policy == "by-column":
		parts = 0 // as many as sites
	default:
		parts = 4
	}
	if parts == 1 {
		return []*shard.Shard{shard.Whole(g)}, nil
	}
	shards, err := partition.Partition(g, policy, parts, p.Seed)
	if err != nil {
		return nil, input(fmt.Errorf("%s: %w", g.Name, err))
	}
	return shards, nil
}

var errNoGraph = errors.New("there must be a graph (got nil)")

// applies returns an error if m or g is nil, or g is not sound.
func applies(m *nn.Model, g *graph.Graph) error {
	if err := cmp.Or(kernels.Choice(), m.Whole()); err != nil || g == nil {
		return cmp.Or(err, errNoGraph)
	}
	whole := *g
	if whole.Split == nil { // a graph that was not used for training
		whole.Split = make([]graph.Split, g.N())
	}
	return whole.Valid()
}

// Local is a run of all peers in this process, with checkpoints and events.
type Local struct {
	Plan    Plan
	Shards  []*shard.Shard // by rank, as Split makes them
	Init    *Initial       // what training starts from; nil unless Plan.Init names it
	Embed   bool           // whether the result has hidden rows
	State   string         // directory of checkpoints, from which the run continues (empty = none are kept)
	OnEvent func(Event)    // receives the events of peer 0, one at a time, and the run waits meanwhile; may be nil
	// Last is asked after a round's event whether it is the last, of its layer if layers have rounds; may be nil.
	Last   func() bool
	Ledger gate.Ledger // of what runs spent of the shards' edges; without Path none is kept
}

// Train trains with a peer for each shard. Peer r keeps its checkpoints in directory peer-r of
// State. A fault of plan or shards is an *InputError.
func (l Local) Train(ctx context.Context) (*Result, error) {
	if err := l.fault(); err != nil {
		return nil, input(err)
	}
	release, err := checkpoint.Lock(l.State)
	if err != nil {
		return nil, input(err)
	}
	defer release()
	if l.OnEvent == nil {
		l.OnEvent = func(Event) {}
	}
	return l.train(ctx)
}

// fault returns what is wrong with the plan or the shards; nil = nothing.
func (l Local) fault() error {
	if err := cmp.Or(kernels.Choice(), shard.Sound(l.Shards...)); err != nil {
		return err
	}
	return errors.Join(l.Plan.Check(l.Shards), l.Plan.Only("train"), l.Init.checkPlan(l.Plan, l.Shards[0]))
}

// train is Train, without faults.
func (l Local) train(ctx context.Context) (*Result, error) {
	p, size := l.Plan, len(l.Shards)
	all := make([]session.Terms, size)
	for r, own := range l.Shards {
		var err error
		if all[r], err = disclosure.TrainingTerms(p, r, own); err != nil {
			return nil, err
		}
	}
	left, err := l.Interrupted()
	if err != nil {
		return nil, err
	}
	spend, err := all[0].Spending(l.Ledger, left, l.Shards...)
	if err != nil {
		return nil, err
	}
	for _, advice := range disclosure.Advice(p, l.Shards[0]) {
		l.OnEvent(Event{Kind: train.Warning, Text: advice})
	}
	results, ends := make([]*Result, size), make([]train.Ends, size)
	if l.Last != nil {
		ends = session.LocalEnds(size, l.Last)
	}
	err = session.Local(ctx, p.Link, disclosure.Loopback(p), all, func(ctx context.Context,
		at *session.Session) (err error) {
		r, state := at.Rank, ""
		if l.State != "" {
			state = l.stateOf(r)
		}
		one := &peer{plan: p, name: fmt.Sprintf("peer %d", r), shard: p.InOrder(l.Shards[r]), init: l.Init,
			embed: l.Embed}
		at.Ends = ends[r]
		if r == 0 { // the parts together are one data set, whose edges are each released once
			at.Spend, at.Event = spend, l.OnEvent
		}
		results[r], err = one.train(ctx, at, state, nil)
		return err
	})
	if _, few := errors.AsType[*classmeans.LabelError](err); few {
		return nil, input(err)
	}
	if err != nil {
		return nil, err
	}
	sum := results[0]
	for _, r := range results[1:] {
		sum.Seconds, sum.Waited = max(sum.Seconds, r.Seconds), max(sum.Waited, r.Waited)
		sum.add(r)
		sum.Load = comm.Load{Busy: max(sum.Load.Busy, r.Load.Busy), Trips: max(sum.Load.Trips, r.Load.Trips),
			Bytes: max(sum.Load.Bytes, r.Load.Bytes)}
	}
	sum.exact()
	sum.warn(l.OnEvent)
	return sum, nil
}

func (l Local) stateOf(rank int) string { return filepath.Join(l.State, fmt.Sprintf("peer-%d", rank)) }

// Interrupted reports whether State has checkpoints from which Train would continue.
func (l Local) Interrupted() (bool, error) {
	if l.State == "" {
		return false, nil
	}
	for r := range l.Shards {
		seqs, err := (&checkpoint.Store{Dir: l.stateOf(r)}).List()
		if err != nil {
			return false, input(err)
		}
		if len(seqs) > 0 {
			return true, nil
		}
	}
	return false, nil
}
