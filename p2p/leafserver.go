package p2p

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/leaf"
	"github.com/heddle-gnn/heddle/p2p/node"
)

// LeafService is what a site decides for itself of the leaves whose shares it collects.
type LeafService struct {
	Rules  leaf.Rules    // whom it admits
	Listen []string      // multiaddresses to listen on for leaves; nil: those of the plan
	Stay   time.Duration // at most, when the model is final, for leaves that have not fetched all sums yet
}

// LeafServer is a site's network node for leaves, beside that of its session.
type LeafServer struct {
	node   *node.Node
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wait   sync.WaitGroup
}

// ServeLeaves opens the node and serves every leaf that connects, until Close. Whom the site admits is up to the
// collector's rules. cfg.MaxPeers bounds how many leaves are connected at once.
func ServeLeaves(cfg node.Config, c *leaf.Collector) (*LeafServer, error) {
	cfg.Guests = true
	n, err := node.Listen(cfg)
	if err != nil {
		return nil, fmt.Errorf("p2p: leaves: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &LeafServer{node: n, cancel: cancel}
	n.SetStreamHandler(leafProtocol, func(at network.Stream) {
		if !s.beginLeaf() {
			at.Reset()
			return
		}
		defer s.wait.Done()
		err := c.Serve(ctx, &leafStreams{all: []network.Stream{at}}, 0)
		if errors.Is(err, leaf.ErrNotAdmitted) {
			at.Close() // it has been told why
			return
		}
		at.Reset()
	})
	return s, nil
}

// beginLeaf counts one more leaf that is served, unless the server is closed.
func (s *LeafServer) beginLeaf() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wait.Add(1)
	}
	return !s.closed
}

// Addrs lists the addresses for leaves, each with /p2p/ID.
func (s *LeafServer) Addrs() []string { return s.node.FullAddrs() }

// Close ends all connections and returns when nobody is served any more.
func (s *LeafServer) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	var err error
	if s.cancel(); !was {
		err = s.node.Close()
	}
	s.wait.Wait()
	return err
}

// DialLeaf connects a leaf to sites, which are LeafServers in the order of their ranks. It returns a transport on which
// they have the first ranks, for leaf.Dial; closing it closes the node. cfg.Identity is the leaf's key of this run:
// sites see it, and nothing but the token ties it to what is sent.
func DialLeaf(ctx context.Context, cfg node.Config, sites node.Roster) (_ comm.Transport, err error) {
	n, err := node.Listen(cfg)
	if err != nil {
		return nil, fmt.Errorf("p2p: leaves: %w", err)
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
	t := &leafStreams{close: n.Close}
	for q, m := range members {
		if err := n.Dial(ctx, m); err != nil {
			return nil, &comm.PeerError{Rank: q, Name: m.Name, Op: "dial", Err: err}
		}
		opening, cancel := context.WithTimeout(ctx, node.HandshakeTime)
		opening = network.WithNoDial(network.WithAllowLimitedConn(opening, "relay"), "dialled")
		at, err := n.NewStream(opening, m.ID, leafProtocol)
		cancel()
		if err != nil {
			return nil, &comm.PeerError{Rank: q, Name: m.Name, Op: "dial", Err: err}
		}
		t.all = append(t.all, at)
	}
	return t, nil
}
