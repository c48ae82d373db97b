package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/libp2p/go-libp2p/core/network"
)

// Bytes that end a handshake.
const (
	verdictUse   = 1 // this stream carries the pair's frames
	verdictOther = 2 // another stream does, or the session has begun
)

// shake exchanges hellos and agrees on whether s carries the pair's frames. Once keep returns true
// s belongs to the session, and the end of the attempt must not reset it.
func (r *rendezvous) shake(s network.Stream, p *pair, dialled bool, keep func() bool) error {
	if dialled {
		if _, err := s.Write(r.ours.encode()); err != nil {
			return err
		}
	}
	var b [helloSize]byte
	if _, err := io.ReadFull(s, b[:]); err != nil {
		return err
	}
	if !dialled {
		if _, err := s.Write(r.ours.encode()); err != nil {
			return err
		}
	}
	theirs, err := parseGreeting(b[:])
	if err == nil {
		err = theirs.mismatch(r.ours, p.rank, p.member.Name)
	} else {
		err = fmt.Errorf("peer %d (%s): %w", p.rank, p.member.Name, err)
	}
	if err != nil {
		// Both sides have both hellos, or soon will: leave only when the other has read ours.
		r.exchangeTexts(s, err)
		s.CloseWrite()
		io.Copy(io.Discard, io.LimitReader(s, 1))
		r.giveUp(err)
		return err
	}
	if r.rank() < p.rank {
		p.choosing.Lock()
		defer p.choosing.Unlock()
		err = r.choose(s, p)
	} else {
		err = r.accept(s)
	}
	if err == nil && !keep() {
		err = context.Canceled
	}
	if err == nil {
		r.linked(s, p, theirs.attempt)
	}
	return err
}

// choose is the lower rank's half: it takes the first stream that the other side acknowledges.
func (r *rendezvous) choose(s network.Stream, p *pair) error {
	if r.alive(p) {
		s.Write([]byte{verdictOther})
		s.CloseWrite()
		io.Copy(io.Discard, io.LimitReader(s, 1))
		return errors.New("another connection to it is in use")
	}
	if _, err := s.Write([]byte{verdictUse}); err != nil {
		return err
	}
	return readVerdict(s)
}

// accept is the higher rank's half.
func (r *rendezvous) accept(s network.Stream) error {
	if err := readVerdict(s); err != nil {
		return err
	}
	_, err := s.Write([]byte{verdictUse})
	return err
}

func readVerdict(s network.Stream) error {
	var v [1]byte
	if _, err := io.ReadFull(s, v[:]); err != nil {
		return err
	}
	switch v[0] {
	case verdictUse:
		return nil
	case verdictOther:
		return errors.New("it is in this session over another connection: is a second peer running with this identity?")
	}
	return fmt.Errorf("verdict must be %d or %d (got %d)", verdictUse, verdictOther, v[0])
}
