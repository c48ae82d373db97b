package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/retexo"
)

// Survival is the part of Settings that says how a run goes on when a peer is lost.
type Survival struct {
	MinPeers   int           `yaml:"min_peers,omitempty"`   // with which the run goes on, more than half of all; 0: every lost peer is waited for
	LostWait   time.Duration `yaml:"lost_wait,omitempty"`   // how long a lost peer is waited for before the others go on, 1s to 1h
	Linger     time.Duration `yaml:"linger,omitempty"`      // how long peers that are done stay for lost ones, who then fetch the model, 0 to 24h
	LostRows   string        `yaml:"lost_rows,omitempty"`   // what stands for a lost peer's rows at an exchange: wait, previous or drop
	Straggler  string        `yaml:"straggler,omitempty"`   // a slow peer: wait, drop (it is lost for a while) or adapt (it is given less local work)
	RoundLimit time.Duration `yaml:"round_limit,omitempty"` // straggler drop: how long a round's sum is waited for
}

func (s *Survival) bind(f *pflag.FlagSet) {
	f.IntVar(&s.MinPeers, "min-peers", s.MinPeers, "peers with which the run goes on when others are lost, more than half; 0: all are waited for")
	f.DurationVar(&s.LostWait, "lost-wait", s.LostWait, "min-peers: how long a lost peer is waited for before the others go on")
	f.DurationVar(&s.Linger, "linger", s.Linger, "min-peers: how long peers that are done stay for lost ones, who then fetch the model; 0: not at all")
	f.StringVar(&s.LostRows, "lost-rows", s.LostRows, "min-peers: what stands for a lost peer's rows: wait, previous (those of the exchange before) or drop (its edges)")
	f.StringVar(&s.Straggler, "straggler", s.Straggler, "a slow peer: wait, adapt (it is given less local work), or with min-peers drop (it is lost for a while)")
	f.DurationVar(&s.RoundLimit, "round-limit", s.RoundLimit, "straggler drop: how long a round's sum is waited for")
}

const (
	leastLostWait, mostLostWait = time.Second, time.Hour
	mostLinger                  = 24 * time.Hour
)

// policy is s as the trainer takes it, for any number of peers; its own faults are the trainer's to find.
func (s Survival) policy() (retexo.Survival, error) {
	p := retexo.Survival{MinPeers: s.MinPeers, LostRows: s.LostRows, Straggler: s.Straggler, RoundLimit: s.RoundLimit}
	if p.LostRows == "wait" {
		p.LostRows = ""
	}
	if p.Straggler == "wait" {
		p.Straggler = ""
	}
	if s.MinPeers > 0 && (s.LostWait < leastLostWait || s.LostWait > mostLostWait) {
		return p, fmt.Errorf("lost_wait: %v, want %v to %v", s.LostWait, leastLostWait, mostLostWait)
	}
	if s.Linger < 0 || s.Linger > mostLinger {
		return p, fmt.Errorf("linger: %v, want 0 to %v", s.Linger, mostLinger)
	}
	return p, nil
}

// together returns the faults of s for a run of so many peers.
func (s Survival) together(peers int) error {
	if p, err := s.policy(); err == nil {
		if err := p.Validate(peers); err != nil {
			return badInput{err}
		}
	}
	return nil
}

// learner is a peer's layer-wise training, from one generation of members to the next.
type learner struct {
	config retexo.Config
	model  *nn.Model
	*retexo.Trainer

	agreed *quorum // where the run goes on without lost peers
}

// quorum is what a generation is agreed on by.
type quorum struct {
	here    []bool // whom the session reaches; nil: all
	without []bool // whom this peer does not go on with; nil: nobody
	least   int
	limit   time.Duration
}

func (w work) learner() (*learner, error) {
	c, err := w.settings.plan(taskOf(w.shard))
	if err != nil {
		return nil, err
	}
	l := &learner{config: c}
	if l.model, err = retexo.NewModel(c); err != nil {
		return nil, badInput{err}
	}
	if l.Trainer, err = retexo.New(c, w.shard, l.model); err != nil {
		return nil, badInput{err}
	}
	l.Checkpoints, l.Observer = w.store, w.site.observe(w.watch.layerwise(c, w.shard.Rank))
	if end := l.Observer.RoundEnd; w.advanced != nil {
		l.Observer.RoundEnd = func(i retexo.RoundInfo) {
			w.advanced()
			if end != nil {
				end(i)
			}
		}
	}
	if c.Survival.On() {
		l.agreed = &quorum{least: c.Survival.MinPeers, limit: time.Minute}
	}
	return l, nil
}

// train trains until the model is done, or this generation is.
func (l *learner) train(ctx context.Context, group *comm.Group) error {
	if l.agreed != nil {
		if err := l.agree(ctx, group); err != nil {
			return err
		}
	}
	return l.Run(ctx, group, group)
}

func (l *learner) agree(ctx context.Context, group *comm.Group) error {
	last, err := l.Generation()
	if err != nil {
		return err
	}
	here := l.agreed.here
	if here == nil {
		here = make([]bool, group.Size())
		for q := range here {
			here[q] = true
		}
	}
	ctx, cancel := context.WithTimeout(ctx, l.agreed.limit)
	defer cancel()
	return group.Agree(ctx, here, l.agreed.without, l.agreed.least, last)
}

// outcome is what this peer saw of the run.
func (l *learner) outcome() *outcome {
	r := l.Result()
	o := &outcome{Model: l.model, Config: l.config, Sent: r.Bytes, Metric: l.config.Metric, Val: math.NaN(), Test: math.NaN(), Rounds: len(r.Rounds),
		Generations: r.Generations, LostRows: r.LostRows, Shares: r.Shares}
	for _, s := range r.Stages {
		stage := report.Stage{Name: stageName(s.Stage), BestRound: s.BestRound, Val: s.Val, Test: s.Test}
		for _, q := range r.Rounds {
			if q.Stage == s.Stage {
				stage.Curve = append(stage.Curve, report.Point{Round: q.Round, Loss: q.Loss, Val: q.Val})
			}
		}
		if stage.Curve == nil {
			o.Rounds++ // solved at once
		}
		o.Stages, o.Val, o.Test = append(o.Stages, stage), s.Val, s.Test
	}
	return o
}

// generation, lostRows and share are what --json says of a run that went on without lost peers, or gave slow ones less work.
type generation struct {
	Number  uint64   `json:"generation"`
	Stage   string   `json:"stage"`
	Round   int      `json:"round"`
	Members []string `json:"members"`
	Lost    []string `json:"lost"`
}

type lostRows struct {
	Stage string `json:"stage"`
	Hop   int    `json:"hop"`
	Peer  string `json:"peer"`
	Rows  int    `json:"rows"` // of its nodes, that this peer's edges come from
	Did   string `json:"did"`  // previous or drop
}

type share struct {
	Stage string  `json:"stage"`
	Round int     `json:"round"` // from which on
	Peer  string  `json:"peer"`
	Share float64 `json:"share"` // of its training nodes that its steps are computed from
}

// history says in names what o has by rank.
func (o *outcome) history(peers int) (gs []generation, rows []lostRows, shares []share) {
	names := o.Names
	for r := len(names); r < peers; r++ {
		names = append(names, fmt.Sprintf("peer %d", r))
	}
	for _, g := range o.Generations {
		in := make([]bool, len(names))
		one := generation{Number: g.Number, Stage: stageName(g.Stage), Round: g.Round, Members: []string{}, Lost: []string{}}
		for _, q := range g.Members {
			in[q] = true
		}
		for q, name := range names {
			if in[q] {
				one.Members = append(one.Members, name)
			} else {
				one.Lost = append(one.Lost, name)
			}
		}
		gs = append(gs, one)
	}
	for _, l := range o.LostRows {
		rows = append(rows, lostRows{stageName(l.Stage), l.Hop, names[l.Peer], l.Rows, l.Did})
	}
	for _, s := range o.Shares {
		shares = append(shares, share{stageName(s.Stage), s.Round, names[s.Peer], s.Share})
	}
	return gs, rows, shares
}

// survived is the table of a report; nil where nobody was ever lost or slow.
func survived(gs []generation, rows []lostRows, shares []share) *report.Table {
	if len(gs) < 2 && len(rows) == 0 && len(shares) == 0 && (len(gs) == 0 || len(gs[0].Lost) == 0) {
		return nil
	}
	t := &report.Table{Head: []string{"generation", "goes on at", "without"}}
	for _, g := range gs {
		without := strings.Join(g.Lost, ", ")
		if without == "" {
			without = "nobody"
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(g.Number), fmt.Sprintf("%s, round %d", g.Stage, g.Round), without})
	}
	for _, r := range rows {
		did := "edges left out"
		if r.Did == "previous" {
			did = "earlier rows used"
		}
		t.Rows = append(t.Rows, []string{"rows of " + r.Peer, fmt.Sprintf("%s, hop %d", r.Stage, r.Hop), fmt.Sprintf("%d: %s", r.Rows, did)})
	}
	for _, s := range shares {
		t.Rows = append(t.Rows, []string{"work of " + s.Peer, fmt.Sprintf("%s, round %d", s.Stage, s.Round), percent(s.Share)})
	}
	return t
}

// gone reports whether err ended a session because of a peer, and not the run.
func gone(err error) bool {
	var lost *comm.PeerError
	var few *comm.TooFewError
	return errors.As(err, &lost) || errors.As(err, &few) || errors.Is(err, comm.ErrLeftOut) || errors.Is(err, retexo.ErrSlow)
}
