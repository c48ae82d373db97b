package p2p

import (
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/heddle-gnn/heddle/comm"
)

// Revoke shuts out the peer with this ID for as long as the host lives, at once: its connections are closed, it is
// refused at the next handshake, and calls of the session that deal with it fail with a *comm.PeerError that wraps
// ErrRevoked and says why. The other links go on. A Join that waits for the peer ends.
func (h *Host) Revoke(id string, why string) error {
	p, err := peer.Decode(id)
	if err != nil {
		return fmt.Errorf("p2p: revoke: peer ID %q: %w", id, err)
	}
	fault := fmt.Errorf("%w: %s", ErrRevoked, why)
	h.gate.revoke(p, fault)
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
	h.net.ClosePeer(p)
	return nil
}

// barred is the fault of a roster that lists a revoked peer; nil when there is none.
func (r *rendezvous) barred() error {
	r.host.gate.mu.RLock()
	defer r.host.gate.mu.RUnlock()
	for i, m := range r.members {
		if why := r.host.gate.revoked[m.id]; why != nil {
			return fmt.Errorf("p2p: roster: %w", &comm.PeerError{Rank: i, Name: m.name, Op: "join", Err: why})
		}
	}
	return nil
}
