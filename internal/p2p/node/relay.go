package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// RelayLimits bounds what a relay carries. The zero value bounds nothing, since training data is
// large and only listed members may use the relay.
type RelayLimits struct {
	Bytes    int64         // of one circuit each way; then it ends
	Duration time.Duration // of one circuit
	Circuits int           // that one member may have at once (0 = two to each other member)
}

// Relay forwards encrypted bytes between members that cannot reach each other, and nobody else.
type Relay struct {
	node     *Node
	service  *relay.Relay
	identify interface{ Close() error }
}

// relayBuffer is what a circuit copies at once: libp2p's 2 KiB would cost a system call each.
const relayBuffer = 64 << 10

// ListenRelay opens a relay for the members. cfg.Relays and cfg.LAN are not used.
func ListenRelay(cfg Config, members identity.Roster, l RelayLimits) (_ *Relay, err error) {
	if l.Bytes < 0 || l.Duration < 0 || l.Circuits < 0 {
		return nil, fmt.Errorf("relay: limits must be at least 0 (got %+v)", l)
	}
	cfg.Relays, cfg.LAN = nil, false
	n, err := newNode(cfg, false)
	if err != nil {
		return nil, err
	}
	r := &Relay{node: n}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if err := r.Admit(members); err != nil {
		return nil, err
	}
	ids, err := identify.NewIDService(n, identify.UserAgent("heddle"), identify.DisableSignedPeerRecord())
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	r.identify = ids
	ids.Start()
	n.answerSurveys()
	peers := n.cfg.MaxPeers
	if l.Circuits == 0 {
		l.Circuits = 2 * peers
	}
	options := []relay.Option{
		relay.WithACL(onlyMembers{n.gate}), relay.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true }),
		relay.WithResources(relay.Resources{ReservationTTL: time.Hour, MaxReservations: peers,
			MaxReservationsPerIP: peers, MaxReservationsPerASN: peers, MaxCircuits: l.Circuits,
			BufferSize: relayBuffer}),
	}
	if l.Bytes > 0 || l.Duration > 0 {
		limit := &relay.RelayLimit{Data: l.Bytes, Duration: l.Duration}
		if limit.Data == 0 {
			limit.Data = 1 << 62
		}
		if limit.Duration == 0 {
			limit.Duration = 365 * 24 * time.Hour
		}
		options = append(options, relay.WithLimit(limit))
	}
	if r.service, err = relay.New(n, options...); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	return r, n.listen()
}

// Admit replaces the members: those who are none any more are disconnected, at once.
func (r *Relay) Admit(members identity.Roster) error {
	parsed, err := parse(members, r.node.cfg.MaxPeers)
	if err != nil {
		return err
	}
	r.node.gate.admit(parsed)
	for _, c := range r.node.net.Conns() {
		if !r.node.gate.listed(c.RemotePeer()) {
			c.Close()
		}
	}
	return nil
}

// Addrs lists the relay's addresses, each with /p2p/ID, as Config.Relays takes them.
func (r *Relay) Addrs() []string { return r.node.FullAddrs() }

// Connected is how many members are connected now.
func (r *Relay) Connected() int { return len(r.node.net.Peers()) }

// Close ends every circuit.
func (r *Relay) Close() error {
	var errs []error
	if r.service != nil {
		errs = append(errs, r.service.Close())
	}
	if r.identify != nil {
		errs = append(errs, r.identify.Close())
	}
	return errors.Join(append(errs, r.node.Close())...)
}

// onlyMembers lets only members reserve and connect, and only to members.
type onlyMembers struct{ gate *gater }

func (m onlyMembers) AllowReserve(p peer.ID, _ ma.Multiaddr) bool { return m.gate.listed(p) }

func (m onlyMembers) AllowConnect(src peer.ID, _ ma.Multiaddr, dest peer.ID) bool {
	return m.gate.listed(src) && m.gate.listed(dest)
}
