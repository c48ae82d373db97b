package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

const surveyRetry = time.Second // between two attempts of one way

// Sighting is what Survey found of one way to a peer.
type Sighting struct {
	Name, ID  string
	Relay     bool          // it is one of Config.Relays
	Via       string        // quic, tcp, ws or relay; "" if there is no address and no relay
	Address   string        // that was tried; of a circuit the other side's
	RoundTrip time.Duration //
	Ahead     time.Duration // how far the peer's clock is ahead of this one's, within half a round trip
	Rate      float64       // bytes a second towards it, by a short burst
	Seen      string        // address of this node as the other side sees it (empty = it does not say)
	Err       error         // it was not reached
}

// Survey measures every way to every other member and relay, retrying until ctx ends or all have
// answered, and then answers those that still look for this node, for at most HandshakeTime. Members answer while they
// join, train or survey. The node must not be in a session.
func (n *Node) Survey(ctx context.Context, roster identity.Roster) ([]Sighting, error) {
	members, err := parse(roster, n.cfg.MaxPeers)
	if err != nil {
		return nil, err
	}
	n.Admit(members)
	defer n.Dismiss(members)
	var out []Sighting
	var mu sync.Mutex
	var all sync.WaitGroup
	look := func(s Sighting, id peer.ID, dial func() (network.MuxedConn, error)) {
		s.ID = id.String()
		all.Go(func() {
			n.sight(ctx, &s, dial)
			mu.Lock()
			out = append(out, s)
			mu.Unlock()
		})
	}
	direct := func(s Sighting, id peer.ID, addrs []ma.Multiaddr) (ways int) {
		for _, a := range addrs {
			if n.cfg.carries(a) {
				ways++
				s.Via, s.Address = kindOf(a), a.String()
				look(s, id, func() (network.MuxedConn, error) { return n.dialAny(ctx, id, []ma.Multiaddr{a}) })
			}
		}
		return ways
	}
	if n.indirect != nil {
		for _, r := range n.indirect.relays {
			direct(Sighting{Name: "relay", Relay: true}, r.ID, r.Addrs)
		}
	}
	for _, m := range members {
		if m.ID == n.ID() {
			continue
		}
		ways := direct(Sighting{Name: m.Name}, m.ID, m.Addrs)
		switch {
		case n.indirect != nil:
			s := Sighting{Name: m.Name, Via: "relay"}
			look(s, m.ID, func() (network.MuxedConn, error) { return n.circuit(ctx, m.ID) })
		case ways == 0:
			out = append(out, Sighting{Name: m.Name, ID: m.ID.String(),
				Err: errors.New("it has no address for this transport and no relay is known: it must dial this peer")})
		}
	}
	all.Wait()
	n.await(ctx, members, out)
	slices.SortFunc(out, func(a, b Sighting) int {
		return strings.Compare(a.Name+" "+a.Via+a.Address, b.Name+" "+b.Via+b.Address)
	})
	return out, nil
}

// await answers for a while: a member that this node has reached, or that can only dial, may still be looking for it.
func (n *Node) await(ctx context.Context, members []Peer, found []Sighting) {
	ctx, cancel := context.WithTimeout(ctx, HandshakeTime)
	defer cancel()
	ways := 0 // for another to look
	if n.indirect != nil {
		ways++
	}
	if at := slices.IndexFunc(members, func(m Peer) bool { return m.ID == n.ID() }); at >= 0 {
		for _, a := range members[at].Addrs {
			if n.cfg.carries(a) {
				ways++
			}
		}
	}
	for _, m := range members {
		looks := func(s Sighting) bool { return s.ID == m.ID.String() && (s.Err == nil || s.Via == "") }
		for slices.ContainsFunc(found, looks) && ctx.Err() == nil && n.asked(m.ID) < ways {
			sleep(ctx, surveyRetry/10)
		}
	}
	sleep(ctx, surveyRetry/2) // what was answered last is on its way
}

// sight fills in what one way offers.
func (n *Node) sight(ctx context.Context, s *Sighting, dial func() (network.MuxedConn, error)) {
	for {
		c, err := dial()
		if err == nil {
			n.probing.Lock()
			measuring, cancel := context.WithTimeout(ctx, HandshakeTime)
			var seen probed
			if seen, err = probeConn(measuring, c, probeMost); err == nil && s.Via != "relay" {
				s.Seen = seenFrom(measuring, c)
			}
			cancel()
			n.probing.Unlock()
			c.Close()
			s.RoundTrip, s.Ahead, s.Rate = seen.rtt, seen.ahead, seen.rate
		}
		if ctx.Err() == nil || s.Err == nil || err == nil {
			s.Err = Explain(err) // the last cause is more useful than the end of the time
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		sleep(ctx, surveyRetry)
	}
}

// circuit makes a separate connection to p through a relay.
func (n *Node) circuit(ctx context.Context, p peer.ID) (transport.CapableConn, error) {
	err := errors.New("no relay")
	for _, a := range n.indirect.circuitsTo(p) {
		var c transport.CapableConn
		if c, err = n.indirect.circuits.Dial(ctx, a, p); err == nil {
			return c, nil
		}
	}
	return nil, err
}
