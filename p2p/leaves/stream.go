// Package leaves carries the messages of package leaf over libp2p: a Server at each site that collects shares, to which
// phones connect that no roster lists, and Dial at a phone. A phone has one stream to each site. Each frame is preceded by
// its length, 4 bytes, little endian. docs/reference/wire.md gives the bytes.
package leaves

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

// patience is how long one end waits for a frame of the other: an exchange may be open for that long.
const patience = 30 * time.Minute

// streams is a comm.Transport of one stream to each of some peers.
type streams struct {
	all   []network.Stream
	close func() error

	once sync.Once
	err  error
}

// Send implements comm.Transport. If ctx ends first, the stream does, too.
func (s *streams) Send(ctx context.Context, to int, head, body []byte) error {
	at := s.all[to]
	stop := context.AfterFunc(ctx, func() { at.Reset() })
	defer stop()
	if err := at.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return fault(ctx, to, "send", err)
	}
	b := make([]byte, 4, 4+len(head)+len(body))
	binary.LittleEndian.PutUint32(b, uint32(len(head)+len(body)))
	_, err := at.Write(append(append(b, head...), body...))
	return fault(ctx, to, "send", err)
}

// Recv implements comm.Transport.
func (s *streams) Recv(ctx context.Context, from int) ([]byte, error) {
	at := s.all[from]
	stop := context.AfterFunc(ctx, func() { at.Reset() })
	defer stop()
	b, err := s.read(at)
	return b, fault(ctx, from, "recv", err)
}

func (s *streams) read(at network.Stream) ([]byte, error) {
	if err := at.SetReadDeadline(time.Now().Add(patience)); err != nil {
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

// fault is err as a fault of a peer, or why ctx ended.
func fault(ctx context.Context, rank int, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &comm.PeerError{Rank: rank, Op: op, Err: err}
}

// Free implements comm.Transport.
func (s *streams) Free([]byte) {}

// Close implements comm.Transport.
func (s *streams) Close() error {
	s.once.Do(func() { s.err = s.close() })
	return s.err
}
