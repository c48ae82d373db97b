package train

import (
	"encoding/binary"
	"fmt"
)

// Greeting is what a peer sends about itself before anything else.
type Greeting struct {
	Rank, Size int
	Config     [32]byte // fingerprint
	Partition  [32]byte // fingerprint
	Generation uint64   // the highest that the peer had a part in

	// What it would continue from.
	Agreed uint64   // generation in which the members agreed on it
	Seq    uint64   // its Position.Seq (0 = nothing)
	State  [32]byte // Snapshot.Digest of it

	Checkpoints []uint64 // in its place, of Participant.Own: numbers of those that the peer can restore, any order
}

// maxCheckpoints is how many a greeting can list; a store keeps two.
const maxCheckpoints = 8

func greetingLen(checkpoints int) int { return 4 + 4 + 3*32 + 3*8 + 8*checkpoints }

// encode: u32 rank · u32 size · 32 bytes config · 32 bytes partition · u64 generation · u64 agreed · u64 position ·
// 32 bytes state · u64 a checkpoint.
func (g Greeting) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(g.Rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(g.Size))
	b = append(append(b, g.Config[:]...), g.Partition[:]...)
	for _, x := range []uint64{g.Generation, g.Agreed, g.Seq} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	b = append(b, g.State[:]...)
	for _, s := range g.Checkpoints {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	return b
}

func parseGreeting(b []byte) (g Greeting, err error) {
	if len(b) < greetingLen(0) || len(b) > greetingLen(maxCheckpoints) || (len(b)-greetingLen(0))%8 != 0 {
		return g, fmt.Errorf("a greeting must have %d bytes and 8 for each of up to %d checkpoints (got %d)",
			greetingLen(0), maxCheckpoints, len(b))
	}
	r := snapshotReader{b: b}
	g.Rank, g.Size = int(r.u32()), int(r.u32())
	copy(g.Config[:], r.take(32))
	copy(g.Partition[:], r.take(32))
	g.Generation, g.Agreed, g.Seq = r.u64(), r.u64(), r.u64()
	copy(g.State[:], r.take(32))
	for len(r.b) > 0 {
		g.Checkpoints = append(g.Checkpoints, r.u64())
	}
	return g, nil
}

// holdsAs reports whether two peers have the same state.
func (g Greeting) holdsAs(h Greeting) bool {
	return g.Agreed == h.Agreed && g.Seq == h.Seq && g.State == h.State
}
