package leaf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/mat"
)

// Journal keeps what a site publishes, by name, for its next session: what each sum was. No sum is taken twice: the
// difference of two sums over nearly the same leaves would reveal the numbers of the few leaves in only one. A site
// that was restarted first replays the sums that are kept, as a leaf does.
type Journal struct {
	Keep func(name string, b []byte) error     // durably
	Kept func(name string) (b []byte, _ error) // nil = nothing
}

func exchangeName(k int) string { return fmt.Sprintf("sum-%d", k) }

// Resume takes up what the journals of all sites of the group have, which call it before the first sum and before they
// serve leaves. At most the last exchange is not at all of them: a sum goes to those that lack it, and one over
// neighbours is repeated, because each site has only its own part.
func (s *Collector) Resume(ctx context.Context, j *Journal) error {
	s.journal = j
	for {
		b, err := j.Kept(exchangeName(len(s.sums)))
		if err != nil {
			return err
		}
		if len(b) == 0 {
			break
		}
		e, err := s.parse(b)
		if err != nil {
			return fmt.Errorf("%s: %w", exchangeName(len(s.sums)), err)
		}
		s.sums = append(s.sums, e)
	}
	if err := s.level(ctx); err != nil {
		return err
	}
	if s.intake != nil {
		s.intake.resume(len(s.sums))
	}
	return nil
}

// level makes all sites have the same exchanges.
func (s *Collector) level(ctx context.Context) error {
	own, size := len(s.sums), s.group.Size()
	last := byte(0)
	if own > 0 && s.sums[own-1].width > 0 {
		last = 1
	}
	mine := append(binary.LittleEndian.AppendUint32(nil, uint32(own)), last)
	in, err := s.tell(ctx, "kept sums", mine, size, len(mine))
	if err != nil {
		return err
	}
	least, most, from := own, own, s.group.Rank()
	for q, b := range in {
		if len(b) != len(mine) {
			return &comm.PeerError{Rank: q, Op: "kept sums",
				Err: fmt.Errorf("their number must have %d bytes (got %d)", len(mine), len(b))}
		}
		n := int(binary.LittleEndian.Uint32(b))
		if least = min(least, n); n > most || n == most && q < from {
			most, from = n, q
		}
	}
	switch {
	case most == least:
		return nil
	case most > least+1:
		return fmt.Errorf("a site has lost what it kept of the run: it has %d sums and another %d; "+
			"begin again with empty states at all sites", least, most)
	case in[from][4] == 1: // over neighbours
		if own == most {
			s.sums = s.sums[:least]
			return s.journal.Keep(exchangeName(least), nil)
		}
		return nil
	}
	out := make([][]byte, size)
	if from == s.group.Rank() {
		for q, b := range in {
			if int(binary.LittleEndian.Uint32(b)) == least {
				out[q] = s.sums[least].encode(s.agreed.Run)
			}
		}
	}
	got, err := s.group.SendRecv(ctx, comm.Control, "a kept sum", out,
		entryHeader+8*mostNumbers+len(Token{})*s.agreed.Most)
	if err != nil || own == most {
		return err
	}
	e, err := s.parse(got[from])
	if err == nil && e.width > 0 {
		err = errors.New("it must be a sum of all")
	}
	if err != nil {
		return &comm.PeerError{Rank: from, Op: "a kept sum", Err: err}
	}
	s.publishKept(e)
	return s.journal.Keep(exchangeName(least), got[from])
}

// An exchange in a journal begins with 8 bytes of the run. 4 bytes each follow, little endian, of columns (0 = a sum of
// all), digest of the leaves, number of leaves, bytes of the numbers, and bytes of the opened sums. Tokens, numbers and
// opened sums come last.
const entryHeader = 28

func (e exchange) encode(run [8]byte) []byte {
	b := run[:len(run):len(run)]
	for _, n := range []int{e.width, int(e.list), len(e.leaves), len(e.numbers), len(e.opened)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	for t := range e.leaves {
		b = append(b, t[:]...)
	}
	return append(append(b, e.numbers...), e.opened...)
}

func (s *Collector) parse(b []byte) (e exchange, err error) {
	if len(b) < entryHeader {
		return e, fmt.Errorf("a kept sum must have at least %d bytes (got %d)", entryHeader, len(b))
	}
	if [8]byte(b) != s.agreed.Run {
		return e, errors.New("it is of another run: begin with an empty state")
	}
	number := func(k int) int { return int(binary.LittleEndian.Uint32(b[8+4*k:])) }
	e.width, e.list = number(0), binary.LittleEndian.Uint32(b[12:])
	leaves, numbers, opened := number(2), number(3), number(4)
	b = b[entryHeader:]
	if want := len(Token{})*leaves + numbers + opened; len(b) != want {
		return e, fmt.Errorf("a kept sum must have %d bytes after its header (got %d)", want, len(b))
	}
	if e.width > 0 && s.border != nil && numbers != 8*e.width*len(s.border.names) {
		return e, fmt.Errorf("kept sums over neighbours must be of %d nodes (got %d bytes of %d columns)",
			len(s.border.names), numbers, e.width)
	}
	e.leaves = make(map[Token]bool, leaves)
	for range leaves {
		e.leaves[Token(b)] = true
		b = b[len(Token{}):]
	}
	e.numbers, e.opened = b[:numbers:numbers], b[numbers:]
	return e, nil
}

// replayed returns the next exchange if it is kept.
func (s *Collector) replayed() (exchange, bool) {
	if s.next >= len(s.sums) {
		return exchange{}, false
	}
	s.next++
	return s.sums[s.next-1], true
}

// reopened returns e's sums over the neighbours of own nodes, as rows of x's shape.
func (e exchange) reopened(id comm.ReduceID, x mat.Dense) (mat.Dense, error) {
	if e.width != x.Cols {
		return mat.Dense{}, fmt.Errorf("%v: the sums over neighbours that are kept must have %d columns "+
			"(got %d): begin again with empty states", id, x.Cols, e.width)
	}
	return opened(comm.Integers{Bits: 64, B: e.opened}, x)
}
