// Package linear solves linear problems over rows that peers have and do not pool: principal components and ridge
// regression. What leaves a peer are its parts of sums.
package linear

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	hmat "github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// oversample is how many directions more than asked for the range finder carries (Halko et al. suggest 5 to 10).
const oversample = 8

// Components finds the K leading right singular vectors of the features of all peers together, each
// row at length 1, stacked but never pooled: a randomised range finder over G = XᵀX (Halko,
// Martinsson and Tropp, SIAM Review 2011, algorithms 4.4 and 5.3), in which every product with G is a
// sum over the peers. What leaves a peer is XᵀXQ for a Q that all know. Rows count by their
// directions (spherical components: Locantore et al., Test 1999), so that no row, and no peer by long
// ones, decides more than another; encoded rows have length 1 in any case.
//
// It returns an F×K matrix with orthonormal columns, the same bits on every peer, whose column signs are fixed. Each of
// passes reductions, a step of id each, has F·(K+8) numbers; a last one, of another kind, has (K+8)². Their numbers are
// sent in the given bits (comm.Contribution.Bits), on one grid per column. others is the most rows that the other peers
// have. Sums that such rows cannot have, and components that are far from this peer's rows, are comm.ErrRefused.
func Components(
	ctx context.Context, r comm.Reducer, id comm.ReduceID, x graph.Features, others float64, k, passes, bits int,
	key rng.Key,
) (hmat.Dense, error) {
	f := x.Cols()
	if k > f {
		return hmat.Dense{},
			fmt.Errorf("encoder: pca must have at most as many components as there are features, %d (got %d)", f, k)
	}
	w := SumColumns(f, k)
	sums := componentSums{
		products: func(pass int, q, y hmat.Dense) error {
			id.Step = pass
			own, c := y.Clone(),
				&comm.Contribution{ID: id, Update: y.Data, Bits: bits, Columns: w, UpdateLimit: productLimit(q, others)}
			said, err := r.Reduce(ctx, c)
			if err != nil {
				return err
			}
			return checkProducts(y, own, q, others, said.Error)
		},
		projected: func(q, small hmat.Dense) error {
			id.Kind = "projected Gram matrix"
			own, c := small.Clone(), &comm.Contribution{ID: id, Update: small.Data, Bits: bits, Columns: w,
				UpdateLimit: projectedLimit(w, others)}
			said, err := r.Reduce(ctx, c)
			if err != nil {
				return err
			}
			return checkProjected(ctx, small, own, float64(x.Rows()), others, said.Error)
		},
	}
	p := newProducts(unitRows(x))
	v, err := sums.components(ctx, p, k, passes, key)
	if err != nil || others == 0 {
		return v, err
	}
	return v, p.checkComponents(ctx, v, key)
}

// componentSums make the parts of one peer sums of all.
type componentSums struct {
	products  func(pass int, q, y hmat.Dense) error // y = XᵀXQ
	projected func(q, small hmat.Dense) error       // small = (XQ)ᵀ(XQ)
}

// components is Components of rows of length 1.
func (s componentSums) components(ctx context.Context, p products, k, passes int, key rng.Key) (hmat.Dense, error) {
	f := p.x.Cols()
	w := SumColumns(f, k)
	q := hmat.New(f, w)
	for i := range q.Data {
		q.Data[i] = float32(key.Normal(uint64(i)))
	}
	for pass := range passes {
		y, err := p.gram(ctx, q)
		if err != nil {
			return hmat.Dense{}, err
		}
		if err := s.products(pass, q, y); err != nil {
			return hmat.Dense{}, err
		}
		if err := orthonormalise(ctx, y); err != nil {
			return hmat.Dense{}, err
		}
		q = y
	}
	// Rayleigh and Ritz: the eigenvectors of QᵀGQ turn Q into the components, most important first.
	xq, err := p.apply(ctx, q)
	if err != nil {
		return hmat.Dense{}, err
	}
	small := hmat.New(w, w)
	kernels.GemmTN(w, w, xq.Rows, xq.Data, xq.Stride, xq.Data, xq.Stride, small.Data, small.Stride, false)
	if err := s.projected(q, small); err != nil {
		return hmat.Dense{}, err
	}
	u := symmetric(small)
	if ok, err := eigenvectors(ctx, u); err != nil {
		return hmat.Dense{}, err
	} else if !ok {
		return hmat.Dense{}, errors.New("encoder: the eigenvalues of the projected features were not found; " +
			"check for NaN and for huge features")
	}
	v, sums := hmat.New(f, k), make([]float64, k)
	for i := range f {
		if err := ctx.Err(); err != nil {
			return hmat.Dense{}, err
		}
		clear(sums)
		for j, x := range q.Row(i) {
			of := u.Data[j*w : (j+1)*w]
			for c := range sums {
				sums[c] += float64(x) * of[w-1-c] // eigenvalues ascend
			}
		}
		for c, sum := range sums {
			v.Set(i, c, float32(sum))
		}
	}
	fixSigns(v)
	return v, nil
}

// products multiplies with X and Xᵀ. X is N×F.
type products struct {
	x graph.Features
	t *hmat.Sparse // Xᵀ of sparse X
}

func newProducts(x graph.Features) products {
	p := products{x: x}
	if x.Sparse != nil {
		p.t = x.Sparse.Transpose(nil)
	}
	return p
}

// apply returns X·Q, N×W.
func (p products) apply(ctx context.Context, q hmat.Dense) (hmat.Dense, error) {
	y := hmat.New(p.x.Rows(), q.Cols)
	err := inChunks(ctx, y.Rows, p.work(q), func(lo, hi int) {
		some := y.RowRange(lo, hi)
		if s := p.x.Sparse; s != nil {
			kernels.SpMM(s.RowPtr[lo:hi+1], s.Col, s.Val, q.Cols, q.Data, q.Stride, some.Data, some.Stride, false)
		} else if d := p.x.Dense; !d.Empty() {
			kernels.GemmNN(some.Rows, q.Cols, d.Cols, d.Data[lo*d.Stride:], d.Stride, q.Data, q.Stride, some.Data,
				some.Stride, false)
		}
	})
	return y, err
}

// gram returns XᵀX·Q, F×W.
func (p products) gram(ctx context.Context, q hmat.Dense) (hmat.Dense, error) {
	y := hmat.New(q.Rows, q.Cols)
	xq, err := p.apply(ctx, q)
	if err != nil {
		return y, err
	}
	err = inChunks(ctx, y.Rows, p.work(q), func(lo, hi int) {
		some := y.RowRange(lo, hi)
		if p.t != nil {
			kernels.SpMM(p.t.RowPtr[lo:hi+1], p.t.Col, p.t.Val, q.Cols, xq.Data, xq.Stride, some.Data, some.Stride,
				false)
		} else if d := p.x.Dense; !d.Empty() {
			kernels.GemmTN(some.Rows, q.Cols, d.Rows, d.Data[lo:], d.Stride, xq.Data, xq.Stride, some.Data, some.Stride,
				false)
		}
	})
	return y, err
}

// work is how many multiplications a product of x with q takes.
func (p products) work(q hmat.Dense) float64 {
	values := float64(p.x.Rows()) * float64(p.x.Cols())
	if p.x.Sparse != nil {
		values = float64(p.x.Sparse.NNZ())
	}
	return values * float64(q.Cols)
}

// chunkWork is how many multiplications are made between two looks at the context.
const chunkWork = 1 << 31

// inChunks calls do for consecutive ranges of n rows, which take `work` multiplications together, until ctx ends.
func inChunks(ctx context.Context, n int, work float64, do func(lo, hi int)) error {
	chunks := 1 + int(work/chunkWork)
	size := max(1, (n+chunks-1)/chunks)
	for lo := 0; lo < n; lo += size {
		if err := ctx.Err(); err != nil {
			return err
		}
		do(lo, min(n, lo+size))
	}
	return nil
}

// orthonormalise replaces the columns of y, F×W with W ≤ F, by an orthonormal basis of their span (QR in float64).
func orthonormalise(ctx context.Context, y hmat.Dense) error {
	a := blas64.General{Rows: y.Rows, Cols: y.Cols, Stride: y.Cols, Data: make([]float64, y.Rows*y.Cols)}
	for i, v := range y.Data {
		if v != v || math.IsInf(float64(v), 0) {
			return errors.New("encoder: features must be finite")
		}
		a.Data[i] = float64(v)
	}
	if err := orthonormal(ctx, a); err != nil {
		return err
	}
	for i, v := range a.Data {
		y.Data[i] = float32(v)
	}
	return nil
}

// fixSigns makes the element of largest magnitude of each column positive: a component's sign is arbitrary.
func fixSigns(v hmat.Dense) {
	for c := range v.Cols {
		best := float32(0)
		for i := range v.Rows {
			if x := v.At(i, c); abs(x) > abs(best) {
				best = x
			}
		}
		if best < 0 {
			for i := range v.Rows {
				v.Set(i, c, -v.At(i, c))
			}
		}
	}
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

// unitRows returns x with rows of length 1; rows of zeros stay.
func unitRows(x graph.Features) graph.Features {
	scale := func(dst, row []float32) {
		square := 0.0
		for _, v := range row {
			square += float64(v) * float64(v)
		}
		if square == 0 {
			return
		}
		f := 1 / math.Sqrt(square)
		for k, v := range row {
			dst[k] = float32(f * float64(v))
		}
	}
	if s := x.Sparse; s != nil {
		y := *s
		y.Val = make([]float32, len(s.Val))
		for i := range s.Rows {
			lo, hi := s.RowPtr[i], s.RowPtr[i+1]
			scale(y.Val[lo:hi], s.Val[lo:hi])
		}
		return graph.Features{Sparse: &y}
	}
	y := hmat.New(x.Dense.Rows, x.Dense.Cols)
	for i := range y.Rows {
		scale(y.Row(i), x.Dense.Row(i))
	}
	return graph.Features{Dense: y}
}

// SumColumns returns how many columns the sums of Components have, of some features and k components.
func SumColumns(features, k int) int { return min(k+oversample, features) }
