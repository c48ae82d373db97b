package kernels

import "math/bits"

// integersAVX2 processes 128 bytes at a time; Go processes the rest.
func integersAVX2(width int, x, y []byte, minus bool) {
	n := len(x) &^ 127
	if n > 0 {
		add := &addPackedAVX2
		if minus {
			add = &subPackedAVX2
		}
		add[bits.TrailingZeros(uint(width))-3](x[:n], y[:n])
	}
	integersGeneric(width, x[n:], y[n:], minus)
}

// Indexed by log₂ of the bytes of an integer.
var (
	addPackedAVX2 = [4]func(x, y []byte){addBytesAVX2, addWordsAVX2, addLongsAVX2, addQuadsAVX2}
	subPackedAVX2 = [4]func(x, y []byte){subBytesAVX2, subWordsAVX2, subLongsAVX2, subQuadsAVX2}
)

//go:noescape
func addBytesAVX2(x, y []byte)

//go:noescape
func addWordsAVX2(x, y []byte)

//go:noescape
func addLongsAVX2(x, y []byte)

//go:noescape
func addQuadsAVX2(x, y []byte)

//go:noescape
func subBytesAVX2(x, y []byte)

//go:noescape
func subWordsAVX2(x, y []byte)

//go:noescape
func subLongsAVX2(x, y []byte)

//go:noescape
func subQuadsAVX2(x, y []byte)
