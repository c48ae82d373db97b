package node

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

// choose measures each carrier that can dial p and leaves only the fastest one's addresses in the peer store. If p
// cannot be reached, or only by one carrier, nothing changes.
func (n *Node) choose(ctx context.Context, p peer.ID) {
	n.mu.Lock()
	done := n.chosen[p]
	n.mu.Unlock()
	at := map[string][]ma.Multiaddr{}
	for _, a := range n.store.Addrs(p) {
		if kind := kindOf(a); kind != "relay" {
			at[kind] = append(at[kind], a)
		}
	}
	if done || len(at) < 2 {
		return
	}
	// They are dialled in parallel, as blocked UDP gives no answer, and measured one by one.
	dialling, cancel := context.WithTimeout(ctx, directFirst)
	defer cancel()
	conns := map[string]transport.CapableConn{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for kind, addrs := range at {
		all.Go(func() {
			if c, err := n.dialAny(dialling, p, addrs); err == nil {
				mu.Lock()
				conns[kind] = c
				mu.Unlock()
				// A carrier that answers a second later than another is not the fastest.
				time.AfterFunc(time.Second, cancel)
			}
		})
	}
	all.Wait()
	fastest, rate := "", 0.0
	n.probing.Lock()
	for kind, c := range conns {
		measuring, cancel := context.WithTimeout(ctx, directFirst)
		if seen, err := probeConn(measuring, c, probeMost); err == nil && seen.rate > rate {
			fastest, rate = kind, seen.rate
		}
		cancel()
		c.Close()
	}
	n.probing.Unlock()
	if fastest == "" {
		return
	}
	n.mu.Lock()
	n.chosen[p] = true
	n.mu.Unlock()
	n.store.ClearAddrs(p)
	n.store.AddAddrs(p, at[fastest], peerstore.PermanentAddrTTL)
}

// forget lets the next attempt choose anew.
func (n *Node) forget(p peer.ID) {
	n.mu.Lock()
	delete(n.chosen, p)
	n.mu.Unlock()
}

// dialAny connects, outside of the swarm, to the first of addrs that answers.
func (n *Node) dialAny(ctx context.Context, p peer.ID, addrs []ma.Multiaddr) (transport.CapableConn, error) {
	err := fmt.Errorf("no address")
	for _, a := range addrs {
		t := n.net.TransportForDialing(a)
		if t == nil || !n.gate.InterceptPeerDial(p) {
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

// probeConn measures over its own stream.
func probeConn(ctx context.Context, c network.MuxedConn, bytes int) (probed, error) {
	s, err := c.OpenStream(ctx)
	if err != nil {
		return probed{}, err
	}
	return probe(ctx, s, bytes)
}
