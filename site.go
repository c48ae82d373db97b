package heddle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/disclosure"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/p2p/leaves"
	"github.com/heddle-gnn/heddle/p2p/node"
	"github.com/heddle-gnn/heddle/privacy/dp"
	"github.com/heddle-gnn/heddle/session"
	"github.com/heddle-gnn/heddle/train"
)

// Site is what one site decides for itself in a run on several machines.
type Site struct {
	Identity identity.Identity // of the member that this site is
	Shard    *shard.Shard      // its part of the graph; Meet does not need it
	State    string            // directory of checkpoints; empty: none are kept
	Embed    bool              // whether the result has hidden rows
	Init     *Initial          // what training starts from; nil unless the plan's Init names it

	Listen       []string        // multiaddresses to listen on; nil: those of the plan, or of the roster
	LAN          bool            // find peers on the local network by mDNS
	Interfaces   []netip.Addr    // addresses of this machine, where the system does not list them (Android); nil: it is asked
	Wait         time.Duration   // how long to wait for all peers at the start
	Rejoin       time.Duration   // how long to wait for failed peers; 0: a failure ends the run
	ReceiveLimit int64           // bytes per second from each other peer; 0: no limit
	Link         *netsim.Table   // simulated slower network; nil: none
	Evidence     []byte          // what JoinGraph shows the sites where the plan does not list this peer; at most leaf.MostEvidence bytes
	Phones       *leaves.Service // for leaves whose shares this site collects; nil where the plan has none, or others collect
	Ledger       dp.Ledger       // of what runs spent of this site's edges; without Path none is kept

	Gate    Gate
	OnEvent func(Event)         // receives the events one at a time; may be nil
	OnModel func(*Result) error // called once, when the model is final but others may need this peer; may be nil
}

// Gate holds the files by which a site decides whether it takes part in a run. Roster, Policy and
// Approval are given together or not at all.
type Gate struct {
	Roster     string // file of the federation's roster: peers that it does not list are refused
	Trusted    string // file of the roster in force at this site
	TrustedDir string // if Trusted is empty: directory with such a file for each federation
	Policy     string // file of the site's policy: what it does not allow is refused
	Approval   string // file of the site's approval of the plan
	PlanText   []byte // the plan file, which approval and audit log name by its hash
	Audit      string // file of the log of runs and of what left this site; empty: none is kept
}

// InForce returns the file of the roster of a federation that is in force at this site.
func (g Gate) InForce(federation string) admission.Trusted {
	if g.Trusted != "" {
		return admission.Trusted(g.Trusted)
	}
	return admission.Trusted(filepath.Join(g.TrustedDir, federation+".json"))
}

// Runs returns the ledger of the runs, of all federations, that sent rows of own's table.
func (g Gate) Runs(own *shard.Shard) dp.Ledger {
	dir, data := cmp.Or(g.TrustedDir, filepath.Dir(g.Trusted)), shard.Edges(own)
	return dp.Ledger{Path: filepath.Join(dir, "runs-"+data[:16]+".jsonl"), Data: data}
}

// counting returns what adds a run by p to the ledger of runs, once. It does nothing without a policy, and if the run
// goes on from an earlier process. A run that cannot be counted is warned of.
func (k *gatekeeper) counting(p Plan, own *shard.Shard) func() {
	if k.Policy == nil || k.Continues() {
		return func() {}
	}
	runs := k.gate.Runs(own)
	return sync.OnceFunc(func() {
		sends, err := disclosure.Of(p, own)
		if err == nil {
			err = runs.Ran(max(1, p.Runs), sends.Fresh, admission.PlanFingerprint(k.gate.PlanText))
		}
		if err != nil {
			k.Warn("peer approve will not count this run: %v", err)
		}
	})
}

// gatekeeper enforces a site's rules during a run, and writes its audit log.
type gatekeeper struct {
	*session.Keeper
	gate   Gate
	roster admission.Roster // where there is a policy
}

// admit checks that this site may take part in p. A refusal is recorded.
// sends says what leaves the site; nil: what a run by p sends of s.Shard, if there is one.
func (s Site) admit(p Plan, now time.Time, sends func() (*disclosure.Disclosure, error)) (_ *gatekeeper, err error) {
	g, id := s.Gate, s.Identity.PeerID()
	if g.Roster == "" && (g.Policy != "" || g.Approval != "") || g.Roster != "" && (g.Policy == "" || g.Approval == "") {
		return nil, input(errors.New("roster, policy and approval go together: give all three, or none"))
	}
	k := &gatekeeper{gate: g, Keeper: session.NewKeeper(s.OnEvent)}
	if g.Audit != "" {
		if k.Log, err = admission.OpenLog(g.Audit); err != nil {
			return nil, input(err)
		}
	}
	began := admission.Record{Event: admission.Began, Peer: id, Plan: admission.PlanFingerprint(g.PlanText)}
	if g.Roster != "" {
		if sends == nil && s.Shard != nil {
			sends = func() (*disclosure.Disclosure, error) { return disclosure.Of(p, s.Shard) }
		}
		err = k.enforce(p, sends, began.Plan, id, now)
		began.Federation, began.Roster = k.roster.Federation, k.roster.Serial
	}
	k.Record(began)
	if err != nil || k.Failed() != nil {
		return nil, errors.Join(err, k.end(err))
	}
	return k, nil
}

// enforce checks roster, policy and approval. sends is nil where no row of a shard leaves.
func (k *gatekeeper) enforce(p Plan, sends func() (*disclosure.Disclosure, error), plan, id string, now time.Time) error {
	g := k.gate
	policy, err := admission.ReadPolicy(g.Policy)
	if err != nil {
		return input(err)
	}
	k.Policy = &policy
	file, err := admission.ReadFile[admission.Roster](g.Roster)
	if err != nil {
		return input(err)
	}
	k.roster = file.Body
	if file.Body.Federation != policy.Federation {
		return input(fmt.Errorf("%s is the roster of %s, and %s is for %s", g.Roster, file.Body.Federation, g.Policy,
			policy.Federation))
	}
	if err := g.InForce(policy.Federation).Update(file, "", now); err != nil {
		return input(fmt.Errorf("%s: %w", g.Roster, err))
	}
	errs := []error{p.Admitted(k.roster, now)}
	if sends == nil {
		errs = append(errs, p.Allowed(policy))
	} else if of, err := sends(); err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, of.Judge(policy))
	}
	approval, err := admission.ReadFile[admission.Approval](g.Approval)
	if err == nil {
		err = policy.Approved(approval, plan, id, now)
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return input(err)
	}
	return policy.Open(now) // not of the input: at another time the same will do
}

// members returns those of the plan, with addresses from the federation's roster for those without.
func (k *gatekeeper) members(p Plan) node.Roster {
	r := Roster(p)
	for i, m := range r.Members {
		if listed, ok := k.roster.Find(m.ID); ok && len(m.Addrs) == 0 {
			r.Members[i].Addrs = listed.Addresses
		}
	}
	return r
}

// over applies the policy's bounds to t, and records and reports which members are connected.
func (k *gatekeeper) over(t comm.Transport, p Plan, rank int, own *shard.Shard) comm.Transport {
	var members []int
	for r, m := range p.Members {
		members = append(members, r)
		if r != rank {
			k.Record(admission.Record{Event: admission.Connected, Peer: m.ID, Name: m.Name,
				Rows: int64(len(own.Boundary[r])),
				Text: "rows are those of this site's nodes that the peer may be sent, once for each layer and hop"})
		}
	}
	k.Event(Event{Kind: train.Connection, Members: members, Peer: -1})
	return k.Within(t)
}

// stops returns a context for what this site, of that rank, does in a run; it ends when k or the roster bars the site, and
// the others are told why.
func (k *gatekeeper) stops(ctx context.Context, rank int) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancelCause(ctx)
	k.Stop = func() {
		stop(&comm.PeerError{Rank: rank, Op: "admission", Err: cmp.Or(k.Failed(), errNoMember)})
	}
	return ctx, func() { stop(nil) }
}

// errNoMember is why a site ends that the roster does not list any more.
var errNoMember = errors.New("the roster does not list this site any more")

// end records how the run went and closes the log.
func (k *gatekeeper) end(run error) error {
	k.refused(run)
	return k.End(run)
}

// refused records each refusal in err, and each peer that failed.
func (k *gatekeeper) refused(err error) {
	switch e := err.(type) {
	case nil:
	case *admission.Refusal:
		k.Record(admission.Record{Event: admission.Refused, Rule: e.Rule, Text: e.Reason})
	case *p2p.MismatchError:
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

// revoke disconnects, while a run lasts, members of p that the roster does not list any more.
func (k *gatekeeper) revoke(ctx context.Context, p Plan, self string, h *p2p.Host) {
	if k.Policy == nil {
		return
	}
	feed := admission.Feed{Path: k.gate.Roster, InForce: k.gate.InForce(k.roster.Federation),
		Warn: func(text string) { k.Warn("%s", text) }}
	gone := map[string]bool{}
	feed.Follow(ctx, k.roster, func(r admission.Roster, now time.Time) {
		for _, m := range p.Members {
			_, err := r.Admit(m.ID, now, admission.Trainer, admission.Coordinator)
			if err == nil || gone[m.ID] {
				continue
			}
			gone[m.ID] = true
			k.Warn("%s is no longer a member (serial %d of the roster): %v", m.Name, r.Serial, err)
			if m.ID == self {
				k.Stop()
			} else if err := h.Revoke(m.ID, err.Error()); err != nil {
				k.Warn("revoke %s: %v", m.Name, err)
			}
		}
	})
}
