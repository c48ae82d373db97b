package secagg

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/kernels"
)

// label names the vector of a mask. It has everything in which two vectors may differ.
func label(id comm.ReduceID, part string, counter uint64, common []byte, vector int, v comm.Integers) string {
	b := binary.LittleEndian.AppendUint64([]byte("mask"), counter)
	b = binary.LittleEndian.AppendUint64(b, id.Generation)
	for _, n := range []int{id.Stage, id.Round, id.Step, vector, v.Bits, len(v.B)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(int64(n)))
	}
	for _, text := range []string{id.Kind, part, string(common)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	return string(b)
}

// A mask is a stream of bytes that is read as numbers, which are added to a vector or subtracted.
type mask struct {
	*kernels.Keystream
	pair
}

// newMask returns the mask that follows from p's secret and label: AES-256 in counter mode under HKDF-SHA-256 of
// them. Each key has one use, so that its counter begins at 0.
func newMask(p pair, label string) mask {
	key, err := hkdf.Expand(sha256.New, p.secret, label, 32)
	if err != nil {
		panic("secagg: " + err.Error()) // only of lengths
	}
	return mask{kernels.NewKeystream([32]byte(key)), p}
}

// pairMasks returns this member's masks of one vector: the masks of all members sum to zero.
func pairMasks(pairs []pair, label string) (all []mask) {
	for _, p := range pairs {
		all = append(all, newMask(p, label))
	}
	return all
}

// cover adds the masks to numbers lo, …, hi−1 of v, which member `to` sums. The mask shared with that member is left
// out: it could subtract it, so its own part, which stays with it, needs none either.
func cover(masks []mask, v comm.Integers, to, lo, hi int) {
	lo, hi = lo*v.Bits/8, hi*v.Bits/8
	for _, m := range masks {
		switch {
		case m.with == to:
		case m.first:
			m.Add(v.Bits, lo, v.B[lo:hi])
		default:
			m.Sub(v.Bits, lo, v.B[lo:hi])
		}
	}
}
