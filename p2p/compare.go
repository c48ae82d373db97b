package p2p

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

// Compare does over t, a transport of the program, what Host.Join does over libp2p: the member of rank rank sends the
// others its hello and the text of its plan, and reads theirs. If a member's differs, both return a
// MemberMismatchError. When ctx ends, a comm.WaitError has the names of the members that sent nothing.
func Compare(ctx context.Context, t comm.Transport, members []string, rank int, hello Hello) error {
	ours := greeting{Hello: hello, rank: uint32(rank), size: uint32(len(members)), attempt: newAttempt()}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	// One slot for each member and direction. Both at the same time: a Send may wait until the other member reads.
	sent, read := make([]error, len(members)), make([]error, len(members))
	var all sync.WaitGroup
	for q := range members {
		if q == rank {
			continue
		}
		all.Go(func() { sent[q] = t.Send(waiting, q, ours.encode(), []byte(hello.PlanText)) })
		all.Go(func() {
			if read[q] = ours.compare(waiting, t, members, q); len(mismatches(read[q])) > 0 {
				time.AfterFunc(refusalTime, stop) // until then the others, too, can learn why there is no run
			}
		})
	}
	all.Wait()
	var missing []string
	var faults []error
	for q, name := range members {
		if found := mismatches(read[q]); len(found) > 0 {
			return read[q]
		}
		if read[q] != nil && ctx.Err() != nil {
			missing = append(missing, name)
		}
		if err := cmp.Or(read[q], sent[q]); err != nil {
			if at, ok := errors.AsType[*comm.PeerError](err); ok {
				err = at.Err
			}
			faults = append(faults, &comm.PeerError{Rank: q, Name: name, Op: "join", Err: err})
		}
	}
	switch {
	case len(faults) == 0:
		return nil
	case len(missing) > 0:
		return &comm.WaitError{Missing: missing, Err: fmt.Errorf("join: %w waiting for %d of %d peers: %w",
			context.Cause(ctx), len(missing), len(members)-1, faults[0])}
	}
	return faults[0]
}

// compare reads the hello of the member of rank q.
func (g greeting) compare(ctx context.Context, t comm.Transport, members []string, q int) error {
	b, err := t.Recv(ctx, q)
	if err != nil {
		return err
	}
	defer t.Free(b)
	if len(b) < helloSize || len(b) > helloSize+maxPlanText {
		return fmt.Errorf("a hello must have %d to %d bytes (got %d)", helloSize, helloSize+maxPlanText, len(b))
	}
	theirs, err := parseGreeting(b[:helloSize])
	if err != nil {
		return err
	}
	err = theirs.mismatch(g, q, members[q])
	for _, m := range mismatches(err) {
		m.With, m.Other = int(g.rank), members[g.rank]
		if m.Part == partPlan {
			m.OurPlan, m.PeerPlan = g.PlanText, string(b[helloSize:])
		}
	}
	return err
}
