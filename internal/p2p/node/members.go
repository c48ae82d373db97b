package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	madns "github.com/multiformats/go-multiaddr-dns"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// Members returns the members of a roster, by rank, or all faults of the roster at once.
func (n *Node) Members(r identity.Roster) ([]Peer, error) { return parse(r, n.cfg.MaxPeers) }

// Admit lets the members in, and nobody else but the relays.
func (n *Node) Admit(members []Peer) {
	for _, m := range members {
		if m.ID != n.ID() {
			n.learn(m)
		}
	}
	n.gate.admit(members)
}

// learn adds the addresses of m that this node can dial to the peer store.
func (n *Node) learn(m Peer) {
	for _, a := range m.Addrs {
		if n.cfg.carries(a) {
			n.store.AddAddr(m.ID, a, peerstore.PermanentAddrTTL)
		}
	}
}

// Dismiss shuts the gate, and forgets and disconnects the members.
func (n *Node) Dismiss(members []Peer) {
	n.gate.admit(nil)
	for _, m := range members {
		if m.ID != n.ID() {
			n.store.ClearAddrs(m.ID)
			n.net.ClosePeer(m.ID)
		}
	}
}

// Revoke refuses p for as long as the node lives. It closes no connection.
func (n *Node) Revoke(p peer.ID, why error) { n.gate.revoke(p, why) }

// Revoked returns why p was revoked, nil if it was not.
func (n *Node) Revoked(p peer.ID) error { return n.gate.why(p) }

// Disconnect closes the connections to p.
func (n *Node) Disconnect(p peer.ID) { n.net.ClosePeer(p) }

// Dials reports whether there may be a way to dial m.
func (n *Node) Dials(m Peer) bool { return len(m.Addrs) > 0 || n.Relayed() || n.lan != nil }

// Relayed reports whether the node has relays.
func (n *Node) Relayed() bool { return n.indirect != nil }

// Dial makes a direct connection to m, if there is none.
func (n *Node) Dial(ctx context.Context, m Peer) error {
	if n.direct(m.ID) {
		return nil
	}
	if n.lan != nil {
		n.lan.place(m.ID)
	}
	if n.cfg.Transport == "auto" {
		n.choose(ctx, m.ID)
	}
	patience := HandshakeTime
	if n.Relayed() {
		patience = directFirst
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A direct dial is forced to pass over libp2p's own back-off, which begins at 5 s.
	_, err := n.net.DialPeer(network.WithForceDirectDial(ctx, "roster"), m.ID)
	if errors.Is(err, swarm.ErrNoGoodAddresses) {
		for _, a := range m.Addrs { // the swarm does not report which name has no address
			if _, unknown := madns.DefaultResolver.Resolve(ctx, a); unknown != nil {
				err = unknown
			}
		}
	}
	if err != nil {
		n.forget(m.ID)
		n.learn(m) // also those that choose had put aside
	}
	return err
}

// DialRelayed connects to p through a relay and gives the two sides a while to open a direct way.
func (n *Node) DialRelayed(ctx context.Context, p peer.ID) error { return n.indirect.reach(ctx, p) }

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Check reports all faults of a roster at once: bad names, IDs and addresses, and repeated IDs.
func Check(r identity.Roster) error {
	_, err := parse(r, MostPeers)
	return err
}

const maxName = 255

// Peer is an identity.Member as libp2p knows it.
type Peer struct {
	Name  string
	ID    peer.ID
	Addrs []ma.Multiaddr // without /p2p/ID
}

// parse checks r and reports all faults at once.
func parse(r identity.Roster, limit int) ([]Peer, error) {
	var errs []error
	if len(r.Members) == 0 {
		errs = append(errs, errors.New("there must be at least one member"))
	}
	if len(r.Members) > limit {
		return nil, fmt.Errorf("roster: there must be at most %d members (got %d)", limit, len(r.Members))
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
			fault("its ID must be a peer ID, which heddle init prints (got %q)", m.ID)
			continue
		}
		if first, dup := seen[id]; dup {
			fault("peer ID %s must be of one member (member %d has it, too)", m.ID, first)
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
		return nil, fmt.Errorf("roster: %w", errors.Join(errs...))
	}
	return out, nil
}
