package kernels

import (
	"crypto/aes"
	"math/bits"

	"golang.org/x/sys/cpu"
)

// expandKeyAVX512 reports whether the processor encrypts four blocks at a time: some with AVX-512 do not.
func expandKeyAVX512(key *[32]byte, rounds *[15][aes.BlockSize]byte) bool {
	if cpu.X86.HasAVX512VAES {
		expandKeyVAES(key, rounds)
	}
	return cpu.X86.HasAVX512VAES
}

// keystreamAVX512 handles a start in the middle of a block by a copy of that block.
func keystreamAVX512(k *Keystream, width, at int, y []byte, minus bool) {
	stream := &addStreamVAES
	if minus {
		stream = &subStreamVAES
	}
	run := stream[bits.TrailingZeros(uint(width))-3]
	if begun := at % aes.BlockSize; begun > 0 {
		var block [aes.BlockSize]byte
		n := copy(block[begun:], y)
		run(&k.rounds, at/aes.BlockSize, block[:])
		copy(y, block[begun:begun+n])
		y, at = y[n:], at+n
	}
	if len(y) > 0 {
		run(&k.rounds, at/aes.BlockSize, y)
	}
}

// Indexed by log₂ of the bytes of an integer.
var (
	addStreamVAES = [4]func(rounds *[15][16]byte, block int, y []byte){
		addStreamBytesVAES, addStreamWordsVAES, addStreamLongsVAES, addStreamQuadsVAES}
	subStreamVAES = [4]func(rounds *[15][16]byte, block int, y []byte){
		subStreamBytesVAES, subStreamWordsVAES, subStreamLongsVAES, subStreamQuadsVAES}
)

//go:noescape
func expandKeyVAES(key *[32]byte, rounds *[15][16]byte)

//go:noescape
func addStreamBytesVAES(rounds *[15][16]byte, block int, y []byte)

//go:noescape
func addStreamWordsVAES(rounds *[15][16]byte, block int, y []byte)

//go:noescape
func addStreamLongsVAES(rounds *[15][16]byte, block int, y []byte)

//go:noescape
func addStreamQuadsVAES(rounds *[15][16]byte, block int, y []byte)

//go:noescape
func subStreamBytesVAES(rounds *[15][16]byte, block int, y []byte)

//go:noescape
func subStreamWordsVAES(rounds *[15][16]byte, block int, y []byte)

//go:noescape
func subStreamLongsVAES(rounds *[15][16]byte, block int, y []byte)

//go:noescape
func subStreamQuadsVAES(rounds *[15][16]byte, block int, y []byte)
