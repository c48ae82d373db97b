package linear

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/heddle-gnn/heddle/graph"
	hmat "github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// definite returns a positive definite matrix.
func definite(n int, key rng.Key) *mat.SymDense {
	a := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			a.SetSym(i, j, key.Normal(uint64(n*i+j)))
		}
		a.SetSym(i, i, float64(4*n))
	}
	return a
}

// TestCholeskyAsGonum: factors and solutions have the same bits as gonum's, at the ends of panels and blocks and
// between them.
func TestCholeskyAsGonum(t *testing.T) {
	for _, n := range []int{1, 2, 63, 64, 65, 130, cholPanel + cholBlock, cholPanel + cholBlock + 1, 700} {
		a, b := definite(n, rng.New(uint64(n))), mat.NewDense(n, solveCols+3, nil)
		for i := range n {
			for j := range solveCols + 3 {
				b.Set(i, j, rng.New(2).Normal(uint64(n*j+i)))
			}
		}
		var want mat.Cholesky
		var solution mat.Dense
		if !want.Factorize(a) {
			t.Fatal("not positive definite")
		}
		if err := want.SolveTo(&solution, b); err != nil {
			t.Fatal(err)
		}
		raw := a.RawSymmetric()
		if ok, err := cholesky(t.Context(), raw); !ok || err != nil {
			t.Fatalf("%d columns: %t, %v", n, ok, err)
		}
		upper := want.RawU()
		for i := range n {
			for j := i; j < n; j++ {
				if got := raw.Data[i*raw.Stride+j]; got != upper.At(i, j) {
					t.Fatalf("%d columns: R(%d,%d) is %g, gonum's %g", n, i, j, got, upper.At(i, j))
				}
			}
		}
		x := mat.DenseCopyOf(b).RawMatrix()
		if err := solveCholesky(t.Context(), raw, x); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x.Data, solution.RawMatrix().Data) {
			t.Errorf("%d columns: the solution is not gonum's", n)
		}
	}
	a := definite(200, rng.New(1))
	a.SetSym(150, 150, -1)
	if ok, err := cholesky(t.Context(), a.RawSymmetric()); ok || err != nil {
		t.Errorf("a matrix that is not positive definite: %t, %v", ok, err)
	}
}

// TestOrthonormalAsGonum: an orthonormal basis has the same bits as gonum's.
func TestOrthonormalAsGonum(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {40, 7}, {130, 128}, {200, 129}, {160, 160}, {170, 161}, {300, 200}} {
		got := blas64.General{Rows: shape[0], Cols: shape[1], Stride: shape[1],
			Data: make([]float64, shape[0]*shape[1])}
		for i := range got.Data {
			got.Data[i] = rng.New(3).Normal(uint64(i))
		}
		want := got
		want.Data = slices.Clone(got.Data)
		tau, work := make([]float64, want.Cols), make([]float64, 64*want.Cols)
		lapack64.Geqrf(want, tau, work, len(work))
		lapack64.Orgqr(want, tau, work, len(work))
		if err := orthonormal(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Data, want.Data) {
			t.Errorf("%v: the basis is not gonum's", shape)
		}
	}
}

// TestEigenvectorsAsGonum: eigenvectors have the same bits as gonum's.
func TestEigenvectorsAsGonum(t *testing.T) {
	for _, n := range []int{1, 2, 31, 33, 136, 300} {
		a := definite(n, rng.New(uint64(n)))
		var eig mat.EigenSym
		var want mat.Dense
		if !eig.Factorize(a, true) {
			t.Fatal("no eigenvalues")
		}
		eig.VectorsTo(&want)
		raw := a.RawSymmetric()
		if ok, err := eigenvectors(t.Context(), raw); !ok || err != nil {
			t.Fatalf("%d columns: %t, %v", n, ok, err)
		}
		if !slices.Equal(raw.Data, want.RawMatrix().Data) {
			t.Errorf("%d columns: the eigenvectors are not gonum's", n)
		}
	}
}

// countdown is a context that ends after a number of looks at it.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left == 0 {
		return context.Canceled
	}
	c.left--
	return nil
}

// TestSolvesEndWithTheContext: whatever takes long looks at its context often, and ends at the first look that finds it
// ended.
func TestSolvesEndWithTheContext(t *testing.T) {
	wide := hmat.New(400, 300)
	for i := range wide.Data {
		wide.Data[i] = float32(rng.New(1).Normal(uint64(i)))
	}
	for _, one := range []struct {
		name  string
		least int // looks
		solve func(context.Context) error
	}{
		{"products", 2, func(ctx context.Context) error {
			_, err := newProducts(graph.Features{Dense: wide}).gram(ctx, hmat.New(300, 2))
			return err
		}},
		{"chunks", 3, func(ctx context.Context) error { return inChunks(ctx, 10, 2.5*chunkWork, func(int, int) {}) }},
		{"basis", 2 * (300 - qrRest) / qrPanel,
			func(ctx context.Context) error { return orthonormalise(ctx, wide.Clone()) }},
		{"eigenvectors", 2, func(ctx context.Context) error {
			_, err := eigenvectors(ctx, definite(100, 1).RawSymmetric())
			return err
		}},
	} {
		const most = 1 << 20
		whole := &countdown{t.Context(), most}
		if err := one.solve(whole); err != nil {
			t.Errorf("%s: %v", one.name, err)
			continue
		}
		looks := most - whole.left
		if looks < one.least {
			t.Errorf("%s: %d looks at the context, want at least %d", one.name, looks, one.least)
		}
		for n := range looks {
			ending := &countdown{t.Context(), n}
			if err := one.solve(ending); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, where the context ended at look %d of %d", one.name, err, n, looks)
			}
		}
	}
}

// TestCost: a solve that a site would not wait for is refused before it begins, and a long one is announced.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		name      string
		cost      Cost
		warn, err string
	}{
		{"129 columns", RidgeCost(129, 7, 9), "", ""},
		{"6776 columns", RidgeCost(6776, 15, 9),
			"a closed form with 6776 columns, 15 outputs and 9 penalties takes about 3m", ""},
		{"many columns", RidgeCost(MaxRidge+1, 2, 1), "", "columns of a closed form must be at most 8192 (got 8193)"},
		{"many penalties", RidgeCost(MaxRidge, 2, 40), "", "use fewer random features or rounds"},
		{"128 components", ComponentsCost(61278, 128, 1), "", ""},
		{"1000 components", ComponentsCost(61278, 1000, 1), "encoder pca:1000 over 61278 features takes about", ""},
		{"many components", ComponentsCost(6805, MaxComponents+1, 1), "",
			"components must be at most 1024 with encoder pca (got 1025)"},
		{"many passes", ComponentsCost(61278, 1000, 100), "", "use fewer components or passes"},
	} {
		err := c.cost.Err()
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		}
		if warn := c.cost.Warning(); err == nil && ((warn == "") != (c.warn == "") || !strings.Contains(warn, c.warn)) {
			t.Errorf("%s: %q, must be %q", c.name, warn, c.warn)
		}
	}
}
