package secagg

import (
	"encoding/binary"
	"math"

	"github.com/heddle-gnn/heddle/comm"
)

// The largest magnitudes of the members, from which the grid of a sum follows, are summed under
// masks as well. A magnitude is written as limbs of 56 bits, each summed in 64: the sum of float32
// numbers down to 2⁻⁷² is exact, and smaller ones are rounded up to a multiple of 2⁻⁹⁶.

const (
	limbs     = 4
	limbBits  = 56
	limbFloor = -96 // the lowest limb counts in units of 2^limbFloor
)

// widen returns magnitudes as whole numbers, limbs of them each.
func widen(magnitudes []float32) comm.Integers {
	all := comm.NewIntegers(64, limbs*len(magnitudes))
	for j, m := range magnitudes {
		rest := math.Ldexp(float64(m), -limbFloor) // below 2^(128+96), and exact
		for k := limbs - 1; k >= 0; k-- {
			unit := math.Ldexp(1, k*limbBits)
			n := math.Floor(rest / unit)
			if k == 0 {
				n = math.Ceil(rest)
			}
			binary.LittleEndian.PutUint64(all.B[8*(limbs*j+k):], uint64(n))
			rest -= float64(n * unit)
		}
	}
	return all
}

// narrow returns the sums that sums of widen stand for, rounded to float32.
func narrow(sums comm.Integers) []float32 {
	all := make([]float32, len(sums.B)/(8*limbs))
	for j := range all {
		x := 0.0
		for k := limbs - 1; k >= 0; k-- {
			n := binary.LittleEndian.Uint64(sums.B[8*(limbs*j+k):])
			x += math.Ldexp(float64(n), k*limbBits+limbFloor)
		}
		all[j] = float32(x)
	}
	return all
}
