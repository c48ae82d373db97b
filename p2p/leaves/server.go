package leaves

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/heddle-gnn/heddle/leaf"
	"github.com/heddle-gnn/heddle/p2p/node"
)

// Service is what a site decides for itself of the leaves whose shares it collects.
type Service struct {
	Rules  leaf.Rules    // whom it admits
	Listen []string      // multiaddresses to listen on for leaves; nil: those of the plan
	Stay   time.Duration // at most, when the model is final, for leaves that have not fetched all sums yet
}

// Server is a site's network node for leaves, beside that of its session.
type Server struct {
	node   *node.Node
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wait   sync.WaitGroup
}

// Serve opens the node and serves every leaf that connects, until Close. Whom the site admits is up to the collector's
// rules. cfg.MaxPeers bounds how many leaves are connected at once.
func Serve(cfg node.Config, c *leaf.Collector) (*Server, error) {
	cfg.Guests = true
	n, err := node.Listen(cfg)
	if err != nil {
		return nil, fmt.Errorf("leaves: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{node: n, cancel: cancel}
	n.SetStreamHandler(leafProtocol, func(at network.Stream) {
		if !s.begin() {
			at.Reset()
			return
		}
		defer s.wait.Done()
		err := c.Serve(ctx, &streams{all: []network.Stream{at}}, 0)
		if errors.Is(err, leaf.ErrNotAdmitted) {
			at.Close() // it has been told why
			return
		}
		at.Reset()
	})
	return s, nil
}

// begin counts one more leaf that is served, unless the server is closed.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wait.Add(1)
	}
	return !s.closed
}

// Addrs lists the addresses for leaves, each with /p2p/ID.
func (s *Server) Addrs() []string { return s.node.FullAddrs() }

// Close ends all connections and returns when nobody is served any more.
func (s *Server) Close() error {
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
