package heddle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Site is what one site decides for itself in a run on several machines. Session describes what they have in common.
type Site struct {
	Identity identity.Identity // of the member that this site is
	Shard    *shard.Shard      // its part of the graph
	State    string            // directory of checkpoints (empty = none are kept)
	Network  p2p.Network       // how it reaches the others (zero = over libp2p, at the plan's addresses)
	Wait     time.Duration     // how long to wait for all peers at the start (0 = 10 minutes)
	Rejoin   time.Duration     // how long to wait for failed peers (0 = a failure ends the run)
	Gate     gate.Files        // files that decide whether it takes part, and its logs (zero = anything goes)
	Phones   *gate.Phones      // for leaves whose shares this site collects (nil = it collects none)
	Init     *Initial          // what training starts from; nil unless the plan's Init names it
	Embed    bool              // whether the result has hidden rows

	// OnModel is called when the model is final, and others may still need this peer; may be nil.
	OnModel func(*Result) error
	// OnEvent receives the events one at a time. The run, and with it the other sites, waits until it returns: Events
	// passes them on without that. May be nil.
	OnEvent func(Event)
}

// session returns s without what only this package reads.
func (s Site) session() session.Site {
	return session.Site{Identity: s.Identity, Shard: s.Shard, State: s.State, Network: s.Network, Wait: s.Wait,
		Rejoin: s.Rejoin, Gate: s.Gate, Phones: s.Phones, OnEvent: s.OnEvent}
}

// Join takes part, as one of p's members, in a run on several machines, and returns when the model is final. The
// identity in s determines which member this is. With Site.State the run survives failures of peers. The error is an
// *InputError if the plan, the shard or the gate is at fault, and a *comm.PeerError if another peer is.
//
// Result.Own has predictions for the site's own nodes, computed with the rows of neighbours at other sites. Predict,
// with the model and the site's part only, does not use those rows.
//
// If a plan has several Runs, the result is the run that validates best. Their checkpoints are in directories seed-N of
// Site.State. Site.OnModel is called for each run that validates better than those before it.
func Join(ctx context.Context, p Plan, s Site) (result *Result, err error) {
	p = forJoin(p)
	rank, err := p.Rank(s.Identity.PeerID())
	if err != nil {
		return nil, input(err)
	}
	if err := errors.Join(disclosure.CheckSite(p, s.Shard, rank), input(s.Init.checkPlan(p, s.Shard))); err != nil {
		return nil, err
	}
	t, err := disclosure.TrainingTerms(p, rank, s.Shard)
	if err != nil {
		return nil, err
	}
	err = s.session().Attend(ctx, t, func(ctx context.Context, at *session.Session) (err error) {
		for _, advice := range disclosure.Advice(p, s.Shard) {
			at.Warn("%s", advice)
		}
		if result, err = s.runs(ctx, p, at); err == nil {
			result.warn(at.Event)
		}
		return err
	})
	return result, err
}

// forJoin returns p without what only Split and Train read: the plan of the parts is the plan of the run.
func forJoin(p Plan) Plan {
	p.Peers, p.Policy, p.Transport, p.Link = plan.AutoPeers, "auto", "libp2p", ""
	return p
}

// runs trains by each of the plan's seeds, one after the other, and returns the run that validates best; without
// validation nodes that is the first. All sites choose alike, since all have the same figures.
func (s Site) runs(ctx context.Context, p Plan, at *session.Session) (best *Result, err error) {
	plans := p.Repeats()
	var all []*Result
	for k, p := range plans {
		here, state := *at, s.State
		here.More, here.Seed = k < len(plans)-1, p.Seed
		if len(plans) > 1 {
			at.Event(Event{Kind: train.Note, Text: fmt.Sprintf("run %d of %d: seed %d", k+1, len(plans), p.Seed)})
			if state != "" {
				state = filepath.Join(state, fmt.Sprintf("seed-%d", p.Seed))
			}
		}
		one := &peer{plan: p, name: at.Names[at.Rank], shard: p.InOrder(s.Shard), init: s.Init, embed: s.Embed,
			members: at.Names}
		if at.Policy != nil {
			one.publish = at.Policy.SiteFigures
		}
		r, err := one.train(ctx, &here, state, func(r *Result) error {
			if s.OnModel == nil || !r.ahead(best) {
				return nil
			}
			if r.Plan.Runs = 1; len(plans) > 1 {
				r.Runs = append(slices.Clone(all), r)
			}
			return s.OnModel(r)
		})
		if err != nil {
			return nil, err
		}
		r.Plan.Runs = 1
		if all = append(all, r); r.ahead(best) {
			best, r = r, best
		}
		if r != nil {
			r.Hidden = nil
		}
	}
	if len(all) > 1 {
		best.Runs = all
	}
	return best, nil
}

// ahead reports whether r validates better than the best run so far (nil = none).
func (r *Result) ahead(best *Result) bool {
	return best == nil || r.Metric.Gain(r.Val, best.Val) > 0 || math.IsNaN(best.Val) && !math.IsNaN(r.Val)
}

// JoinGraph takes part as Join does, with a graph of the site's own nodes; all members of p call it, instead of heddle
// match. Before they train they exchange how many nodes each has, and a digest of its part. All graphs must have as
// many features and the same classes. If edges connect nodes of different sites, each site lists its own in outside,
// which at a site without one must be empty and not nil; shard.Connect describes what the others learn. On phones there
// are none.
//
// dir keeps the part that the run began with and the checkpoints, or the sums with leaves, and belongs only to this
// run: JoinGraph with the same dir, in this process or another, continues with that part; g may be nil. s.Shard and
// s.State are not read.
//
// If p has leaves, and does not list this peer, it takes part as a leaf: it sends shares of its part of each sum to the
// sites, shows them s.Gate.Evidence, and computes the model from the sums, with the bits that they have. dir then keeps
// the name that identifies it to them in this run, and g must be given each time: JoinGraph with the same dir fetches
// the sums that it has missed and goes on; a sum that closed without it stays without it. The error wraps
// leaf.ErrNotAdmitted if a site turns it away.
func JoinGraph(ctx context.Context, p Plan, s Site, g *graph.Graph, dir string,
	outside ...shard.Outside) (*Result, error) {
	rank, err := p.Rank(s.Identity.PeerID())
	if err != nil && p.ClassMeans.Leaves > 0 {
		return s.joinLeaf(ctx, p, g, dir)
	}
	if err != nil {
		return nil, input(err)
	}
	s.State = filepath.Join(dir, "state")
	parts, until := filepath.Join(dir, "graph"), time.Now().Add(cmp.Or(s.Wait, session.DefaultWait))
	for {
		r, err := s.joinGraph(ctx, p, g, outside, rank, parts)
		if err == nil || ctx.Err() != nil || !disclosure.OtherStep(err) || time.Now().After(until) {
			return r, err
		}
		// Some members still exchange numbers of nodes, while others have done so and train. A member that exchanges
		// and has no checkpoint begins anew: it was stopped before it had written its part.
		held, err := (&checkpoint.Store{Dir: s.State}).List()
		if err != nil {
			return nil, input(err)
		}
		if len(held) == 0 {
			if err := shard.Discard(parts); err != nil {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(stepRetry):
		}
	}
}

// stepRetry is how long a member waits for others that are at another step of JoinGraph.
const stepRetry = 500 * time.Millisecond

// joinGraph gathers, unless parts has this site's part, and trains.
func (s Site) joinGraph(ctx context.Context, p Plan, g *graph.Graph, outside []shard.Outside, rank int,
	parts string) (*Result, error) {
	path := filepath.Join(parts, fmt.Sprintf("part-%d", rank))
	own, closer, err := shard.ReadShard(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := disclosure.Gather(ctx, p, s.session(), g, outside, rank, parts); err != nil {
			return nil, err
		}
		own, closer, err = shard.ReadShard(path)
	}
	if err != nil {
		return nil, input(err)
	}
	s.Shard = own
	r, err := Join(ctx, p, s)
	return r, errors.Join(err, closer.Close())
}

// joinLeaf is JoinGraph for a leaf. dir keeps the name that identifies it to the sites in this run, and nothing else.
func (s Site) joinLeaf(ctx context.Context, p Plan, g *graph.Graph, dir string) (*Result, error) {
	if p = forJoin(p); g == nil {
		return nil, input(errors.New("a phone needs a graph"))
	}
	if err := errors.Join(disclosure.CheckMembers(p), p.Only("join"), g.Valid()); err != nil {
		return nil, input(err)
	}
	own := shard.Whole(g)
	ids := own.IDs
	if ids == nil {
		ids = make([]string, own.Owned)
	}
	at, err := s.session().Phone(disclosure.TermsOf(p, 0, 0, nil), dir, ids)
	if err != nil {
		return nil, err
	}
	one := &peer{plan: p, shard: own, members: p.Names(), phone: true}
	var r *Result
	_, err = one.train(ctx, at, "", func(of *Result) (err error) {
		r = of
		r.Sums, r.Sent.Reduce, r.Peers[0].Reduce = p.SumTerms(len(p.Members)), at.Shared(), at.Shared()
		// What differs between leaves stays out of the card: all of them write the same file.
		r.Card.Dataset, r.Card.Nodes, r.Card.Peers, r.Card.Sums = "phones", 0, len(p.Members), r.Sums.Trust
		if s.OnModel != nil {
			err = s.OnModel(r)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}
