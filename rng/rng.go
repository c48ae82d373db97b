// Package rng gives keyed randomness: a value is a function of a key, never of how many came before it. A key is folded
// from the seed and the names of the place of use (phase, layer, round, node, column). Every peer and every replay then
// generates the same values, and nothing has to be stored.
package rng

import "math"

// Key names a place of use.
type Key uint64

// New returns the key of a run's seed.
func New(seed uint64) Key { return Key(mix(seed ^ 0x48656464_6c652121)) }

// Fold returns the key of the place x inside k. Folding is not commutative.
func (k Key) Fold(x uint64) Key { return Key(mix(uint64(k) + 0x9e3779b97f4a7c15*(x+1))) }

// FoldString folds the bytes of s, for phases that have names (FNV-1a, then Fold).
func (k Key) FoldString(s string) Key {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return k.Fold(h)
}

// Uint64 returns the i-th uniform value of k.
func (k Key) Uint64(i uint64) uint64 { return mix(uint64(k) ^ mix(i+0x9e3779b97f4a7c15)) }

// Float64 returns the i-th value of k, uniform in [0, 1).
func (k Key) Float64(i uint64) float64 { return float64(k.Uint64(i)>>11) * 0x1p-53 }

// Normal returns the i-th value of k from the standard normal distribution (Box and Muller 1958).
func (k Key) Normal(i uint64) float64 {
	u := 1 - k.Float64(2*i) // (0, 1]: the logarithm is finite
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*k.Float64(2*i+1))
}

// Perm returns the random permutation of [0, n) for k (Fisher and Yates 1938).
func (k Key) Perm(n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(i)
	}
	for i := n - 1; i > 0; i-- {
		j := k.Uint64(uint64(i)) % uint64(i+1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), variant 13 of Stafford.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
