package train

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Participant is one peer as a member of a run that survives failures. Each member keeps checkpoints, all greet each
// other with what they have, one decision on where the run continues follows from the greetings at every member, and a
// member with another state than the one that all continue from fetches that.
type Participant struct {
	Rank, Size               int
	Config, Model, Partition [32]byte // fingerprints; members whose Config or Partition differ do not start
	Shape                    SnapshotShape

	// Own: every member restores its own checkpoint, the newest that all have, because each has state that no other
	// has. Otherwise all continue from the furthest state of any member.
	Own bool

	Checkpoints *checkpoint.Store // (nil = none are kept)
}

// Decision is where a run continues.
type Decision struct {
	Seq  uint64 // Position.Seq (0 = its beginning)
	From int    // the member whose state all take
}

// maxGenerationLead is how far a member's last generation may be beyond another's. Without a bound one member could use
// up all numbers.
const maxGenerationLead = 1 << 20

// generationNote is the name under which a store keeps the highest generation that its peer had a part in.
const generationNote = "generation"

// highest returns the highest generation that this peer took part in; last is the highest of this process.
func (p Participant) highest(last uint64) (uint64, error) {
	b, err := p.Checkpoints.Note(generationNote)
	if b == nil || err != nil {
		return last, err
	}
	kept, err := strconv.ParseUint(strings.TrimSuffix(string(b), "\n"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s must hold a number (got %q)", filepath.Join(p.Checkpoints.Dir, generationNote), b)
	}
	return max(kept, last), nil
}

// keep keeps the number of a generation that begins.
func (p Participant) keep(generation uint64) error {
	return p.Checkpoints.KeepNote(generationNote, fmt.Appendln(nil, generation))
}

// greet exchanges greetings with the members of g. last is the highest generation of this process; held is the state
// that this peer would continue from (nil = none, or its own checkpoints). greet returns the greetings by rank and the
// number of the new generation: one above all in which a member took part. The number is kept before anything is
// reduced in the generation, so that no later generation has the same number, even if the states are lost.
func (p Participant) greet(ctx context.Context, g *comm.Group, last uint64,
	held *Snapshot) (all []Greeting, generation uint64, err error) {
	mine := Greeting{Rank: p.Rank, Size: p.Size, Config: p.Config, Partition: p.Partition}
	if mine.Generation, err = p.highest(last); err != nil {
		return nil, 0, err
	}
	if p.Own {
		if mine.Checkpoints, _, err = p.readable(); err != nil {
			return nil, 0, err
		}
	} else if held != nil {
		mine.Agreed, mine.Seq, mine.State = held.Agreed, held.At.Seq(), held.Digest()
	}
	out := make([][]byte, p.Size)
	for q := range out {
		if q != p.Rank {
			out[q] = mine.encode()
		}
	}
	in, err := g.SendRecv(ctx, comm.Control, "greetings", out, greetingLen(maxCheckpoints))
	if err != nil {
		return nil, 0, err
	}
	all, newest := make([]Greeting, p.Size), mine.Generation
	all[p.Rank] = mine
	for q := range p.Size {
		if q == p.Rank {
			continue
		}
		if all[q], err = parseGreeting(in[q]); err == nil && all[q].Generation > mine.Generation+maxGenerationLead {
			err = fmt.Errorf("generation %d is too far beyond this peer's %d", all[q].Generation, mine.Generation)
		}
		if err != nil {
			return nil, 0, &comm.PeerError{Rank: q, Op: "greeting", Err: err}
		}
		newest = max(newest, all[q].Generation)
	}
	return all, newest + 1, p.keep(newest + 1)
}

// Decide compares greetings, by rank, and returns where the run continues. All members decide alike.
func (p Participant) Decide(all []Greeting) (d Decision, err error) {
	if len(all) != p.Size {
		return d, fmt.Errorf("there must be %d greetings (got %d)", p.Size, len(all))
	}
	for r, g := range all {
		switch {
		case g.Rank != r || g.Size != p.Size:
			return d, fmt.Errorf("peer %d takes itself for rank %d of %d, expected %d of %d", r, g.Rank, g.Size, r,
				p.Size)
		case g.Config != p.Config:
			return d, fmt.Errorf("peer %d has another plan: its fingerprint is %x, ours %x", r, g.Config[:6],
				p.Config[:6])
		case g.Partition != p.Partition:
			return d, fmt.Errorf("peer %d has a shard of another partition: its fingerprint is %x, ours %x", r,
				g.Partition[:6], p.Partition[:6])
		}
	}
	if p.Own {
		d.From = p.Rank
		for _, s := range all[0].Checkpoints {
			if s > d.Seq &&
				!slices.ContainsFunc(all, func(g Greeting) bool { return !slices.Contains(g.Checkpoints, s) }) {
				d.Seq = s
			}
		}
		return d, nil
	}
	d.Seq, d.From = furthest(all)
	return d, nil
}

// furthest finds the member whose state all continue from: in the newest generation the furthest state and, if such
// states differ, the one that most members have.
func furthest(all []Greeting) (seq uint64, from int) {
	newest := all[0]
	for _, g := range all {
		if g.Agreed > newest.Agreed || g.Agreed == newest.Agreed && g.Seq > newest.Seq {
			newest = g
		}
	}
	most := 0
	for r := range all {
		if all[r].Agreed != newest.Agreed || all[r].Seq != newest.Seq {
			continue
		}
		votes := 0
		for q := range all {
			if all[q].holdsAs(all[r]) {
				votes++
			}
		}
		if votes > most {
			from, most = r, votes
		}
	}
	return newest.Seq, from
}

// fetch sends the state of member from to the members of g with another state, as an update. mine is this peer's state,
// sent what it has sent so far. fetch returns the fetched state, or nil if this peer already has it.
func (p Participant) fetch(ctx context.Context, g *comm.Group, all []Greeting, from int, mine Snapshot,
	sent comm.Counts) (*Snapshot, error) {
	source := all[from]
	out := make([][]byte, p.Size)
	if p.Rank == from {
		b := mine.encode()
		for q := range all {
			if q != from && !all[q].holdsAs(source) {
				out[q] = b
			}
		}
	}
	in, err := g.SendRecv(ctx, comm.Reduce, "state", out, p.Shape.most())
	if err != nil || all[p.Rank].holdsAs(source) {
		return nil, err
	}
	s, err := p.Shape.parse(in[from])
	if err == nil && s.At.Seq() != source.Seq {
		err = fmt.Errorf("the state of position %d, announced was %d", s.At.Seq(), source.Seq)
	}
	if err != nil {
		return nil, &comm.PeerError{Rank: from, Op: "state", Err: err}
	}
	s.countSent(mine, sent)
	return &s, nil
}
