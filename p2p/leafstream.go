package p2p

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/heddle-gnn/heddle/comm"
)

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
