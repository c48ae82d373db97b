package measure

import (
	"strings"

	"github.com/heddle-gnn/heddle/kernels"
)

var wide = strings.HasPrefix(kernels.Name(), "avx512") || kernels.Name() == "amx"

// vectors reports whether peaks can be measured.
var vectors = kernels.Name() != "generic"

// fmaFlops returns the operations in a round of fmas.
func fmaFlops() int {
	switch {
	case wide:
		return 24 * 16 * 2
	case vectors:
		return 12 * 8 * 2
	}
	return 0
}

func fmas(rounds int) {
	var x [32 * 16]float32 // not zeros: processors multiply zeros faster, since this takes less power
	for i := range x {
		x[i] = float32(int32(mix(uint64(i))>>32)) * 0x1p-31
	}
	if wide {
		fmasAVX512(rounds, x[:])
	} else if vectors {
		fmasAVX2(rounds, x[:])
	}
}

func triads(a, b, c []float32) {
	if vectors {
		triadAVX2(a, b, c)
	}
}

func gathers(index []int32, x []float32, lines int) {
	gatherAVX2(index, x, lines)
}

// fmasAVX512 adds products of 8 registers to 24, all loaded from x, in each round.
//
//go:noescape
func fmasAVX512(rounds int, x []float32)

// fmasAVX2 adds products of 4 registers to 12.
//
//go:noescape
func fmasAVX2(rounds int, x []float32)

// triadAVX2 is a = b + 0·c, of whole cache lines.
//
//go:noescape
func triadAVX2(a, b, c []float32)

// gatherAVX2 reads lines cache lines for each index, which counts cache lines, and fetches 16
// indices ahead: so many must follow the slice in its array.
//
//go:noescape
func gatherAVX2(index []int32, x []float32, lines int)
