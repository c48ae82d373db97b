package disclosure

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
)

// TrainingTerms returns the terms of a run by p of the member of that rank, which has own.
func TrainingTerms(p plan.Plan, rank int, own *shard.Shard) (t session.Terms, err error) {
	m, err := p.Configure(own)
	if err != nil {
		return t, train.Input(err)
	}
	id, text := m.Fingerprint(), p.Agreed()
	t = TermsOf(p, rank, own.Parts, func() (*Disclosure, error) { return Of(p, own) })
	t.Hello = p2p.Hello{Plan: sha256.Sum256(append(id[:], text...)), Partition: own.Fingerprint, PlanText: text}
	t.Run, t.ID = t.Hello.Plan, fmt.Sprintf("%x", id)
	if means, ok := m.(*classmeans.Method); ok {
		t.Spends, err = means.Privacy()
	}
	return t, train.Input(err)
}

// Roster returns the members of p, by rank, as package node takes them.
func Roster(p plan.Plan) (r identity.Roster) {
	for _, m := range p.Members {
		r.Members = append(r.Members, identity.Member{Name: m.Name, ID: m.ID, Addrs: m.Addresses})
	}
	return r
}

// CheckMembers returns all faults of p's members. A plan may have none: peers with a common secret
// derive them.
func CheckMembers(p plan.Plan) error {
	if err := p.CheckMembers(); err != nil || len(p.Members) == 0 {
		return err
	}
	return node.Check(Roster(p))
}

// DeriveMembers adds a member for each host, with keys that follow from a secret that all of them
// share (see identity.Derive), and returns the key of the member of that rank.
func DeriveMembers(p *plan.Plan, secret []byte, hosts []string, rank, port int) (own identity.Identity, err error) {
	var members []string
	for r, host := range hosts {
		id, err := identity.Derive(secret, r)
		if err != nil {
			return own, train.Input(err)
		}
		if r == rank {
			own = id
		}
		members = append(members, fmt.Sprintf("rank-%d=%s@%s", r, id.PeerID(), host))
	}
	return own, train.Input(p.AddMembers(members, port))
}

// request is what a site's policy judges of a run by a plan.
type request struct {
	plan.Plan
	sends func() (*Disclosure, error) // what leaves the site (nil = no row of a shard)
}

// Approval returns what one connection may send (nil = anything). Nobody knows before the run how many edges its phones
// have to one another.
func (r request) Approval() (comm.Approval, error) {
	if r.sends == nil || r.ClassMeans.LeafEdges {
		return nil, nil
	}
	of, err := r.sends()
	if err != nil {
		return nil, train.Input(err)
	}
	return of.Approval(), nil
}

// Admitted returns an error unless roster has the members.
func (r request) Admitted(roster admission.Roster, now time.Time) error {
	return Admitted(r.Plan, roster, now)
}

// Allowed returns an error unless policy allows the run.
func (r request) Allowed(policy admission.Policy) error {
	if r.sends == nil {
		return policy.Check(judged(r.Plan))
	}
	of, err := r.sends()
	if err != nil {
		return err
	}
	return of.Judge(policy)
}

// Releases returns how many runs follow one another, and how many numbers of each node they release, for the ledger of
// runs.
func (r request) Releases() (runs int, numbers float64, err error) {
	of, err := r.sends()
	if err != nil {
		return 0, 0, err
	}
	return max(1, r.Runs), of.Fresh, nil
}

// TermsOf returns what the members of p, size peers, agree on about their sessions. This one has rank, and sends what
// sends lists.
func TermsOf(p plan.Plan, rank, size int, sends func() (*Disclosure, error)) session.Terms {
	if sends != nil {
		sends = sync.OnceValues(sends)
	}
	t := session.Terms{Rank: rank, Members: Roster(p), Relays: p.Relays, Carrier: p.Carrier, PeerTimeout: p.PeerTimeout,
		Progress: cmp.Or(p.ProgressTimeout, 5*time.Minute), Request: request{p, sends}, Seed: p.Seed}
	if p.Secure(size) {
		t.Secure = plan.LeastSecure
	}
	if p.ClassMeans.Leaves > 0 {
		text := p.Agreed()
		for _, m := range p.Members {
			text += "member: " + m.ID + "\n"
		}
		sum := sha256.Sum256([]byte(text))
		t.Phones = &session.Phones{Agreement: leaf.Agreement{Run: [8]byte(sum[:]), Sites: p.Collecting(),
			Least: p.ClassMeans.LeastLeaves, Most: p.ClassMeans.Leaves, Edges: p.ClassMeans.LeafEdges},
			Quorum: cmp.Or(p.ClassMeans.LeafQuorum, p.ClassMeans.Leaves), Wait: p.ClassMeans.LeafWait}
		for _, m := range p.Members {
			t.Phones.Addresses = append(t.Phones.Addresses, m.LeafAddresses)
		}
	}
	return t
}

// CheckSite returns all faults of p and of a shard for the member of that rank.
func CheckSite(p plan.Plan, own *shard.Shard, rank int) error {
	if err := cmp.Or(kernels.Choice(), shard.Sound(own)); err != nil {
		return train.Input(err)
	}
	if err := Seated(p, own, rank); err != nil {
		return train.Input(err)
	}
	return train.Input(errors.Join(p.Check([]*shard.Shard{own}), CheckMembers(p), p.Only("join"), p.CheckRuns()))
}

// Seated returns an error unless the shard belongs to the member of p with that rank.
func Seated(p plan.Plan, own *shard.Shard, rank int) error {
	if own.Rank != rank || own.Parts != len(p.Members) {
		return fmt.Errorf("the shard is part %d of %d, but this peer (%s) is number %d of the %d in the plan", own.Rank,
			own.Parts, p.Members[rank].Name, rank, len(p.Members))
	}
	return nil
}

// Meet connects the members of p and calls do at each of them, for something other than training.
// All must call Meet with the same plan file and the same purpose in what. An error of do is
// returned as an *InputError, unless a peer failed or ctx has ended.
func Meet(ctx context.Context, p plan.Plan, s session.Site, what string,
	do func(context.Context, *session.Session) error) error {
	hello := p2p.Hello{Plan: sha256.Sum256(append([]byte(what+"\n"), s.Gate.PlanText...)), PlanText: p.Agreed()}
	return MeetAs(ctx, p, s, what, hello, nil, func(ctx context.Context, at *session.Session) error {
		err := do(ctx, at)
		var failed *comm.PeerError
		if ctx.Err() != nil || errors.As(err, &failed) {
			return err
		}
		return train.Input(err)
	})
}

// MeetAs is Meet with what members greet one another with, and what leaves this one.
func MeetAs(ctx context.Context, p plan.Plan, s session.Site, what string, hello p2p.Hello,
	sends func() (*Disclosure, error), do func(context.Context, *session.Session) error) error {
	rank, err := p.Rank(s.Identity.PeerID())
	if err != nil {
		return train.Input(err)
	}
	t := TermsOf(p, rank, len(p.Members), sends)
	t.Hello, t.Run, t.Phones, t.Seed = hello, sha256.Sum256([]byte(what+hello.PlanText)), nil, 1
	s.State, s.Gate.Ledger, s.Phones = "", gate.Ledger{}, nil // of training only
	return s.Attend(ctx, t, func(ctx context.Context, at *session.Session) error {
		return at.Once(ctx, func(ctx context.Context) error { return do(ctx, at) })
	})
}

// Decline informs the other members of p, if s can dial them, that it cannot take part.
func Decline(ctx context.Context, p plan.Plan, s session.Site) {
	if rank, err := p.Rank(s.Identity.PeerID()); err == nil {
		s.Decline(ctx, TermsOf(p, rank, len(p.Members), nil))
	}
}

// Loopback returns where peers of one process listen, nil if they are connected in memory.
func Loopback(p plan.Plan) []string {
	if p.Transport == "memory" {
		return nil
	}
	return plan.Addresses(p.Carrier, "/ip4/127.0.0.1", 0)
}

// Groups connects size peers of this process, in memory or over loopback according to p's Transport, and calls do for
// each with its group, all at the same time. The first error ends ctx for all.
func Groups(ctx context.Context, p plan.Plan, size int, do func(context.Context, *comm.Group) error) error {
	all := make([]session.Terms, size)
	for r := range all {
		all[r] = session.Terms{Carrier: p.Carrier, Seed: p.Seed}
	}
	return session.Local(ctx, p.Link, Loopback(p), all, func(ctx context.Context, at *session.Session) error {
		return at.Once(ctx, func(ctx context.Context) error {
			if err := do(ctx, at.Group); err != nil {
				return err
			}
			return at.Group.Barrier(ctx) // nobody leaves before all have what they need
		})
	})
}
