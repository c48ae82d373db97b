package linear

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/heddle-gnn/heddle/kernels"
	hmat "github.com/heddle-gnn/heddle/mat"
)

// MaxRidge bounds the columns of a ridge regression: the Gram matrix has their square of numbers.
const MaxRidge = 1 << 13

// gramBlock is how many rows of a Gram matrix are computed between two looks at the context.
const gramBlock = 512

// equations returns this peer's part of the normal equations of a regression from the rows of z, N×D, to those of y,
// N×C, row i counting weight[i]: the upper triangle of ZᵀWZ, row by row, and after it ZᵀWY.
func equations(ctx context.Context, z, y hmat.Dense, weight []float32) ([]float32, error) {
	d, c := z.Cols, y.Cols
	cross, weighted := hmat.New(d, c), z.Clone()
	for i, w := range weight {
		kernels.Scale(w, weighted.Row(i))
	}
	sums := make([]float32, 0, d*(d+1)/2+d*c)
	for lo := 0; lo < d; lo += gramBlock {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some := hmat.New(min(gramBlock, d-lo), d-lo) // what lies left of it is in the rows above
		kernels.GemmTN(some.Rows, some.Cols, z.Rows, z.Data[lo:], d, weighted.Data[lo:], d, some.Data, some.Stride, false)
		for i := range some.Rows {
			sums = append(sums, some.Row(i)[i:]...)
		}
	}
	kernels.GemmTN(d, c, z.Rows, weighted.Data, d, y.Data, c, cross.Data, c, false)
	return append(sums, cross.Data...), nil
}

// Ridge returns, for each λ of lambdas, the W, D×C, that minimises Σ w‖zW − y‖² + λ‖W‖² over the rows of all peers, from
// the sum of their equations (Hoerl and Kennard 1970; by Cholesky, in float64). λ is in units of the mean diagonal of
// ZᵀWZ, so that a scale of the input does not matter; the last column of z, a constant, is not penalised. lambdas ascend;
// one that is too small for the precision of the sums has the solution of the next larger one. All solutions lie in
// solved, one after the other. Ridge ends soon after ctx does.
func Ridge(ctx context.Context, sums []float32, d, c int, lambdas []float64) (solutions []hmat.Dense, solved []float32, err error) {
	for _, v := range sums {
		if !(math.Abs(float64(v)) <= math.MaxFloat32) {
			return nil, nil, errors.New("ridge: the squares of the features of all peers together overflow; scale their columns")
		}
	}
	a := blas64.Symmetric{N: d, Stride: d, Data: make([]float64, d*d), Uplo: blas.Upper} // all penalties share it
	cross := blas64.General{Rows: d, Cols: c, Stride: c, Data: make([]float64, d*c)}
	solved = make([]float32, len(lambdas)*d*c)
	solutions = make([]hmat.Dense, len(lambdas))
	for k := len(lambdas) - 1; k >= 0; k-- {
		lambda := lambdas[k]
		right := unpack(a, sums)
		mean := 0.0
		for i := range d - 1 {
			mean += a.Data[i*d+i]
		}
		mean /= float64(d - 1)
		for i := range d - 1 {
			a.Data[i*d+i] += lambda * max(mean, 1e-12)
		}
		ok, err := cholesky(ctx, a)
		if err != nil {
			return nil, nil, err
		}
		s := hmat.View(d, c, solved[k*d*c:])
		if !ok && k == len(lambdas)-1 {
			return nil, nil, fmt.Errorf("ridge: the equations are singular with penalty %g; use a larger one", lambda)
		} else if !ok {
			s.CopyFrom(solutions[k+1])
			solutions[k] = s
			continue
		}
		for i, v := range right {
			cross.Data[i] = float64(v)
		}
		if err := solveCholesky(ctx, a, cross); err != nil {
			return nil, nil, err
		}
		for i, v := range cross.Data {
			s.Data[i] = float32(v)
		}
		solutions[k] = s
	}
	return solutions, solved, nil
}

// unpack fills the upper triangle of a with the left side of the equations in sums, and returns the right side.
func unpack(a blas64.Symmetric, sums []float32) (right []float32) {
	for i := range a.N {
		row := a.Data[i*a.Stride+i : i*a.Stride+a.N]
		for j := range row {
			row[j] = float64(sums[j])
		}
		sums = sums[len(row):]
	}
	return slices.Clip(sums)
}
