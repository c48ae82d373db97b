package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/retexo"
)

// gate is what a site asks for before it takes part in a run. Nothing is asked for where roster is empty.
type gate struct {
	roster, trusted, policy, approval, audit string // files
}

func (g *gate) bind(f *pflag.FlagSet) {
	f.StringVar(&g.roster, "roster", "", "the federation's roster: peers that are not in it are refused, with --policy and --approval")
	f.StringVar(&g.trusted, "trusted", "", "file of the roster in force here (default: one for each federation, beside the key)")
	f.StringVar(&g.policy, "policy", "", "this site's policy: what it does not allow is refused")
	f.StringVar(&g.approval, "approval", "", "this site's approval of the plan, by peer approve")
	f.StringVar(&g.audit, "audit", "", "log of what this peer took part in and what left it; empty: none is kept")
}

// site is this peer's own rules in force during a run. A nil site has none.
type site struct {
	policy  *admission.Policy  // nil: anything goes
	roster  admission.Roster   // where there is a policy
	log     *admission.Log     // nil: none
	guard   *admission.Guarded // nil: before the run, or no policy
	stop    context.CancelFunc // ends a run that cannot be recorded
	failed  error              // of the log
	sent    comm.Counts        // up to the last record
	written time.Time          // of the last record of bytes
}

// admit checks that this peer, by its ID, may take part in a plan. What speaks against it is recorded.
func (g gate) admit(p *agreement, id string, now time.Time) (_ *site, err error) {
	if g.roster == "" && (g.policy != "" || g.approval != "") || g.roster != "" && (g.policy == "" || g.approval == "") {
		return nil, badInput{errors.New("--roster, --policy and --approval go together: give all three, or none")}
	}
	s := &site{stop: func() {}}
	if g.audit != "" {
		if s.log, err = admission.OpenLog(g.audit); err != nil {
			return nil, badInput{err}
		}
	}
	began := admission.Record{Event: admission.Began, Peer: id, Plan: admission.PlanFingerprint(p.text)}
	if g.roster != "" {
		err = g.enforce(s, p, began.Plan, id, now)
		began.Federation, began.Roster = s.roster.Federation, s.roster.Serial
	}
	s.record(began)
	if err != nil {
		_, again := s.end(err)
		return nil, errors.Join(err, again)
	}
	if s.failed != nil {
		return nil, errors.Join(s.failed, s.log.Close())
	}
	return s, nil
}

// enforce asks roster, policy and approval in turn.
func (g gate) enforce(s *site, p *agreement, plan, id string, now time.Time) error {
	policy, err := admission.ReadPolicy(g.policy)
	if err != nil {
		return badInput{err}
	}
	s.policy = &policy
	file, err := readRoster(g.roster)
	if err != nil {
		return err
	}
	s.roster = file.Body
	if file.Body.Federation != policy.Federation {
		return badInput{fmt.Errorf("%s is the roster of %s, and %s is for %s", g.roster, file.Body.Federation, g.policy, policy.Federation)}
	}
	if err := inForce(g.trusted, policy.Federation).Update(file, "", now); err != nil {
		return badInput{fmt.Errorf("%s: %w", g.roster, err)}
	}
	var errs []error
	for _, m := range p.Peers {
		listed, err := s.roster.Admit(m.ID, now, admission.Trainer, admission.Coordinator)
		if err == nil && listed.Name != m.Name {
			err = &admission.Refusal{Rule: "roster.name", Reason: fmt.Sprintf("the plan calls %s %q, the roster %q", m.ID, m.Name, listed.Name)}
		}
		errs = append(errs, err)
	}
	errs = append(errs, policy.Check(p.judged()))
	approval, err := admission.ReadFile[admission.Approval](g.approval)
	if err == nil {
		err = policy.Approved(approval, plan, id, now)
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return badInput{err}
	}
	return policy.Open(now) // not badInput: at another time the same command will do
}

// peers is the plan's roster; of a member for which the plan has no address, the federation's roster may have one.
func (s *site) peers(p *agreement) p2p.Roster {
	r := p.roster()
	for i, m := range r.Members {
		if listed, ok := s.roster.Find(m.ID); ok && len(m.Addrs) == 0 {
			r.Members[i].Addrs = listed.Addresses
		}
	}
	return r
}

// over puts the policy's bounds around t, and records who is connected: those that are here.
func (s *site) over(t comm.Transport, p *agreement, rank int, here []bool, shard *partition.Shard) comm.Transport {
	for r, m := range p.Peers {
		if r != rank && here[r] {
			s.record(admission.Record{Event: admission.Connected, Peer: m.ID, Name: m.Name, Rows: int64(len(shard.Boundary[r])),
				Text: "rows are those of this site's nodes that the peer may be sent, once for each layer and hop"})
		}
	}
	if s.policy == nil {
		return t
	}
	if s.guard == nil {
		s.guard = s.policy.Guard(t)
	}
	s.guard.Transport = t // after a peer was lost another session goes on under the same bounds
	return s.guard
}

// observe records what leaves: at the end of a stage, and every minute in between.
func (s *site) observe(o retexo.Observer) retexo.Observer {
	if s == nil || s.log == nil {
		return o
	}
	round, stage := o.RoundEnd, o.StageEnd
	rounds := 0
	s.written = time.Now()
	o.RoundEnd = func(i retexo.RoundInfo) {
		rounds = i.Round + 1
		if time.Since(s.written) >= time.Minute {
			s.left(i.Bytes, stageName(i.Stage), rounds)
		}
		if round != nil {
			round(i)
		}
	}
	o.StageEnd = func(i retexo.StageInfo) {
		s.left(i.Bytes, stageName(i.Stage), rounds)
		rounds = 0
		if stage != nil {
			stage(i)
		}
	}
	return o
}

func (s *site) left(total comm.Counts, stage string, round int) {
	for _, d := range []struct {
		door      comm.Door
		now, then int64
	}{{comm.Halo, total.Halo, s.sent.Halo}, {comm.Reduce, total.Reduce, s.sent.Reduce}, {comm.Control, total.Control, s.sent.Control}} {
		if d.now > d.then {
			s.record(admission.Record{Event: admission.Left, Door: d.door.String(), Bytes: d.now - d.then, Stage: stage, Round: round})
		}
	}
	s.sent, s.written = total, time.Now()
}

// record adds to the log, where there is one. A run that cannot be recorded ends.
func (s *site) record(r admission.Record) {
	if s.log == nil || s.failed != nil {
		return
	}
	if s.failed = s.log.Append(r); s.failed != nil {
		s.stop()
	}
}

// end records how the run went and closes the log; head is the log's end, for people to keep.
func (s *site) end(run error) (head string, err error) {
	if s.log == nil {
		return "", nil
	}
	s.refused(run)
	text := "done"
	if run != nil {
		text = run.Error()
	}
	last := admission.Record{Event: admission.Ended, Text: text}
	if s.guard != nil {
		last.Bytes = s.guard.Sent() // of all doors
	}
	s.record(last)
	return s.log.Head().String(), errors.Join(s.failed, s.log.Close())
}

// refused records each refusal in err, and each peer that was lost.
func (s *site) refused(err error) {
	switch e := err.(type) {
	case nil:
	case *admission.Refusal:
		s.record(admission.Record{Event: admission.Refused, Rule: e.Rule, Text: e.Reason})
	case *p2p.MismatchError:
		s.record(admission.Record{Event: admission.Refused, Name: e.Name, Rule: "hello." + e.Part, Text: e.Error()})
	case *comm.PeerError:
		if _, ours := errors.AsType[*admission.Refusal](e.Err); !ours { // what this site refused to send is not the peer's fault
			s.record(admission.Record{Event: admission.Lost, Name: e.Name, Text: e.Error()})
		}
		s.refused(e.Err)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			s.refused(one)
		}
	case interface{ Unwrap() error }:
		s.refused(e.Unwrap())
	}
}
