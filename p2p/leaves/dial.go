package leaves

import (
	"context"
	"fmt"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/p2p/node"
)

// Dial connects a leaf to sites, which are Servers in the order of their ranks. It returns a transport on which they have
// the first ranks, for leaf.Dial; closing it closes the node. cfg.Identity is the leaf's key of this run: sites see it, and
// nothing but the token ties it to what is sent.
func Dial(ctx context.Context, cfg node.Config, sites node.Roster) (_ comm.Transport, err error) {
	n, err := node.Listen(cfg)
	if err != nil {
		return nil, fmt.Errorf("leaves: %w", err)
	}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	members, err := n.Members(sites)
	if err != nil {
		return nil, err
	}
	n.Admit(members)
	t := &streams{close: n.Close}
	for q, m := range members {
		if err := n.Dial(ctx, m); err != nil {
			return nil, &comm.PeerError{Rank: q, Name: m.Name, Op: "dial", Err: err}
		}
		opening, cancel := context.WithTimeout(ctx, node.HandshakeTime)
		at, err := n.NewStream(network.WithNoDial(network.WithAllowLimitedConn(opening, "relay"), "dialled"), m.ID, leafProtocol)
		cancel()
		if err != nil {
			return nil, &comm.PeerError{Rank: q, Name: m.Name, Op: "dial", Err: err}
		}
		t.all = append(t.all, at)
	}
	return t, nil
}
