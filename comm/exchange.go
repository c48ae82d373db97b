package comm

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
)

// Exchange sends out[q] to every peer q and fills in[q] from it, all peers at once. Both have Size entries, this
// member's empty; an empty entry sends and awaits nothing. The lengths are agreed beforehand: len(in[q]) here is
// len(out[rank]) there, and another length is a *PeerError that names the peer, what, and both lengths.
func (g *Group) Exchange(ctx context.Context, door Door, what string, out, in [][]float32) error {
	if len(out) != g.size || len(in) != g.size || len(out[g.rank]) != 0 || len(in[g.rank]) != 0 {
		panic(fmt.Sprintf("comm: Exchange %s: there must be %d entries, empty at %d", what, g.size, g.rank))
	}
	if err := g.allowed(door, what, func(q int) int { return 4 * len(out[q]) }); err != nil {
		return err
	}
	c, err := g.begin(ctx, opExchange, door, what)
	if err != nil {
		return err
	}
	c.path = 0
	for q := range g.others {
		if len(out[q])+len(in[q]) > 0 {
			c.path = 1
		}
		if len(out[q]) > 0 {
			c.tasks.Go(func() { c.sendFloats(q, 0, out[q]) })
		}
		if len(in[q]) > 0 {
			c.tasks.Go(func() { c.recvFloats(q, 0, in[q]) })
		}
	}
	return c.end()
}

// SendRecv sends out[q] to every peer q and returns what each sent here, all peers at once. The lengths need not be
// known: whatever is sent has at most limit bytes, and a peer that announces more is refused before any memory is
// taken for it. A nil entry arrives as an empty one. out[Rank] is not sent, and in[Rank]
// is nil. Next to an error it returns what had come before it.
func (g *Group) SendRecv(
	ctx context.Context, door Door, what string, out [][]byte, limit int,
) (in [][]byte, err error) {
	if len(out) != g.size {
		panic(fmt.Sprintf("comm: SendRecv %s: %d entries for %d members", what, len(out), g.size))
	}
	if err := g.allowed(door, what, func(q int) int {
		if q == g.rank {
			return 0
		}
		return len(out[q])
	}); err != nil {
		return nil, err
	}
	c, err := g.begin(ctx, opSendRecv, door, what)
	if err != nil {
		return nil, err
	}
	for q, b := range out {
		if q != g.rank && len(b) > limit {
			err := fmt.Errorf("%s: a message to peer %d must have at most %d bytes (got %d)",
				c.name(), q, limit, len(b))
			g.breakWith(err) // the peers wait for a message that will not come
			c.end()
			return nil, err
		}
	}
	in = make([][]byte, g.size)
	c.each(1, func(q int) { c.sendBytes(q, 0, out[q]) })
	c.each(-1, func(q int) { in[q] = c.recvBytes(q, 0, limit) })
	return in, c.end()
}

// atOnce is how many messages a call sends at a time, and as many it receives, if there are more members.
const atOnce = 64

// each runs do for every other member, atOnce at a time, in the order of ranks after this one's (by 1) or before it (by
// −1). If all send in the one order and receive in the other, the two ends of a message come to it in the same turn:
// none waits in a circle.
func (c *call) each(by int, do func(q int)) {
	n := c.size
	var turn atomic.Int64
	for range min(n-1, atOnce) {
		c.tasks.Go(func() {
			for k := int(turn.Add(1)); k < n && (k <= atOnce || c.ctx.Err() == nil); k = int(turn.Add(1)) {
				do((c.rank + n + by*k) % n)
			}
		})
	}
}

// recvBytes receives a message of at most limit bytes.
func (c *call) recvBytes(from int, step uint8, limit int) []byte {
	h, frame, ok := c.recvFrame(from, step)
	switch {
	case !ok:
		return nil
	case h.total > uint64(max(limit, 0)):
		c.fail(from, step, "recv", fmt.Errorf("the message must have at most %d bytes (got %d)", limit, h.total))
		return nil
	case len(frame)-HeaderLen != min(int(h.total), maxPayload):
		c.fail(from, step, "recv", fmt.Errorf("the frame must have %d bytes (got %d)",
			min(int(h.total), maxPayload), len(frame)-HeaderLen))
		return nil
	}
	// The rest grows as it arrives: memory is taken for bytes, not for promises.
	b := frame[HeaderLen:]
	for len(b) < int(h.total) {
		next, frame, ok := c.recvFrame(from, step)
		want := min(int(h.total)-len(b), maxPayload)
		switch {
		case !ok:
			return nil
		case next.total != h.total || len(frame)-HeaderLen != want:
			c.fail(from, step, "recv", fmt.Errorf("the frame must have %d of %d bytes (got %d of %d)",
				want, h.total, len(frame)-HeaderLen, next.total))
			return nil
		}
		if cap(b)-len(b) < want { // double it: append grows by less and copies more often
			b = slices.Grow(b, min(int(h.total)-len(b), max(len(b), want)))
		}
		b = append(b, frame[HeaderLen:]...)
		c.t.Free(frame)
	}
	return b
}

// Broadcast makes x of every member root's. len(x) must agree; root sends 4·len(x)·(Size−1) bytes.
func (g *Group) Broadcast(ctx context.Context, door Door, root int, x []float32) error {
	if root < 0 || root >= g.size {
		panic(fmt.Sprintf("comm: Broadcast from %d, of %d members", root, g.size))
	}
	c, err := g.begin(ctx, opBroadcast, door, "")
	if err != nil {
		return err
	}
	if g.rank != root {
		c.recvFloats(root, 0, x)
		return c.end()
	}
	for q := range g.others {
		c.tasks.Go(func() { c.sendFloats(q, 0, x) })
	}
	return c.end()
}

// Barrier returns when every member has called it. Its frames are empty.
func (g *Group) Barrier(ctx context.Context) error {
	c, err := g.begin(ctx, opBarrier, Control, "")
	if err != nil {
		return err
	}
	c.each(1, func(q int) { c.sendBytes(q, 0, nil) })
	c.each(-1, func(q int) { c.recvBytes(q, 0, 0) })
	return c.end()
}
