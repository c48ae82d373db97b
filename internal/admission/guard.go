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
	pace   *rate.Limiter // (nil = no limit)

	mu   sync.Mutex
	sent int64
	keep func(int64) error // (nil = nothing is kept)
	kept int64             // last argument of keep, at least sent
}

// Guard returns t within the policy's bounds on bytes, rate and hours. Send returns a *Refusal for anything beyond
// them, and does not send it. Bytes are bytes of frames over the whole run; sent is the count of earlier processes.
// Guard calls keep, unless nil, with the count in steps and before it sends, so that the kept count of a killed process
// is never too low.
func (p Policy) Guard(t comm.Transport, sent int64, keep func(int64) error) *Guarded {
	g := &Guarded{Transport: t, policy: p, sent: sent, kept: sent}
	if p.MaxBytes > 0 {
		g.keep = keep
	}
	if p.MaxRate > 0 {
		// Bytes of a tenth of a second may go at once: enough for a full socket, and little compared with
		// the bound.
		g.pace = rate.NewLimiter(rate.Limit(p.MaxRate), int(max(1024, p.MaxRate/10)))
	}
	return g
}

// Send implements comm.Transport.
func (g *Guarded) Send(ctx context.Context, to int, head, body []byte) error {
	n := len(head) + len(body)
	rest := int64(lastWords)
	if f, err := comm.ParseFrame(head); err == nil && f.Op == "refuse" {
		rest = 0
	} else if err := g.policy.Open(time.Now()); err != nil {
		return err
	}
	if err := g.take(int64(n), rest); err != nil {
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

// lastWords is how many bytes are left to report to another member why this one ends the run. That member passes it on.
const lastWords = 1 << 10

// take counts n bytes to send, after which the run may still send rest bytes.
func (g *Guarded) take(n, rest int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if most := g.policy.MaxBytes; most > 0 && g.sent+n+rest > most {
		return refuse("policy.max_bytes", "a run must send at most %d bytes (got %d, and %d more to send)", most,
			g.sent, n)
	}
	if g.keep != nil && g.sent+n > g.kept {
		ahead := g.sent + n + g.policy.MaxBytes/keepSteps
		if err := g.keep(ahead); err != nil {
			return err
		}
		g.kept = ahead
	}
	g.sent += n
	return nil
}

// keepSteps is in how many steps the bytes of a run up to its bound are kept: a process that is
// killed loses at most one.
const keepSteps = 64

// Settle has exactly what was sent kept, at the end of a process.
func (g *Guarded) Settle() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keep == nil {
		return nil
	}
	return g.keep(g.sent)
}

// Sent is how many bytes the policy let through, frame headers included.
func (g *Guarded) Sent() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent
}
