package secagg

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
)

// A generation begins with two messages from each member to each other one.
//
//	first    u8 1: this process has summed before · ranks of the last generation · u32 records, of each:
//	         32 bytes name · i64 stage · i64 round · ranks of its members · u8 1 held, 2 released · ranks whose seeds it has
//	second   for each sum that is final, in the order of names: u32 seeds, of each u32 rank · 32 bytes; u8 1: the sum
//	         follows, for those who lack it: u32 vectors, of each u8 bits · bytes; u32 metas, of each u8 1: there is one · bytes
//
// Ranks are u32 their number and u32 each; bytes are u32 their number and themselves.

// maxFinal bounds the second message.
const maxFinal = 1 << 30

// told is what one member says of one sum.
type told struct {
	standing
	name    name
	place   [2]int
	members []int
}

// reconcile finds out what becomes of the sums of earlier generations. Every member of g calls it.
func (l *Ledger) reconcile(ctx context.Context, g *comm.Group) error {
	var kept []int
	if l.Kept != nil {
		var err error
		if kept, err = l.Kept(); err != nil {
			return err
		}
	}
	in, err := g.SendRecv(ctx, comm.Control, "sums at hand", toOthers(g, l.encode(g.Rank(), kept)), 1<<20)
	if err != nil {
		return err
	}
	in[g.Rank()] = l.encode(g.Rank(), kept)
	said, memory := map[name][]told{}, false
	var last []int // of the last generation, by those who have no other memory
	for _, q := range g.Members() {
		begun, members, all, err := parseStandings(in[q], q, g.Size())
		if err != nil {
			return &comm.PeerError{Rank: q, Op: "sums at hand", Err: err}
		}
		if memory = memory || begun; len(members) > 0 {
			last = members
		}
		for _, one := range all {
			said[one.name] = append(said[one.name], one)
		}
	}
	if err := forgotten(g, memory, last); err != nil {
		return err
	}
	var finals []name
	for n, all := range said {
		var standings []standing
		for _, one := range all {
			if !slices.Equal(one.members, all[0].members) {
				return &comm.PeerError{Rank: one.rank, Op: "sums at hand", Err: errors.New("it says that other members took part in a sum than another member says")}
			}
			standings = append(standings, one.standing)
		}
		switch old := all[0].members; judge(old, g.Members(), standings) {
		case repeat:
			l.records = slices.DeleteFunc(l.records, func(r *record) bool { return r.name == n })
		case wait:
			lost := slices.IndexFunc(old, func(q int) bool { return !g.Has(q) })
			return &comm.PeerError{Rank: old[max(lost, 0)], Op: "secure sum", Err: ErrNeeded}
		case final:
			finals = append(finals, n)
		}
	}
	slices.SortFunc(finals, func(a, b name) int { return bytes.Compare(a[:], b[:]) })
	if err := l.conclude(ctx, g, finals, said); err != nil {
		return err
	}
	l.begun = true
	if l.Keep != nil {
		return l.Keep(g.Members())
	}
	return nil
}

// forgotten refuses a generation of members that all were restarted, unless it has the members of the
// last one: what they repeat is over other members otherwise.
func forgotten(g *comm.Group, memory bool, last []int) error {
	if memory || last == nil || slices.Equal(last, g.Members()) {
		return nil
	}
	for _, q := range last {
		if !g.Has(q) {
			return &comm.PeerError{Rank: q, Op: "secure sum", Err: ErrNeeded}
		}
	}
	return fmt.Errorf("secagg: after a restart of all of them, members %v must first continue without others (got %v): "+
		"rounds that are repeated with more members would show the parts of these", last, g.Members())
}

// conclude makes the sums of these names final: everybody opens them, and has them.
func (l *Ledger) conclude(ctx context.Context, g *comm.Group, finals []name, said map[name][]told) error {
	if len(finals) == 0 {
		return nil
	}
	out := make([][]byte, g.Size())
	for _, q := range g.Members() {
		for _, n := range finals {
			out[q] = l.appendFinal(out[q], n, holder(said[n]) == g.Rank() && !holds(said[n], q))
		}
	}
	in, err := g.SendRecv(ctx, comm.Control, "final sums", out, maxFinal)
	if err != nil {
		return err
	}
	parts := make([]reader, g.Size())
	for _, q := range g.Members() {
		if q != g.Rank() {
			parts[q].b = in[q]
		}
	}
	for _, n := range finals {
		about := said[n][0]
		r := l.named(n)
		if r == nil {
			r = &record{name: n, place: about.place, members: about.members, seeds: map[int][]byte{}}
			l.records = append(l.records, r)
		}
		for _, q := range g.Members() {
			if q == g.Rank() {
				continue
			}
			if err := parts[q].final(r); err != nil {
				return &comm.PeerError{Rank: q, Op: "final sums", Err: err}
			}
		}
		if r.open {
			continue
		}
		for _, q := range r.members {
			if len(r.seeds[q]) != seedLen || !r.held {
				return fmt.Errorf("secagg: a final sum cannot be opened: the seed of member %d, or the sum, is missing", q)
			}
		}
		r.released = true
		r.unseal()
	}
	return nil
}

// holder returns the lowest rank that holds a sum, holds whether rank q does.
func holder(all []told) int {
	lowest := -1
	for _, one := range all {
		if one.held && (lowest < 0 || one.rank < lowest) {
			lowest = one.rank
		}
	}
	return lowest
}

func holds(all []told, q int) bool {
	return slices.ContainsFunc(all, func(one told) bool { return one.rank == q && one.held })
}

func (l *Ledger) named(n name) *record {
	if i := slices.IndexFunc(l.records, func(r *record) bool { return r.name == n }); i >= 0 {
		return l.records[i]
	}
	return nil
}

func appendRanks(b []byte, ranks []int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(ranks)))
	for _, q := range ranks {
		b = binary.LittleEndian.AppendUint32(b, uint32(q))
	}
	return b
}

func appendBytes(b, part []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
}

func flag(is bool, value byte) byte {
	if is {
		return value
	}
	return 0
}

// encode returns the first message.
func (l *Ledger) encode(rank int, kept []int) []byte {
	b := appendRanks([]byte{flag(l.begun, 1)}, kept)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(l.records)))
	for _, r := range l.records {
		b = append(b, r.name[:]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(r.place[0]))
		b = binary.LittleEndian.AppendUint64(b, uint64(r.place[1]))
		b = append(appendRanks(b, r.members), flag(r.held, 1)|flag(r.released, 2))
		b = appendRanks(b, r.known())
	}
	return b
}

// known returns whose seeds r has.
func (r *record) known() (ranks []int) {
	for _, q := range r.members {
		if r.seeds[q] != nil {
			ranks = append(ranks, q)
		}
	}
	return ranks
}

// appendFinal appends what the second message has of a sum, with the sum itself if whole.
func (l *Ledger) appendFinal(b []byte, n name, whole bool) []byte {
	r := l.named(n)
	if r == nil {
		return append(appendRanks(b, nil), 0)
	}
	known := r.known()
	b = binary.LittleEndian.AppendUint32(b, uint32(len(known)))
	for _, q := range known {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(q)), r.seeds[q]...)
	}
	if !whole {
		return append(b, 0)
	}
	b = append(b, 1, flag(r.open, 1))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.vectors)))
	for _, v := range r.vectors {
		b = appendBytes(append(b, byte(v.Bits)), v.B)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.meta)))
	for _, m := range r.meta {
		b = appendBytes(append(b, flag(m != nil, 1)), m)
	}
	return b
}

// reader reads what another member sent; after a fault everything is zero.
type reader struct {
	b     []byte
	fault bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.fault = nil, true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u32() int {
	if b := r.take(4); b != nil {
		return int(min(binary.LittleEndian.Uint32(b), 1<<30))
	}
	return 0
}

func (r *reader) u64() int {
	if b := r.take(8); b != nil {
		return int(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// ranks reads ascending ranks below size.
func (r *reader) ranks(size int) (all []int) {
	n := r.u32()
	for range min(n, size) {
		q := r.u32()
		if q >= size || len(all) > 0 && q <= all[len(all)-1] {
			r.fault = true
		}
		all = append(all, q)
	}
	r.fault = r.fault || n > size
	return all
}

// parseStandings reads the first message of a member.
func parseStandings(b []byte, rank, size int) (begun bool, last []int, all []told, err error) {
	r := reader{b: b}
	begun, last = r.u8() == 1, r.ranks(size)
	n := r.u32()
	for range min(n, maxRecords) {
		var one told
		copy(one.name[:], r.take(len(one.name)))
		one.place = [2]int{r.u64(), r.u64()}
		one.members = r.ranks(size)
		flags := r.u8()
		one.standing = standing{rank: rank, held: flags&1 != 0, released: flags&2 != 0, seeds: r.ranks(size)}
		r.fault = r.fault || !slices.Contains(one.members, rank) && one.standing.released
		all = append(all, one)
	}
	if r.fault || n > maxRecords || len(r.b) > 0 {
		return false, nil, nil, fmt.Errorf("a message of sums at hand must hold what it announces, of at most %d sums (got %d bytes)", maxRecords, len(b))
	}
	return begun, last, all, nil
}

// final reads what the second message of a member has of a sum into it.
func (r *reader) final(into *record) error {
	n := r.u32()
	for range min(n, len(into.members)) {
		q, seed := r.u32(), r.take(seedLen)
		if !r.fault && slices.Contains(into.members, q) && into.seeds[q] == nil {
			into.seeds[q] = seed
		}
	}
	r.fault = r.fault || n > len(into.members)
	if r.u8() == 1 {
		open := r.u8() == 1
		var vectors []comm.Integers
		for range min(r.u32(), 2) {
			v := comm.Integers{Bits: int(r.u8())}
			v.B = bytes.Clone(r.take(r.u32()))
			r.fault = r.fault || !slices.Contains([]int{8, 16, 32, 64}, v.Bits) || len(v.B)%(v.Bits/8) != 0
			vectors = append(vectors, v)
		}
		var meta [][]byte
		for range min(r.u32(), 1<<16) {
			there := r.u8() == 1
			b := r.take(r.u32())
			if !there {
				b = nil
			}
			meta = append(meta, b)
		}
		if !r.fault && !into.held {
			into.vectors, into.meta, into.held, into.open = vectors, meta, true, open
		}
	}
	if r.fault {
		return errors.New("the message of final sums must hold what it announces")
	}
	return nil
}
