package heddle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/disclosure"
	"github.com/heddle-gnn/heddle/leaf"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/p2p/node"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/session"
)

// Roster returns the members of p, by rank, as package node takes them.
func Roster(p Plan) (r node.Roster) {
	for _, m := range p.Members {
		r.Members = append(r.Members, node.Member{Name: m.Name, ID: m.ID, Addrs: m.Addresses})
	}
	return r
}

// CheckMembers returns all faults of p's members. A plan may have none: peers with a common secret
// derive them.
func CheckMembers(p Plan) error {
	if err := p.CheckMembers(); err != nil || len(p.Members) == 0 {
		return err
	}
	return Roster(p).Validate()
}

// DeriveMembers adds a member for each host, with keys that follow from a secret that all of them
// share (see identity.Derive), and returns the key of the member of that rank.
func DeriveMembers(p *Plan, secret []byte, hosts []string, rank, port int) (own identity.Identity, err error) {
	var members []string
	for r, host := range hosts {
		id, err := identity.Derive(secret, r)
		if err != nil {
			return own, input(err)
		}
		if r == rank {
			own = id
		}
		members = append(members, fmt.Sprintf("rank-%d=%s@%s", r, id.PeerID(), host))
	}
	return own, input(p.AddMembers(members, port))
}

// request is what a site's policy judges of a run by a plan.
type request struct {
	Plan
	sends func() (*disclosure.Disclosure, error) // what leaves the site; nil: no row of a shard
}

// Approval implements session.Request. Sums with phones are of shares: nothing is asked about them.
func (r request) Approval() (comm.Approval, error) {
	if r.sends == nil || r.ClassMeans.Leaves > 0 {
		return nil, nil
	}
	of, err := r.sends()
	if err != nil {
		return nil, input(err)
	}
	return of.Approval(), nil
}

// Allowed implements session.Request.
func (r request) Allowed(policy admission.Policy) error {
	if r.sends == nil {
		return r.Plan.Allowed(policy)
	}
	of, err := r.sends()
	if err != nil {
		return err
	}
	return of.Judge(policy)
}

// Releases implements session.Request.
func (r request) Releases() (runs int, numbers float64, err error) {
	of, err := r.sends()
	if err != nil {
		return 0, 0, err
	}
	return max(1, r.Runs), of.Fresh, nil
}

// termsOf returns what the members of p, size peers, agree on about their sessions. This one has rank, and sends what
// sends lists.
func termsOf(p Plan, rank, size int, sends func() (*disclosure.Disclosure, error)) session.Terms {
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

// Decline tells the other members of p that s cannot take part: Site.Decline of package session.
func Decline(ctx context.Context, p Plan, s Site) {
	if rank, err := p.Rank(s.Identity.PeerID()); err == nil {
		s.Decline(ctx, termsOf(p, rank, len(p.Members), nil))
	}
}
