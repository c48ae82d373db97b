package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is the error of a call on a Group or a Transport that its own owner has closed.
var ErrClosed = errors.New("closed")

// Group is a fixed set of members that run the same operations in the same order. One operation runs at a time:
// the caller serialises calls, and a second call while one runs is a bug that panics. Bytes and Close may be called
// at any time.
//
// An operation ends with no goroutine left behind. Its error is the first cause: a *PeerError naming the member at
// fault, the context's error naming the members still waited for, or ErrClosed. The buffers of a failed operation
// hold anything; the Group is broken and every later call returns the same error.
type Group struct {
	t          Transport
	rank, size int
	calls      uint32 // so far; the sequence number of the running one
	busy       atomic.Bool
	sent       [numDoors]atomic.Int64
	messages   atomic.Int64
	trips      atomic.Int64
	spent      atomic.Int64 // nanoseconds
	dup        atomic.Pointer[Group]
	patience   time.Duration // of LimitSilence (0 = without bound)
	approval   Approval      // of Group.Under (nil = everything may be sent)

	mu    sync.Mutex
	err   error    // the first error: what every later call returns
	heard []ending // refusals that were received: an operation ends with the first
}

// Load is what a run needs of its network.
type Load struct {
	Busy  time.Duration // of computation: what it takes without any network
	Trips int64         // messages that follow one another
	Bytes int64         // sent by the peer that sends most
}

// Counts is how many bytes one member has sent: the payload under its operation's class, frame headers under Control.
type Counts struct {
	Halo    int64 `json:"halo"`    // rows
	Reduce  int64 `json:"reduce"`  // updates and counts
	Control int64 `json:"control"` // headers, fingerprints, barriers
}

// Plus returns the sum of c and d, class by class.
func (c Counts) Plus(d Counts) Counts {
	return Counts{Halo: c.Halo + d.Halo, Reduce: c.Reduce + d.Reduce, Control: c.Control + d.Control}
}

// Total returns all bytes of c.
func (c Counts) Total() int64 { return c.Halo + c.Reduce + c.Control }

// NewGroup returns member rank of the size members that t connects. The Group owns t and closes it.
func NewGroup(t Transport, rank, size int) *Group {
	if size < 1 || rank < 0 || rank >= size {
		panic(fmt.Sprintf("comm: NewGroup: rank %d of %d members", rank, size))
	}
	return &Group{t: t, rank: rank, size: size}
}

// Rank returns this member's number, in [0, Size).
func (g *Group) Rank() int { return g.rank }

// Size returns how many members there are, this one included.
func (g *Group) Size() int { return g.size }

// LimitSilence sets after how long an operation ends if no frame is sent or received (0 = never). The error is
// ErrSilent in a *PeerError of a member that this one waits for, since a member may stay connected and send nothing.
// The first member waits d, all others 1.5·d. Call it before the first operation.
func (g *Group) LimitSilence(d time.Duration) { g.patience = d }

// Approval decides on what a member may send. Its errors end the operation before anything is sent.
type Approval interface {
	// Rows decides on an Exchange, SendRecv or Stream, by the bytes of the message to each member.
	Rows(door Door, what string, bytes func(q int) int) error
	Sum(c *Contribution) error
}

// Under lets a decide on every Exchange, SendRecv, Stream and Reduce of g (nil = all are allowed). It is to be called
// before the first operation.
func (g *Group) Under(a Approval) { g.approval = a }

// Allow returns an error unless c may be summed. Reduce asks; a Reducer that sums in another way does.
func (g *Group) Allow(c *Contribution) error {
	if g.approval == nil || c.Allowed {
		return nil
	}
	return g.approval.Sum(c)
}

// allowed asks about rows.
func (g *Group) allowed(door Door, what string, bytes func(q int) int) error {
	if g.approval == nil || g.size == 1 {
		return nil
	}
	return g.approval.Rows(door, what, bytes)
}

// ErrSilent is why an operation ends in which a member kept its connection and sent nothing.
var ErrSilent = errors.New("no progress")

// others yields the ranks of the other members.
func (g *Group) others(yield func(q int) bool) {
	for q := range g.size {
		if q != g.rank && !yield(q) {
			return
		}
	}
}

// Bytes returns what this member has sent so far.
func (g *Group) Bytes() Counts {
	c := Counts{g.sent[Halo].Load(), g.sent[Reduce].Load(), g.sent[Control].Load()}
	if dup := g.dup.Load(); dup != nil {
		b := dup.Bytes()
		c.Halo, c.Reduce, c.Control = c.Halo+b.Halo, c.Reduce+b.Reduce, c.Control+b.Control
	}
	return c
}

// Messages returns how many messages this member has sent, each to one other member.
func (g *Group) Messages() int64 {
	n := g.messages.Load()
	if dup := g.dup.Load(); dup != nil {
		n += dup.Messages()
	}
	return n
}

// Waits returns the number of messages on the longest path through this member's calls, and how long the calls took. If
// a message takes L, the calls take trips·L and the time for the bytes. A sum counts as two (the parts to the member
// that sums, and the sum from there), one in fixed point as four, one of only Meta as one. A Stream counts as two, a
// request and its answer, for each message that was requested after another had come. A call in which this member
// neither sends nor receives counts as none, any other as one. Calls of the group that Dup returned run in parallel and
// do not count.
func (g *Group) Waits() (trips int64, spent time.Duration) {
	return g.trips.Load(), time.Duration(g.spent.Load())
}

// Close closes the transport. A running call ends with ErrClosed, as does every later one.
func (g *Group) Close() error {
	g.breakWith(ErrClosed)
	return g.t.Close()
}

// breakWith keeps the first error and returns it.
func (g *Group) breakWith(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
	}
	return g.err
}

// call is one running operation: a task a peer and direction, and the first thing that went wrong.
type call struct {
	*Group
	header          // of every frame, except step and total
	what   string   // the caller's name for it
	id     ReduceID // the same of a reduction
	begun  time.Time
	parent context.Context
	ctx    context.Context // ends with the first failure
	cancel context.CancelFunc
	frames context.Context // for sending: it ends a little later than ctx, see finishFrames
	done   func()          // ends both
	tasks  sync.WaitGroup
	moved  atomic.Int64  // when a frame came or went last, nanoseconds after begun
	limit  time.Duration // of silence
	watch  *time.Timer   // for it (nil = without bound)
	path   int64         // messages that follow one another in it

	mu      sync.Mutex
	cause   error  // the first
	lost    bool   // cause is the loss of a member, reported by the transport or another member; else it is a refusal
	silent  bool   // it ends since no frame came or went
	stopped bool   // some task gave up because ctx ended
	waits   []wait // for whom, when the parent ended
}

type wait struct {
	step uint8
	peer int
}

func (g *Group) begin(ctx context.Context, op op, door Door, what string) (*call, error) {
	if door >= numDoors {
		panic(fmt.Sprintf("comm: %v: door %d", op, door))
	}
	if !g.busy.CompareAndSwap(false, true) {
		panic(fmt.Sprintf("comm: %v called while another operation runs", op))
	}
	g.mu.Lock()
	err := g.err
	g.mu.Unlock()
	if err == nil && ctx.Err() != nil {
		err = g.breakWith(fmt.Errorf("%v %s: not begun: %w", op, what, contextError(ctx)))
	}
	if err != nil {
		g.busy.Store(false)
		return nil, err
	}
	g.calls++
	c := &call{Group: g, header: header{op: op, door: door, seq: g.calls}, what: what, begun: time.Now(), parent: ctx,
		path: 1}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.finishFrames()
	if g.patience > 0 && g.size > 1 {
		c.limit = g.patience
		if g.rank != 0 { // the member that sums a short vector knows who is late: the others give it time to report it
			c.limit += g.patience / 2
		}
		c.mu.Lock()
		c.watch = time.AfterFunc(c.limit, c.look)
		c.mu.Unlock()
	}
	return c, nil
}

// finishFrames gives frames that are half sent lastWords to be sent whole when the call fails, unless the caller gave
// up. Half a frame breaks the connection, and then the other members cannot hear why this one ends the run.
func (c *call) finishFrames() {
	if c.frames, c.done = c.ctx, c.cancel; c.size == 1 {
		return
	}
	frames, stop := context.WithCancel(context.WithoutCancel(c.parent))
	release := context.AfterFunc(c.ctx, func() {
		if c.parent.Err() == nil {
			select {
			case <-frames.Done():
			case <-time.After(lastWords):
			}
		}
		stop()
	})
	cancel := c.cancel
	c.frames, c.done = frames, func() {
		release()
		stop()
		cancel()
	}
}

// look ends the call if nothing has moved for too long, and looks again later if something has.
func (c *call) look() {
	left := c.limit - (time.Since(c.begun) - time.Duration(c.moved.Load()))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil:
	case left > 0:
		c.watch.Reset(left)
	default:
		c.silent = true
		c.cancel()
	}
}

// move notes that a frame came or went.
func (c *call) move() { c.moved.Store(int64(time.Since(c.begun))) }

// end waits for the call's tasks and returns the first cause of its failure.
func (c *call) end() error {
	c.tasks.Wait()
	c.done()
	if c.watch != nil {
		c.watch.Stop()
	}
	if c.size > 1 {
		c.trips.Add(c.path)
	}
	c.spent.Add(int64(time.Since(c.begun)))
	defer c.busy.Store(false)
	switch {
	case c.cause == nil && !c.stopped:
		return nil
	case c.cause == nil:
		c.cause = c.interrupted()
	case !errors.Is(c.cause, ErrClosed) && !c.lost:
		return c.settle(c.parent, c.cause)
	}
	if at, ok := errors.AsType[*PeerError](c.cause); ok && (c.lost || c.silent) && at.Rank != c.rank {
		c.tellLost(c.parent, at)
	}
	return c.breakWith(c.cause)
}

// name states what was being done, for errors.
func (c *call) name() string {
	switch {
	case c.id != (ReduceID{}):
		return fmt.Sprintf("%v %d (%v)", c.op, c.seq, c.id)
	case c.what != "":
		return fmt.Sprintf("%v %d (%s)", c.op, c.seq, c.what)
	}
	return fmt.Sprintf("%v %d", c.op, c.seq)
}

// fail notes that a task's dealing with a peer failed at a step, and stops the other tasks.
func (c *call) fail(peer int, step uint8, doing string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	if c.ctx.Err() != nil { // not the peer's fault: the caller's context ended
		c.stopped = true
		if doing == "recv" {
			c.waits = append(c.waits, wait{step, peer})
		}
		return
	}
	defer c.cancel()
	fault := &PeerError{Rank: peer, Op: c.name() + ": " + doing, Err: err}
	inner, ofTransport := errors.AsType[*PeerError](err)
	told, ended := errors.AsType[ending](err)
	switch c.cause = fault; {
	case ofTransport: // it knows names, and may know better who it was
		c.lost = !errors.Is(err, ErrRefused)
		fault.Rank, fault.Name, fault.Err, fault.lost = inner.Rank, inner.Name, inner.Err, c.lost
	case errors.Is(err, ErrClosed): // by this side: no peer is to blame
		c.cause = fmt.Errorf("%s: %s: %w", c.name(), doing, err)
	case ended && told.by >= 0:
		c.cause = told
	case doing == "send": // the transport would name the peer
		fault.Rank = c.rank
	}
}

// stop notes that a task gave up because the call's context ended.
func (c *call) stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
}

// interrupted is the error of a call whose context ended: whom this member was waiting for, at the earliest step that
// was not done, since a peer in a later step waits for others itself.
func (c *call) interrupted() error {
	err := contextError(c.parent)
	if c.silent {
		err = fmt.Errorf("%w for %v", ErrSilent, c.limit)
	}
	if len(c.waits) == 0 {
		return fmt.Errorf("%s: %w", c.name(), err)
	}
	first := slices.MinFunc(c.waits, func(a, b wait) int { return int(a.step) - int(b.step) }).step
	var late []int
	for q := range c.size {
		if slices.Contains(c.waits, wait{first, q}) {
			late = append(late, q)
		}
	}
	list := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(late), "[]")), ", ")
	doing := fmt.Sprintf("%s: still waiting for %s", c.name(), list)
	if c.silent || errors.Is(err, context.DeadlineExceeded) {
		return &PeerError{Rank: late[0], Op: doing, Err: err, lost: true}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// contextError is the error of a context that has ended and, if it adds something, its cause.
func contextError(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return context.Cause(ctx)
}

// doorOf returns the traffic class under which the frames of a step are counted.
func (c *call) doorOf(step uint8) Door {
	if c.op == opAllReduce && step == stepMeta {
		return Control
	}
	return c.door
}

// head returns the header of every frame of a message of total bytes.
func (c *call) head(step uint8, total int) []byte {
	h := c.header
	h.door, h.step, h.total = c.doorOf(step), step, uint64(total)
	b := make([]byte, HeaderLen)
	h.put(b)
	return b
}

// lastWords is how long what a peer sent before it left may take to be read.
const lastWords = 200 * time.Millisecond

// sendFrame sends one frame and counts it.
func (c *call) sendFrame(to int, step uint8, head, payload []byte) bool {
	if err := c.t.Send(c.frames, to, head, payload); err != nil {
		select { // the peer may have said why it left
		case <-c.ctx.Done():
		case <-time.After(lastWords):
		}
		c.fail(to, step, "send", err)
		return false
	}
	c.move()
	c.Group.sent[c.doorOf(step)].Add(int64(len(payload)))
	c.Group.sent[Control].Add(HeaderLen)
	return true
}

// sendFloats sends x as one message.
func (c *call) sendFloats(to int, step uint8, x []float32) bool {
	return len(x) == 0 || c.sendBytes(to, step, FloatBytes(x))
}

// sendBytes sends b as one message, which is one frame even when b is empty.
func (c *call) sendBytes(to int, step uint8, b []byte) bool {
	c.messages.Add(1)
	return c.sendFrames(to, step, b)
}

func (c *call) sendFrames(to int, step uint8, b []byte) bool {
	head := c.head(step, len(b))
	for {
		n := min(len(b), maxPayload)
		if !c.sendFrame(to, step, head, b[:n]) {
			return false
		}
		if b = b[n:]; len(b) == 0 {
			return true
		}
	}
}

// recvFrame receives a frame and checks that it belongs to this step of this operation. Its payload is behind the
// header.
func (c *call) recvFrame(from int, step uint8) (h header, frame []byte, ok bool) {
	h, frame, err := c.recvAny(from)
	if want := (header{c.op, c.doorOf(step), step, c.seq, h.total}); err == nil && h != want {
		err = fmt.Errorf("the frame must be of %v %d by %v, step %d (got %v)",
			want.op, want.seq, want.door, want.step, h)
	}
	if err != nil {
		c.fail(from, step, "recv", err)
		return h, nil, false
	}
	return h, frame, true
}

// recvAny receives a frame of any kind but those which end the run.
func (c *call) recvAny(from int) (h header, frame []byte, err error) {
	frame, err = c.t.Recv(c.ctx, from)
	c.move()
	if err == nil {
		h, _, err = parseFrame(frame)
	}
	if err == nil && h.ends() {
		err = c.parseEnding(from, h.op, frame[HeaderLen:])
	}
	return h, frame, err
}

// recvMessage receives a message of total bytes, frame by frame, and of none when total is 0. The
// frames belong to take, which frees them; its error is the peer's fault.
func (c *call) recvMessage(from int, step uint8, total int, take func(frame []byte) error) bool {
	for done := 0; done < total; {
		h, frame, ok := c.recvFrame(from, step)
		if !ok {
			return false
		}
		want := min(total-done, maxPayload)
		switch {
		case h.total != uint64(total):
			c.fail(from, step, "recv", fmt.Errorf("the message must have %d bytes (got %d)", total, h.total))
			return false
		case len(frame)-HeaderLen != want:
			c.fail(from, step, "recv", fmt.Errorf("the frame must have %d bytes (got %d)", want, len(frame)-HeaderLen))
			return false
		}
		if err := take(frame); err != nil {
			c.fail(from, step, "recv", err)
			return false
		}
		done += want
	}
	return true
}

// recvFloats receives one message into x.
func (c *call) recvFloats(from int, step uint8, x []float32) bool {
	return c.recvMessage(from, step, 4*len(x), func(frame []byte) error {
		n := (len(frame) - HeaderLen) / 4
		copy(x, floats(frame[HeaderLen:]))
		c.t.Free(frame)
		x = x[n:]
		return nil
	})
}
