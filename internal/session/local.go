package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/train"
)

// vote is what the members of one process decide after a round.
type vote struct {
	once sync.Once
	over chan struct{} // closed when last, err and next are set
	last bool
	err  error
	next *vote
}

// Only the first call counts: a member whose context ends and member 0 may decide at the same time, and all must read
// the same decision.
func (v *vote) settle(last bool, err error) {
	v.once.Do(func() {
		v.last, v.err, v.next = last, err, &vote{over: make(chan struct{})}
		close(v.over)
	})
}

// LocalEnds returns what each of size members of this process asks after a round. Member 0 calls last, and the others
// wait for its answer; one whose context ends first decides for all that there is none.
func LocalEnds(size int, last func() bool) []train.Ends {
	first, all := &vote{over: make(chan struct{})}, make([]train.Ends, size)
	for r := range all {
		at := first
		all[r] = func(ctx context.Context) (bool, error) {
			v := at
			if r == 0 {
				v.settle(last(), ctx.Err())
			}
			select {
			case <-v.over:
			case <-ctx.Done():
				v.settle(false, ctx.Err())
			}
			// Also after ctx has ended: the first call of settle may be another member's, and only its close orders the
			// fields before the reads below.
			<-v.over
			// Each member has its place in the list of votes, so that a slow one finds all earlier decisions: with only
			// the latest it would miss one.
			at = v.next
			return v.last, v.err
		}
	}
	return all
}

// Local makes the sessions of members that are all in this process, by their terms, which name no members, and calls do
// for each, all at the same time. They are connected in memory, or over loopback at the addresses listen; link, if not
// empty, is a slower network that is simulated. The first error ends ctx for all.
func Local(
	ctx context.Context, link string, listen []string, all []Terms, do func(context.Context, *Session) error,
) (err error) {
	size := len(all)
	if _, err := netsim.ParseLink(link, size); err != nil {
		return train.Input(err)
	}
	memory := netsim.New(size, netsim.Config{})
	sessions, hosts := make([]*Session, size), make([]*p2p.Host, size)
	defer func() {
		for _, h := range hosts {
			if h != nil {
				err = errors.Join(err, h.Close())
			}
		}
	}()
	keys, members := make([]identity.Identity, size), identity.Roster{}
	for r, t := range all {
		if keys[r], err = identity.New(); err != nil {
			return err
		}
		one := identity.Member{Name: fmt.Sprintf("peer %d", r), ID: keys[r].PeerID()}
		if listen != nil && size > 1 {
			network := p2p.Config{Identity: keys[r], Listen: listen, Transport: t.Carrier, MaxPeers: max(64, size)}
			if hosts[r], err = p2p.Listen(network); err != nil {
				return err
			}
			one.Addrs = hosts[r].Addrs()
		}
		members.Members = append(members.Members, one)
	}
	meeting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	met, meeting := errgroup.WithContext(meeting)
	for r, t := range all {
		t.Rank, t.Members = r, members
		s := &Session{Rank: r, Names: make([]string, size), Wait: time.Minute, Link: link, Seed: t.Seed,
			Request: t.Request, Reducer: t.secure(keys[r]), Event: func(train.Event) {}}
		sessions[r] = s
		met.Go(func() error {
			over := memory.Transport(r)
			if hosts[r] != nil {
				var err error
				if over, err = hosts[r].Join(meeting, members, t.Hello); err != nil {
					return err
				}
			}
			s.Meet = func(context.Context) (comm.Transport, error) { return over, nil }
			return nil
		})
	}
	if err := met.Wait(); err != nil {
		return err
	}
	running, ctx := errgroup.WithContext(ctx)
	for _, s := range sessions {
		running.Go(func() error { return do(ctx, s) })
	}
	return running.Wait()
}
