package admission

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/heddle-gnn/heddle/comm"
)

// Guarded is a transport within a policy's bounds.
type Guarded struct {
	comm.Transport
	policy Policy
	pace   *rate.Limiter // nil: as fast as it goes

	mu   sync.Mutex
	sent int64
}

// Guard returns t within the policy's bounds on bytes, rate and hours: what it does not allow is not sent, and Send
// says so with a *Refusal. Bytes are those of frames; a run that goes on from a checkpoint is counted anew.
func (p Policy) Guard(t comm.Transport) *Guarded {
	g := &Guarded{Transport: t, policy: p}
	if p.MaxRate > 0 {
		// A tenth of a second's worth may go at once: enough for a full socket, and little beside the bound.
		g.pace = rate.NewLimiter(rate.Limit(p.MaxRate), int(max(1024, p.MaxRate/10)))
	}
	return g
}

// Send implements comm.Transport.
func (g *Guarded) Send(ctx context.Context, to int, head, body []byte) error {
	n := len(head) + len(body)
	if err := g.take(int64(n)); err != nil {
		return err
	}
	for left := n; g.pace != nil && left > 0; {
		n := min(left, g.pace.Burst())
		if err := g.pace.WaitN(ctx, n); err != nil {
			return &comm.PeerError{Rank: to, Op: "send", Err: err}
		}
		left -= n
	}
	return g.Transport.Send(ctx, to, head, body)
}

func (g *Guarded) take(n int64) error {
	if err := g.policy.Open(time.Now()); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if most := g.policy.MaxBytes; most > 0 && g.sent+n > most {
		return refuse("policy.max_bytes", "%d bytes were sent and %d more were to go, want at most %d in one run", g.sent, n, most)
	}
	g.sent += n
	return nil
}

// Sent is how many bytes the policy let through, frame headers included.
func (g *Guarded) Sent() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent
}
