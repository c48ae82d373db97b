package p2p

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
)

// Sighting is what Survey found of one way to a peer.
type Sighting struct {
	Name, ID  string
	Relay     bool          // it is one of Config.Relays
	Via       string        // quic, tcp, ws or relay; "" where there is no address and no relay
	Address   string        // that was tried; of a circuit the other side's
	RoundTrip time.Duration //
	Ahead     time.Duration // how far the peer's clock is ahead of this one's, within half a round trip
	Rate      float64       // bytes a second towards it, by a short burst
	Err       error         // it was not reached
}

// Survey tries every way to every other member and relay, again and again until ctx ends or all have answered, and
// measures them. Members answer while they join, train, or survey themselves. The host must not be in a session.
func (h *Host) Survey(ctx context.Context, roster Roster) ([]Sighting, error) {
	members, err := roster.parse(h.cfg.maxPeers())
	if err != nil {
		return nil, err
	}
	if joining, session := h.state(); joining != nil || session != nil {
		return nil, errors.New("p2p: survey: the host is in a session")
	}
	h.gate.admit(members)
	defer h.dismiss(members)
	var out []Sighting
	var mu sync.Mutex
	var all sync.WaitGroup
	look := func(s Sighting, id peer.ID, dial func() (network.MuxedConn, error)) {
		s.ID = id.String()
		all.Go(func() {
			h.sight(ctx, &s, dial)
			mu.Lock()
			out = append(out, s)
			mu.Unlock()
		})
	}
	direct := func(s Sighting, id peer.ID, addrs []ma.Multiaddr) (ways int) {
		for _, a := range addrs {
			if h.cfg.carries(a) {
				ways++
				s.Via, s.Address = kindOf(a), a.String()
				look(s, id, func() (network.MuxedConn, error) { return h.dialAny(ctx, id, []ma.Multiaddr{a}) })
			}
		}
		return ways
	}
	if h.indirect != nil {
		for _, r := range h.indirect.relays {
			direct(Sighting{Name: "relay", Relay: true}, r.ID, r.Addrs)
		}
	}
	for _, m := range members {
		if m.id == h.cfg.Identity.id {
			continue
		}
		ways := direct(Sighting{Name: m.name}, m.id, m.addrs)
		switch {
		case h.indirect != nil:
			s := Sighting{Name: m.name, Via: "relay"}
			look(s, m.id, func() (network.MuxedConn, error) { return h.circuit(ctx, m.id) })
		case ways == 0:
			out = append(out, Sighting{Name: m.name, ID: m.id.String(), Err: errors.New("it has no address of this transport, and there is no relay: it must dial this peer")})
		}
	}
	all.Wait()
	slices.SortFunc(out, func(a, b Sighting) int {
		return strings.Compare(a.Name+" "+a.Via+a.Address, b.Name+" "+b.Via+b.Address)
	})
	return out, nil
}

// sight fills in what one way offers.
func (h *Host) sight(ctx context.Context, s *Sighting, dial func() (network.MuxedConn, error)) {
	for {
		c, err := dial()
		if err == nil {
			h.probing.Lock()
			measuring, cancel := context.WithTimeout(ctx, handshakeTime)
			var seen sight
			seen, err = probeConn(measuring, c, probeMost)
			cancel()
			h.probing.Unlock()
			c.Close()
			s.RoundTrip, s.Ahead, s.Rate = seen.rtt, seen.ahead, seen.rate
		}
		if ctx.Err() == nil || s.Err == nil || err == nil {
			s.Err = explain(err) // the last cause says more than that the time was up
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		sleep(ctx, retryMost)
	}
}

// circuit makes a connection of its own to p through a relay.
func (h *Host) circuit(ctx context.Context, p peer.ID) (transport.CapableConn, error) {
	err := errors.New("no relay")
	for _, a := range h.indirect.circuitsTo(p) {
		var c transport.CapableConn
		if c, err = h.indirect.circuits.Dial(ctx, a, p); err == nil {
			return c, nil
		}
	}
	return nil, err
}
