package dp

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math/bits"
)

// sigma is the deviation of the noise that Edges adds, in steps of its grid: the grid is chosen for
// it, so that every plan draws from the same distribution.
const sigma = 1 << 12

// deviationSquared is σ² − τ², τ = smoothing. Discrete Gaussian noise of parameter σ = sigma protects at least as well
// as normal noise of that variance, which the accountant assumes.
//
// Add to a normal value X of mean c, an integer, and variance σ² − τ² a discrete Gaussian of parameter τ around it: n
// with probability φ_τ(n − X) / Σ_k φ_τ(k − X). By Poisson's summation formula that sum is within a factor 1 ± η of 1,
// η = 2·Σ_j exp(−2π²τ²j²), whatever X is, and so is the sum of φ_σ over the integers. So n has the distribution of c
// plus discrete Gaussian noise of parameter σ, up to a factor within 1 ± 4η. What is made of X protects as X does. With
// τ = 3 the factor is 1 ± 10⁻⁷⁵ in each number, which no sum of numbers here lifts above the rounding of
// Gaussian.Delta. (The convolution of discrete Gaussians: Peikert, CRYPTO 2010, theorem 3.1.)
const deviationSquared = sigma*sigma - smoothing*smoothing

const smoothing = 3

// noise draws from the discrete Gaussian distribution over the integers, P(n) ∝ exp(−n²/2σ²),
// exactly: only with integers and uniform bits, so that no rounding of floating point reveals what
// the noise was added to (Canonne, Kamath and Steinke, NeurIPS 2020, algorithms 1 to 3).
type noise struct {
	stream cipher.Stream
	block  [256]byte // of the stream
	used   int       // bytes of it
	sigma  uint64    // at most 2¹⁵
}

// newNoise returns a source of noise whose bits are AES-256 in counter mode under key.
func newNoise(key [32]byte, sigma uint64) *noise {
	s := &noise{sigma: sigma}
	c, err := aes.NewCipher(key[:])
	if err != nil {
		panic("dp: " + err.Error()) // only of keys of another length
	}
	s.stream, s.used = cipher.NewCTR(c, make([]byte, aes.BlockSize)), len(s.block)
	return s
}

// uniform returns 64 bits.
func (s *noise) uniform() uint64 {
	if s.used == len(s.block) {
		clear(s.block[:])
		s.stream.XORKeyStream(s.block[:], s.block[:])
		s.used = 0
	}
	s.used += 8
	return binary.LittleEndian.Uint64(s.block[s.used-8:])
}

// draw returns one sample.
func (s *noise) draw() int64 {
	t := s.sigma + 1
	square := s.sigma * s.sigma
	for {
		y := s.laplace(t)
		magnitude := uint64(max(y, -y))
		// Keep y with probability exp(−(|y| − σ²/t)² / 2σ²).
		at, base := magnitude*t, square
		if at < base {
			at, base = base, at
		}
		hi, lo := bits.Mul64(at-base, at-base)
		den := 2 * square * t * t
		if hi >= den { // beyond 2⁶⁴ in the exponent
			continue
		}
		whole, rest := bits.Div64(hi, lo, den)
		if s.expWhole(whole) && s.expFraction(rest, den) {
			return y
		}
	}
}

// laplace draws from the discrete Laplace distribution, P(n) ∝ exp(−|n|/t).
func (s *noise) laplace(t uint64) int64 {
	for {
		u := s.below(t)
		if !s.expFraction(u, t) {
			continue
		}
		v := uint64(0)
		for s.expFraction(1, 1) {
			v++
		}
		n := int64(u + t*v)
		switch negative := s.below(2) == 1; {
		case negative && n == 0: // zero would come twice as often
		case negative:
			return -n
		default:
			return n
		}
	}
}

// expWhole is true with probability exp(−n).
func (s *noise) expWhole(n uint64) bool {
	for range n {
		if !s.expFraction(1, 1) {
			return false
		}
	}
	return true
}

// expFraction is true with probability exp(−num/den), num ≤ den.
func (s *noise) expFraction(num, den uint64) bool {
	k := uint64(1)
	for s.below(den) < num && s.below(k) == 0 { // with probability num/(den·k)
		k++
	}
	return k%2 == 1
}

// below draws from 0 … n−1, all alike.
func (s *noise) below(n uint64) uint64 {
	if n&(n-1) == 0 {
		return s.uniform() & (n - 1)
	}
	for {
		hi, lo := bits.Mul64(s.uniform(), n) // Lemire, ACM TOMACS 29, 2019
		if lo >= n || lo >= -n%n {
			return hi
		}
	}
}
