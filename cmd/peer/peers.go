package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/comm"
	slow "github.com/heddle-gnn/heddle/comm/link"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/retexo"
)

// outcome is what training gave: the measures are of all peers together, Peers are those of this process.
type outcome struct {
	Model   *nn.Model
	Config  any         // retexo.Config or fullbatch.Config
	Sent    comm.Counts // by this peer in the whole run
	Metric  eval.Metric
	Stages  []report.Stage
	Peers   []report.Peer
	Val     float64 // metric of the validation nodes; NaN: there are none
	Test    float64
	Rounds  int // reductions of updates, or epochs
	Seconds float64
	Load    slow.Load   // on the network: of the peer with most of each
	Link    *slow.Table // that was put in the way; nil: none

	Generations []retexo.GenerationInfo // of a run that goes on without lost peers
	LostRows    []retexo.LostRowsInfo
	Shares      []retexo.ShareInfo
	Names       []string // of all peers by rank; nil: they have none
}

// bytes returns what the peers sent together.
func (o *outcome) bytes() (sum report.Peer) {
	for _, p := range o.Peers {
		sum.Halo, sum.Reduce, sum.Control, sum.Wire = sum.Halo+p.Halo, sum.Reduce+p.Reduce, sum.Control+p.Control, sum.Wire+p.Wire
	}
	return sum
}

// link is one peer's way to the others. Its owner closes the group before the link.
type link struct {
	comm.Transport
	wire  func() int64 // bytes sent as the network carries them
	close func() error
}

// work is one peer's part of a run.
type work struct {
	settings Settings
	shard    *partition.Shard
	store    *checkpoint.Store // nil: no checkpoints
	watch    *watch            // nil: nobody looks
	site     *site             // nil: nothing is recorded
	advanced func()            // called after each round; may be nil

	// done is called when the model is, while the others can still be reached; may be nil. Its error counts as theirs.
	done func(context.Context, *comm.Group, *outcome) error

	layers *learner // that goes on from session to session; nil: every session begins from checkpoints
}

// train trains over t and returns what this peer saw of it: with an error, too, where the model is done and only the
// others' may not be.
func (w work) train(ctx context.Context, t link, name string) (*outcome, error) {
	start := time.Now()
	group := comm.NewGroup(t, w.shard.Rank, w.shard.Parts)
	defer group.Close()
	var o *outcome
	var err error
	if w.settings.Mode == "retexo" {
		o, err = w.layerwise(ctx, group)
	} else {
		o, err = w.atOnce(ctx, group)
	}
	if o == nil {
		return nil, err
	}
	o.Peers = []report.Peer{{Name: name, Halo: o.Sent.Halo, Reduce: o.Sent.Reduce, Control: o.Sent.Control, Wire: t.wire()}}
	took := time.Since(start)
	o.Seconds, o.Load = took.Seconds(), load(group, took)
	if err == nil && w.done != nil {
		err = w.done(ctx, group, o)
	}
	return o, err
}

func (w work) layerwise(ctx context.Context, group *comm.Group) (*outcome, error) {
	l := w.layers
	if l == nil {
		var err error
		if l, err = w.learner(); err != nil {
			return nil, err
		}
	}
	if err := l.train(ctx, group); err != nil && !l.Done() {
		return nil, err
	} else {
		return l.outcome(), err
	}
}

func stageName(stage int) string {
	if stage == 0 {
		return "encoder"
	}
	return fmt.Sprintf("layer %d", stage)
}

// check finds the faults of s for the given shards before any peer starts.
func (s Settings) check(shards []*partition.Shard) (err error) {
	if s.Mode == "standalone" && shards[0].Parts != 1 {
		return badInput{fmt.Errorf("mode: standalone trains at one peer, not %d peers: use --peers 1, or mode fullbatch or retexo", shards[0].Parts)}
	}
	_, err = s.fingerprint(taskOf(shards[0]))
	if err == nil {
		err = s.Survival.together(shards[0].Parts)
	}
	if !identity(shards[0]) || shards[0].Owned == 0 {
		return err
	}
	// What is learned of a node's number says nothing of other nodes: only neighbours' rows do.
	if kind, _, _ := strings.Cut(s.Encoder, ":"); kind != "raw" {
		err = errors.Join(err, badInput{fmt.Errorf("encoder: %q, but %s has no features, only the nodes' numbers: their components mean nothing, and rows trained without edges say nothing of other nodes. Use encoder raw", s.Encoder, shards[0].Name)})
	}
	if s.Inductive {
		err = errors.Join(err, badInput{fmt.Errorf("inductive: %s has no features, only the nodes' numbers: nothing could be learned of nodes that are absent while training", shards[0].Name)})
	}
	return err
}

// warn says what of the settings is allowed and hardly meant.
func (s Settings) warn(shard *partition.Shard, w *watch) {
	kind, k, _ := strings.Cut(s.Encoder, ":")
	if n, err := strconv.Atoi(k); kind == "pca" && err == nil && n >= shard.X.Cols() {
		w.log.Warn("the encoder keeps as many components as there are features: the rows that travel hold all of them",
			"encoder", s.Encoder, "features", shard.X.Cols())
	}
}

// network says how the peers of one process reach one another.
type network struct {
	Transport string      // memory or libp2p
	Carrier   string      // of libp2p: one of p2p.Transports
	Link      *slow.Table // put in the way; nil: none
}

// together trains with a peer for each shard, all in this process. Peer r keeps its checkpoints in the directory
// peer-r of state, unless that is empty.
func together(ctx context.Context, s Settings, shards []*partition.Shard, n network, state string, w *watch) (*outcome, error) {
	if err := s.check(shards); err != nil {
		return nil, err
	}
	s.warn(shards[0], w)
	start := time.Now()
	links, err := n.meet(ctx, len(shards), func(r int) (p2p.Hello, error) {
		plan, err := s.fingerprint(taskOf(shards[r]))
		return p2p.Hello{Plan: plan, Partition: shards[r].Fingerprint}, err
	})
	if err != nil {
		return nil, err
	}
	peers := make([]*outcome, len(shards))
	all, ctx := errgroup.WithContext(ctx)
	for r, shard := range shards {
		all.Go(func() (err error) {
			one := work{settings: s, shard: shard}
			if state != "" {
				one.store = &checkpoint.Store{Dir: filepath.Join(state, fmt.Sprintf("peer-%d", r))}
			}
			if r == 0 {
				one.watch = w
			}
			peers[r], err = one.train(ctx, links[r].behind(n.Link, r, len(shards), s.Seed), fmt.Sprintf("peer %d", r))
			return err
		})
	}
	err = all.Wait()
	for _, l := range links {
		err = errors.Join(err, l.close())
	}
	if err != nil {
		return nil, err
	}
	o := peers[0]
	for _, p := range peers[1:] {
		o.Peers = append(o.Peers, p.Peers...)
		o.Load = slow.Load{Busy: max(o.Load.Busy, p.Load.Busy), Trips: max(o.Load.Trips, p.Load.Trips), Bytes: max(o.Load.Bytes, p.Load.Bytes)}
	}
	o.Seconds, o.Link = time.Since(start).Seconds(), n.Link
	return o, nil
}

// meet gives each of size peers a link to the others. hello is what peer r greets them with.
func (n network) meet(ctx context.Context, size int, hello func(r int) (p2p.Hello, error)) ([]link, error) {
	links := make([]link, size)
	if n.Transport == "memory" || size == 1 {
		mem := sim.New(size, sim.Config{})
		for r := range links {
			links[r] = link{mem.Transport(r), func() int64 { return 0 }, func() error { return nil }}
		}
		return links, nil
	}
	var roster p2p.Roster
	hosts := make([]*p2p.Host, size)
	closeAll := func() {
		for _, h := range hosts {
			if h != nil {
				h.Close()
			}
		}
	}
	for r := range hosts {
		id, err := p2p.NewIdentity()
		if err == nil {
			hosts[r], err = p2p.Listen(p2p.Config{Identity: id, Listen: addresses(n.Carrier, "/ip4/127.0.0.1", 0), Transport: n.Carrier, MaxPeers: max(64, size)})
		}
		if err != nil {
			closeAll()
			return nil, err
		}
		roster.Members = append(roster.Members, p2p.Member{Name: fmt.Sprintf("peer %d", r), ID: hosts[r].ID(), Addrs: hosts[r].Addrs()})
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	all, ctx := errgroup.WithContext(ctx)
	for r, h := range hosts {
		all.Go(func() error {
			greeting, err := hello(r)
			if err != nil {
				return err
			}
			session, err := h.Join(ctx, roster, greeting)
			if err != nil {
				return err
			}
			links[r] = overNetwork(session, h.Close)
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		closeAll()
		return nil, err
	}
	return links, nil
}

func overNetwork(s *p2p.Session, end func() error) link {
	return link{s, func() int64 { sent, _ := s.WireBytes(); return sent }, end}
}
