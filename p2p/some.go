package p2p

import (
	"context"
	"errors"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// JoinSome is Join that makes do with fewer members: once nobody has come for as long as patience and least of them are there,
// this one included, the session begins without the others. Which these are each member finds for itself, and may find otherwise
// than the next: Session.Here says it, and comm.Group.Agree settles it. The others may knock while the session lasts
// (Session.Knocked), and are in when all join again.
func (h *Host) JoinSome(ctx context.Context, roster Roster, hello Hello, least int, patience time.Duration) (*Session, error) {
	return h.join(ctx, roster, hello, &quorum{least: least, patience: patience})
}

// quorum is with how few a rendezvous makes do, and when.
type quorum struct {
	least    int
	patience time.Duration
}

// enough reports whether the session may begin without the missing.
func (r *rendezvous) enough(missing int) bool {
	q := r.quorum
	return missing == 0 || q != nil && time.Since(r.came) >= q.patience && len(r.members)-missing >= q.least
}

var errAbsent = errors.New("not there when the session began")

// Here says which members the session has a link to, this one included.
func (s *Session) Here() []bool {
	here := make([]bool, len(s.links))
	for q, l := range s.links {
		here[q] = q == s.rank || l != nil
	}
	return here
}

// Knocked reports whether the member of rank q, to which there is no link, has tried to join since the session began.
func (s *Session) Knocked(q int) bool { return s.links[q] == nil && q != s.rank && s.knocks[q].Load() }

// knock notes that a member opened a stream of a session that has begun.
func (s *Session) knock(p peer.ID) {
	if q := rankOf(s.members, p); q >= 0 {
		s.knocks[q].Store(true)
	}
}
