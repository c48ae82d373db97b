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

// ending is why a run ends, as members tell each other. They pass it on as it is: not all listen to all.
type ending struct {
	refused bool   // else a member was lost
	text    string // of a refusal
	by      int    // who found it; −1: this member
	via     int    // who told this one
}

// Refused returns an error that is ErrRefused.
func Refused(format string, args ...any) error {
	return ending{true, fmt.Sprintf(format, args...), -1, -1}
}

func (e ending) Error() string {
	switch {
	case e.by < 0:
		return e.text
	case !e.refused:
		return fmt.Sprintf("lost, says peer %d", e.by)
	case e.by == e.via:
		return fmt.Sprintf("peer %d ended the run: %s", e.by, e.text)
	}
	return fmt.Sprintf("peer %d ended the run, says peer %d: %s", e.by, e.via, e.text)
}

// Is implements errors.Is.
func (e ending) Is(target error) bool { return e.refused && target == ErrRefused }

const (
	tellTime  = 2 * time.Second // for a member to take the news
	maxEnding = 512             // bytes of text
)

// Refuse ends g where err is ErrRefused, tells the other members why, unless they know, and returns err: of two members as
// a *PeerError of the other one, where err names none. Any other error is returned as it is.
func (g *Group) Refuse(ctx context.Context, err error) error {
	if !errors.Is(err, ErrRefused) {
		return err
	}
	if _, named := errors.AsType[*PeerError](err); !named && g.size == 2 {
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
	g.tell(ctx, err, false)
	return g.breakWith(err)
}

// tell tells the other members of a refusal or, with lost, of a lost member: each would otherwise take who gives up first
// for who failed. It does nothing with any other error. Who does not take the news in time goes without it.
func (g *Group) tell(ctx context.Context, err error, lost bool) {
	e, known := errors.AsType[ending](err)
	at, named := errors.AsType[*PeerError](err)
	if !known && !(lost && named) {
		return
	}
	h, wait, culprit := header{op: opRefuse, door: Control, seq: g.calls}, tellTime, -1
	if named {
		culprit = at.Rank
	}
	if known && e.by < 0 && named && at.Op != "" {
		e.text = at.Op + ": " + e.text
	}
	if !known || e.by < 0 {
		e.by = g.rank
	}
	if !e.refused {
		h.op, wait = opLost, lastWords
	}
	body := binary.LittleEndian.AppendUint32(nil, uint32(culprit+1))
	body = binary.LittleEndian.AppendUint32(body, uint32(e.by))
	body = append(body, e.text[:min(len(e.text), maxEnding)]...)
	h.total = uint64(len(body))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	var all sync.WaitGroup
	for q := range g.others {
		if q == culprit && !e.refused {
			continue
		}
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

// parseEnding returns the error of a member that is told by another one why the run ends.
func (g *Group) parseEnding(from int, op op, b []byte) error {
	if len(b) < 8 || len(b) > 8+maxEnding {
		return fmt.Errorf("the end of a run must have 8 to %d bytes (got %d)", 8+maxEnding, len(b))
	}
	culprit, by := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if culprit > uint32(g.size) || by >= uint32(g.size) {
		return fmt.Errorf("the end of a run must name peers below %d (got %d and %d)", g.size, culprit, by)
	}
	text := strings.Map(func(r rune) rune { // it may end up on a screen
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(b[8:]), "?"))
	switch {
	case culprit == 0:
		culprit = by + 1
	case op == opLost && int(culprit)-1 == g.rank: // it has lost this member
		culprit = uint32(from) + 1
	}
	return &PeerError{Rank: int(culprit) - 1, Op: "recv", Err: ending{op == opRefuse, text, int(by), from}}
}
