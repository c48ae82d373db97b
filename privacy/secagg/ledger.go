package secagg

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
)

// Where a run continues without a failed member, a round that is repeated must not show that member's
// part as the difference of two sums. So a sum is sealed: each member adds one more mask, of its own,
// and sends the seed of it to all others when it holds the whole sum, sealed by all members. Nobody
// can open a sum before everything is in, and a member that can open any chunk can open all of it.
//
// After a failure the members compare what they hold of the sums at hand. A sum of which they can
// open their copy is final, with the failed member in it, and is not taken again. It is repeated with
// other members only if no member can have opened it whose part the difference would show. Else the
// members wait for the failed one: with the same members a repeated sum shows nothing new.

// Ledger is what one member remembers of sealed sums from one generation of a run to the next. The zero
// Ledger remembers nothing.
type Ledger struct {
	// Keep, unless nil, keeps the members of a generation durably before anything is summed in it, and
	// Kept returns those of the last one, nil: there was none. A process that was restarted has no other
	// memory.
	Keep func(members []int) error
	Kept func() ([]int, error)

	records []*record
	begun   bool // a generation has begun in this process
}

// name tells sums of a run apart, whatever the generation.
type name [sha256.Size]byte

func nameOf(id comm.ReduceID, part string) name {
	id.Generation = 0
	return sha256.Sum256([]byte(label(id, part, 0, nil, 0, comm.Integers{})))
}

// record is what a member holds of one sum.
type record struct {
	name     name
	place    [2]int         // stage and round
	members  []int          // whose parts are in it
	held     bool           // vectors are the sum, sealed or open; nothing below is set before
	released bool           // this member's seed has left it
	seeds    map[int][]byte // by rank, this member's own among them
	open     bool           // vectors are the sum
	vectors  []comm.Integers
	meta     [][]byte
}

const seedLen = 32

// maxRecords bounds what a ledger holds.
const maxRecords = 64

// begin returns the record of a sum that begins, in which member rank has drawn its seed. Those of rounds before the last one are forgotten: no
// member goes back so far.
func (l *Ledger) begin(id comm.ReduceID, part string, members []int, rank int) *record {
	seed := make([]byte, seedLen)
	rand.Read(seed) // never fails
	r := &record{name: nameOf(id, part), place: [2]int{id.Stage, id.Round}, members: members, seeds: map[int][]byte{rank: seed}}
	var places [][2]int
	for i := len(l.records) - 1; i >= 0; i-- {
		if at := l.records[i].place; at != r.place && !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	l.records = slices.DeleteFunc(l.records, func(old *record) bool {
		return old.name == r.name || len(places) > 1 && slices.Contains(places[1:], old.place)
	})
	if len(l.records) >= maxRecords {
		l.records = slices.Delete(l.records, 0, 1)
	}
	l.records = append(l.records, r)
	return r
}

// find returns the final sum of that name, nil: there is none.
func (l *Ledger) find(id comm.ReduceID, part string) *record {
	want := nameOf(id, part)
	for _, r := range l.records {
		if r.name == want && r.open {
			return r
		}
	}
	return nil
}

// sealOf is the label of the mask that a seed gives a vector.
func sealOf(vector int) string {
	return string(binary.LittleEndian.AppendUint64([]byte("seal"), uint64(vector)))
}

// unseal opens the vectors, of which all seeds are known.
func (r *record) unseal() {
	for k, v := range r.vectors {
		var seals []mask
		for _, q := range r.members {
			seals = append(seals, newMask(r.seeds[q], sealOf(k), true))
		}
		cover(seals, v, 0, len(v.B)*8/v.Bits)
	}
	r.open = true
}

// release sends this member's seed to all others and opens the sum with theirs.
func (r *record) release(ctx context.Context, g *comm.Group) error {
	r.held, r.released = true, true
	in, err := g.SendRecv(ctx, comm.Control, "seeds of a sum", toOthers(g, r.seeds[g.Rank()]), seedLen)
	for q, b := range in {
		if len(b) == seedLen {
			r.seeds[q] = b
		} else if err == nil && q != g.Rank() && slices.Contains(r.members, q) {
			err = &comm.PeerError{Rank: q, Op: "seeds of a sum", Err: fmt.Errorf("a seed must have %d bytes (got %d)", seedLen, len(b))}
		}
	}
	if err == nil {
		r.unseal()
	}
	return err
}

// verdict is what becomes of a sum in the next generation.
type verdict uint8

const (
	repeat verdict = iota // it may be taken again
	final                 // it is not taken again: its members can open it
	wait                  // neither: it takes the members that are not there
)

// standing is what a member of the next generation that has a record says of it.
type standing struct {
	rank           int
	held, released bool
	seeds          []int // whose seeds it has, its own among them
}

// judge says what becomes of a sum of members old, of which those of next hold what they say. Members
// that say nothing are lost, or have forgotten: what they hold is not known.
func judge(old, next []int, said []standing) verdict {
	var known, present []int
	held, released := false, false
	for _, s := range said {
		present = append(present, s.rank)
		held, released = held || s.held, released || s.released
		known = append(known, s.seeds...)
	}
	lost, seen, openable := 0, false, held
	for _, q := range old {
		if !slices.Contains(present, q) {
			lost++
			seen = seen || slices.Contains(known, q)
		}
		openable = openable && slices.Contains(known, q)
	}
	switch {
	case !released && !seen:
		return repeat // whoever is left can be sure that nobody can open it but those whose parts are in no other sum
	case openable:
		return final
	case slices.Equal(old, next), !released, lost == 1 && !seen:
		return repeat
	}
	return wait
}

// ErrNeeded is why a generation ends in which a sum of an earlier one can neither be opened nor be taken
// again without the member at fault.
var ErrNeeded = errors.New("its part is in a sum that others may have seen, which is not taken again without it")
