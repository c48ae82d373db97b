package p2p

import (
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/libp2p/go-libp2p/core/peer"
)

// ErrRevoked says that a peer's membership was revoked.
var ErrRevoked = errors.New("its membership was revoked")

// Revoke shuts out the peer with this ID for as long as the host lives. It closes its connections,
// refuses its handshakes, and fails calls that deal with it with a *comm.PeerError that wraps
// ErrRevoked. The other links go on. A Join that waits for the peer ends.
func (h *Host) Revoke(id string, why string) error {
	p, err := peer.Decode(id)
	if err != nil {
		return fmt.Errorf("p2p: revoke: peer ID %q: %w", id, err)
	}
	fault := fmt.Errorf("%w: %s", ErrRevoked, why)
	h.node.Revoke(p, fault)
	joining, session := h.state()
	if joining != nil && rankOf(joining.members, p) >= 0 {
		joining.give(joining.barred())
	}
	if session != nil {
		if rank := rankOf(session.members, p); rank >= 0 && rank != session.rank {
			l := session.links[rank]
			e := l.fail(&comm.PeerError{Rank: rank, Name: l.name, Op: "roster", Err: fault}, 0)
			session.culprit.CompareAndSwap(nil, e)
		}
	}
	h.node.Network().ClosePeer(p)
	return nil
}

// barred is the fault of a roster that lists a revoked peer; nil when there is none.
func (r *rendezvous) barred() error {
	for i, m := range r.members {
		if why := r.host.node.Revoked(m.ID); why != nil {
			return fmt.Errorf("p2p: roster: %w", &comm.PeerError{Rank: i, Name: m.Name, Op: "join", Err: why})
		}
	}
	return nil
}
