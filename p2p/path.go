package p2p

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
	madns "github.com/multiformats/go-multiaddr-dns"
)

// Path is how a member is reached.
type Path struct {
	Via       string        // quic, tcp, ws, or relay
	Address   string        // multiaddress of the other side
	RoundTrip time.Duration // and
	Rate      float64       // bytes a second towards it, as transport auto measured them before it chose; 0: it did not
}

// Paths tells how each member is reached, by rank; the zero Path stands for this peer.
func (s *Session) Paths() []Path {
	out := make([]Path, len(s.links))
	for i, l := range s.links {
		if l == nil {
			continue
		}
		at := l.stream.Conn().RemoteMultiaddr()
		out[i] = Path{Via: kindOf(at), Address: at.String()}
		s.host.mu.Lock()
		if seen, ok := s.host.chosen[s.members[i].id]; ok && seen.kind == out[i].Via {
			out[i].RoundTrip, out[i].Rate = seen.rtt, seen.rate
		}
		s.host.mu.Unlock()
	}
	return out
}

// choice is what was measured of the carrier that was chosen for a peer.
type choice struct {
	kind string
	sight
}

// choose measures each carrier by which p can be dialled and leaves the addresses of the fastest one in the peer store.
// Where p cannot be reached, or by one carrier only, nothing changes.
func (h *Host) choose(ctx context.Context, p peer.ID) {
	h.mu.Lock()
	_, done := h.chosen[p]
	h.mu.Unlock()
	at := map[string][]ma.Multiaddr{}
	for _, a := range h.store.Addrs(p) {
		if kind := kindOf(a); kind != "relay" {
			at[kind] = append(at[kind], a)
		}
	}
	if done || len(at) < 2 {
		return
	}
	// They are dialled side by side, since where UDP is blocked it says nothing, and measured one after the other.
	dialling, cancel := context.WithTimeout(ctx, directFirst)
	defer cancel()
	conns := map[string]transport.CapableConn{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for kind, addrs := range at {
		all.Go(func() {
			if c, err := h.dialAny(dialling, p, addrs); err == nil {
				mu.Lock()
				conns[kind] = c
				mu.Unlock()
				// Who answers a second later than another is not the fastest.
				time.AfterFunc(time.Second, cancel)
			}
		})
	}
	all.Wait()
	var best choice
	h.probing.Lock()
	for kind, c := range conns {
		measuring, cancel := context.WithTimeout(ctx, directFirst)
		if seen, err := probeConn(measuring, c, probeMost); err == nil && seen.rate > best.rate {
			best = choice{kind, seen}
		}
		cancel()
		c.Close()
	}
	h.probing.Unlock()
	if best.kind == "" {
		return
	}
	h.mu.Lock()
	h.chosen[p] = best
	h.mu.Unlock()
	h.store.ClearAddrs(p)
	h.store.AddAddrs(p, at[best.kind], peerstore.PermanentAddrTTL)
}

// forget lets the next attempt choose anew.
func (h *Host) forget(p peer.ID) {
	h.mu.Lock()
	delete(h.chosen, p)
	h.mu.Unlock()
}

// dialAny makes a connection of its own, beside those of the swarm, to the first of addrs that answers.
func (h *Host) dialAny(ctx context.Context, p peer.ID, addrs []ma.Multiaddr) (transport.CapableConn, error) {
	err := fmt.Errorf("no address")
	for _, a := range addrs {
		t := h.net.TransportForDialing(a)
		if t == nil || !h.gate.InterceptPeerDial(p) {
			continue
		}
		resolved := []ma.Multiaddr{a}
		if r, ok := t.(transport.Resolver); ok {
			resolved, err = r.Resolve(ctx, a)
		}
		for _, a := range resolved {
			plain, fault := madns.DefaultResolver.Resolve(ctx, a)
			err = fault
			for _, a := range plain {
				var c transport.CapableConn
				if c, err = t.Dial(ctx, a, p); err == nil {
					return c, nil
				}
			}
		}
	}
	return nil, err
}

// probeConn measures over a stream of its own.
func probeConn(ctx context.Context, c network.MuxedConn, bytes int) (sight, error) {
	s, err := c.OpenStream(ctx)
	if err != nil {
		return sight{}, err
	}
	return probe(ctx, s, bytes)
}
