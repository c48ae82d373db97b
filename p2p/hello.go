package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Hello is what two peers must agree on before the first byte of data.
type Hello struct {
	Generation uint64   // which fixed set of members this is; 0 for the first
	Plan       [32]byte // fingerprint of the plan: model, encoder, rounds, privacy
	Partition  [32]byte // fingerprint of the partition that the shards belong to
}

// greeting is a Hello with what the roster adds. On the wire it has always helloSize bytes; see docs/wire.md.
type greeting struct {
	Hello
	rank, size uint32
	roster     [32]byte
}

const (
	helloMagic   = "HEDL"
	helloVersion = 1
	helloSize    = 4 + 2 + 4 + 4 + 8 + 3*32
)

func (g greeting) encode() []byte {
	b := make([]byte, 0, helloSize)
	b = append(b, helloMagic...)
	b = binary.LittleEndian.AppendUint16(b, helloVersion)
	b = binary.LittleEndian.AppendUint32(b, g.rank)
	b = binary.LittleEndian.AppendUint32(b, g.size)
	b = binary.LittleEndian.AppendUint64(b, g.Generation)
	b = append(b, g.roster[:]...)
	b = append(b, g.Plan[:]...)
	return append(b, g.Partition[:]...)
}

// parseGreeting takes exactly what encode writes.
func parseGreeting(b []byte) (greeting, error) {
	var g greeting
	if len(b) != helloSize {
		return g, fmt.Errorf("hello of %d bytes, want %d", len(b), helloSize)
	}
	if string(b[:4]) != helloMagic {
		return g, fmt.Errorf("hello begins with %q, want %q", b[:4], helloMagic)
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != helloVersion {
		return g, fmt.Errorf("hello of version %d, want %d", v, helloVersion)
	}
	g.rank = binary.LittleEndian.Uint32(b[6:])
	g.size = binary.LittleEndian.Uint32(b[10:])
	if g.size == 0 || g.size > limitMaxPeers || g.rank >= g.size {
		return g, fmt.Errorf("hello of rank %d in %d peers, want a rank below a size of 1 to %d", g.rank, g.size, limitMaxPeers)
	}
	g.Generation = binary.LittleEndian.Uint64(b[14:])
	copy(g.roster[:], b[22:])
	copy(g.Plan[:], b[54:])
	copy(g.Partition[:], b[86:])
	return g, nil
}

// MismatchError says that a peer's hello differs from ours. Both sides find it, and neither sends data.
type MismatchError struct {
	Rank int    // of the peer, in our roster
	Name string // of the peer, in our roster
	Part string // what differs: "size", "roster", "rank", "generation", "plan" or "partition"
	Ours string
	Peer string // the peer's value
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("p2p: peer %d (%s) has another %s: %s, ours is %s", e.Rank, e.Name, e.Part, e.Peer, e.Ours)
}

// mismatch compares the hello of the member of rank r with ours; nil when both are of one session.
func (g greeting) mismatch(ours greeting, r int, name string) error {
	fault := func(part string, ours, theirs any) error {
		return &MismatchError{Rank: r, Name: name, Part: part, Ours: fmt.Sprint(ours), Peer: fmt.Sprint(theirs)}
	}
	short := func(f [32]byte) string { return fmt.Sprintf("%x…", f[:8]) }
	var errs []error
	if g.size != ours.size {
		errs = append(errs, fault("size", ours.size, g.size))
	} else if g.roster != ours.roster {
		errs = append(errs, fault("roster", short(ours.roster), short(g.roster)))
	}
	if g.rank != uint32(r) {
		errs = append(errs, fault("rank", fmt.Sprintf("%d for it", r), g.rank))
	}
	if g.Generation != ours.Generation {
		errs = append(errs, fault("generation", ours.Generation, g.Generation))
	}
	if g.Plan != ours.Plan {
		errs = append(errs, fault("plan", short(ours.Plan), short(g.Plan)))
	}
	if g.Partition != ours.Partition {
		errs = append(errs, fault("partition", short(ours.Partition), short(g.Partition)))
	}
	return errors.Join(errs...)
}
