package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// LeafServer is a site's network node for leaves, next to its session's.
type LeafServer struct {
	node   *Node
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wait   sync.WaitGroup
}

// ServeLeaves opens the node and serves every leaf that connects, until Close. Whom the site admits is up to the
// collector's rules. cfg.MaxPeers bounds how many leaves are connected at once.
func ServeLeaves(cfg Config, c *leaf.Collector) (*LeafServer, error) {
	n, err := listenFor(cfg, true)
	if err != nil {
		return nil, fmt.Errorf("leaves: %w", err)
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
			at.Close() // it has received the reason
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
func DialLeaf(ctx context.Context, cfg Config, sites identity.Roster) (_ comm.Transport, err error) {
	n, err := Listen(cfg)
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
	t := &leafStreams{close: n.Close}
	for q, m := range members {
		if err := n.Dial(ctx, m); err != nil {
			return nil, &comm.PeerError{Rank: q, Name: m.Name, Op: "dial", Err: err}
		}
		opening, cancel := context.WithTimeout(ctx, HandshakeTime)
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

const leafProtocol protocol.ID = "/heddle/leaf/1"

// leafPatience is how long one end waits for a frame of the other: an exchange may be open for that long.
const leafPatience = 30 * time.Minute

// leafStreams is a comm.Transport of one stream to each of some peers, for the messages of package leaf: of a site's
// LeafServer to a phone that no roster lists, or of a phone (DialLeaf) to the sites. Each frame is preceded by its
// length, 4 bytes, little endian (docs/reference/wire.md).
type leafStreams struct {
	all   []network.Stream
	close func() error

	once sync.Once
	err  error
}

// Send implements comm.Transport. If ctx ends first, the stream does, too.
func (s *leafStreams) Send(ctx context.Context, to int, head, body []byte) error {
	at := s.all[to]
	stop := context.AfterFunc(ctx, func() { at.Reset() })
	defer stop()
	if err := at.SetWriteDeadline(time.Now().Add(leafPatience)); err != nil {
		return leafFault(ctx, to, "send", err)
	}
	b := make([]byte, 4, 4+len(head)+len(body))
	binary.LittleEndian.PutUint32(b, uint32(len(head)+len(body)))
	_, err := at.Write(append(append(b, head...), body...))
	return leafFault(ctx, to, "send", err)
}

// Recv implements comm.Transport.
func (s *leafStreams) Recv(ctx context.Context, from int) ([]byte, error) {
	at := s.all[from]
	stop := context.AfterFunc(ctx, func() { at.Reset() })
	defer stop()
	b, err := readLeafFrame(at)
	return b, leafFault(ctx, from, "recv", err)
}

func readLeafFrame(at network.Stream) ([]byte, error) {
	if err := at.SetReadDeadline(time.Now().Add(leafPatience)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(at, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > comm.MaxFrame {
		return nil, fmt.Errorf("a frame must have at most %d bytes (got %d)", comm.MaxFrame, n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(at, b)
	return b, err
}

// leafFault is err as a fault of a peer, or why ctx ended.
func leafFault(ctx context.Context, rank int, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &comm.PeerError{Rank: rank, Op: op, Err: err}
}

// Free implements comm.Transport.
func (s *leafStreams) Free([]byte) {}

// Close implements comm.Transport.
func (s *leafStreams) Close() error {
	s.once.Do(func() { s.err = s.close() })
	return s.err
}
