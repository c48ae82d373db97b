package kernels

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
)

// A Keystream is the bytes of AES-256 in counter mode from a counter of 0. They are read as integers, which are added
// to others or subtracted. Several goroutines may use it at once.
type Keystream struct {
	rounds [15][aes.BlockSize]byte // keys of the rounds
	cipher cipher.Block            // instead of them, unless the set has a loop of its own for this processor
}

// NewKeystream returns the stream of a key. A key may have one stream only.
func NewKeystream(key [32]byte) *Keystream {
	k := &Keystream{}
	if active.expandKey != nil && active.expandKey(&key, &k.rounds) {
		return k
	}
	var err error
	if k.cipher, err = aes.NewCipher(key[:]); err != nil {
		panic("kernels: " + err.Error()) // only of lengths
	}
	return k
}

// Add computes y += the stream from byte `at` on, modulo 2^bits: packed little-endian integers of 8, 16, 32 or 64 bits.
// `at` is a multiple of their bytes.
func (k *Keystream) Add(bits, at int, y []byte) { k.apply(bits, at, y, false) }

// Sub computes y -= the stream from byte `at` on, as Add does.
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

// plain computes some of the stream at a time by crypto/cipher, which stays in the first-level cache.
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
