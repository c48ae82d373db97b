package node

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// Member is one peer of a roster.
type Member struct {
	Name  string   // for people: "site-b"; at most 255 bytes
	ID    string   // peer ID, "12D3KooW…"
	Addrs []string // multiaddresses at which it listens, with or without /p2p/ID; none: it can only dial out
}

// Roster lists the members of a session. A member's rank is its index; all peers hold the same
// order, but each may know other addresses.
type Roster struct {
	Members []Member
}

// Validate reports all faults at once: bad names, IDs and addresses, and repeated IDs.
func (r Roster) Validate() error {
	_, err := r.parse(MostPeers)
	return err
}

const maxName = 255

// Peer is a Member as libp2p knows it.
type Peer struct {
	Name  string
	ID    peer.ID
	Addrs []ma.Multiaddr // without /p2p/ID
}

// parse checks the roster and reports all faults at once.
func (r Roster) parse(limit int) ([]Peer, error) {
	var errs []error
	if len(r.Members) == 0 {
		errs = append(errs, errors.New("there must be at least one member"))
	}
	if len(r.Members) > limit {
		return nil, fmt.Errorf("p2p: roster: there must be at most %d members (got %d)", limit, len(r.Members))
	}
	seen := map[peer.ID]int{}
	out := make([]Peer, len(r.Members))
	for i, m := range r.Members {
		fault := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("member %d (%s): %w", i, m.Name, fmt.Errorf(format, args...)))
		}
		if m.Name == "" || len(m.Name) > maxName {
			fault("a name must have 1 to %d bytes (got %d)", maxName, len(m.Name))
		}
		id, err := peer.Decode(m.ID)
		if err != nil {
			fault("its ID must be a peer ID, which heddle init prints (got %q): %w", m.ID, err)
			continue
		}
		if first, dup := seen[id]; dup {
			fault("peer ID %s is also that of member %d", m.ID, first)
		}
		seen[id] = i
		out[i] = Peer{Name: m.Name, ID: id}
		for _, s := range m.Addrs {
			a, err := ma.NewMultiaddr(s)
			if err != nil {
				fault("address %q: %w", s, err)
				continue
			}
			bare, named := peer.SplitAddr(a)
			if named != "" && named != id {
				fault("address %s names another peer than %s", s, m.ID)
				continue
			}
			if bare == nil {
				fault("address %s must name a host and a port", s)
				continue
			}
			out[i].Addrs = append(out[i].Addrs, bare)
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("p2p: roster: %w", errors.Join(errs...))
	}
	return out, nil
}
