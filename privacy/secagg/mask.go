package secagg

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"

	"github.com/heddle-gnn/heddle/comm"
)

// label says which vector a mask is for. It holds all that may differ between two of them.
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

// block is how many bytes of a mask are made at once: they stay in a core's first cache.
const block = 16 << 10

// stream calls do with consecutive pieces of n bytes that follow from secret and label: AES-256 in
// counter mode under HKDF-SHA-256 of them. Each key has one use, so that its counter begins at 0.
func stream(secret []byte, label string, n int, do func(at int, b []byte)) {
	key, err := hkdf.Expand(sha256.New, secret, label, 32)
	if err != nil {
		panic("secagg: " + err.Error()) // only of lengths
	}
	c, err := aes.NewCipher(key)
	if err != nil {
		panic("secagg: " + err.Error()) // only of lengths
	}
	ctr := cipher.NewCTR(c, make([]byte, aes.BlockSize))
	size := min(block, n)
	room := make([]byte, 2*size)
	zeros, b := room[:size], room[size:]
	for at := 0; at < n; at += block {
		some := b[:min(block, n-at)]
		ctr.XORKeyStream(some, zeros[:len(some)])
		do(at, some)
	}
}

// cover adds to v this member's masks: those of all members sum to zero.
func cover(pairs []pair, label string, v comm.Integers) {
	for _, p := range pairs {
		stream(p.secret, label, len(v.B), func(at int, b []byte) {
			rest := comm.Integers{Bits: v.Bits, B: v.B[at:]}
			if p.first {
				rest.Add(b)
			} else {
				rest.Sub(b)
			}
		})
	}
}
