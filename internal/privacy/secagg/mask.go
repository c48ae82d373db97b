package secagg

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
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
	cipher cipher.Block
	pair
}

// newMask returns the mask that follows from p's secret and label: AES-256 in counter mode under HKDF-SHA-256 of
// them. Each key has one use, so that its counter begins at 0.
func newMask(p pair, label string) mask {
	key, err := hkdf.Expand(sha256.New, p.secret, label, 32)
	c, wrong := aes.NewCipher(key)
	if err = errors.Join(err, wrong); err != nil {
		panic("secagg: " + err.Error()) // only of lengths
	}
	return mask{c, p}
}

// from returns the stream from byte lo on.
func (m mask) from(lo int) cipher.Stream {
	counter := make([]byte, aes.BlockSize)
	binary.BigEndian.PutUint64(counter[8:], uint64(lo/aes.BlockSize))
	s := cipher.NewCTR(m.cipher, counter)
	skipped := counter[:lo%aes.BlockSize]
	s.XORKeyStream(skipped, skipped)
	return s
}

// pairMasks returns this member's masks of one vector: the masks of all members sum to zero.
func pairMasks(pairs []pair, label string) (all []mask) {
	for _, p := range pairs {
		all = append(all, newMask(p, label))
	}
	return all
}

// block is the number of bytes of a mask that are computed at once. They, zeros and the numbers to which they are added
// fit in the first-level cache, so that a vector is read from memory once for any number of masks.
const block = 8 << 10

var zeros [block]byte

// cover adds the masks to numbers lo, …, hi−1 of v, which member `to` sums. The mask shared with that member is left
// out: it could subtract it, so its own part, which stays with it, needs none either.
func cover(masks []mask, v comm.Integers, to, lo, hi int) {
	masks = slices.DeleteFunc(slices.Clone(masks), func(m mask) bool { return m.with == to })
	lo, hi = lo*v.Bits/8, hi*v.Bits/8
	streams := make([]cipher.Stream, len(masks))
	for k, m := range masks {
		streams[k] = m.from(lo)
	}
	room := make([]byte, min(block, hi-lo))
	for at := lo; at < hi; at += block {
		some := comm.Integers{Bits: v.Bits, B: v.B[at:min(at+block, hi)]}
		b := room[:len(some.B)]
		for k, s := range streams {
			s.XORKeyStream(b, zeros[:len(b)])
			if masks[k].first {
				some.Add(b)
			} else {
				some.Sub(b)
			}
		}
	}
}
