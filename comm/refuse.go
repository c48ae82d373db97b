package comm

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// ErrRefused is why a run ends for all its members: one sent what no member sends that keeps to the protocol, whatever
// its data are, or has a fault at home, such as a full disk. To meet again does not help.
var ErrRefused = errors.New("refused")

// ending is why a run ends, as members tell each other. They pass it on as it is: not all listen to all.
type ending struct {
	refused bool   // else a member was lost
	text    string // of a refusal
	culprit int    // the member at fault; −1: nobody knows
	by      int    // who found it (−1 = this member, which has informed nobody)
	via     int    // who informed this member
	cause   error  // at home (nil = another member's)
}

// Refused returns an error that is ErrRefused.
func Refused(format string, args ...any) error {
	return ending{refused: true, text: fmt.Sprintf(format, args...), culprit: -1, by: -1, via: -1}
}

func (e ending) Error() string {
	if e.refused {
		return e.text
	}
	return fmt.Sprintf("lost, as peer %d reports", e.by)
}

func (e ending) Unwrap() error { return e.cause }

// Is implements errors.Is.
func (e ending) Is(target error) bool { return e.refused && target == ErrRefused }

const (
	tellTime  = 2 * time.Second // for a member to take the news, and to say what it knows
	maxEnding = 512             // bytes of text
)

// Refuse ends the run of all members because of err, and returns what all of them return: a *PeerError of the member at
// fault, or an error without one if nobody knows it. Any err is a refusal, and this member's fault if it names no other
// one. Only the loss of a member, and the end of ctx whose cause is no *PeerError, are returned as they are.
func (g *Group) Refuse(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrRefused) {
		barred, ok := errors.AsType[*PeerError](context.Cause(ctx))
		if !ok {
			return err
		}
		err = barred
	}
	at, named := errors.AsType[*PeerError](err)
	e, known := errors.AsType[ending](err)
	switch {
	case err == nil || g.size == 1 || named && at.lost || errors.Is(err, ErrClosed):
		return err
	case known && e.by >= 0: // all know
		return g.breakWith(e.error())
	}
	if !g.busy.CompareAndSwap(false, true) {
		panic("comm: Refuse called while an operation runs")
	}
	defer g.busy.Store(false)
	return g.settle(ctx, err)
}

// FoundBy returns the rank of the member that found what err, of Refuse, is about; −1: err is no refusal.
func FoundBy(err error) int {
	if e, ok := errors.AsType[ending](err); ok && e.refused {
		return e.by
	}
	return -1
}

// error is the same at all members.
func (e ending) error() error {
	if e.culprit < 0 {
		return e
	}
	return &PeerError{Rank: e.culprit, Op: "ended the run", Err: e}
}

// settle informs the other members why the run ends and hears what they have found. All take the refusal whose culprit
// the most blame, and of these the one by the lowest rank. Members that find the same at home are not to blame.
func (g *Group) settle(ctx context.Context, err error) error {
	e, known := errors.AsType[ending](err)
	if !known || e.by < 0 {
		e = ending{true, plain(err.Error()), g.rank, g.rank, -1, err}
		if at, named := errors.AsType[*PeerError](err); named {
			e.text, e.culprit = plain(fmt.Sprintf("%s: %v", at.Op, at.Err)), at.Rank
		} else if known && g.size == 2 {
			e.culprit = 1 - g.rank
		} else if known {
			e.text, e.culprit = plain(err.Error()+": a member sent a false one, and the sum does not show which"), -1
		}
	}
	found := map[int]ending{e.by: e}
	g.spread(ctx, e, tellTime, func(ctx context.Context, q int) {
		for !g.heardFrom(q) {
			frame, err := g.t.Recv(ctx, q)
			if err != nil {
				return
			}
			if h, b, err := parseFrame(frame); err == nil && h.op == opRefuse {
				g.parseEnding(q, h.op, b)
				return
			}
			g.t.Free(frame)
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, heard := range g.heard {
		if _, known := found[heard.by]; !known || heard.by == heard.via {
			found[heard.by] = heard
		}
	}
	blamed := map[int]int{} // by how many
	for _, o := range found {
		blamed[o.culprit]++
	}
	blamed[-1] = 0
	first := e
	for _, o := range found {
		if cmp.Or(blamed[o.culprit]-blamed[first.culprit], first.by-o.by) > 0 {
			first = o
		}
	}
	for _, o := range found {
		if o.text == first.text && o.culprit == o.by && o.by != first.by && first.culprit == first.by {
			first.culprit = -1
			break
		}
	}
	if first.text == e.text {
		first.cause = e.cause
	}
	g.err = first.error()
	return g.err
}

// tellLost reports to the other members whom this one has lost. Otherwise each would take the member that gives up
// first for the one that failed.
func (g *Group) tellLost(ctx context.Context, at *PeerError) {
	e, known := errors.AsType[ending](at.Err)
	if !known {
		e.by = g.rank
	}
	e.culprit = at.Rank
	g.spread(ctx, e, lastWords, nil)
}

// spread sends e to the other members, except one that was lost, and calls then for each of them at the same time. Who
// does not take the news in time goes without it.
func (g *Group) spread(ctx context.Context, e ending, wait time.Duration, then func(ctx context.Context, q int)) {
	h := header{op: opLost, door: Control, seq: g.calls}
	if e.refused {
		h.op = opRefuse
	}
	body := binary.LittleEndian.AppendUint32(nil, uint32(e.culprit+1))
	body = binary.LittleEndian.AppendUint32(body, uint32(e.by))
	body = append(body, e.text...)
	h.total = uint64(len(body))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	var all sync.WaitGroup
	for q := range g.others {
		if q == e.culprit && !e.refused {
			continue
		}
		all.Go(func() {
			head := make([]byte, HeaderLen)
			h.put(head)
			if g.t.Send(ctx, q, head, body) == nil {
				g.sent[Control].Add(int64(HeaderLen + len(body)))
				g.messages.Add(1)
			}
			if then != nil {
				then(ctx, q)
			}
		})
	}
	all.Wait()
}

// plain returns a text as it is sent and shown on screens: on one line, without control characters, not too long.
func plain(text string) string {
	text = strings.ReplaceAll(text, "\n", "; ")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxEnding)], "?"))
}

// heardFrom reports whether peer q has sent a refusal.
func (g *Group) heardFrom(q int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.heard, func(e ending) bool { return e.via == q })
}

// parseEnding returns the error of a member to which another one reports why the run ends.
func (g *Group) parseEnding(from int, op op, b []byte) error {
	if len(b) < 8 || len(b) > 8+maxEnding {
		return fmt.Errorf("the end of a run must have 8 to %d bytes (got %d)", 8+maxEnding, len(b))
	}
	culprit, by := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if culprit > uint32(g.size) || by >= uint32(g.size) || culprit == 0 && op == opLost {
		return fmt.Errorf("the end of a run must name peers below %d (got %d and %d)", g.size, culprit, by)
	}
	e := ending{refused: op == opRefuse, text: plain(string(b[8:])), culprit: int(culprit) - 1, by: int(by), via: from}
	if e.refused {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.heard = append(g.heard, e)
		return e
	}
	if e.culprit == g.rank { // it has lost this member
		e.culprit = from
	}
	return &PeerError{Rank: e.culprit, Op: "recv", Err: e}
}
