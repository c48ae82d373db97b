// Package recorded has attacks on runs of all members in this process. One member recorded what it received: the bytes
// (Record), the plan and the model. The truth only scores them.
package recorded

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/comm"
)

// Record keeps what one member receives and sends, as its transport carries it. The attacks read nothing
// else of a run. Several goroutines may use it.
type Record struct {
	mu       sync.Mutex
	from, to map[lane]*message // the message at hand
	got, put []Message
	fault    error
}

// Message is one whole message of a peer, without its frames' headers.
type Message struct {
	Peer int
	comm.Frame
}

// lane is a sequence of frames: a peer's messages of its two groups may alternate.
type lane struct {
	peer int
	dup  bool
	step uint8
}

// message is a message that still lacks frames.
type message struct {
	frame comm.Frame
	open  bool
}

// Over returns t; r keeps every frame of it from now on.
func (r *Record) Over(t comm.Transport) comm.Transport {
	r.from, r.to = make(map[lane]*message), make(map[lane]*message)
	return recorded{t, r}
}

// Received returns all messages from peer of a traffic class, in their order.
func (r *Record) Received(peer int, door comm.Door) []Message { return r.of(&r.got, peer, door) }

// Sent returns all messages to peer of a traffic class, in their order.
func (r *Record) Sent(peer int, door comm.Door) []Message { return r.of(&r.put, peer, door) }

func (r *Record) of(all *[]Message, peer int, door comm.Door) (of []Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range *all {
		if m.Peer == peer && m.Door == door {
			of = append(of, m)
		}
	}
	return of
}

// Err returns why a frame could not be read, or nil.
func (r *Record) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

// take adds a frame to the messages of a peer, which begin and end with the frames' own totals.
func (r *Record) take(all *[]Message, open map[lane]*message, peer int, frame []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := comm.ParseFrame(frame)
	if err != nil {
		r.fault = fmt.Errorf("peer %d: %w", peer, err)
		return
	}
	at := lane{peer, f.Dup, f.Step}
	m := open[at]
	if m == nil {
		m = new(message)
		open[at] = m
	}
	if !m.open {
		m.frame, m.open = f, true
		m.frame.Payload = slices.Clone(f.Payload)
	} else {
		m.frame.Payload = append(m.frame.Payload, f.Payload...)
	}
	if uint64(len(m.frame.Payload)) >= m.frame.Total {
		*all = append(*all, Message{peer, m.frame})
		m.open = false
	}
}

type recorded struct {
	comm.Transport
	r *Record
}

func (t recorded) Send(ctx context.Context, to int, head, body []byte) error {
	t.r.take(&t.r.put, t.r.to, to, slices.Concat(head, body))
	return t.Transport.Send(ctx, to, head, body)
}

func (t recorded) Recv(ctx context.Context, from int) ([]byte, error) {
	frame, err := t.Transport.Recv(ctx, from)
	if err == nil {
		t.r.take(&t.r.got, t.r.from, from, frame)
	}
	return frame, err
}
