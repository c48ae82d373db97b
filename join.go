package heddle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/disclosure"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/privacy/dp"
	"github.com/heddle-gnn/heddle/session"
	"github.com/heddle-gnn/heddle/train"
)

// Site is what one site decides for itself in a run on several machines.
type Site struct {
	session.Site
	Embed   bool                // whether the result has hidden rows
	Init    *Initial            // what training starts from; nil unless the plan's Init names it
	OnModel func(*Result) error // called once, when the model is final but others may need this peer; may be nil
}

// Join takes part, as one of p's members, in a run on several machines, and returns when the model
// is final. The identity in s says which member this is. With Site.State the run
// survives failures of peers. The error is an *InputError if the plan, the shard or the gate is at
// fault, and a *comm.PeerError if another peer is.
//
// Result.Own has predictions for the site's own nodes, computed with the rows of neighbours at other
// sites. Predict, with the model and the site's part only, does not use those rows.
//
// Of a plan with several Runs the result is that of the run that validates best. Their checkpoints are
// in directories seed-N of Site.State. Site.OnModel is called for each run that validates better than
// those before it.
func Join(ctx context.Context, p Plan, s Site) (result *Result, err error) {
	rank, err := p.Rank(s.Identity.PeerID())
	if err != nil {
		return nil, input(err)
	}
	if err := errors.Join(CheckSite(p, s.Shard, rank), input(s.Init.checkPlan(p, s.Shard))); err != nil {
		return nil, err
	}
	t, err := training(p, rank, s.Shard)
	if err != nil {
		return nil, err
	}
	err = s.Attend(ctx, t, func(ctx context.Context, at *session.Session) (err error) {
		for _, advice := range advise(p, s.Shard) {
			at.Warn("%s", advice)
		}
		if result, err = s.runs(ctx, p, at); err == nil {
			result.warn(at.Event)
		}
		return err
	})
	return result, err
}

// training returns the terms of a run by p of the member of that rank, which has own.
func training(p Plan, rank int, own *shard.Shard) (t session.Terms, err error) {
	id, err := p.Identify(own)
	if err != nil {
		return t, input(err)
	}
	text := p.Agreed()
	t = termsOf(p, rank, own.Parts, func() (*disclosure.Disclosure, error) { return disclosure.Of(p, own) })
	t.Hello = p2p.Hello{Plan: sha256.Sum256(append(id[:], text...)), Partition: own.Fingerprint, PlanText: text}
	t.Run, t.ID = t.Hello.Plan, fmt.Sprintf("%x", id)
	if p.ClassMeans.Epsilon == 0 {
		return t, nil
	}
	c, err := p.ClosedForm(own)
	if err != nil {
		return t, input(err)
	}
	edges, err := c.Edges([32]byte{}) // for its statement
	if err != nil {
		return t, input(err)
	}
	spends := edges.Statement()
	t.Spends = &spends
	return t, nil
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

// ahead reports whether r validates better than the best run so far; nil: there is none.
func (r *Result) ahead(best *Result) bool {
	return best == nil || r.Metric.Gain(r.Val, best.Val) > 0 || math.IsNaN(best.Val) && !math.IsNaN(r.Val)
}

// CheckSite returns all faults of p and of a shard for the member of that rank.
func CheckSite(p Plan, own *shard.Shard, rank int) error {
	if err := sound(own); err != nil {
		return input(err)
	}
	if err := seated(p, own, rank); err != nil {
		return input(err)
	}
	return input(errors.Join(p.Check([]*shard.Shard{own}), CheckMembers(p), p.Only("join"), p.CheckRuns()))
}

// seated returns an error unless a shard is that of the member of p of that rank.
func seated(p Plan, own *shard.Shard, rank int) error {
	if own.Rank != rank || own.Parts != len(p.Members) {
		return fmt.Errorf("the shard is part %d of %d, but this peer (%s) is number %d of the %d in the plan", own.Rank, own.Parts, p.Members[rank].Name, rank, len(p.Members))
	}
	return nil
}

// Meet connects the members of p and calls do at each of them, for something other than training.
// All must call Meet with the same plan file and the same purpose in what. An error of do is
// returned as an *InputError, unless a peer failed or ctx has ended.
func Meet(ctx context.Context, p Plan, s Site, what string, do func(context.Context, *session.Session) error) error {
	hello := p2p.Hello{Plan: sha256.Sum256(append([]byte(what+"\n"), s.Gate.PlanText...)), PlanText: p.Agreed()}
	return s.meet(ctx, p, what, hello, nil, func(ctx context.Context, at *session.Session) error {
		err := do(ctx, at)
		var failed *comm.PeerError
		if ctx.Err() != nil || errors.As(err, &failed) {
			return err
		}
		return input(err)
	})
}

// meet is Meet with what members greet one another with, and what leaves this one.
func (s Site) meet(ctx context.Context, p Plan, what string, hello p2p.Hello,
	sends func() (*disclosure.Disclosure, error), do func(context.Context, *session.Session) error) error {
	rank, err := p.Rank(s.Identity.PeerID())
	if err != nil {
		return input(err)
	}
	t := termsOf(p, rank, len(p.Members), sends)
	t.Hello, t.Run, t.Phones, t.Seed = hello, sha256.Sum256([]byte(what+hello.PlanText)), nil, 1
	s.State, s.Ledger, s.Phones = "", dp.Ledger{}, nil // of training only
	return s.Attend(ctx, t, func(ctx context.Context, at *session.Session) error {
		return at.Once(ctx, func(ctx context.Context) error { return do(ctx, at) })
	})
}
