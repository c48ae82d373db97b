package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// Bytes that end a handshake.
const (
	verdictUse   = 1 // this stream carries the pair's frames
	verdictOther = 2 // another stream does, or the session has begun
)

// shake exchanges hellos and agrees on whether s carries the pair's frames. The stream is the session's from when keep
// returns true: no end of the attempt may reset it then.
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
		err = theirs.mismatch(r.ours, p.rank, p.member.name)
	} else {
		err = fmt.Errorf("p2p: peer %d (%s): %w", p.rank, p.member.name, err)
	}
	if err != nil {
		// Both sides have both hellos, or soon will: leave only when the other has read ours.
		s.CloseWrite()
		io.Copy(io.Discard, io.LimitReader(s, 1))
		r.give(err)
		return err
	}
	if r.rank() < p.rank {
		return r.choose(s, p, keep)
	}
	return r.accept(s, p, keep)
}

// choose is the lower rank's half: it takes the first stream that the other side acknowledges.
func (r *rendezvous) choose(s network.Stream, p *pair, keep func() bool) error {
	p.choosing.Lock()
	defer p.choosing.Unlock()
	if p.alive() {
		s.Write([]byte{verdictOther})
		s.CloseWrite()
		io.Copy(io.Discard, io.LimitReader(s, 1))
		return errors.New("another connection to it is in use")
	}
	if _, err := s.Write([]byte{verdictUse}); err != nil {
		return err
	}
	if err := readVerdict(s); err != nil {
		return err
	}
	if !keep() {
		return context.Canceled
	}
	r.linked(s, p)
	return nil
}

// accept is the higher rank's half.
func (r *rendezvous) accept(s network.Stream, p *pair, keep func() bool) error {
	if err := readVerdict(s); err != nil {
		return err
	}
	if _, err := s.Write([]byte{verdictUse}); err != nil {
		return err
	}
	if !keep() {
		return context.Canceled
	}
	r.linked(s, p)
	return nil
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
	return fmt.Errorf("verdict %d, want %d or %d", v[0], verdictUse, verdictOther)
}

func (r *rendezvous) linked(s network.Stream, p *pair) {
	s.SetDeadline(time.Time{})
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		s.Reset()
		return
	}
	old := p.link
	p.link = newLink(p.rank, p.member.name, r.host.paced(s), &r.host.pool)
	p.last = nil
	r.host.watch(p.link)
	p.mu.Unlock()
	if old != nil {
		old.stream.Reset()
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}
