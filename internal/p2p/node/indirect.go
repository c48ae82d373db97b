package node

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	ma "github.com/multiformats/go-multiaddr"
)

// ofRelays are the protocols that a relay may open: none of a session.
var ofRelays = map[protocol.ID]bool{proto.ProtoIDv2Stop: true, identify.ID: true, identify.IDPush: true}

const (
	punchStart   = 3 * time.Second  // between two signs of an attempt to punch a hole, or there is none
	punchTime    = 10 * time.Second // that a hole may take to open, before the relay carries the session
	punchDial    = 2 * time.Second  // of each of the three attempts
	directFirst  = 3 * time.Second  // that a direct dial has before a relay is asked, too
	relayRetry   = 2 * time.Second  // between two attempts to reach a relay
	renewBefore  = 5 * time.Minute  // a reservation ends
	renewEvery   = 15 * time.Second // a reservation is asked for again: a relay can lose one while the connection stays
	observedMost = 8
)

// indirect reaches members that the node cannot dial: circuits through the federation's relays
// (circuit relay v2), and hole punching (DCUtR) with the addresses under which relays see this
// node.
type indirect struct {
	node     *Node
	relays   []peer.AddrInfo
	circuits *client.Client
	identify identify.IDService
	punch    *holepunch.Service // nil until ready
	ready    chan struct{}      // closed when a relay has reported how it sees this host: then holes can be punched
	seen     event.Subscription
	stop     context.CancelFunc
	all      sync.WaitGroup

	mu       sync.Mutex
	observed []ma.Multiaddr        // this host's addresses, as relays see them; the latest last
	punching map[peer.ID]time.Time // when something was last heard of an attempt
}

// useRelays prepares the node for relays. begin, called once the sockets are open, reserves a slot
// at every relay: a relay dialled earlier would see a port that no hole can be punched to. Close
// ends both, also if useRelays fails.
func (n *Node) useRelays() (begin func(), err error) {
	ctx, stop := context.WithCancel(context.Background())
	i := &indirect{node: n, punching: map[peer.ID]time.Time{}, ready: make(chan struct{}), stop: stop}
	n.indirect = i
	if i.relays, err = n.cfg.relays(); err != nil {
		return nil, err
	}
	if i.seen, err = n.bus.Subscribe(new(event.EvtPeerIdentificationCompleted)); err != nil {
		return nil, err
	}
	i.all.Go(func() { i.listen(ctx) })
	if i.identify, err = identify.NewIDService(i.node, identify.UserAgent("heddle"),
		identify.DisableSignedPeerRecord()); err != nil {
		return nil, err
	}
	i.identify.Start()
	if i.circuits, err = client.New(i.node, n.upgrader); err != nil {
		return nil, err
	}
	if err := n.net.AddTransport(i.circuits); err != nil {
		return nil, err
	}
	if err := n.net.AddListenAddr(ma.StringCast("/p2p-circuit")); err != nil {
		return nil, err
	}
	i.circuits.Start()
	if len(n.cfg.Listen) == 0 { // through a hole, too, one side has to listen
		n.cfg.Listen = n.cfg.anywhere()
	}
	return func() {
		for _, r := range i.relays {
			n.store.AddAddrs(r.ID, r.Addrs, peerstore.PermanentAddrTTL)
			i.all.Go(func() { i.keep(ctx, r) })
		}
	}, nil
}

func (i *indirect) close() {
	i.stop()
	if i.seen != nil {
		i.seen.Close()
	}
	if i.circuits != nil {
		i.circuits.Close()
	}
	i.all.Wait()
	if i.punch != nil {
		i.punch.Close()
	}
	if i.identify != nil {
		i.identify.Close()
	}
}

// keep renews the reservation at a relay every renewEvery, and at once when the connection to it broke: after
// a change of networks the relay sees this peer under its new address. A relay can drop the reservation of a
// peer that is connected, if the end of a connection of an earlier process of the peer is handled late.
func (i *indirect) keep(ctx context.Context, r peer.AddrInfo) {
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(network.WithForceDirectDial(ctx, "relay"), HandshakeTime)
		slot, err := i.reserve(attempt, r)
		cancel()
		if err != nil {
			slog.Debug("no reservation at a relay", "relay", r.ID, "error", err)
			sleep(ctx, relayRetry)
			continue
		}
		until := min(time.Until(slot.Expiration)-renewBefore, renewEvery)
		for begun := time.Now(); ctx.Err() == nil && time.Since(begun) < until &&
			i.node.net.Connectedness(r.ID) == network.Connected; {
			sleep(ctx, relayRetry)
		}
	}
}

// reserve lets members come through r, once holes can be punched for them: libp2p does that for a
// circuit when it comes, and never again.
func (i *indirect) reserve(ctx context.Context, r peer.AddrInfo) (*client.Reservation, error) {
	c, err := i.node.net.DialPeer(ctx, r.ID)
	if err != nil {
		return nil, Explain(err)
	}
	select {
	case <-i.identify.IdentifyWait(c):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	i.settle(ctx)
	return client.Reserve(ctx, i.node, r)
}

// settle waits until a relay has reported how it sees this node, so that holes can be punched, or gives up.
func (i *indirect) settle(ctx context.Context) (ready bool) {
	if i.node.cfg.Transport == "ws" {
		return false
	}
	select {
	case <-i.ready:
		return true
	case <-time.After(punchStart):
	case <-ctx.Done():
	}
	return false
}

// listen collects the addresses under which relays see this node. Members are not believed.
func (i *indirect) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-i.seen.Out():
			if !ok {
				return
			}
			about := e.(event.EvtPeerIdentificationCompleted)
			kind := kindOf(about.Conn.RemoteMultiaddr())
			if !i.node.gate.relays[about.Peer] || about.ObservedAddr == nil || kind == "ws" ||
				kindOf(about.ObservedAddr) != kind {
				continue
			}
			i.mu.Lock()
			i.observed = slices.DeleteFunc(i.observed, about.ObservedAddr.Equal)
			i.observed = append(i.observed, about.ObservedAddr)
			i.observed = i.observed[max(0, len(i.observed)-observedMost):]
			i.mu.Unlock()
			if i.punch != nil {
				continue
			}
			var err error
			if i.punch, err = holepunch.NewService(i.node, i.identify, i.places, holepunch.WithTracer(i),
				holepunch.DirectDialTimeout(punchDial)); err == nil {
				close(i.ready)
			}
		}
	}
}

// places are the addresses at which a member may try to reach this host. There are none until a relay has reported one;
// then these and, for members on the same network, the addresses of its interfaces.
func (i *indirect) places() []ma.Multiaddr {
	i.mu.Lock()
	out := slices.Clone(i.observed)
	i.mu.Unlock()
	if len(out) == 0 {
		return nil
	}
	for _, a := range i.node.Addrs() {
		if !slices.ContainsFunc(out, a.Equal) && kindOf(a) != "ws" {
			out = append(out, a)
		}
	}
	return out
}

// circuitsTo are the addresses of a member behind the relays.
func (i *indirect) circuitsTo(p peer.ID) (out []ma.Multiaddr) {
	for _, r := range i.relays {
		for _, a := range r.Addrs {
			out = append(out, ma.Join(a, ma.StringCast("/p2p/"+r.ID.String()+"/p2p-circuit")))
		}
	}
	return out
}

// reach connects to p through a relay and gives the two sides a while to open a direct way.
func (i *indirect) reach(ctx context.Context, p peer.ID) error {
	n := i.node
	ready := i.settle(ctx)
	if len(n.net.ConnsToPeer(p)) == 0 {
		n.store.AddAddrs(p, i.circuitsTo(p), peerstore.TempAddrTTL)
		n.net.Backoff().Clear(p) // its 5 s are for peers that nobody waits for
		if _, err := n.net.DialPeer(network.WithAllowLimitedConn(ctx, "relay"), p); err != nil {
			return err
		}
	}
	for begun := time.Now(); ready && ctx.Err() == nil && !n.direct(p) && len(n.net.ConnsToPeer(p)) > 0; sleep(ctx,
		20*time.Millisecond) {
		i.mu.Lock()
		heard := i.punching[p]
		i.mu.Unlock()
		if heard.Before(begun) {
			heard = begun
		}
		if time.Since(heard) > punchStart || time.Since(begun) > punchTime {
			break
		}
	}
	return nil
}

// Trace implements holepunch.EventTracer.
func (i *indirect) Trace(e *holepunch.Event) {
	i.mu.Lock()
	i.punching[e.Remote] = time.Now()
	i.mu.Unlock()
}

// direct reports whether there is a connection to p that no relay carries.
func (n *Node) direct(p peer.ID) bool {
	return slices.ContainsFunc(n.net.ConnsToPeer(p),
		func(c network.Conn) bool { return kindOf(c.RemoteMultiaddr()) != "relay" })
}
