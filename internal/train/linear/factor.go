package linear

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"

	hmat "github.com/heddle-gnn/heddle/mat"
)

// Factorisations that end when a context does. Each takes the steps of gonum's, in the same order, so that the bits are
// the same, and looks at the context between two of them: some tenths of a second of work at the largest sizes.

const (
	cholPanel = 64  // columns of a step of gonum's Dpotrf
	cholBlock = 512 // columns of a product between two looks at the context
	solveCols = 8   // right hand sides that are solved between two looks
	qrPanel   = 32  // columns of a step of gonum's Dgeqrf and Dorgqr
	qrRest    = 128 // columns that those two leave to unblocked code
)

// cholesky replaces the upper triangle of a by R's, a = RᵀR. ok is false if a is not positive definite.
func cholesky(ctx context.Context, a blas64.Symmetric) (ok bool, err error) {
	at := func(i, j, rows, cols int) blas64.General {
		return blas64.General{Rows: rows, Cols: cols, Stride: a.Stride, Data: a.Data[i*a.Stride+j:]}
	}
	for j := 0; j < a.N; j += cholPanel {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		width := min(cholPanel, a.N-j)
		corner := blas64.Symmetric{N: width, Stride: a.Stride, Data: a.Data[j*a.Stride+j:], Uplo: blas.Upper}
		if j > 0 {
			blas64.Syrk(blas.Trans, -1, at(0, j, j, width), 1, corner)
		}
		// Not by lapack64, for which a program would link all of LAPACK.
		if !(lapackgonum.Implementation{}).Dpotrf(blas.Upper, width, corner.Data, a.Stride) {
			return false, nil
		}
		r := blas64.Triangular{N: width, Stride: a.Stride, Data: corner.Data, Uplo: blas.Upper, Diag: blas.NonUnit}
		for k := j + width; k < a.N; k += cholBlock {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			row := at(j, k, width, min(cholBlock, a.N-k))
			if j > 0 {
				blas64.Gemm(blas.Trans, blas.NoTrans, -1, at(0, j, j, width), at(0, k, j, row.Cols), 1, row)
			}
			blas64.Trsm(blas.Left, blas.Trans, 1, r, row)
		}
	}
	return true, nil
}

// solveCholesky replaces x by the solution y of RᵀRy = x. The upper triangle of r is R's.
func solveCholesky(ctx context.Context, r blas64.Symmetric, x blas64.General) error {
	t := blas64.Triangular{N: r.N, Stride: r.Stride, Data: r.Data, Uplo: blas.Upper, Diag: blas.NonUnit}
	for j := 0; j < x.Cols; j += solveCols {
		some := blas64.General{Rows: x.Rows, Cols: min(solveCols, x.Cols-j), Stride: x.Stride, Data: x.Data[j:]}
		for _, transposed := range []blas.Transpose{blas.Trans, blas.NoTrans} {
			if err := ctx.Err(); err != nil {
				return err
			}
			blas64.Trsm(blas.Left, transposed, 1, t, some)
		}
	}
	return nil
}

// orthonormal replaces the columns of a, with as many rows as columns or more, by an orthonormal basis of their span.
func orthonormal(ctx context.Context, a blas64.General) error {
	var impl lapackgonum.Implementation
	m, k, lda := a.Rows, a.Cols, a.Stride
	tau, work := make([]float64, k), make([]float64, k*qrPanel)
	blocked := 0 // columns that are taken by panels
	if qrRest < k {
		blocked = (k - qrRest + qrPanel - 1) / qrPanel * qrPanel
	}
	// reflect applies the reflectors of a panel to the columns behind it.
	reflect := func(i int, which blas.Transpose) {
		impl.Dlarft(lapack.Forward, lapack.ColumnWise, m-i, qrPanel, a.Data[i*lda+i:], lda, tau[i:], work, qrPanel)
		impl.Dlarfb(blas.Left, which, lapack.Forward, lapack.ColumnWise, m-i, k-i-qrPanel, qrPanel, a.Data[i*lda+i:],
			lda, work, qrPanel, a.Data[i*lda+i+qrPanel:], lda, work[qrPanel*qrPanel:], qrPanel)
	}
	for i := 0; i < blocked; i += qrPanel {
		if err := ctx.Err(); err != nil {
			return err
		}
		impl.Dgeqr2(m-i, qrPanel, a.Data[i*lda+i:], lda, tau[i:i+qrPanel], work)
		reflect(i, blas.Trans)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	rest := a.Data[blocked*lda+blocked:]
	impl.Dgeqr2(m-blocked, k-blocked, rest, lda, tau[blocked:], work)
	// From here on the columns of Q are written over the reflectors, the last ones first.
	clearAbove(a, blocked, k)
	impl.Dorg2r(m-blocked, k-blocked, k-blocked, rest, lda, tau[blocked:], work)
	for i := blocked - qrPanel; i >= 0; i -= qrPanel {
		if err := ctx.Err(); err != nil {
			return err
		}
		reflect(i, blas.NoTrans)
		impl.Dorg2r(m-i, qrPanel, qrPanel, a.Data[i*lda+i:], lda, tau[i:i+qrPanel], work)
		clearAbove(a, i, i+qrPanel)
	}
	return nil
}

// clearAbove zeroes columns lo to hi of a in the rows above lo.
func clearAbove(a blas64.General, lo, hi int) {
	for i := range lo {
		clear(a.Data[i*a.Stride+lo : i*a.Stride+hi])
	}
}

// eigenvectors replaces the symmetric a, w×w, by its eigenvectors, one per column, in the order of ascending
// eigenvalues. It reads the upper triangle. ok is false if they were not found.
func eigenvectors(ctx context.Context, a blas64.Symmetric) (ok bool, err error) {
	var impl lapackgonum.Implementation
	w, size := a.N, make([]float64, 1)
	impl.Dsytrd(blas.Upper, w, a.Data, a.Stride, nil, nil, nil, size, -1)
	values, beside, tau, work := make([]float64, w), make([]float64, max(0, w-1)), make([]float64, max(0, w-1)),
		make([]float64, max(int(size[0]), 2*w))
	impl.Dsytrd(blas.Upper, w, a.Data, a.Stride, values, beside, tau, work, len(work))
	if err := ctx.Err(); err != nil {
		return false, err
	}
	impl.Dorgtr(blas.Upper, w, a.Data, a.Stride, tau, work, len(work))
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return impl.Dsteqr(lapack.EVComp(lapack.EVOrig), w, values, beside, a.Data, a.Stride, work), nil
}

// symmetric returns the upper triangle of a + aᵀ, halved, in float64.
func symmetric(a hmat.Dense) blas64.Symmetric {
	s := blas64.Symmetric{N: a.Rows, Stride: a.Rows, Data: make([]float64, a.Rows*a.Rows), Uplo: blas.Upper}
	for i := range a.Rows {
		for j := i; j < a.Rows; j++ {
			s.Data[i*s.Stride+j] = (float64(a.At(i, j)) + float64(a.At(j, i))) / 2
		}
	}
	return s
}
