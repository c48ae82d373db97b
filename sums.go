package heddle

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/privacy/secagg"
)

// secureSums returns what makes the reducer of each session of a run by p of the peers with these IDs, of which own
// is one; nil: its sums are in the clear. run names the run.
func secureSums(p Plan, run [32]byte, ids []string, own identity.Identity) func(context.Context, *comm.Group) (comm.Reducer, error) {
	if !p.Secure(len(ids)) {
		return nil
	}
	terms := secagg.Terms{Run: run, Least: plan.LeastSecure, Sign: own.Sign,
		Verify: func(rank int, message, signature []byte) error {
			return identity.Verify(ids[rank], message, signature)
		}}
	return func(ctx context.Context, g *comm.Group) (comm.Reducer, error) { return secagg.New(ctx, terms, g) }
}

// strangers returns new identities for so many peers of one process, with their IDs.
func strangers(size int) (all []identity.Identity, ids []string, err error) {
	for range size {
		one, err := identity.New()
		if err != nil {
			return nil, nil, err
		}
		all, ids = append(all, one), append(ids, one.PeerID())
	}
	return all, ids, nil
}

// idsOf returns the peer IDs of p's members, by rank.
func idsOf(p Plan) (ids []string) {
	for _, m := range p.Members {
		ids = append(ids, m.ID)
	}
	return ids
}

// sumsOver returns the reducer of g that secure makes; nil: g itself.
func sumsOver(ctx context.Context, g *comm.Group, secure func(context.Context, *comm.Group) (comm.Reducer, error)) (comm.Reducer, error) {
	if secure == nil {
		return g, nil
	}
	return secure(ctx, g)
}
