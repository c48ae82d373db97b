package kernels

import (
	"math"
	"testing"
)

// TestSumWide: it sums in float64 and rounds once, bit for bit, for any length, also if dst is one of the terms.
func TestSumWide(t *testing.T) {
	for n := range 140 {
		for _, count := range []int{1, 2, 3, 8} {
			terms := make([][]float32, count)
			for k := range terms {
				terms[k] = make([]float32, n)
				for i := range terms[k] {
					terms[k][i] = float32(math.Pow(-1.7, float64((7*i+5*k)%40))) * float32(i+k+1)
				}
			}
			want := make([]float32, n)
			for i := range want {
				s := float64(terms[0][i])
				for _, x := range terms[1:] {
					s += float64(x[i])
				}
				want[i] = float32(s)
			}
			room := make([]float32, n+2)
			room[0], room[n+1] = 42, 42
			SumWide(room[1:n+1], terms)
			SumWide(terms[count-1], terms)
			for i := range want {
				if math.Float32bits(room[i+1]) != math.Float32bits(want[i]) ||
					math.Float32bits(terms[count-1][i]) != math.Float32bits(want[i]) {
					t.Fatalf("%d vectors of %d: [%d] is %v and in place %v, must be %v", count, n, i, room[i+1],
						terms[count-1][i], want[i])
				}
			}
			if room[0] != 42 || room[n+1] != 42 {
				t.Fatalf("%d vectors of %d: written beside them", count, n)
			}
		}
	}
}
