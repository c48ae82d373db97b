package linear

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	gmat "gonum.org/v1/gonum/mat"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/comm/wire"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

// decaying returns n rows of f columns with the given singular values (0 after them) and random singular vectors.
func decaying(t testing.TB, n, f int, singular []float64) mat.Dense {
	t.Helper()
	random := func(key rng.Key, n, r int) *gmat.Dense {
		a := gmat.NewDense(n, r, nil)
		for i := range n {
			for j := range r {
				a.Set(i, j, key.Normal(uint64(i*r+j)))
			}
		}
		var qr gmat.QR
		qr.Factorize(a)
		var q gmat.Dense
		qr.QTo(&q)
		return gmat.DenseCopyOf(q.Slice(0, n, 0, r))
	}
	key, r := rng.New(3), len(singular)
	u, v := random(key.Fold(1), n, r), random(key.Fold(2), f, r)
	var us, x gmat.Dense
	us.Mul(u, gmat.NewDiagDense(r, singular))
	x.Mul(&us, v.T())
	d := mat.New(n, f)
	for i := range n {
		for j := range f {
			d.Set(i, j, float32(x.At(i, j)))
		}
	}
	return d
}

// power returns r singular values that fall as those of a bag of words do: fast at first, then hardly.
func power(r int, exponent float64) []float64 {
	s := make([]float64, r)
	for i := range s {
		s[i] = 10 * math.Pow(float64(i+1), -exponent)
	}
	return s
}

// overPeers runs Components with the rows dealt out to several peers in turn, sparse or dense, and returns every peer's
// result.
func overPeers(t testing.TB, x mat.Dense, peers, k, passes, bits int, sparse bool) []mat.Dense {
	t.Helper()
	network, out, errs := netsim.New(peers, netsim.Config{}), make([]mat.Dense, peers), make([]error, peers)
	done := make(chan bool)
	for r := range peers {
		var rows []int32
		for i := r; i < x.Rows; i += peers {
			rows = append(rows, int32(i))
		}
		f := graph.Features{Dense: x.Select(rows)}
		if sparse {
			f = graph.Features{Sparse: wire.Block(f).NonZeros()}
		}
		g := comm.NewGroup(network.Transport(r), r, peers)
		go func() {
			out[r], errs[r] = Components(context.Background(), g, comm.ReduceID{}, f, float64(x.Rows-len(rows)), k,
				passes, bits, rng.New(7))
			done <- true
		}()
	}
	for range peers {
		<-done
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r, v := range out {
		if !slices.EqualFunc(v.Data, out[0].Data,
			func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Fatalf("peer %d has other components than peer 0", r)
		}
	}
	return out
}

// unit returns rows of length 1.
func unit(x mat.Dense) mat.Dense { return unitRows(graph.Features{Dense: x}).Dense }

// energy is ‖XV‖², how much of X, its rows of length 1, the components capture.
func energy(x, v mat.Dense) (sum float64) {
	x = unit(x)
	dot := make([]float64, v.Cols)
	for i := range x.Rows {
		clear(dot)
		for j, a := range x.Row(i) {
			if a == 0 {
				continue
			}
			for c, b := range v.Row(j) {
				dot[c] += float64(a) * float64(b)
			}
		}
		for _, d := range dot {
			sum += d * d
		}
	}
	return sum
}

// optimal is the energy of the K leading singular values of x, its rows of length 1, by gonum.
func optimal(x mat.Dense, k int) (sum float64) {
	x = unit(x)
	a := gmat.NewDense(x.Rows, x.Cols, nil)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			a.Set(i, j, float64(v))
		}
	}
	var svd gmat.SVD
	svd.Factorize(a, gmat.SVDNone)
	for i, s := range svd.Values(nil) {
		if i < k {
			sum += s * s
		}
	}
	return sum
}

func checkOrthonormal(t *testing.T, v mat.Dense) {
	t.Helper()
	for a := range v.Cols {
		for b := range a + 1 {
			dot := 0.0
			for i := range v.Rows {
				dot += float64(v.At(i, a)) * float64(v.At(i, b))
			}
			want := 0.0
			if a == b {
				want = 1
			}
			if math.Abs(dot-want) > 1e-5 {
				t.Fatalf("components %d and %d have the product %g, want %g", a, b, dot, want)
			}
		}
	}
}

// TestComponentsCapture compares the components with the singular value decomposition of the pooled rows. They capture
// all of a rank that they can represent, and nearly all of a spectrum that falls fast. If it hardly falls, they capture
// more with each pass (NumPy's float64 of the same algorithm has the same shares). Sparse and dense, one peer and four
// agree.
func TestComponentsCapture(t *testing.T) {
	zero := decaying(t, 80, 40, power(30, 0.5))
	for i := range zero.Rows {
		for _, j := range []int{0, 7, 39} {
			zero.Set(i, j, 0)
		}
	}
	for _, test := range []struct {
		name      string
		x         mat.Dense
		k, passes int
		share     float64
	}{
		{"words, 1 pass", decaying(t, 300, 150, power(150, 0.35)), 64, 1, 0.90},
		{"words, 3 passes", decaying(t, 300, 150, power(150, 0.35)), 64, 3, 0.98},
		{"fast decay", decaying(t, 120, 60, power(60, 2)), 10, 2, 0.99999},
		{"rank K", decaying(t, 100, 50, power(12, 0.3)), 12, 1, 0.999999},
		{"rank below K", decaying(t, 100, 50, power(5, 0.3)), 12, 1, 0.999999},
		{"columns of zeros", zero, 20, 3, 0.99},
		{"all columns", decaying(t, 60, 20, power(20, 0.3)), 20, 1, 0.999999},
		{"F < K+8", decaying(t, 60, 20, power(20, 0.3)), 15, 1, 0.999999},
		{"fewer rows than K", decaying(t, 6, 40, power(6, 0.3)), 16, 1, 0.999999},
		{"nothing", mat.New(30, 20), 4, 2, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			best := optimal(test.x, test.k)
			first := overPeers(t, test.x, 1, test.k, test.passes, 0, false)[0]
			for _, peers := range []int{1, 4} {
				for _, sparse := range []bool{false, true} {
					v := overPeers(t, test.x, peers, test.k, test.passes, 0, sparse)[0]
					checkOrthonormal(t, v)
					got := energy(test.x, v)
					if got < test.share*best || got > 1.00001*best {
						t.Errorf("%d peers, sparse %t: energy %g of %g", peers, sparse, got, best)
					}
					// The span is one however the rows are spread: what one captures of the other is everything.
					if test.name != "nothing" && !strings.HasPrefix(test.name, "rank below") &&
						!strings.HasPrefix(test.name, "fewer") {
						var dist float64
						for i := range v.Data {
							dist = max(dist, math.Abs(float64(v.Data[i]-first.Data[i])))
						}
						if dist > 2e-2 {
							t.Errorf("%d peers, sparse %t: components differ by %g from those of one peer", peers,
								sparse, dist)
						}
					}
				}
			}
		})
	}
}

// TestComponentsDescend: the first component is the most important.
func TestComponentsDescend(t *testing.T) {
	x := decaying(t, 100, 40, power(40, 1))
	v := overPeers(t, x, 2, 8, 2, 0, false)[0]
	last := math.Inf(1)
	for c := range v.Cols {
		e := energy(x, v.ColRange(c, c+1))
		if e > last {
			t.Errorf("component %d captures %g, more than the %g before it", c, e, last)
		}
		last = e
	}
}

// TestComponentsInFixedPoint: components of sums in fixed point capture nearly what those of sums
// in float32 do. In 16 bits they lose nothing, in 8 bits little, also at 8 peers and of columns of
// very unequal scale.
func TestComponentsInFixedPoint(t *testing.T) {
	scaled := decaying(t, 300, 150, power(150, 0.35))
	for i := range scaled.Rows {
		for j := range scaled.Row(i) {
			scaled.Row(i)[j] *= float32(math.Pow(10, float64(j%5)-2))
		}
	}
	for _, test := range []struct {
		name      string
		x         mat.Dense
		k, passes int
	}{
		{"words", decaying(t, 300, 150, power(150, 0.35)), 64, 1},
		{"words, 3 passes", decaying(t, 300, 150, power(150, 0.35)), 64, 3},
		{"fast decay", decaying(t, 120, 60, power(60, 2)), 10, 2},
		{"scales", scaled, 16, 2},
	} {
		for _, peers := range []int{2, 8} {
			whole := energy(test.x, overPeers(t, test.x, peers, test.k, test.passes, 0, false)[0])
			for bits, share := range map[int]float64{16: 0.99999, 8: 0.998} {
				v := overPeers(t, test.x, peers, test.k, test.passes, bits, false)[0]
				checkOrthonormal(t, v)
				if got := energy(test.x, v); got < share*whole {
					t.Errorf("%s, %d peers, %d bits: the energy must be at least %g of that in float32 (got %g)",
						test.name, peers, bits, share, got/whole)
				}
			}
		}
	}
}

func TestComponentsRefuse(t *testing.T) {
	g := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
	if _, err := Components(context.Background(), g, comm.ReduceID{}, graph.Features{Dense: mat.New(9, 4)}, 0, 5, 1, 0,
		1); err == nil ||
		!strings.Contains(err.Error(), "at most as many components as there are features, 4 (got 5)") {
		t.Errorf("more components than features: %v", err)
	}
	huge := mat.New(3, 3)
	for i := range huge.Data {
		huge.Data[i] = float32(math.Inf(1))
	}
	if _, err := Components(context.Background(), g, comm.ReduceID{}, graph.Features{Dense: huge}, 0, 2, 1, 0,
		1); err == nil || !strings.Contains(err.Error(), "must be finite") {
		t.Errorf("features that are not finite: %v", err)
	}
}

// TestCoraComponents is the same on real words. The long form computes the best that any components capture anew.
func TestCoraComponents(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	g, err := dataset.Read(testenv.DataDir(t, "cora"), 0)
	if err != nil {
		t.Fatal(err)
	}
	x := g.X.Sparse.Dense()
	best := 1047.4204075564933
	if testenv.LongForm(t) {
		if now := optimal(x, 64); math.Abs(now-best) > 1e-9*best {
			t.Errorf("the best components capture %v, must be %v", now, best)
		}
	}
	for passes, share := range []float64{1: 0.80, 2: 0.93, 3: 0.965} {
		if passes == 0 {
			continue
		}
		v := overPeers(t, x, 2, 64, passes, 0, true)[0]
		checkOrthonormal(t, v)
		if reach := energy(x, v) / best; reach < share || reach > 1 {
			t.Errorf("%d passes capture %.4f of the best, want %.3f", passes, reach, share)
		}
	}
}
