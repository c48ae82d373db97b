package kernels

import "math/bits"

// integersNEON processes 64 bytes at a time; Go processes the rest.
func integersNEON(width int, x, y []byte, minus bool) {
	n := len(x) &^ 63
	if n > 0 {
		add := &addPackedNEON
		if minus {
			add = &subPackedNEON
		}
		add[bits.TrailingZeros(uint(width))-3](x[:n], y[:n])
	}
	integersGeneric(width, x[n:], y[n:], minus)
}

// Indexed by log₂ of the bytes of an integer.
var (
	addPackedNEON = [4]func(x, y []byte){addBytesNEON, addWordsNEON, addLongsNEON, addQuadsNEON}
	subPackedNEON = [4]func(x, y []byte){subBytesNEON, subWordsNEON, subLongsNEON, subQuadsNEON}
)

//go:noescape
func addBytesNEON(x, y []byte)

//go:noescape
func addWordsNEON(x, y []byte)

//go:noescape
func addLongsNEON(x, y []byte)

//go:noescape
func addQuadsNEON(x, y []byte)

//go:noescape
func subBytesNEON(x, y []byte)

//go:noescape
func subWordsNEON(x, y []byte)

//go:noescape
func subLongsNEON(x, y []byte)

//go:noescape
func subQuadsNEON(x, y []byte)
