package leaf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// A message between a leaf and a site over a comm.Transport is cut into frames:
//
//	byte 0      version, 1
//	byte 1      kind
//	bytes 2–3   0
//	bytes 4–7   bytes of the whole message, little endian
//	bytes 8–    the message, from where the frame before ends
const linkHeader = 8

// Kinds of messages. A leaf begins with hello, which the site answers with welcome, empty or the reason why not; it
// sends shares, which have no answer, and asks for sums, which are the answer.
const (
	hello   = iota + 1 // token, evidence
	welcome            // empty = admitted
	give               // a share
	ask                // exchange, 4 bytes
	sums               // as Collector.Sums has them
	// after welcome, if the agreement has edges: the leaf's nodes, as border.described has them
	description
)

// MostEvidence is how many bytes of evidence a leaf may show.
const MostEvidence = 1 << 16

const (
	mostFrame   = comm.MaxFrame - linkHeader
	mostMessage = HeaderLen + 8*mostNumbers // a share; sums have a shorter header
)

func sendMessage(ctx context.Context, t comm.Transport, to int, kind byte, b []byte) error {
	head := []byte{version, kind, 0, 0}
	head = binary.LittleEndian.AppendUint32(head, uint32(len(b)))
	for {
		n := min(len(b), mostFrame)
		if err := t.Send(ctx, to, head, b[:n]); err != nil {
			return err
		}
		if b = b[n:]; len(b) == 0 {
			return nil
		}
	}
}

// recvMessage receives a message of at most `most` bytes. Memory is taken for what arrives, not for what is announced.
func recvMessage(ctx context.Context, t comm.Transport, from, most int) (kind byte, b []byte, err error) {
	for total := -1; total != len(b); {
		frame, err := t.Recv(ctx, from)
		if err != nil {
			return 0, nil, err
		}
		if len(frame) < linkHeader || frame[0] != version {
			return 0, nil, fmt.Errorf("a frame must have a header of %d bytes and version %d (got %d bytes)",
				linkHeader, version, len(frame))
		}
		announced := int(binary.LittleEndian.Uint32(frame[4:]))
		if announced > most {
			return 0, nil, fmt.Errorf("a message must have at most %d bytes (got %d)", most, announced)
		}
		if total < 0 {
			kind, total = frame[1], announced
		}
		if n := len(frame) - linkHeader; frame[1] != kind || announced != total || n != min(total-len(b), mostFrame) {
			return 0, nil, fmt.Errorf("the next frame must have %d of %d bytes (got %d of %d)",
				min(total-len(b), mostFrame), total, n, announced)
		}
		b = append(b, frame[linkHeader:]...)
		t.Free(frame)
	}
	return kind, b, nil
}

// TransportUplink is a leaf's Uplink over a comm.Transport on which the sites have the first ranks.
type TransportUplink struct {
	t     comm.Transport
	sites int
}

// Dial asks each of the collecting sites to admit a leaf, which shows them its evidence. The error names who did not.
// If the agreement has edges, it returns which of the leaf's nodes, named by ids, have some according to the sites.
func Dial(ctx context.Context, t comm.Transport, a Agreement, token Token, evidence []byte,
	ids []string) (*TransportUplink, shard.BorderNodes, error) {
	var known shard.BorderNodes
	if len(evidence) > MostEvidence {
		return nil, known, fmt.Errorf("evidence must have at most %d bytes (got %d)", MostEvidence, len(evidence))
	}
	for q := range a.Sites {
		if err := sendMessage(ctx, t, q, hello, append(token[:len(token):len(token)], evidence...)); err != nil {
			return nil, known, err
		}
	}
	var told []byte
	for q := range a.Sites {
		kind, why, err := recvMessage(ctx, t, q, MostEvidence)
		if err == nil && kind != welcome {
			err = fmt.Errorf("the answer must be of kind %d (got %d)", welcome, kind)
		}
		if err == nil && len(why) > 0 {
			err = fmt.Errorf("%w: %q", ErrNotAdmitted, why)
		}
		var of []byte
		if err == nil && a.Edges {
			if kind, of, err = recvMessage(ctx, t, q, mostMessage); err == nil &&
				(kind != description || q > 0 && string(of) != string(told)) {
				err = errors.New("all sites must describe the same nodes of the phone")
			}
			told = of
		}
		if err == nil {
			known, err = parseNodes(told, ids)
		}
		if err != nil {
			return nil, known, &comm.PeerError{Rank: q, Op: "hello", Err: err}
		}
	}
	return &TransportUplink{t, a.Sites}, known, nil
}

// Send implements Uplink.
func (l *TransportUplink) Send(ctx context.Context, site int, share []byte) error {
	return sendMessage(ctx, l.t, site, give, share)
}

// Sums implements Uplink.
func (l *TransportUplink) Sums(ctx context.Context, site, exchange int) ([]byte, error) {
	if err := l.ask(ctx, site, exchange); err != nil {
		return nil, err
	}
	return l.answer(ctx, site)
}

// Parts implements Uplink.
func (l *TransportUplink) Parts(ctx context.Context, exchange int) ([][]byte, error) {
	for q := range l.sites {
		if err := l.ask(ctx, q, exchange); err != nil {
			return nil, err
		}
	}
	all := make([][]byte, l.sites)
	for q := range all {
		var err error
		if all[q], err = l.answer(ctx, q); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (l *TransportUplink) ask(ctx context.Context, site, exchange int) error {
	return sendMessage(ctx, l.t, site, ask, binary.LittleEndian.AppendUint32(nil, uint32(exchange)))
}

func (l *TransportUplink) answer(ctx context.Context, site int) ([]byte, error) {
	kind, b, err := recvMessage(ctx, l.t, site, mostMessage)
	if err == nil && kind != sums {
		err = &comm.PeerError{Rank: site, Op: "sums",
			Err: fmt.Errorf("the answer must be of kind %d (got %d)", sums, kind)}
	}
	return b, err
}

// errSuperseded is why a leaf that has connected again is heard no more over its last connection.
var errSuperseded = errors.New("the phone has connected again")

// connects returns the function that takes the shares of a leaf that has connected. Shares of its last connection are
// late from now on, and do not replace newer ones.
func (s *Collector) connects(t Token) (accept func(share []byte) error) {
	this := new(byte)
	s.serving.Lock()
	defer s.serving.Unlock()
	s.latest[t] = this
	return func(b []byte) error {
		s.serving.Lock()
		defer s.serving.Unlock()
		if s.latest[t] != this {
			return errSuperseded
		}
		return s.intake.Accept(t, b, time.Now())
	}
}

// Serve deals with the leaf of one rank until it leaves, breaks the rules, or the run has ended; it returns why. Each
// leaf needs its own call.
func (s *Collector) Serve(ctx context.Context, t comm.Transport, from int) error {
	kind, b, err := recvMessage(ctx, t, from, len(Token{})+MostEvidence)
	if err == nil && (kind != hello || len(b) < len(Token{})) {
		err = errors.New("a phone must begin with its token")
	}
	if err != nil {
		return err
	}
	token := Token(b)
	refused := s.intake.Admit(ctx, token, b[len(token):])
	accept := s.connects(token)
	why := ""
	if refused != nil {
		why = refused.Error()
	}
	if err := errors.Join(refused, sendMessage(ctx, t, from, welcome, []byte(why))); err != nil {
		return err
	}
	if s.agreed.Edges {
		if err := sendMessage(ctx, t, from, description, s.border.described(s.intake.owned(token))); err != nil {
			return err
		}
	}
	for {
		kind, b, err := recvMessage(ctx, t, from, mostMessage)
		if err != nil {
			return err
		}
		switch {
		case kind == give:
			if err := accept(b); err != nil && !errors.Is(err, ErrLate) && !errors.Is(err, ErrEarly) {
				return err
			}
		case kind == ask && len(b) == 4:
			exchange := int(binary.LittleEndian.Uint32(b))
			b, err := s.Sums(ctx, token, exchange)
			if err == nil {
				err = sendMessage(ctx, t, from, sums, b)
			}
			if err != nil {
				return err
			}
			s.took(token, exchange)
		default:
			return fmt.Errorf("a message must be a share or ask for sums (got one of kind %d and %d bytes)", kind,
				len(b))
		}
	}
}
