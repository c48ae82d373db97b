package kernels

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
)

// keyOf returns a key whose bytes differ.
func keyOf(seed byte) (key [32]byte) {
	for i := range key {
		key[i] = seed + byte(37*i*i)
	}
	return key
}

// streamOf returns n bytes of AES in counter mode by crypto/cipher, from byte `at` on.
func streamOf(t *testing.T, key [32]byte, at, n int) []byte {
	t.Helper()
	c, err := aes.NewCipher(key[:])
	if err != nil {
		t.Fatal(err)
	}
	counter := make([]byte, 16)
	binary.BigEndian.PutUint64(counter[8:], uint64(at/16))
	b := make([]byte, at%16+n)
	cipher.NewCTR(c, counter).XORKeyStream(b, b)
	return b[at%16:]
}

// TestKeystream compares keystreams with crypto/cipher: from any byte, for any length, across carries of the counter.
// Nothing next to the integers is written.
func TestKeystream(t *testing.T) {
	each(t, func(t *testing.T) {
		check := func(key [32]byte, bits, at, n int, minus bool) {
			t.Helper()
			y := make([]byte, n)
			for i := range y {
				y[i] = []byte{0x00, 0x7f, 0x80, 0xff, byte(31 * i)}[(i*i+n)%5]
			}
			room := slices.Concat([]byte{42}, y, []byte{42})
			want := wideIntegers(bits, streamOf(t, key, at, n), y, minus)
			if k := NewKeystream(key); minus {
				k.Sub(bits, at, room[1:n+1])
			} else {
				k.Add(bits, at, room[1:n+1])
			}
			if want = slices.Concat([]byte{42}, want, []byte{42}); !bytes.Equal(room, want) {
				t.Fatalf("%d bytes at %d of integers of %d bits, minus %t: must be %x (got %x)", n, at, bits, minus,
					want, room)
			}
		}
		for n := range 1100 {
			check(keyOf(byte(n)), 8, n*n%53, n, n%2 == 0)
		}
		for at := range 70 {
			check(keyOf(byte(at)), 8, at, 600, at%2 == 0)
		}
		for k, bits := range []int{16, 32, 64} {
			for _, block := range []int64{0, 3, 1<<8 - 5, 1<<16 - 9, 1<<32 - 31, 1<<40 - 1, 1<<59 - 64} {
				if 16*block > math.MaxInt-1<<20 {
					continue // an int has 32 bits here
				}
				for _, minus := range []bool{false, true} {
					check(keyOf(byte(k)), bits, 16*int(block)+bits/8, 1096, minus)
					check(keyOf(byte(k)), bits, 16*int(block), 24<<10, minus)
				}
			}
		}
	})
}

// TestKeystreamVector compares the first blocks of AES-256 with key 0, 1, …, 31 and a counter of 0 with OpenSSL's.
func TestKeystreamVector(t *testing.T) {
	each(t, func(t *testing.T) {
		var key [32]byte
		for i := range key {
			key[i] = byte(i)
		}
		y := make([]byte, 32)
		NewKeystream(key).Add(8, 0, y)
		const want = "f29000b62a499fd0a9f39a6add2e7780f05d76ae4ab99fe5a6f69b3148c2363d"
		if got := fmt.Sprintf("%x", y); got != want {
			t.Fatalf("the stream must begin with %s (got %s)", want, got)
		}
	})
}

func BenchmarkKeystream(b *testing.B) {
	y, k := make([]byte, 32<<10), NewKeystream(keyOf(1))
	b.SetBytes(int64(len(y)))
	for b.Loop() {
		k.Add(32, 0, y)
	}
}
