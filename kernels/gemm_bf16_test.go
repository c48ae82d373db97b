package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestGemmBF16Random checks products of random shapes and values, some not finite or below 2⁻¹²⁶, against float64
// products of the rounded values. Values below 2⁻¹²⁶ may count as zeros.
func TestGemmBF16Random(t *testing.T) {
	const least = 0x1p-126
	r := rand.New(rand.NewPCG(7, 9))
	draw := func(n int, rare bool) []float32 {
		x := make([]float32, n)
		for i := range x {
			switch x[i] = float32(r.NormFloat64() * math.Exp2(float64(r.IntN(20)-10))); {
			case rare && r.IntN(50) == 0:
				x[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32,
					0x1p-140, -0x1p-130, 0x1.fffp-127, float32(math.Copysign(0, -1))}[r.IntN(8)]
			}
		}
		return x
	}
	each(t, func(t *testing.T) {
		for turn := range 60 {
			m, n, k := 1+r.IntN(70), 1+r.IntN(70), 1+r.IntN(70)
			if turn%10 == 0 {
				m, n, k = 40, 47, 700+r.IntN(200)
			}
			a, b := draw(m*k, turn%2 == 1), draw(k*n, turn%2 == 1)
			a16, b16 := inBF16(a), inBF16(b)
			for _, f := range gemmForms[3:] {
				lda, ldb := k, n
				if f.transA {
					lda = m
				}
				if f.transB {
					ldb = k
				}
				c := make([]float32, m*n)
				f.run(m, n, k, a, lda, b, ldb, c, n, false)
				for i := range m {
					for j := range n {
						var sum, abs, lost float64
						for p := range k {
							ia, ib := i*lda+p, p*ldb+j
							if f.transA {
								ia = p*lda + i
							}
							if f.transB {
								ib = j*ldb + p
							}
							x, y := float64(a16[ia]), float64(b16[ib])
							sum, abs = sum+x*y, abs+math.Abs(x*y)
							if min(math.Abs(float64(a[ia])), math.Abs(float64(b[ib]))) < least {
								if math.IsInf(x, 0) || math.IsInf(y, 0) { // zero times infinity is NaN
									lost = math.NaN()
								}
								lost += math.Abs(x * y)
							}
						}
						got := float64(c[i*n+j])
						fail := func(want string) {
							t.Fatalf("%s %d×%d×%d: C[%d,%d] = %g, must be %s", f.name, m, n, k, i, j, got, want)
						}
						switch bound := float64(k+2)*(0x1p-24*abs+least) + lost; {
						case lost != lost: // a number below 2⁻¹²⁶ may or may not count as zero
						case sum != sum:
							if got == got {
								fail("NaN")
							}
						case abs > math.MaxFloat32: // infinity may result
							if math.IsInf(sum, 0) && got != sum {
								fail(fmt.Sprint(sum))
							}
						case math.Abs(got-sum) > bound || got != got:
							fail(fmt.Sprintf("%g within %g", sum, bound))
						}
					}
				}
			}
		}
	})
}

// TestGemmBF16Rows checks that a row's bits do not depend on its index or on the other rows.
func TestGemmBF16Rows(t *testing.T) {
	const m, n, k = 75, 70, 900
	a, b := noise(1, make([]float32, m*k)), noise(2, make([]float32, k*n))
	each(t, func(t *testing.T) {
		want := make([]float32, m*n)
		GemmNNBF16(m, n, k, a, k, b, n, want, n, false, nil, false)
		for _, of := range [][2]int{{0, 1}, {1, 33}, {17, 64}, {40, 75}, {74, 75}} {
			c := make([]float32, (of[1]-of[0])*n)
			GemmNNBF16(of[1]-of[0], n, k, a[of[0]*k:], k, b, n, c, n, false, nil, false)
			same(t, fmt.Sprint(of), c, want[of[0]*n:of[1]*n])
		}
	})
}

// TestGemmBF16Signals checks that signals and goroutine switches do not change tiles: the collector stops goroutines by
// signals while others multiply.
func TestGemmBF16Signals(t *testing.T) {
	const m, n, k = 96, 256, 256
	a, b := noise(1, make([]float32, m*k)), noise(2, make([]float32, k*n))
	want := make([]float32, m*n)
	GemmNNBF16(m, n, k, a, k, b, n, want, n, false, nil, false)
	var wait sync.WaitGroup
	end := time.Now().Add(200 * time.Millisecond)
	for range 2 * runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			c := make([]float32, m*n)
			for time.Now().Before(end) {
				clear(c)
				GemmNNBF16(m, n, k, a, k, b, n, c, n, false, nil, false)
				if !slices.Equal(c, want) {
					t.Error("a product differs")
					return
				}
			}
		})
	}
	for time.Now().Before(end) {
		runtime.GC()
	}
	wait.Wait()
}
