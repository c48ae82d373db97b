package p2p

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

const (
	refusalTime = 3 * time.Second // that a member which gives up takes to tell the others why
	refusalWait = 50 * time.Millisecond

	refusalTaken = 1 // the answer to a refusal
)

// giveUp ends the attempt because of a mismatch, which no retry mends.
func (r *rendezvous) giveUp(err error) {
	for _, m := range mismatches(err) {
		if m.reported {
			r.informed(m.With)
		} else {
			m.With, m.Other = r.rank(), r.members[r.rank()].Name
		}
		if m.Part != partVersion { // else it has not had our hello
			r.informed(m.Rank)
		}
	}
	r.give(err)
}

// informed notes that the member of rank q knows why the attempt has failed.
func (r *rendezvous) informed(q int) {
	if p := r.pairs[q]; p != nil {
		p.informed.Store(true)
	}
}

// spread informs the other members why the attempt has failed, if two members differ. A member that both are still
// waiting for would otherwise wait for them until its own deadline.
func (r *rendezvous) spread(ctx context.Context, err error) {
	found := mismatches(err)
	if len(found) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, refusalTime)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range r.pairs {
		if p == nil {
			continue
		}
		all.Go(func() {
			for ctx.Err() == nil && !p.informed.Load() {
				if r.tellRefusal(ctx, p, found) != nil {
					sleep(ctx, refusalWait)
				}
			}
		})
	}
	all.Wait()
}

func (r *rendezvous) tellRefusal(ctx context.Context, p *pair, found []*MemberMismatchError) error {
	for _, m := range found {
		s, err := r.host.node.NewStream(network.WithNoDial(network.WithAllowLimitedConn(ctx, "relay"), "connected"),
			p.member.ID, refusalProtocol)
		if err != nil {
			return err
		}
		_, err = s.Write(m.encode())
		if err == nil {
			err = s.CloseWrite()
		}
		if err == nil {
			_, err = io.ReadFull(s, make([]byte, 1))
		}
		s.Reset()
		if err != nil {
			return err
		}
	}
	p.informed.Store(true)
	return nil
}

// refused takes a refusal that a member sends.
func (r *rendezvous) refused(s network.Stream) {
	defer s.Close()
	from := rankOf(r.members, s.Conn().RemotePeer())
	b, err := io.ReadAll(io.LimitReader(s, maxRefusal+1))
	if err != nil || from < 0 {
		s.Reset()
		return
	}
	m, err := parseRefusal(b, r.members)
	if err != nil {
		s.Reset()
		return
	}
	s.Write([]byte{refusalTaken})
	r.informed(from)
	switch r.rank() {
	case m.Rank:
		m.Rank, m.Name, m.With, m.Other = m.With, m.Other, m.Rank, m.Name
		m.Ours, m.Peer, m.OurPlan, m.PeerPlan = m.Peer, m.Ours, m.PeerPlan, m.OurPlan
		m.reported = false
	case m.With:
		m.reported = false
	}
	r.giveUp(m)
}

// exchangeTexts gives a member whose plan differs this one's text, and adds both to the error.
func (r *rendezvous) exchangeTexts(s network.Stream, err error) {
	found := mismatches(err)
	i := slices.IndexFunc(found, func(m *MemberMismatchError) bool { return m.Part == partPlan })
	if i < 0 {
		return
	}
	found[i].OurPlan = r.ours.PlanText
	theirs := make(chan string, 1)
	go func() {
		text, _ := readText(s)
		theirs <- text
	}()
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(r.ours.PlanText)))
	_, wrong := s.Write(append(b, r.ours.PlanText...))
	found[i].PeerPlan = <-theirs
	if wrong == nil {
		s.Write([]byte{refusalTaken}) // the other side leaves when it knows that its text has come
	}
}

func readText(r io.Reader) (string, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxPlanText {
		return "", fmt.Errorf("the text of a plan must have at most %d bytes (got %d)", maxPlanText, n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return string(b), err
}
