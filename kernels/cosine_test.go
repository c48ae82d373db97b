package kernels

import (
	"math"
	"math/rand/v2"
	"runtime"
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

// TestWaves: values that are not finite stay so.
func TestWaves(t *testing.T) {
	y := []float32{0, 1, float32(math.Inf(1)), float32(math.NaN())}
	Waves([]float32{0, 2, 0, 0}, y)
	if y[0] != math.Sqrt2 || y[1] != float32(math.Sqrt2*math.Cos(3)) || y[2] == y[2] || y[3] == y[3] {
		t.Errorf("%v", y)
	}
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
