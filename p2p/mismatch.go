package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
)

// MemberMismatchError reports that the hellos of two members differ. Both find it, and tell the others.
type MemberMismatchError struct {
	Rank  int    // of the member that differs, in our roster
	Name  string // of it
	Part  string // what differs: "version", "size", "roster", "rank", "generation", "plan" or "partition"
	Ours  string // the value of this member, or of the one that reported the difference
	Peer  string // the value of the member that differs
	With  int    // rank of the member that it differs from: this one, or the one that reported the difference
	Other string // name of the member of rank With

	OurPlan, PeerPlan string // if Part is "plan": the two members' Hello.PlanText

	reported bool
}

func (e *MemberMismatchError) Error() string {
	who, ours := fmt.Sprintf("peer %d (%s)", e.Rank, e.Name), "ours"
	if e.reported {
		who, ours = fmt.Sprintf("peer %d (%s) reports that %s", e.With, e.Other, who), "its own"
	}
	if e.PeerPlan == Declined || e.OurPlan == Declined {
		if e.OurPlan == Declined {
			who = fmt.Sprintf("peer %d (%s)", e.With, e.Other)
		}
		return fmt.Sprintf("%s cannot take part: its own message names the cause", who)
	}
	if e.Part == partVersion {
		return fmt.Sprintf("%s speaks %s, %s is %s: upgrade the program with the lower number", who, e.Peer, ours,
			e.Ours)
	}
	return fmt.Sprintf("%s has another %s: %s, %s is %s", who, e.Part, e.Peer, ours, e.Ours)
}

// As makes it a *comm.PeerError of the member that differs, too.
func (e *MemberMismatchError) As(target any) bool {
	to, ok := target.(**comm.PeerError)
	if ok {
		*to = &comm.PeerError{Rank: e.Rank, Name: e.Name, Op: "join", Err: e}
	}
	return ok
}

// The parts in which two members can differ.
const (
	partVersion    = "version"
	partSize       = "size"
	partRoster     = "roster"
	partRank       = "rank"
	partGeneration = "generation"
	partPlan       = "plan"
	partPartition  = "partition"
)

var parts = []string{partVersion, partSize, partRoster, partRank, partGeneration, partPlan, partPartition}

// mismatch compares the hello of the member of rank r with ours; nil when both are of one session.
// The error joins one *MemberMismatchError for each part that differs.
func (g greeting) mismatch(ours greeting, r int, name string) error {
	var errs []error
	differ := func(part string, ours, theirs any) {
		errs = append(errs, &MemberMismatchError{Rank: r, Name: name, Part: part, Ours: fmt.Sprint(ours),
			Peer: fmt.Sprint(theirs)})
	}
	short := func(f [32]byte) string { return fmt.Sprintf("%x…", f[:8]) }
	if g.size != ours.size {
		differ(partSize, ours.size, g.size)
	} else if g.roster != ours.roster {
		differ(partRoster, short(ours.roster), short(g.roster))
	}
	if g.rank != uint32(r) {
		differ(partRank, fmt.Sprintf("%d for it", r), g.rank)
	}
	if g.Generation != ours.Generation {
		differ(partGeneration, ours.Generation, g.Generation)
	}
	if g.Plan != ours.Plan {
		differ(partPlan, short(ours.Plan), short(g.Plan))
	}
	if g.Partition != ours.Partition {
		differ(partPartition, short(ours.Partition), short(g.Partition))
	}
	return errors.Join(errs...)
}

// mismatches lists the mismatches in err.
func mismatches(err error) (out []*MemberMismatchError) {
	switch e := err.(type) {
	case *MemberMismatchError:
		return []*MemberMismatchError{e}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			out = append(out, mismatches(one)...)
		}
	case interface{ Unwrap() error }:
		return mismatches(e.Unwrap())
	}
	return out
}

// A refusal is what a member that gives up sends the others: in what one member differs from
// another. Its fields are behind their lengths, as uint32.
const (
	maxValue   = 256 // bytes of one of the values that differ
	maxRefusal = 4 + 4 + 5*4 + maxValue*3 + 2*maxPlanText
)

func (e *MemberMismatchError) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(e.Rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(e.With))
	for _, field := range []string{e.Part, e.Ours, e.Peer, e.OurPlan, e.PeerPlan} {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(field)))
		b = append(b, field...)
	}
	return b
}

// parseRefusal takes what encode writes, of a session of these members.
func parseRefusal(b []byte, members []node.Peer) (*MemberMismatchError, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("a refusal must have at least 8 bytes (got %d)", len(b))
	}
	rank, with := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if size := uint32(len(members)); rank >= size || with >= size || rank == with {
		return nil, fmt.Errorf("a refusal must name two of %d members (got %d and %d)", size, rank, with)
	}
	e := &MemberMismatchError{Rank: int(rank), Name: members[rank].Name, With: int(with), Other: members[with].Name,
		reported: true}
	b = b[8:]
	for _, field := range []struct {
		to   *string
		most uint32
	}{{&e.Part, maxValue}, {&e.Ours, maxValue}, {&e.Peer, maxValue}, {&e.OurPlan, maxPlanText},
		{&e.PeerPlan, maxPlanText}} {
		if len(b) < 4 {
			return nil, errors.New("a refusal ends inside a length")
		}
		n := binary.LittleEndian.Uint32(b)
		if b = b[4:]; n > field.most || n > uint32(len(b)) {
			return nil, fmt.Errorf("a field of a refusal must have at most %d bytes, all there (got %d of %d)",
				field.most, len(b), n)
		}
		*field.to, b = string(b[:n]), b[n:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("a refusal must end with its last field (got %d bytes more)", len(b))
	}
	if !slices.Contains(parts, e.Part) {
		return nil, fmt.Errorf("a refusal must be about one of %q (got %q)", parts, e.Part)
	}
	return e, nil
}
