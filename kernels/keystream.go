package kernels

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
)

// A Keystream is the output of AES-256 in counter mode from a counter of 0. It is read as integers, which are added to
// other integers or subtracted from them. Several goroutines may use it at once.
type Keystream struct {
	rounds [15][aes.BlockSize]byte // round keys
	cipher cipher.Block            // used instead of rounds unless the set has its own loop for this processor
}

// NewKeystream returns the stream of a key. Each key must be used for one stream only.
func NewKeystream(key [32]byte) *Keystream {
	k := &Keystream{}
	if active.expandKey != nil && active.expandKey(&key, &k.rounds) {
		return k
	}
	var err error
	if k.cipher, err = aes.NewCipher(key[:]); err != nil {
		panic("kernels: " + err.Error()) // returned only for wrong lengths
	}
	return k
}

// Add computes y += the stream from byte `at` on, modulo 2^bits, over packed little-endian integers of 8, 16, 32 or 64
// bits. `at` must be a multiple of their bytes.
func (k *Keystream) Add(bits, at int, y []byte) { k.apply(bits, at, y, false) }

// Sub computes y -= the stream from byte `at` on, like Add.
func (k *Keystream) Sub(bits, at int, y []byte) { k.apply(bits, at, y, true) }

func (k *Keystream) apply(bits, at int, y []byte, minus bool) {
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 || len(y)%(bits/8) != 0 || at < 0 || at%(bits/8) != 0 {
		panic(fmt.Sprintf("kernels: integers must have 8, 16, 32 or 64 bits and be whole (got %d bits, %d bytes at %d)",
			bits, len(y), at))
	}
	writes(y)
	if k.cipher != nil {
		k.plain(bits, at, y, minus)
	} else {
		active.keystream(k, bits, at, y, minus)
	}
}

// plain computes the stream by crypto/cipher, in pieces that stay in the L1 cache.
func (k *Keystream) plain(bits, at int, y []byte, minus bool) {
	room := make([]byte, min(8<<10, max(len(y), aes.BlockSize)))
	counter := make([]byte, aes.BlockSize)
	binary.BigEndian.PutUint64(counter[8:], uint64(at/aes.BlockSize))
	s := cipher.NewCTR(k.cipher, counter)
	s.XORKeyStream(room[:at%aes.BlockSize], room[:at%aes.BlockSize])
	for len(y) > 0 {
		b := room[:min(len(room), len(y))]
		clear(b)
		s.XORKeyStream(b, b)
		active.integers(bits, b, y[:len(b)], minus)
		y = y[len(b):]
	}
}
