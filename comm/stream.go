package comm

import (
	"context"
	"fmt"
	"sync"
)

// Lane is one message between this member and every peer, each way. The lengths are agreed beforehand, as in Exchange.
type Lane struct {
	Out, In []int // [Size] bytes to and from each peer, multiples of Unit (0 = no message)
	Unit    int   // bytes that no frame cuts; at most MaxUnit
	Packed  bool  // a frame may carry fewer bytes than the piece that it represents, where Fill and Take know how
	// Fill returns the bytes at, at+1, …, at+len(dst)−1 of the message to a peer: dst or, if Packed, what represents
	// them. Take is lent the bytes at, …, at+n−1 of the message from a peer, or what represents them; it may write to
	// them. The pieces of a message come in order, pieces of different peers at the same time, from goroutines of the
	// Stream.
	Fill func(to, at int, dst []byte) []byte
	Take func(from, at, n int, src []byte) error
}

// MaxUnit is the longest Unit of a Lane.
const MaxUnit = maxPayload

// piece returns how many bytes of a message go into one frame: as many whole units as there is space for.
func (l *Lane) piece() int { return maxPayload / l.Unit * l.Unit }

// Stream is a running operation of messages that are sent point to point, piece by piece. A message leaves when its
// receiver has asked for it and its sender has given it, so that neither side has more than it has space for; and as
// every member always listens, waiting for one message never keeps another from arriving.
type Stream struct {
	*call
	lanes    []Lane
	peers    []streamPeer
	arrived  []chan int // [lane] peers whose message is complete
	departed []chan int // [lane] peers to whom the message has been sent

	counting sync.Mutex
	come     int64 // messages on the longest path to the caller, requests among them; path is that to any message
}

// streamPeer is the state of the messages to and from one peer, by lane.
type streamPeer struct {
	sending  sync.Mutex      // one frame at a time
	asked    []chan struct{} // closed when the peer asks for its message
	given    []chan struct{} // closed by Give
	taken    []chan struct{} // closed when the peer's message is complete
	mu       sync.Mutex
	askedFor []bool  // by this member
	trips    []int64 // messages on the path to the peer's, by lane
	piece    []byte
}

// Stream begins an operation with the given lanes, at most 127. It ends with End, which every member must call.
func (g *Group) Stream(ctx context.Context, door Door, what string, lanes ...Lane) (*Stream, error) {
	for l, lane := range lanes {
		if len(lane.Out) != g.size || len(lane.In) != g.size || lane.Out[g.rank] != 0 || lane.In[g.rank] != 0 {
			panic(fmt.Sprintf("comm: Stream %s, lane %d: there must be %d lengths, 0 at %d", what, l, g.size, g.rank))
		}
		if lane.Unit < 1 || lane.Unit > MaxUnit {
			panic(fmt.Sprintf("comm: Stream %s, lane %d: a unit must have 1 to %d bytes (got %d)",
				what, l, MaxUnit, lane.Unit))
		}
	}
	if err := g.allowed(door, what, func(q int) (n int) {
		for _, lane := range lanes {
			n += lane.Out[q]
		}
		return n
	}); err != nil {
		return nil, err
	}
	c, err := g.begin(ctx, opStream, door, what)
	if err != nil {
		return nil, err
	}
	c.path = 0
	s := &Stream{call: c, lanes: lanes, peers: make([]streamPeer, g.size)}
	for range lanes {
		s.arrived, s.departed = append(s.arrived, make(chan int, g.size)), append(s.departed, make(chan int, g.size))
	}
	for q := range s.peers {
		p, frames := &s.peers[q], 0
		p.askedFor, p.trips = make([]bool, len(lanes)), make([]int64, len(lanes))
		for _, lane := range lanes {
			p.asked = append(p.asked, make(chan struct{}))
			p.given = append(p.given, make(chan struct{}))
			p.taken = append(p.taken, make(chan struct{}))
			frames += min(lane.Out[q], 1) + (lane.In[q]+lane.piece()-1)/lane.piece()
		}
		if frames > 0 {
			c.tasks.Go(func() { s.listen(q, frames) })
		}
		for l, lane := range lanes {
			if lane.Out[q] > 0 {
				c.path = 1 // its request
				c.tasks.Go(func() { s.send(l, q) })
			}
		}
	}
	return s, nil
}

// A frame of lane l has step 2l if it asks for a message, and 2l+1 if it carries a piece of one.

// Give lets the message to a peer leave: from now on Fill is called for it.
func (s *Stream) Give(lane, to int) { close(s.peers[to].given[lane]) }

// Ask asks a peer for its message: from now on Take is called for it.
func (s *Stream) Ask(lane, from int) {
	if s.lanes[lane].In[from] > 0 {
		s.counting.Lock()
		s.request(lane, from, s.come)
		s.counting.Unlock()
		s.tasks.Go(func() { s.ask(lane, from) })
	}
}

// AskInTurn asks the given peers one after another, each when the message of the one before is complete.
func (s *Stream) AskInTurn(lane int, from []int) {
	s.counting.Lock()
	after := s.come
	for _, q := range from {
		if s.lanes[lane].In[q] > 0 {
			after = s.request(lane, q, after)
		}
	}
	s.counting.Unlock()
	s.tasks.Go(func() {
		for _, q := range from {
			if s.lanes[lane].In[q] > 0 && !(s.ask(lane, q) && s.wait(s.peers[q].taken[lane])) {
				return
			}
		}
	})
}

// request notes that a peer's message follows its request, behind `after` messages, and returns the new number.
func (s *Stream) request(lane, from int, after int64) int64 {
	s.peers[from].trips[lane] = after + 2
	s.path = max(s.path, after+2)
	return after + 2
}

// Next waits for the next complete message of a lane and returns its sender; ok is false if the operation has failed.
func (s *Stream) Next(lane int) (from int, ok bool) {
	from, ok = s.next(s.arrived[lane])
	if ok {
		s.counting.Lock()
		s.come = max(s.come, s.peers[from].trips[lane])
		s.counting.Unlock()
	}
	return from, ok
}

// Sent waits until the next message of a lane has been sent and returns its receiver; ok is false if the operation has
// failed.
func (s *Stream) Sent(lane int) (to int, ok bool) { return s.next(s.departed[lane]) }

// End waits until every message has been sent and taken, and returns the first cause if the operation has failed.
func (s *Stream) End() error { return s.call.end() }

func (s *Stream) next(done chan int) (int, bool) {
	select {
	case q := <-done:
		return q, true
	default:
	}
	select {
	case q := <-done:
		return q, true
	case <-s.ctx.Done():
		s.stop()
		return 0, false
	}
}

func (s *Stream) wait(gate chan struct{}) bool {
	select {
	case <-gate:
		return true
	case <-s.ctx.Done():
		s.stop()
		return false
	}
}

func (s *Stream) ask(lane, from int) bool {
	p := &s.peers[from]
	p.mu.Lock()
	p.askedFor[lane] = true
	p.mu.Unlock()
	p.sending.Lock()
	defer p.sending.Unlock()
	return s.sendBytes(from, uint8(2*lane), nil)
}

func (s *Stream) send(lane, to int) {
	p := &s.peers[to]
	if !s.wait(p.asked[lane]) || !s.wait(p.given[lane]) {
		return
	}
	n, piece := s.lanes[lane].Out[to], s.lanes[lane].piece()
	for at := 0; at < n; at += piece {
		if !s.sendPiece(p, lane, to, at, min(n-at, piece)) {
			return
		}
	}
	s.departed[lane] <- to
}

func (s *Stream) sendPiece(p *streamPeer, lane, to, at, n int) bool {
	p.sending.Lock()
	defer p.sending.Unlock()
	if at == 0 {
		s.messages.Add(1)
	}
	if len(p.piece) < n {
		p.piece = make([]byte, n)
	}
	return s.sendFrames(to, uint8(2*lane+1), s.lanes[lane].Fill(to, at, p.piece[:n]))
}

// listen receives `frames` frames from a peer.
func (s *Stream) listen(from, frames int) {
	p, at := &s.peers[from], make([]int, len(s.lanes))
	for range frames {
		h, frame, err := s.recvAny(from)
		if err == nil {
			err = s.take(p, from, at, h, frame[HeaderLen:])
		}
		if err != nil {
			s.fail(from, h.step, "recv", err)
			return
		}
		s.t.Free(frame)
	}
}

// take handles a frame of peer p; at is how far the message of each lane has come.
func (s *Stream) take(p *streamPeer, from int, at []int, h header, payload []byte) error {
	lane := int(h.step / 2)
	if want := (header{s.op, s.door, h.step, s.seq, uint64(len(payload))}); h != want || lane >= len(s.lanes) {
		return fmt.Errorf("the frame must be of %v %d by %v, one of %d lanes (got %v)",
			s.op, s.header.seq, s.door, len(s.lanes), h)
	}
	if h.step%2 == 0 {
		if len(payload) > 0 || s.lanes[lane].Out[from] == 0 || closed(p.asked[lane]) {
			return fmt.Errorf("a request of %d bytes for message %d, which does not exist or was requested before",
				len(payload), lane)
		}
		close(p.asked[lane])
		return nil
	}
	p.mu.Lock()
	expected := p.askedFor[lane]
	p.mu.Unlock()
	l := &s.lanes[lane]
	n := min(l.In[from]-at[lane], l.piece())
	if !expected || n <= 0 || len(payload) != n && !(l.Packed && len(payload) > 0 && len(payload) < n) {
		return fmt.Errorf("message %d must have %d bytes (got %d; requested: %t)",
			lane, max(n, 0), len(payload), expected)
	}
	if err := l.Take(from, at[lane], n, payload); err != nil {
		return fmt.Errorf("message %d: %w", lane, err)
	}
	if at[lane] += n; at[lane] == l.In[from] {
		close(p.taken[lane])
		s.arrived[lane] <- from
	}
	return nil
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
