package heddle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"

	"github.com/heddle-gnn/heddle/disclosure"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/plan/contest"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/session"
	"github.com/heddle-gnn/heddle/tune"
)

// Attempt is one of the plans that class-means may try, and what became of it.
type Attempt struct {
	Name string
	Plan Plan // trains the same model by itself
	tune.Verdict
	Chosen bool
}

// tuned returns the result of a contest between candidates.
func tuned(ctx context.Context, all []plan.Candidate, t tune.Trials[*Result]) (*Result, error) {
	chosen, r, err := t.Run(ctx)
	if errors.Is(err, tune.ErrNone) || errors.Is(err, tune.ErrForeign) {
		err = input(fmt.Errorf("method class-means: %w", err))
	}
	if err != nil {
		return nil, err
	}
	for i, c := range all {
		r.Tried = append(r.Tried, Attempt{c.Name, c.Plan, t.Contest.Verdicts[i], i == chosen})
	}
	return r, nil
}

// ofCandidates passes on what candidates report: without test figures, which nobody sees before the choice is made, and
// each note and warning once, since most candidates have it.
func ofCandidates(onEvent func(Event)) func(Event) {
	said := map[string]bool{}
	return func(e Event) {
		switch e.Kind {
		case train.StageEnd:
			e.Test, e.TestLoss = math.NaN(), math.NaN()
		case train.Note, train.Warning:
			if said[e.Text] {
				return
			}
			said[e.Text] = true
		}
		onEvent(e)
	}
}

// verdict is what became of a candidate whose run gave r and for which all peers sent so many bytes.
func (r *Result) verdict(sent int64) tune.Verdict {
	v := tune.Verdict{Val: r.Validated(), Sent: sent, Seconds: r.Seconds}
	if r.Figures != nil && r.Metric.Ranks() {
		v.Error = r.Figures.Val.StandardError(r.Metric, r.Figures.Positive, v.Val)
	}
	return v
}

// tune trains by the candidates of l's plan.
func (l Local) tune(ctx context.Context) (*Result, error) {
	all, err := l.Plan.CandidatesFor(l.Shards[0])
	if err != nil {
		return nil, input(err)
	}
	return l.contest(ctx, all)
}

// contest trains by candidates.
func (l Local) contest(ctx context.Context, all []plan.Candidate) (*Result, error) {
	size := contest.Extent(l.Plan, l.Shards[0], all)
	for _, s := range l.Shards[1:] {
		size = size.Plus(contest.Extent(l.Plan, s, all))
	}
	between, err := contest.New(l.Plan, all, size, l.Shards[0])
	if err != nil {
		return nil, input(err)
	}
	event := ofCandidates(l.OnEvent)
	one := func(ctx context.Context, i int) (*Result, error) {
		return Local{Plan: all[i].Plan, Shards: l.Shards, State: tune.StateOf(l.State, all[i].Name), OnEvent: event, Embed: l.Embed,
			tried: true}.Train(ctx)
	}
	r, err := tuned(ctx, all, tune.Trials[*Result]{Contest: between, State: l.State, OnEvent: l.OnEvent,
		Do: func(ctx context.Context, i int) (*Result, tune.Verdict, error) {
			r, err := one(ctx, i)
			if err != nil {
				return nil, tune.Verdict{}, err
			}
			sent := r.Total()
			return r, r.verdict(sent.Total()), nil
		},
		// A fault of the machine says nothing of a candidate.
		Lost: func(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENOSPC) },
		Load: one})
	if err == nil {
		r.exact()
		r.warn(l.OnEvent)
	}
	return r, err
}

// tune trains by the candidates of the plan together with the other sites, all of which make the same choice.
func (a *seat) tune(ctx context.Context) (*Result, error) {
	all, err := a.plan.CandidatesFor(a.Shard)
	if err != nil {
		return nil, input(err)
	}
	if a.keeper.Policy != nil {
		sends, err := disclosure.Of(a.plan, a.Shard)
		if err == nil {
			err = sends.Judge(*a.keeper.Policy)
		}
		if err != nil {
			return nil, input(err)
		}
		for i, r := range sends.Runs {
			all[i].Fault = r.Barred
		}
	}
	m := &tune.Member{State: a.State, Extent: contest.Extent(a.plan, a.Shard, all), OnEvent: a.keeper.Event}
	peerOf := func(i int) *peer {
		return a.peer(all[i].Plan, tune.StateOf(a.State, all[i].Name))
	}
	m.New = func(i int, one *session.Member) (session.Trainer, func() int64, error) {
		t, err := peerOf(i).trainer(one)
		return t, func() int64 { sent := t.(*trainer).sent(); return sent.Total() }, err
	}
	m.Attend = func(ctx context.Context, dir string, new func(*session.Member) (session.Trainer, error)) (session.Trainer, session.Usage, error) {
		return a.attend(ctx, a.peer(a.plan, dir).store, new, func(session.Trainer, session.Usage) error { return nil })
	}
	size, err := m.Extents(ctx)
	if err != nil {
		return nil, err
	}
	if m.Contest, err = contest.New(a.plan, all, size, a.Shard); err != nil {
		return nil, input(err)
	}
	r, err := tuned(ctx, all, tune.Trials[*Result]{Contest: m.Contest, State: a.State, OnEvent: a.keeper.Event, Lost: tune.Lost,
		Do: func(ctx context.Context, i int) (*Result, tune.Verdict, error) {
			t, usage, sent, err := m.Train(ctx, i)
			if err != nil {
				return nil, tune.Verdict{}, err
			}
			r, err := a.result(peerOf(i), t, usage)
			if err != nil {
				return nil, tune.Verdict{}, err
			}
			return r, r.verdict(sent), nil
		},
		Load: func(_ context.Context, i int) (*Result, error) { // the checkpoints hold it
			t, err := peerOf(i).trainer(&session.Member{Event: a.keeper.Event})
			if err != nil {
				return nil, err
			}
			if done, err := t.Resume(); err != nil || !done {
				return nil, input(fmt.Errorf("%s must hold a finished run (%v): remove %s at all sites to start again",
					tune.StateOf(a.State, all[i].Name), err, a.State))
			}
			return a.result(peerOf(i), t, session.Usage{})
		}})
	if err == nil && a.OnModel != nil {
		err = a.OnModel(r)
	}
	return r, err
}
