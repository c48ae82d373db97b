package comm

import (
	"context"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/kernels"
)

// starBelow is the length in floats under which a vector has one owner: its frames would be too many and too short.
const starBelow = 4096

// The steps of a reduction, in the order in which a member sends them to another.
const (
	stepMeta      uint8 = iota // a member's Meta, to every other
	stepGive                   // its part of a chunk of Update, to the chunk's owner
	stepGiveCount              // the same of Counts
	stepSum                    // the summed chunk of Update, from its owner
	stepSumCount               // the same of Counts
)

// AllReduce makes x the elementwise sum over the members: x₀ + x₁ + … in rank order in float64, rounded to float32
// once. The r-th chunk of x is summed by its owner, the r-th member, and distributed (a reduce-scatter and an all-gather
// by direct exchange; Thakur, Rabenseifner and Gropp 2005, §4), so that every member ends with the same bits whatever
// the transport, the size and the timing. Short vectors have one chunk, which the first member owns.
//
// len(x) must agree between members. M members together send 2·4·len(x)·(M−1) bytes; an empty x sends nothing
// and does not wait.
func (g *Group) AllReduce(ctx context.Context, door Door, x []float32) error {
	_, err := g.reduce(ctx, door, &Contribution{Update: x})
	return err
}

// chunk returns the part of a vector of n floats that the member of a rank owns.
func (g *Group) chunk(n, rank int) (lo, hi int) {
	r := slices.Index(g.members, rank)
	if n < starBelow {
		if r == 0 {
			return 0, n
		}
		return n, n
	}
	// Quotient and remainder apart: r·n may not fit where int has 32 bits.
	q, rem := n/len(g.members), n%len(g.members)
	return r*q + min(r, rem), (r+1)*q + min(r+1, rem)
}

// reduce runs a reduction whose sums leave by door.
func (g *Group) reduce(ctx context.Context, door Door, part *Contribution) (Reduced, error) {
	c, err := g.begin(ctx, opAllReduce, door, "")
	if err != nil {
		return Reduced{}, err
	}
	c.id = part.ID
	r := Reduced{Meta: make([][]byte, g.size)}
	if len(part.Meta) > 0 {
		r.Meta[g.rank] = part.Meta
	}
	if len(g.members) == 1 || len(part.Update)+len(part.Counts)+len(part.Meta) == 0 {
		return r, c.end()
	}
	lo, hi := g.chunk(len(part.Update), g.rank)
	own := newOwner(c, part.Update[lo:hi])
	lo, hi = g.chunk(len(part.Counts), g.rank)
	counts := newCounter(c, part.Counts[lo:hi])
	for q := range g.others {
		lo, hi := g.chunk(len(part.Update), q)
		theirs, given := part.Update[lo:hi], make(chan struct{})
		lo, hi = g.chunk(len(part.Counts), q)
		theirCounts := part.Counts[lo:hi]
		c.tasks.Go(func() {
			if len(part.Meta) > 0 && !c.sendBytes(q, stepMeta, part.Meta) {
				return
			}
			if !c.sendFloats(q, stepGive, theirs) || !c.sendInts(q, stepGiveCount, theirCounts) {
				return
			}
			close(given)
			if own.distribute(q) {
				counts.distribute(q)
			}
		})
		c.tasks.Go(func() {
			if len(part.Meta) > 0 {
				b := c.recvBytes(q, stepMeta, MaxMeta)
				if b == nil {
					return
				}
				r.Meta[q] = b
			}
			if !own.collect(q) || !counts.collect(q) {
				return
			}
			select {
			case <-given: // from here on nobody reads theirs, and the sum may overwrite it
			case <-c.ctx.Done():
				c.stop()
				return
			}
			if c.recvFloats(q, stepSum, theirs) {
				c.recvInts(q, stepSumCount, theirCounts)
			}
		})
	}
	own.sum()
	return r, c.end()
}

// counter sums this member's chunk of Counts.
type counter struct {
	*call
	x     []int64
	mu    sync.Mutex
	left  int           // members whose part is not in x
	ready chan struct{} // closed when x is the sum
}

func newCounter(c *call, x []int64) *counter {
	return &counter{call: c, x: x, left: len(c.members) - 1, ready: make(chan struct{})}
}

// collect adds member q's part of the chunk.
func (o *counter) collect(q int) bool {
	if len(o.x) == 0 {
		return true
	}
	part := make([]int64, len(o.x))
	if !o.recvInts(q, stepGiveCount, part) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, v := range part {
		o.x[i] += v
	}
	if o.left--; o.left == 0 {
		close(o.ready)
	}
	return true
}

// distribute sends the sums to member q.
func (o *counter) distribute(q int) {
	if len(o.x) == 0 {
		return
	}
	select {
	case <-o.ready:
		o.sendInts(q, stepSumCount, o.x)
	case <-o.ctx.Done():
		o.stop()
	}
}

// owner sums this member's chunk piece by piece, a piece being one frame, so that the first sums leave while the last
// contributions still arrive. It never waits for a task that sends: two owners would wait for each other.
type owner struct {
	*call
	x     []float32
	parts []chan []byte   // frames of member q in turn, buffered for all; nil: no member, or this one
	ready []chan struct{} // closed when piece p of x is the sum
}

func newOwner(c *call, x []float32) *owner {
	frames := (4*len(x) + maxPayload - 1) / maxPayload
	o := &owner{call: c, x: x, parts: make([]chan []byte, c.size), ready: make([]chan struct{}, frames)}
	for p := range o.ready {
		o.ready[p] = make(chan struct{})
	}
	for q := range c.others {
		o.parts[q] = make(chan []byte, len(o.ready))
	}
	return o
}

// piece returns the part of the chunk that one frame carries.
func (o *owner) piece(p int) []float32 {
	lo := p * maxPayload / 4
	return o.x[lo:min(lo+maxPayload/4, len(o.x))]
}

// collect receives member q's part of the chunk. It does not wait for sum, so that q is listened to, and its end
// noticed, while another member is late; what lies in parts is at most as much as the whole vector.
func (o *owner) collect(q int) bool {
	return o.recvMessage(q, stepGive, 4*len(o.x), func(frame []byte) { o.parts[q] <- frame })
}

// sum makes each piece of x the sum over all members, in rank order.
func (o *owner) sum() {
	frames, terms := make([][]byte, len(o.members)), make([][]float32, len(o.members))
	for p := range o.ready {
		x := o.piece(p)
		for k, q := range o.members {
			if q == o.rank {
				terms[k] = x
				continue
			}
			select {
			case frames[k] = <-o.parts[q]:
				terms[k] = floats(frames[k][HeaderLen:])
			case <-o.ctx.Done():
				o.stop()
				return
			}
		}
		kernels.SumWide(x, terms)
		close(o.ready[p])
		for k, frame := range frames {
			if o.members[k] != o.rank {
				o.t.Free(frame)
			}
		}
	}
}

// distribute sends the sums to member q.
func (o *owner) distribute(q int) bool {
	head := o.head(stepSum, 4*len(o.x))
	for p := range o.ready {
		select {
		case <-o.ready[p]:
		case <-o.ctx.Done():
			o.stop()
			return false
		}
		if !o.sendFrame(q, stepSum, head, floatBytes(o.piece(p))) {
			return false
		}
	}
	return true
}
