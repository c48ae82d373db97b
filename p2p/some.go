package p2p

import (
	"context"
	"errors"
	"time"

	"github.com/heddle-gnn/heddle/p2p/node"
	"github.com/libp2p/go-libp2p/core/peer"
)

// JoinSome is Join for a session that may begin without some members: once at least least members
// are connected, this one included, and no other has come for patience. Members may differ in whom
// they are connected to (Session.Here); comm.Group.Agree settles who takes part. The others may
// request to rejoin (Session.RejoinRequested), and take part when all join again.
func (h *Host) JoinSome(ctx context.Context, roster node.Roster, hello Hello, least int, patience time.Duration) (*Session, error) {
	return h.join(ctx, roster, hello, &quorum{least: least, patience: patience})
}

// quorum says with how few members a session may begin, and when.
type quorum struct {
	least    int
	patience time.Duration
}

// reached reports whether met of size members suffice, the last of whom came then.
func (q *quorum) reached(met, size int, came time.Time) bool {
	return q != nil && q.least < size && met >= q.least && time.Since(came) >= q.patience
}

var errAbsent = errors.New("it was not connected when the session began")

// Here tells by rank which members the session is connected to, this one included.
func (s *Session) Here() []bool {
	here := make([]bool, len(s.links))
	for q, l := range s.links {
		here[q] = q == s.rank || l != nil
	}
	return here
}

// RejoinRequested reports whether the absent member of rank q has tried to join this session.
func (s *Session) RejoinRequested(q int) bool {
	return s.links[q] == nil && q != s.rank && s.requests[q].Load()
}

// rejoinRequested notes that a member opened a stream of a session that has begun.
func (s *Session) rejoinRequested(p peer.ID) {
	if q := rankOf(s.members, p); q >= 0 {
		s.requests[q].Store(true)
	}
}
