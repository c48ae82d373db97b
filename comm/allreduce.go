package comm

import (
	"context"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/kernels"
)

// starBelow is the length in floats under which a vector has one owner: its frames would be too many and too short.
const starBelow = 4096

// The steps of AllReduce.
const (
	stepGive uint8 = iota // a member's part of a chunk, to the chunk's owner
	stepSum               // the summed chunk, from its owner
)

// AllReduce makes x the elementwise sum over the members: x₀ + x₁ + … in rank order in float64, rounded to float32
// once. Chunk r of x is summed by its owner, member r, and distributed (a reduce-scatter and an all-gather by direct
// exchange; Thakur, Rabenseifner and Gropp 2005, §4), so that every member ends with the same bits whatever the
// transport, the size and the timing. Short vectors have one chunk, which member 0 owns.
//
// len(x) must agree between members. All members together send 2·4·len(x)·(Size−1) bytes; an empty x sends nothing
// and does not wait.
func (g *Group) AllReduce(ctx context.Context, door Door, x []float32) error {
	return g.allReduce(ctx, door, "", x)
}

// Reduce is AllReduce by the door Reduce: Group is the Reducer in the clear, and every member contributes.
func (g *Group) Reduce(ctx context.Context, round uint64, x []float32) (contributors int, err error) {
	if err := g.allReduce(ctx, Reduce, fmt.Sprintf("round %d", round), x); err != nil {
		return 0, err
	}
	return g.size, nil
}

// chunk returns the part of a vector of n floats that member r owns.
func (g *Group) chunk(n, r int) (lo, hi int) {
	if n < starBelow {
		if r == 0 {
			return 0, n
		}
		return n, n
	}
	// Quotient and remainder apart: r·n may not fit where int has 32 bits.
	q, rem := n/g.size, n%g.size
	return r*q + min(r, rem), (r+1)*q + min(r+1, rem)
}

func (g *Group) allReduce(ctx context.Context, door Door, what string, x []float32) error {
	c, err := g.begin(ctx, opAllReduce, door, what)
	if err != nil {
		return err
	}
	if g.size == 1 || len(x) == 0 {
		return c.end()
	}
	lo, hi := g.chunk(len(x), g.rank)
	own := owner{call: c, x: x[lo:hi], parts: make([]chan []byte, g.size)}
	own.frames, own.ready = g.sumFrames(c.header, hi-lo)
	for q := range g.size {
		if q == g.rank {
			continue
		}
		lo, hi := g.chunk(len(x), q)
		theirs, given := x[lo:hi], make(chan struct{})
		own.parts[q] = make(chan []byte, len(own.frames))
		c.tasks.Go(func() {
			if !c.sendFloats(q, stepGive, theirs) {
				return
			}
			close(given)
			own.distribute(q)
		})
		c.tasks.Go(func() {
			if !own.collect(q) {
				return
			}
			select {
			case <-given: // from here on nobody reads theirs, and the sum may overwrite it
			case <-c.ctx.Done():
				c.stop()
				return
			}
			c.recvFloats(q, stepSum, theirs)
		})
	}
	own.sum()
	return c.end()
}

// owner sums this member's chunk piece by piece, a piece being one frame, so that the first sums leave while the last
// contributions still arrive. It never waits for a task that sends: two owners would wait for each other.
type owner struct {
	*call
	x      []float32
	parts  []chan []byte   // parts[q] brings the pieces of member q in turn, and has room for all
	frames [][]byte        // frame p carries the summed piece p
	ready  []chan struct{} // closed when frame p is
}

// sumFrames returns the frames of a summed chunk of n floats, with their headers, in memory that the Group keeps.
func (g *Group) sumFrames(h header, n int) (frames [][]byte, ready []chan struct{}) {
	pieces := (4*n + maxPayload - 1) / maxPayload
	if need := pieces*HeaderLen + 4*n; cap(g.sums) < need {
		g.sums = make([]byte, need)
	}
	h.step, h.total = stepSum, 4*uint64(n)
	frames, ready = make([][]byte, pieces), make([]chan struct{}, pieces)
	for p := range pieces {
		at := p * MaxFrame
		frames[p] = g.sums[at : at+HeaderLen+min(4*n-p*maxPayload, maxPayload)]
		h.put(frames[p])
		ready[p] = make(chan struct{})
	}
	return frames, ready
}

// collect receives member q's part of the chunk. It does not wait for sum, so that q is listened to, and its end
// noticed, while another member is late; what lies in parts is at most as much as the whole vector.
func (o *owner) collect(q int) bool {
	return o.recvMessage(q, stepGive, 4*len(o.x), func(payload []byte) { o.parts[q] <- payload })
}

// sum adds the pieces of all members in rank order, into x and the frames.
func (o *owner) sum() {
	const tile = 1024 // float64s that stay in the first-level cache over all members
	if o.acc == nil {
		o.acc = make([]float64, tile)
	}
	none := math.Copysign(0, -1) // adding to −0 changes nothing, not even the sign of a zero
	pieces, at := make([][]byte, o.size), 0
	for p, frame := range o.frames {
		for q, part := range o.parts {
			if part == nil {
				continue
			}
			select {
			case pieces[q] = <-part:
			case <-o.ctx.Done():
				o.stop()
				return
			}
		}
		sums := frame[HeaderLen:]
		mine := o.x[at : at+len(sums)/4]
		for lo := 0; lo < len(mine); lo += tile {
			hi := min(lo+tile, len(mine))
			acc := o.acc[:hi-lo]
			for i := range acc {
				acc[i] = none
			}
			for q, piece := range pieces {
				if q == o.rank {
					kernels.AddWide(mine[lo:hi], acc)
				} else {
					addFloats(acc, piece[4*lo:4*hi])
				}
			}
			for i, v := range acc {
				mine[lo+i] = float32(v)
			}
			putFloats(sums[4*lo:4*hi], mine[lo:hi])
		}
		close(o.ready[p])
		at += len(mine)
	}
}

// distribute sends the sums to member q.
func (o *owner) distribute(q int) {
	for p, frame := range o.frames {
		select {
		case <-o.ready[p]:
		case <-o.ctx.Done():
			o.stop()
			return
		}
		if !o.sendFrame(q, stepSum, frame) {
			return
		}
	}
}
