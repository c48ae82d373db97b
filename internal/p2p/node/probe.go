package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	mss "github.com/multiformats/go-multistream"
)

// The probe protocol measures a path to a member or relay. One side writes magic and a byte count, the other answers
// with its clock; then the first writes up to this number of zeros, and the other answers with how many came. It
// carries nothing of a session.
const (
	probeMagic  = "HEDP"
	probeSize   = len(probeMagic) + 4
	probeAnswer = 8
	probeMost   = 4 << 20                // bytes that one probe may send,
	probeTime   = 100 * time.Millisecond // and about how long it sends
	probeBlock  = 64 << 10
)

// probed is what a probe saw.
type probed struct {
	rtt   time.Duration
	ahead time.Duration // how far the other clock is ahead of ours, within half a round trip
	rate  float64       // bytes a second from here to there (0 = not measured)
}

func encodeProbe(bytes int) []byte {
	return binary.LittleEndian.AppendUint32([]byte(probeMagic), uint32(bytes))
}

// parseProbe takes exactly what encodeProbe writes.
func parseProbe(b []byte) (bytes int, err error) {
	if len(b) != probeSize || string(b[:4]) != probeMagic {
		return 0, fmt.Errorf("a probe must be %q and 4 bytes (got %q)", probeMagic, b)
	}
	n := binary.LittleEndian.Uint32(b[4:])
	if n > probeMost {
		return 0, fmt.Errorf("a probe must send at most %d bytes (got %d)", probeMost, n)
	}
	return int(n), nil
}

// answerProbe serves a stream of the probe protocol, and counts it if it was answered: else the member asks once more.
func (n *Node) answerProbe(s network.Stream) {
	defer s.Close()
	if answerProbe(s) != nil {
		s.Reset()
		return
	}
	n.mu.Lock()
	n.probed[s.Conn().RemotePeer()]++
	n.mu.Unlock()
}

// answerSurveys lets the others measure their ways to this node.
func (n *Node) answerSurveys() {
	n.SetStreamHandler(probeProtocol, n.answerProbe)
	n.SetStreamHandler(seenProtocol, func(s network.Stream) {
		s.Write([]byte(s.Conn().RemoteMultiaddr().String()))
		s.Close()
	})
}

// mostAddress is the most bytes of an answer of the seen protocol.
const mostAddress = 512

// seenFrom returns under which address the other side sees this node (empty = it does not say).
func seenFrom(ctx context.Context, c network.MuxedConn) string {
	s, err := c.OpenStream(ctx)
	if err != nil {
		return ""
	}
	defer s.Reset()
	if deadline, ok := ctx.Deadline(); ok {
		s.SetDeadline(deadline)
	}
	if mss.SelectProtoOrFail(seenProtocol, s) != nil {
		return ""
	}
	b, err := io.ReadAll(io.LimitReader(s, mostAddress))
	if err != nil {
		return ""
	}
	return string(b)
}

// asked returns how many probes of a member this node has answered. A doctor waits for those that it reached, so that
// they reach it, too.
func (n *Node) asked(by peer.ID) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.probed[by]
}

func answerProbe(s network.Stream) error {
	s.SetDeadline(time.Now().Add(HandshakeTime))
	var ask [probeSize]byte
	if _, err := io.ReadFull(s, ask[:]); err != nil {
		return err
	}
	n, err := parseProbe(ask[:])
	if err != nil {
		return err
	}
	_, err = s.Write(binary.LittleEndian.AppendUint64(nil, uint64(time.Now().UnixNano())))
	if err != nil || n == 0 {
		return err
	}
	// It reads to the end of the stream, beyond n bytes: Close would refuse an end that comes later.
	came, err := io.Copy(io.Discard, io.LimitReader(s, int64(n)+1))
	if err != nil {
		return err
	}
	_, err = s.Write(binary.LittleEndian.AppendUint64(nil, min(uint64(came), uint64(n))))
	return err
}

// stream is what network.Stream and network.MuxedStream have in common.
type stream interface {
	io.ReadWriteCloser
	CloseWrite() error
	SetDeadline(time.Time) error
	Reset() error
}

// probe measures the path of s, with at most bytes bytes. It resets s if that fails.
func probe(ctx context.Context, s stream, bytes int) (_ probed, err error) {
	defer func() {
		if err != nil {
			s.Reset()
		} else {
			s.Close()
		}
	}()
	if deadline, ok := ctx.Deadline(); ok {
		s.SetDeadline(deadline)
	}
	if err := mss.SelectProtoOrFail(probeProtocol, s); err != nil {
		return probed{}, err
	}
	begun := time.Now()
	if _, err := s.Write(encodeProbe(bytes)); err != nil {
		return probed{}, err
	}
	var clock [probeAnswer]byte
	if _, err := io.ReadFull(s, clock[:]); err != nil {
		return probed{}, err
	}
	seen := probed{rtt: time.Since(begun)}
	seen.ahead = time.Unix(0, int64(binary.LittleEndian.Uint64(clock[:]))).Sub(begun.Add(seen.rtt / 2))
	if bytes == 0 {
		return seen, nil
	}
	// The first round trip included a fresh connection's handshake; the bytes' time includes the last one.
	begun = time.Now()
	sent, block := 0, make([]byte, probeBlock)
	for sent < bytes && time.Since(begun) < probeTime {
		n, err := s.Write(block[:min(len(block), bytes-sent)])
		sent += n
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return probed{}, err
		}
	}
	if err := s.CloseWrite(); err != nil {
		return probed{}, err
	}
	var came [probeAnswer]byte
	if _, err := io.ReadFull(s, came[:]); err != nil {
		return probed{}, err
	}
	if n := binary.LittleEndian.Uint64(came[:]); n != uint64(sent) {
		return probed{}, fmt.Errorf("all %d bytes of a probe must arrive (got %d)", sent, n)
	}
	seen.rate = float64(sent) / max(time.Since(begun)-seen.rtt/2, time.Microsecond).Seconds()
	return seen, nil
}
