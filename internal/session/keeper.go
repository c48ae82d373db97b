package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// keeper is what a site has over all connections: its rules, its audit log and its host.
type keeper struct {
	Policy *admission.Policy // (nil = anything goes)

	gate    gate.Files
	terms   Terms
	network p2p.Network
	roster  admission.Roster          // if there is a policy
	own     *shard.Shard              // (nil = no row of a shard leaves)
	host    *p2p.Host                 // (nil = the program has its own transport)
	log     *admission.Log            // (nil = none)
	stop    func(rank int, why error) // ends a run that cannot be recorded, or whose member rank the roster bars

	waiting atomic.Int64 // nanoseconds that others are waited for at the moment
	present bool         // the others were met
	counted sync.Once    // in the ledger of runs

	guard   *admission.Guarded // (nil = before the run, or no policy)
	failed  error              // of the log
	sent    comm.Counts        // up to the last record
	written time.Time          // of the last record of bytes
	rounds  int                // of the stage, completed

	store *checkpoint.Store // that keeps what the guard let through (nil = it is forgotten with the process)
	spent int64             // what earlier processes let through

	telling sync.Mutex // events come from several goroutines
	onEvent func(train.Event)
}

// admit checks that this site may take part in a run by t. A refusal is recorded.
func (s Site) admit(t Terms, now time.Time) (_ *keeper, err error) {
	g, id := s.Gate, s.Identity.PeerID()
	if g.Roster == "" && (g.Policy != "" || g.Approval != "") ||
		g.Roster != "" && (g.Policy == "" || g.Approval == "") {
		return nil, train.Input(errors.New("roster, policy and approval go together: give all three, or none"))
	}
	k := &keeper{gate: g, terms: t, own: s.Shard, stop: func(int, error) {}, written: now, onEvent: s.OnEvent}
	if g.Audit != "" {
		if k.log, err = admission.OpenLog(g.Audit); err != nil {
			return nil, train.Input(err)
		}
	}
	began := admission.Record{Event: admission.Began, Peer: id, Plan: admission.PlanFingerprint(g.PlanText)}
	if g.Roster != "" {
		err = k.enforce(began.Plan, id, now)
		began.Federation, began.Roster = k.roster.Federation, k.roster.Serial
	}
	k.Record(began)
	if err != nil || k.failed != nil {
		return nil, errors.Join(err, k.end(err))
	}
	return k, nil
}

// enforce checks roster, policy and approval.
func (k *keeper) enforce(plan, id string, now time.Time) error {
	g := k.gate
	policy, err := admission.ReadPolicy(g.Policy)
	if err != nil {
		return train.Input(err)
	}
	file, err := admission.ReadFile[admission.Roster](g.Roster)
	if err != nil {
		return train.Input(err)
	}
	k.roster, policy = file.Body, policy.In(file.Body.Federation)
	if file.Body.Federation != policy.Federation {
		return train.Input(fmt.Errorf("%s is the roster of %s, and %s is for %s", g.Roster, file.Body.Federation,
			g.Policy, policy.Federation))
	}
	k.Policy = &policy
	if err := admission.Trusted(g.InForce(policy.Federation)).Update(file, "", now); err != nil {
		return train.Input(fmt.Errorf("%s: %w", g.Roster, err))
	}
	errs := []error{k.terms.Request.Admitted(k.roster, now), k.terms.Request.Allowed(policy)}
	approval, err := admission.ReadFile[admission.Approval](g.Approval)
	if err == nil {
		err = policy.Approved(approval, plan, id, now)
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return train.Input(err)
	}
	return policy.Open(now) // not of the input: at another time the same will do
}

// members returns the members of the run; the federation's roster adds addresses to members without.
func (k *keeper) members() identity.Roster {
	r := identity.Roster{Members: slices.Clone(k.terms.Members.Members)}
	for i, m := range r.Members {
		if listed, ok := k.roster.Find(m.ID); ok && len(m.Addrs) == 0 {
			r.Members[i].Addrs = listed.Addresses
		}
	}
	return r
}

// config is what the run, the policy and the site itself want of its host; the smallest limit of a rate is used.
func (k *keeper) config(s Site) p2p.Config {
	at := s.Network.Listen
	if at == nil && s.Network.Host == nil {
		at = k.members().Members[k.terms.Rank].Addrs
	}
	limit := s.Network.ReceiveLimit
	if k.Policy != nil && k.Policy.ReceiveLimit > 0 && (limit == 0 || k.Policy.ReceiveLimit < limit) {
		limit = k.Policy.ReceiveLimit
	}
	return p2p.Config{Identity: s.Identity, Listen: at, Transport: k.terms.Carrier,
		MaxPeers: len(k.terms.Members.Members), LAN: s.Network.LAN, Interfaces: s.Network.Interfaces,
		PeerTimeout: k.terms.PeerTimeout,
		Announce:    s.Network.Announce, Host: s.Network.Host,
		MaxRate: limit, Relays: slices.Concat(k.terms.Relays, k.roster.RelayAddresses(time.Now()))}
}

// openNetwork opens the site's host, unless the program has its own transport, and follows the roster until ctx ends.
func (k *keeper) openNetwork(ctx context.Context, s Site) (err error) {
	network := k.config(s)
	if k.network = s.Network; k.network.Transport != nil {
		go k.revoke(ctx, s.Identity.PeerID())
		return nil
	}
	if err := network.Validate(); err != nil {
		return train.Input(err)
	}
	if k.host, err = p2p.Listen(network); err != nil {
		return err
	}
	var said []p2p.Missing
	k.host.Waiting = func(missing []p2p.Missing, since time.Duration) {
		same := func(a, b p2p.Missing) bool { return a.Rank == b.Rank && a.Connected == b.Connected }
		if int(since.Seconds())%5 == 0 || (k.present || said != nil) && !slices.EqualFunc(missing, said, same) {
			k.missing(missing)
		}
		said = missing
	}
	go k.revoke(ctx, s.Identity.PeerID())
	return nil
}

// closeHost closes what openNetwork has opened.
func (k *keeper) closeHost() error {
	if k.host == nil {
		return nil
	}
	return k.host.Close()
}

// missing reports whom this site waits for, and to whom it is connected meanwhile.
func (k *keeper) missing(all []p2p.Missing) {
	var connected []int
	for r := range k.terms.Members.Members {
		if !slices.ContainsFunc(all, func(m p2p.Missing) bool { return m.Rank == r && !m.Connected }) {
			connected = append(connected, r)
		}
	}
	for _, m := range all {
		one, why := k.terms.Members.Members[m.Rank], "it has not answered"
		switch {
		case m.Last != nil:
			why = m.Last.Error()
		case m.Connected:
			why = "it has not met all members"
		}
		k.event(train.Event{Kind: train.Connection, Peer: m.Rank, Members: connected, Text: fmt.Sprintf(
			"waiting for %s (%.10s…), at most %s: %s", one.Name, one.ID,
			time.Duration(k.waiting.Load()).Round(time.Second), why)})
	}
}

// meet meets the other members at the site's host, which stays for the next time.
func (k *keeper) meet(ctx context.Context) (comm.Transport, error) {
	if until, ok := ctx.Deadline(); ok {
		k.waiting.Store(int64(time.Until(until)))
	}
	if k.host == nil {
		return connect(ctx, k.network, k.terms)
	}
	return k.host.Join(ctx, k.members(), k.terms.Hello)
}

// met applies the policy's bounds to t, over all connections, and records and reports that all members are connected.
func (k *keeper) met(t comm.Transport) comm.Transport {
	k.present = true
	var members []int
	for r, m := range k.terms.Members.Members {
		members = append(members, r)
		if k.own != nil && r != k.terms.Rank {
			k.Record(admission.Record{Event: admission.Connected, Peer: m.ID, Name: m.Name,
				Rows: int64(len(k.own.Boundary[r])), Text: "the rows of this site's nodes that the peer " +
					"may be sent, once for each layer and hop"})
		}
	}
	k.event(train.Event{Kind: train.Connection, Members: members, Peer: -1})
	// Below the guard, so that time in which the policy counts or refuses bytes is not taken for a silent member.
	t = watchWaits(t, len(members), k.event)
	if k.Policy == nil {
		return t
	}
	if k.guard == nil {
		k.guard = k.Policy.Guard(t, k.spent, func(n int64) error {
			return k.store.KeepNote(sentNote, fmt.Appendln(nil, n))
		})
	}
	k.guard.Transport = t
	return k.guard
}

// countRun adds the run to the ledger of runs, once. It does nothing without a policy, and if the run goes on from an
// earlier process. A run that cannot be counted is warned of.
func (k *keeper) countRun() {
	if k.Policy == nil || k.spent > 0 {
		return
	}
	k.counted.Do(func() {
		runs, numbers, err := k.terms.Request.Releases()
		if err == nil {
			ledger := dp.Ledger{Path: k.gate.Runs(k.own), Data: shard.Edges(k.own)}
			err = ledger.Ran(runs, numbers, admission.PlanFingerprint(k.gate.PlanText))
		}
		if err != nil {
			k.Warn("heddle approve will not count this run: %v", err)
		}
	})
}

// revoke disconnects, while a run lasts, members that the roster does not list any more.
func (k *keeper) revoke(ctx context.Context, self string) {
	if k.Policy == nil {
		return
	}
	feed := admission.Feed{Path: k.gate.Roster, InForce: admission.Trusted(k.gate.InForce(k.roster.Federation)),
		Warn: func(text string) { k.Warn("%s", text) }}
	gone := map[string]bool{}
	feed.Follow(ctx, k.roster, func(r admission.Roster, now time.Time) {
		for rank, m := range k.terms.Members.Members {
			_, err := r.Admit(m.ID, now, admission.Trainer, admission.Coordinator)
			if err == nil || gone[m.ID] {
				continue
			}
			gone[m.ID] = true
			k.Warn("%s is no longer a member (serial %d of the roster): %v", m.Name, r.Serial, err)
			if m.ID == self {
				k.stop(rank, errNoMember)
			} else if k.host == nil { // which transport carries it is not known here
				k.stop(rank, fmt.Errorf("%w: %v", p2p.ErrRevoked, err))
			} else if err := k.host.Revoke(m.ID, err.Error()); err != nil {
				k.Warn("revoke %s: %v", m.Name, err)
			}
		}
	})
}

// sentNote is the name under which a store keeps the bytes that the policy let through.
const sentNote = "sent"

// recall begins with what earlier processes of the run let through. It has its own directory below the directory of
// checkpoints, since bytes are sent while a trainer saves.
func (k *keeper) recall(state string) error {
	if state == "" {
		return nil
	}
	k.store = &checkpoint.Store{Dir: filepath.Join(state, "policy")}
	b, err := k.store.Note(sentNote)
	if b == nil || err != nil {
		return err
	}
	if k.spent, err = strconv.ParseInt(strings.TrimSuffix(string(b), "\n"), 10, 64); err != nil || k.spent < 0 {
		return fmt.Errorf("%s must hold a number of bytes (got %q)", filepath.Join(k.store.Dir, sentNote), b)
	}
	return nil
}

// event passes e on, and records what has left at the end of each stage and every minute.
func (k *keeper) event(e train.Event) {
	k.telling.Lock()
	defer k.telling.Unlock()
	if k.onEvent != nil {
		k.onEvent(e)
	}
	if k.log == nil {
		return
	}
	switch e.Kind {
	case train.RoundEnd:
		if k.rounds = e.Round + 1; time.Since(k.written) >= time.Minute {
			k.left(e.Sent, e.StageName, k.rounds)
		}
	case train.StageEnd:
		k.left(e.Sent, e.StageName, k.rounds)
		k.rounds = 0
	case train.Trace:
		if e.Sent != (comm.Counts{}) {
			k.left(e.Sent, e.Text, 0)
		}
	}
}

// Warn sends subscribers a warning about the sites' connections.
func (k *keeper) Warn(format string, args ...any) {
	k.event(train.Event{Kind: train.Warning, Text: fmt.Sprintf(format, args...)})
}

// left records what has left since the last record.
func (k *keeper) left(total comm.Counts, stage string, round int) {
	for _, d := range []struct {
		door      comm.Door
		now, then int64
	}{
		{comm.Halo, total.Halo, k.sent.Halo},
		{comm.Reduce, total.Reduce, k.sent.Reduce},
		{comm.Control, total.Control, k.sent.Control},
	} {
		if d.now > d.then {
			k.Record(admission.Record{Event: admission.Left, Door: d.door.String(), Bytes: d.now - d.then,
				Stage: stage, Round: round})
		}
	}
	k.sent, k.written = total, time.Now()
}

// Record adds to the log, if there is one. A run that cannot be recorded ends.
func (k *keeper) Record(r admission.Record) {
	if k.log == nil || k.failed != nil {
		return
	}
	if k.failed = k.log.Append(r); k.failed != nil {
		k.stop(k.terms.Rank, k.failed)
	}
}

// end records how the run went and closes the log.
func (k *keeper) end(run error) (err error) {
	k.refused(run)
	if k.guard != nil {
		err = k.guard.Settle()
	}
	if k.log == nil {
		return err
	}
	text := "done"
	if run != nil {
		text = run.Error()
	}
	last := admission.Record{Event: admission.Ended, Text: text}
	if k.guard != nil {
		last.Bytes = k.guard.Sent() // of all connections
	}
	if k.Record(last); k.failed != nil && !errors.Is(run, k.failed) {
		err = errors.Join(err, k.failed)
	}
	return errors.Join(err, k.log.Close())
}

// refused records each refusal in err, and each peer that failed.
func (k *keeper) refused(err error) {
	switch e := err.(type) {
	case nil:
	case *admission.Refusal:
		k.Record(admission.Record{Event: admission.Refused, Rule: e.Rule, Text: e.Reason})
	case *p2p.MemberMismatchError:
		k.Record(admission.Record{Event: admission.Refused, Name: e.Name, Rule: "hello." + e.Part, Text: e.Error()})
	case *comm.PeerError:
		if _, ours := errors.AsType[*admission.Refusal](e.Err); ours { // what this site refused to send
		} else if errors.Is(e, comm.ErrRefused) {
			k.Record(admission.Record{Event: admission.Refused, Name: e.Name, Text: e.Error()})
		} else {
			k.Record(admission.Record{Event: admission.Lost, Name: e.Name, Text: e.Error()})
		}
		k.refused(e.Err)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			k.refused(one)
		}
	case interface{ Unwrap() error }:
		k.refused(e.Unwrap())
	}
}
