package comm

import (
	"context"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/kernels"
)

// starBelow is the length in floats under which a vector has one owner: its frames would be too many and too short.
// With manyMembers or more it has one owner for every ownerLeast floats: a single owner would send it to all of them in
// turn.
const (
	starBelow   = 4096
	manyMembers = 64
	ownerLeast  = 64
)

// The steps of a reduction, in the order in which a member sends them to another. The grid of a fixed-point sum is sent
// after its Meta.
const (
	stepMeta      uint8 = iota // a member's Meta, to every other
	stepGive                   // its part of a chunk of Update, to the chunk's owner
	stepGiveCount              // the same of Counts
	stepSum                    // the summed chunk of Update, from its owner
	stepSumCount               // the same of Counts
	stepGiveGrid               // Update's largest magnitudes by column, to their owner
	stepSumGrid                // their sums, from their owner
)

// AllReduce makes x the elementwise sum over the members: x₀ + x₁ + … in rank order in float64, rounded to float32
// once. The r-th chunk of x is summed by its owner, the r-th member, and distributed (a reduce-scatter and an
// all-gather by direct exchange; Thakur, Rabenseifner and Gropp 2005, §4), so that every member ends with the same bits
// whatever the transport, the size and the timing. Short vectors have one chunk, which the first member owns, or some.
//
// len(x) must agree between members. M members together send 2·4·len(x)·(M−1) bytes; an empty x sends nothing
// and does not wait.
func (g *Group) AllReduce(ctx context.Context, door Door, x []float32) error {
	_, err := g.reduce(ctx, door, &Contribution{Update: x})
	return err
}

// chunk returns the part of a vector of n floats that the member of a rank owns.
func (g *Group) chunk(n, rank int) (lo, hi int) {
	owners := g.owners(n)
	if rank >= owners {
		return n, n
	}
	// Quotient and remainder apart: rank·n may not fit where int has 32 bits.
	q, rem := n/owners, n%owners
	return rank*q + min(rank, rem), (rank+1)*q + min(rank+1, rem)
}

// owners returns how many members own a chunk of a vector of n floats: the first ones.
func (g *Group) owners(n int) int {
	switch {
	case n >= starBelow:
		return g.size
	case g.size >= manyMembers:
		return min(g.size, max(1, n/ownerLeast))
	}
	return 1
}

// reduce runs a reduction whose sums are counted under the traffic class door.
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
	var form *Fixed
	clear(part.Residual)
	if part.Bits != 0 && len(part.Update) > 0 {
		if form, err = part.Fixed(g.size); err != nil {
			err = g.breakWith(fmt.Errorf("%s: %w", c.name(), err)) // the others wait for what will not come
			c.end()
			return Reduced{}, err
		}
	}
	switch {
	case len(part.Update)+len(part.Counts) > 0:
		c.path = 2
	case len(part.Meta) == 0:
		c.path = 0
	}
	if g.size == 1 || len(part.Update)+len(part.Counts)+len(part.Meta) == 0 {
		return r, c.end()
	}
	check := part.Guard(c.size)
	counts := part.PackCounts(c.size)
	if form == nil {
		update := newSum(c, floatVector(part.Update), stepGive, stepSum)
		update.check = part.checkFloats()
		c.sumUp(part.Meta, r.Meta, update, c.sumCounts(part, counts))
	} else {
		c.sumFixed(part, form, r.Meta, counts)
		r.Error = form.Error()
	}
	part.TakeCounts(counts, c.size)
	if c.ctx.Err() == nil {
		if length, i, err := check(r.Error); err != nil {
			c.fail(c.owner(length, i), stepSum, "recv", err)
		}
	}
	return r, c.end()
}

// sumCounts returns the sum of part's Counts, as they are sent.
func (c *call) sumCounts(part *Contribution, counts Integers) *sum {
	s := newSum(c, counts, stepGiveCount, stepSumCount)
	s.check = part.checkCounts(c.size)
	return s
}

// owner returns who sums number i of a vector of n.
func (c *call) owner(n, i int) int {
	for q := range c.size {
		if lo, hi := c.chunk(n, q); i >= lo && i < hi {
			return q
		}
	}
	return c.rank
}

// sumFixed sums part, whose Update has this form, in fixed point.
func (c *call) sumFixed(part *Contribution, form *Fixed, meta [][]byte, counts Integers) {
	c.path = 4
	sums := slices.Clone(form.magnitudes)
	grid := newSum(c, floatVector(sums), stepGiveGrid, stepSumGrid)
	grid.check = part.checkGrid(form)
	c.sumUp(part.Meta, meta, grid)
	for q := range c.size {
		lo, hi := c.chunk(len(sums), q)
		for j := lo; j < hi && c.ctx.Err() == nil; j++ {
			if err := checkSum(sums[j], form.magnitudes[j]); err != nil {
				c.fail(q, stepSumGrid, "recv", err)
			}
		}
	}
	if c.ctx.Err() != nil {
		c.stop()
		return
	}
	if err := form.Agree(sums); err != nil { // all sums have been checked
		panic(err.Error())
	}
	packed := form.Integers()
	update := newSum(c, packed, stepGive, stepSum)
	update.check = part.checkFixed(form)
	update.ready = packed.ready(func(int, int, int) {})
	c.sumUp(nil, nil, update, c.sumCounts(part, counts))
}

// sumUp makes the vectors the sums over the members, and fills metas with the Meta of each if this member has meta. It
// returns when this member has nothing left to send or to receive.
func (c *call) sumUp(meta []byte, metas [][]byte, sums ...*sum) {
	for q := range c.others {
		given := make(chan struct{})
		c.tasks.Go(func() {
			if len(meta) > 0 && !c.sendBytes(q, stepMeta, meta) {
				return
			}
			for _, s := range sums {
				if !s.giveTo(q) {
					return
				}
			}
			close(given)
			for _, s := range sums {
				if !s.distribute(q) {
					return
				}
			}
		})
		c.tasks.Go(func() {
			if len(meta) > 0 {
				b := c.recvBytes(q, stepMeta, MaxMeta)
				if b == nil {
					return
				}
				metas[q] = b
			}
			for _, s := range sums {
				if !s.collect(q) {
					return
				}
			}
			for _, s := range sums {
				if !s.take(q, given) {
					return
				}
			}
		})
	}
	for _, s := range sums {
		if !s.sumChunk() {
			break
		}
	}
	c.tasks.Wait()
	for _, s := range sums {
		if s.ready != nil { // what the chunk's sums stand for
			s.put(s.lo, s.bytes(s.lo, s.hi))
		}
	}
}

// A vector is what the members sum, element by element.
type vector interface {
	shape() (n, width int)      // elements, and bytes that each of them is sent as
	bytes(lo, hi int) []byte    // elements lo, …, hi−1 as they are sent
	put(lo int, b []byte)       // b become the elements from lo on
	sum(lo int, terms [][]byte) // the elements from lo on become the sum of terms in their order (nil = of themselves)
}

// floatVector is summed in float64 and rounded once.
type floatVector []float32

func (x floatVector) shape() (n, width int)   { return len(x), 4 }
func (x floatVector) bytes(lo, hi int) []byte { return FloatBytes(x[lo:hi]) }
func (x floatVector) put(lo int, b []byte)    { copy(x[lo:], floats(b)) }
func (x floatVector) sum(lo int, terms [][]byte) {
	all, own := make([][]float32, len(terms)), 0
	for k, b := range terms {
		if b == nil {
			own = k
			continue
		}
		all[k] = floats(b)
		x = x[:lo+len(all[k])]
	}
	all[own] = x[lo:]
	kernels.SumWide(x[lo:], all)
}

// sum is a vector that is being summed. This member sums the chunk that it owns piece by piece, a
// piece being one frame, so that the first sums leave while the last contributions still arrive. It
// never waits for a task that sends: two owners would wait for each other.
type sum struct {
	*call
	vector
	give, done uint8 // steps: of the parts, of the sums
	// of the elements from at on that another member gives (nil = anything will do)
	check  func(at int, b []byte) error
	ready  func(to, lo, hi int) // makes elements lo, …, hi−1 what member `to` is to sum (nil = they are)
	lo, hi int                  // the chunk
	parts  []chan []byte        // frames of member q in turn, buffered for all (nil = no member, or this one)
	summed []chan struct{}      // closed when piece p of the chunk is the sum
}

func newSum(c *call, v vector, give, done uint8) *sum {
	n, width := v.shape()
	s := &sum{call: c, vector: v, give: give, done: done, parts: make([]chan []byte, c.size)}
	s.lo, s.hi = c.chunk(n, c.rank)
	s.summed = make([]chan struct{}, (width*(s.hi-s.lo)+maxPayload-1)/maxPayload)
	for p := range s.summed {
		s.summed[p] = make(chan struct{})
	}
	for q := range c.others {
		s.parts[q] = make(chan []byte, len(s.summed))
	}
	return s
}

// piece returns the elements that frame p of the chunk carries.
func (s *sum) piece(p int) (lo, hi int) {
	_, width := s.shape()
	lo = s.lo + p*(maxPayload/width)
	return lo, min(lo+maxPayload/width, s.hi)
}

// giveTo sends member q its chunk of this member's vector.
func (s *sum) giveTo(q int) bool {
	n, width := s.shape()
	lo, hi := s.chunk(n, q)
	if lo == hi {
		return true
	}
	head := s.head(s.give, width*(hi-lo))
	s.messages.Add(1)
	for step := maxPayload / width; lo < hi; lo += step {
		end := min(lo+step, hi)
		if s.ready != nil {
			s.ready(q, lo, end)
		}
		if !s.sendFrame(q, s.give, head, s.bytes(lo, end)) {
			return false
		}
	}
	return true
}

// collect receives member q's part of the chunk. It does not wait for sumChunk, so that q is
// listened to, and its end noticed, while another member is late; what is in parts is at most as
// much as the whole vector.
func (s *sum) collect(q int) bool {
	_, width := s.shape()
	at := s.lo
	return s.recvMessage(q, s.give, width*(s.hi-s.lo), func(frame []byte) error {
		if s.check != nil {
			if err := s.check(at, frame[HeaderLen:]); err != nil {
				return err
			}
		}
		at += (len(frame) - HeaderLen) / width
		s.parts[q] <- frame
		return nil
	})
}

// take receives member q's sums. It listens at once, and writes them when given is closed: from then on nobody reads
// what they overwrite.
func (s *sum) take(q int, given chan struct{}) bool {
	n, width := s.shape()
	lo, hi := s.chunk(n, q)
	return s.recvMessage(q, s.done, width*(hi-lo), func(frame []byte) error {
		select {
		case <-given:
		case <-s.ctx.Done():
			return contextError(s.ctx)
		}
		s.put(lo, frame[HeaderLen:])
		lo += (len(frame) - HeaderLen) / width
		s.t.Free(frame)
		return nil
	})
}

// sumChunk makes each piece of the chunk the sum over all members, in rank order.
func (s *sum) sumChunk() bool {
	frames, terms := make([][]byte, s.size), make([][]byte, s.size)
	for p := range s.summed {
		for q := range s.size {
			if q == s.rank {
				continue
			}
			select {
			case frames[q] = <-s.parts[q]:
				terms[q] = frames[q][HeaderLen:]
			case <-s.ctx.Done():
				s.stop()
				return false
			}
		}
		lo, hi := s.piece(p)
		if s.ready != nil {
			s.ready(s.rank, lo, hi)
		}
		s.sum(lo, terms)
		close(s.summed[p])
		for _, frame := range frames {
			if frame != nil {
				s.t.Free(frame)
			}
		}
	}
	return true
}

// distribute sends the sums to member q.
func (s *sum) distribute(q int) bool {
	_, width := s.shape()
	head := s.head(s.done, width*(s.hi-s.lo))
	if s.lo < s.hi {
		s.messages.Add(1)
	}
	for p := range s.summed {
		select {
		case <-s.summed[p]:
		case <-s.ctx.Done():
			s.stop()
			return false
		}
		if !s.sendFrame(q, s.done, head, s.bytes(s.piece(p))) {
			return false
		}
	}
	return true
}
