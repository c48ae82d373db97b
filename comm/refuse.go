package comm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
)

// ErrRefused is why a run ends in which a member sent what no member sends that keeps to the protocol, whatever its data
// are. To meet again does not help.
var ErrRefused = errors.New("refused")

// refusal is an error that is ErrRefused. The members that are told of it pass it on as it is: not all listen to all.
type refusal struct {
	text string
	by   int // who refused; −1: this member
	via  int // who told this one
}

// Refused returns an error that is ErrRefused.
func Refused(format string, args ...any) error { return refusal{fmt.Sprintf(format, args...), -1, -1} }

func (r refusal) Error() string {
	switch {
	case r.by < 0:
		return r.text
	case r.by == r.via:
		return fmt.Sprintf("peer %d ended the run: %s", r.by, r.text)
	}
	return fmt.Sprintf("peer %d ended the run, says peer %d: %s", r.by, r.via, r.text)
}

// Is implements errors.Is.
func (r refusal) Is(target error) bool { return target == ErrRefused }

const (
	tellTime   = 2 * time.Second // for a member to take the news
	maxRefusal = 512             // bytes of text
)

// Refuse ends g where err is ErrRefused, tells the other members why, unless they know, and returns err: of two members as
// a *PeerError of the other one, where err names none. Any other error is returned as it is.
func (g *Group) Refuse(ctx context.Context, err error) error {
	if !errors.Is(err, ErrRefused) {
		return err
	}
	if _, named := errors.AsType[*PeerError](err); !named && len(g.members) == 2 {
		for q := range g.others {
			err = &PeerError{Rank: q, Op: "check", Err: err}
		}
	}
	g.mu.Lock()
	known := g.err != nil
	g.mu.Unlock()
	if known {
		return err
	}
	if !g.busy.CompareAndSwap(false, true) {
		panic("comm: Refuse called while an operation runs")
	}
	defer g.busy.Store(false)
	g.tell(ctx, err)
	return g.breakWith(err)
}

// tell tells the other members of a refusal, its own or one that it was told of. It does nothing with any other error. Who
// does not take the news in time goes without it.
func (g *Group) tell(ctx context.Context, err error) {
	r, ok := errors.AsType[refusal](err)
	if !ok {
		return
	}
	culprit := -1
	if at, ok := errors.AsType[*PeerError](err); ok {
		culprit = at.Rank
		if r.by < 0 && at.Op != "" {
			r.text = at.Op + ": " + r.text
		}
	}
	if r.by < 0 {
		r.by = g.rank
	}
	body := binary.LittleEndian.AppendUint32(nil, uint32(culprit+1))
	body = binary.LittleEndian.AppendUint32(body, uint32(r.by))
	body = append(body, r.text[:min(len(r.text), maxRefusal)]...)
	h := header{op: opRefuse, door: Control, seq: g.calls, total: uint64(len(body))}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
	defer cancel()
	var all sync.WaitGroup
	for q := range g.others {
		all.Go(func() {
			head := make([]byte, HeaderLen)
			h.put(head)
			if g.t.Send(ctx, q, head, body) == nil {
				g.sent[Control].Add(int64(HeaderLen + len(body)))
				g.messages.Add(1)
			}
		})
	}
	all.Wait()
}

// parseRefusal returns the error of a member that is told by another one why the run ends.
func (g *Group) parseRefusal(from int, b []byte) error {
	if len(b) < 8 || len(b) > 8+maxRefusal {
		return fmt.Errorf("a refusal must have 8 to %d bytes (got %d)", 8+maxRefusal, len(b))
	}
	culprit, by := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if culprit > uint32(g.size) || by >= uint32(g.size) {
		return fmt.Errorf("a refusal must name peers below %d (got %d and %d)", g.size, culprit, by)
	}
	text := strings.Map(func(r rune) rune { // it may end up on a screen
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(b[8:]), "?"))
	if culprit == 0 {
		culprit = by + 1
	}
	return &PeerError{Rank: int(culprit) - 1, Op: "recv", Err: refusal{text, int(by), from}}
}
