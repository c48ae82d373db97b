package comm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// The steps of Agree.
const (
	stepView   uint8 = iota // whom a member can talk to, to the coordinator
	stepDecide              // who is in, from the coordinator
)

// TooFewError says that a generation did not come about: fewer members can all talk to one another than it takes.
type TooFewError struct {
	Members []int // the most that could
	Least   int
}

func (e *TooFewError) Error() string {
	return fmt.Sprintf("comm: at least %d members must be able to talk to one another (got %d: %v)",
		e.Least, len(e.Members), e.Members)
}

// MaxGenerationLead is how far a member's last generation may be beyond another's. Without a bound one member could use
// up all numbers.
const MaxGenerationLead = 1 << 20

// ErrLeftOut is the error of Agree at a rank that the generation goes on without.
var ErrLeftOut = errors.New("comm: the members of this generation go on without this one")

// Agree makes the ranks that are there, and can all talk to one another, the members of the group: all that return nil
// return with the same members and the same generation. here[q] says whether the transport reaches rank q. The entries
// of without, if not nil, are ranks that this member will not go on with, reachable or not. last is the highest
// generation that this member has ever agreed to, and the one agreed on is above that of all of them.
//
// The lowest rank of a member's here is its coordinator. It hears from all whom it reaches, takes out as few as it must
// for the rest to reach each other, and tells everybody. Where the rest are fewer than least the error is a
// *TooFewError, and at a rank that is taken out ErrLeftOut. A coordinator that fails is a failed peer like any other:
// the error is a *PeerError, nothing has been agreed on, and the group is broken.
//
// It has to be a group's first operation.
func (g *Group) Agree(ctx context.Context, here, without []bool, least int, last uint64) error {
	if len(here) != g.size || without != nil && len(without) != g.size {
		panic(fmt.Sprintf("comm: Agree: %d and %d entries for %d ranks", len(here), len(without), g.size))
	}
	g.members = g.members[:0:0]
	for q := range g.size {
		if q == g.rank || here[q] {
			g.members = append(g.members, q)
		}
	}
	c, err := g.begin(ctx, opAgree, Control, "generation")
	if err != nil {
		return err
	}
	c.path = 2
	mine := view{last: last, with: make([]bool, g.size)}
	for _, q := range g.members {
		mine.with[q] = without == nil || !without[q]
	}
	limit := viewLen(g.size)
	if coordinator := g.members[0]; coordinator != g.rank {
		var b []byte
		c.tasks.Go(func() {
			if c.sendBytes(coordinator, stepView, mine.encode()) {
				b = c.recvBytes(coordinator, stepDecide, limit)
			}
		})
		if err := c.end(); err != nil {
			return err
		}
		decided, err := parseView(b, g.size)
		if err == nil && (decided.last <= last || decided.last-last > MaxGenerationLead+1) {
			err = fmt.Errorf("generation %d was decided on, but this member's last is %d", decided.last, last)
		}
		if err != nil {
			return g.breakWith(&PeerError{Rank: coordinator, Op: c.name(), Err: err})
		}
		return g.settle(decided, least)
	}

	views := make([]view, g.size)
	views[g.rank] = mine
	for q := range g.others {
		c.tasks.Go(func() {
			b := c.recvBytes(q, stepView, limit)
			if c.ctx.Err() != nil {
				return
			}
			v, err := parseView(b, g.size)
			if err == nil && v.last > last && v.last-last > MaxGenerationLead {
				err = fmt.Errorf("generation %d is too far beyond this member's %d", v.last, last)
			}
			if err != nil {
				c.fail(q, stepView, "recv", err)
			}
			views[q] = v
		})
	}
	c.tasks.Wait()
	var decided view
	if c.ctx.Err() == nil {
		decided = decide(views, g.members)
		b := decided.encode()
		for q := range g.others {
			c.tasks.Go(func() { c.sendBytes(q, stepDecide, b) })
		}
	}
	if err := c.end(); err != nil {
		return err
	}
	return g.settle(decided, least)
}

// settle makes what was decided the group's own.
func (g *Group) settle(decided view, least int) error {
	g.members, g.generation = g.members[:0:0], decided.last
	for q, in := range decided.with {
		if in {
			g.members = append(g.members, q)
		}
	}
	switch {
	case len(g.members) < least:
		return g.breakWith(&TooFewError{Members: g.members, Least: least})
	case !decided.with[g.rank]:
		return g.breakWith(ErrLeftOut)
	}
	return nil
}

// view is whom one member can talk to and goes on with, itself included, and the last generation it agreed to; or,
// decided, the members and the number of the next one.
type view struct {
	last uint64
	with []bool
}

func viewLen(size int) int { return 8 + (size+7)/8 }

// encode: u64 generation · a bit a rank, the lowest of a byte first.
func (v view) encode() []byte {
	b := make([]byte, viewLen(len(v.with)))
	binary.LittleEndian.PutUint64(b, v.last)
	for q, in := range v.with {
		if in {
			b[8+q/8] |= 1 << (q % 8)
		}
	}
	return b
}

func parseView(b []byte, size int) (v view, err error) {
	if len(b) != viewLen(size) {
		return v, fmt.Errorf("a view of %d ranks must have %d bytes (got %d)", size, viewLen(size), len(b))
	}
	v = view{last: binary.LittleEndian.Uint64(b), with: make([]bool, size)}
	for q := range 8 * (len(b) - 8) {
		in := b[8+q/8]&(1<<(q%8)) != 0
		if in && q >= size {
			return v, fmt.Errorf("a bit for rank %d of %d", q, size)
		}
		if in {
			v.with[q] = true
		}
	}
	return v, nil
}

// decide takes from the given ranks, one at a time, whoever lacks the most others; of several, the one whom more others
// lack than it lacks itself (it is the one that is slow, or behind a broken line), and then the highest.
func decide(views []view, ranks []int) view {
	next := view{with: make([]bool, len(views))}
	for _, q := range ranks {
		next.with[q] = true
		next.last = max(next.last, views[q].last)
	}
	next.last++
	for {
		worst, most, unwanted := -1, 0, 0
		for _, q := range ranks {
			if !next.with[q] {
				continue
			}
			lacks, lacked := 0, 0
			for _, p := range ranks {
				if p == q || !next.with[p] {
					continue
				}
				if !views[p].with[q] {
					lacked++
				}
				if !views[p].with[q] || !views[q].with[p] {
					lacks++
				}
			}
			if lacks > 0 && (lacks > most || lacks == most && lacked >= unwanted) {
				worst, most, unwanted = q, lacks, lacked
			}
		}
		if worst < 0 {
			return next
		}
		next.with[worst] = false
	}
}
