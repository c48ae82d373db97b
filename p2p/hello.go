package p2p

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
)

// Hello is what two peers must agree on before the first byte of data.
type Hello struct {
	Generation uint64   // which fixed set of members this is; 0 for the first
	Plan       [32]byte // fingerprint of the plan: model, encoder, rounds, privacy
	Partition  [32]byte // fingerprint of the partition that the shards belong to

	// PlanText is the plan in its canonical form, or nothing; at most maxPlanText bytes. Only
	// members that differ, or hear of a difference, receive it.
	PlanText string
}

// Declined is the PlanText of a member that cannot take part. A member that meets it no longer waits for it.
const Declined = "declined"

// maxPlanText bounds Hello.PlanText, in bytes.
const maxPlanText = 64 << 10

// greeting is a Hello with what the roster adds: helloSize bytes on the wire (wire.md).
type greeting struct {
	Hello
	rank, size uint32
	roster     [32]byte
	attempt    uint64 // random, for each call of Join; never 0
}

const (
	helloMagic   = "HEDL"
	helloVersion = 2
	helloSize    = 4 + 2 + 4 + 4 + 8 + 3*32 + 8
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
	b = append(b, g.Partition[:]...)
	return binary.LittleEndian.AppendUint64(b, g.attempt)
}

// parseGreeting takes exactly what encode writes.
func parseGreeting(b []byte) (greeting, error) {
	var g greeting
	if len(b) != helloSize {
		return g, fmt.Errorf("a hello must have %d bytes (got %d)", helloSize, len(b))
	}
	if string(b[:4]) != helloMagic {
		return g, fmt.Errorf("a hello must begin with %q (got %q)", helloMagic, b[:4])
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != helloVersion {
		return g, fmt.Errorf("the version of the hello must be %d (got %d)", helloVersion, v)
	}
	g.rank = binary.LittleEndian.Uint32(b[6:])
	g.size = binary.LittleEndian.Uint32(b[10:])
	if g.size == 0 || g.size > node.MostPeers || g.rank >= g.size {
		return g, fmt.Errorf("the rank of a hello must be below its size of 1 to %d (got rank %d of %d)",
			node.MostPeers, g.rank, g.size)
	}
	g.Generation = binary.LittleEndian.Uint64(b[14:])
	copy(g.roster[:], b[22:])
	copy(g.Plan[:], b[54:])
	copy(g.Partition[:], b[86:])
	if g.attempt = binary.LittleEndian.Uint64(b[118:]); g.attempt == 0 {
		return g, errors.New("the attempt of a hello must not be 0")
	}
	return g, nil
}

// fingerprint covers what all members must agree on: names and peer IDs by rank, no addresses.
func fingerprint(members []node.Peer) [32]byte {
	h := sha256.New()
	h.Write([]byte("heddle roster 1\n"))
	for _, m := range members {
		for _, field := range []string{m.Name, string(m.ID)} {
			var n [4]byte
			binary.LittleEndian.PutUint32(n[:], uint32(len(field)))
			h.Write(n[:])
			h.Write([]byte(field))
		}
	}
	return [32]byte(h.Sum(nil))
}
