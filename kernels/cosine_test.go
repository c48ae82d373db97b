package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// TestCosine: a cosine has the bits of math.Cos if math.Cos fuses no products, and is as close to it elsewhere.
func TestCosine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(x float64) {
		got, want := cosine(x), math.Cos(x)
		same := math.Float64bits(got) == math.Float64bits(want) || got != got && want != want
		if runtime.GOARCH != "amd64" {
			same = same || math.Abs(got-want) < 1e-15
		}
		if !same {
			t.Fatalf("the cosine of %g is %g, must be %g", x, got, want)
		}
	}
	for _, x := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1 << 29, 1<<29 - 1,
		1e300, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		check(x)
	}
	for k := range 4096 { // at the ends of octants
		x := float64(k-2048) * math.Pi / 4
		for _, x := range []float64{x, math.Nextafter(x, 1e9), math.Nextafter(x, -1e9)} {
			check(x)
		}
	}
	for range 1 << 20 {
		check(r.NormFloat64() * 10)
		check(math.Float64frombits(r.Uint64()))
	}
}

// TestWaves: every set has the bits of math.Cos, at any length, and writes nothing else. The loops of assembly need
// values below 2²⁹; a slice with another value, or NaN, is computed in Go.
func TestWaves(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var phases, values []float32
	add := func(x float64) { // as a sum of two float32
		phases, values = append(phases, float32(x-float64(float32(x)))), append(values, float32(x))
	}
	for k := range 4096 { // at the ends of octants
		x := float64(k-2048) * math.Pi / 4
		add(x)
		add(math.Nextafter(x, 1e9))
		add(math.Nextafter(x, -1e9))
	}
	for range 1 << 17 {
		add(r.NormFloat64() * 10)
		add((2*r.Float64() - 1) * (far - 64))
		y := float32((2*r.Float64() - 1) * 1.414)
		half := (float64(y) + float64(math.Nextafter32(y, 0))) / 2 // its rounding shows the last bit of a float64
		add(2*math.Pi*float64(r.IntN(4)) - math.Acos(half/math.Sqrt2))
		small := math.Float32frombits(r.Uint32() &^ (1 << 30))
		phases, values = append(phases, float32(r.Float64()*2*math.Pi)), append(values, small)
	}
	negativeZero := float32(math.Copysign(0, -1))
	phases, values = append(phases, 0, negativeZero, negativeZero), append(values, negativeZero, 0, negativeZero)
	odd := []float32{far, -far, math.Nextafter32(far, 0), math.MaxFloat32, -1e30, float32(math.Inf(1)),
		float32(math.Inf(-1)), float32(math.NaN())}
	each(t, func(t *testing.T) {
		if m := active.maxAbs(phases) + active.maxAbs(values); !(m < far) {
			t.Fatalf("values up to %g would be computed in Go", m)
		}
		check := func(what string, phase, x []float32) {
			t.Helper()
			want := make([]float32, len(x))
			for i := range want {
				if want[i] = wave(x[i], phase[i]); runtime.GOARCH == "amd64" {
					want[i] = float32(math.Sqrt2 * math.Cos(float64(x[i])+float64(phase[i])))
				}
			}
			y, outside := fenced(t, len(x)%16, len(x))
			copy(y, x)
			Waves(phase, y)
			same(t, what, y, want)
			outside()
		}
		check("all values", phases, values)
		for n := range 71 {
			at := len(values) - n
			check(fmt.Sprintf("%d values", n), phases[at:], values[at:])
			for i, v := range odd {
				if n > 0 {
					x, phase := slices.Clone(values[at:]), slices.Clone(phases[at:])
					x[(n*i)%n], phase[n/2] = v, odd[n%len(odd)]
					check(fmt.Sprintf("%d values, one of them %g", n, v), phase, x)
				}
			}
		}
	})
}

func BenchmarkWaves(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	phase, x, y := make([]float32, 1<<14), make([]float32, 1<<14), make([]float32, 1<<14)
	for j := range phase {
		phase[j], x[j] = float32(r.Float64()*7), float32(r.NormFloat64())
	}
	for b.Loop() {
		copy(y, x)
		Waves(phase, y)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(len(y)), "ns/value")
}
