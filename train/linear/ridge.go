package linear

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/heddle-gnn/heddle/kernels"
	hmat "github.com/heddle-gnn/heddle/mat"
)

// MaxRidge bounds the columns of a ridge regression: the Gram matrix has their square of numbers.
const MaxRidge = 1 << 13

// Equations returns this peer's part of the normal equations of a regression from the rows of z, N×D, to those of y,
// N×C, row i counting weight[i]: the upper triangle of ZᵀWZ, row by row, and after it ZᵀWY.
func Equations(z, y hmat.Dense, weight []float32) []float32 {
	d, c := z.Cols, y.Cols
	gram, cross, weighted := hmat.New(d, d), hmat.New(d, c), z.Clone()
	for i, w := range weight {
		kernels.Scale(w, weighted.Row(i))
	}
	kernels.GemmTN(d, d, z.Rows, z.Data, d, weighted.Data, d, gram.Data, d, false)
	kernels.GemmTN(d, c, z.Rows, weighted.Data, d, y.Data, c, cross.Data, c, false)
	sums := make([]float32, 0, d*(d+1)/2+d*c)
	for i := range d {
		sums = append(sums, gram.Row(i)[i:]...)
	}
	return append(sums, cross.Data...)
}

// Ridge returns, for each λ of lambdas, the W, D×C, that minimises Σ w‖zW − y‖² + λ‖W‖² over the rows of all peers, from
// the sum of their Equations (Hoerl and Kennard 1970; by Cholesky, in float64). λ is in units of the mean diagonal of
// ZᵀWZ, so that a scale of the input does not matter; the last column of z, a constant, is not penalised. All solutions
// lie in solved, one after the other.
func Ridge(sums []float32, d, c int, lambdas []float64) (solutions []hmat.Dense, solved []float32, err error) {
	gram, cross, mean, err := unpack(sums, d, c)
	if err != nil {
		return nil, nil, err
	}
	solved = make([]float32, len(lambdas)*d*c)
	for k, lambda := range lambdas {
		a := mat.NewSymDense(d, nil)
		a.CopySym(gram)
		for i := range d - 1 {
			a.SetSym(i, i, a.At(i, i)+lambda*max(mean, 1e-12))
		}
		var chol mat.Cholesky
		var w mat.Dense
		if !chol.Factorize(a) {
			return nil, nil, fmt.Errorf("ridge: the equations are singular with penalty %g; use a larger one", lambda)
		}
		if err := chol.SolveTo(&w, cross); err != nil {
			if _, ok := err.(mat.Condition); !ok {
				return nil, nil, fmt.Errorf("ridge: penalty %g: %w", lambda, err)
			}
		}
		s := hmat.View(d, c, solved[k*d*c:])
		for i := range d {
			for j := range c {
				s.Set(i, j, float32(w.At(i, j)))
			}
		}
		solutions = append(solutions, s)
	}
	return solutions, solved, nil
}

// unpack returns both sides of the equations, and the mean diagonal of the penalised columns.
func unpack(sums []float32, d, c int) (gram *mat.SymDense, cross *mat.Dense, mean float64, err error) {
	for _, v := range sums {
		if !(math.Abs(float64(v)) <= math.MaxFloat32) {
			return nil, nil, 0, errors.New("ridge: the squares of the features of all peers together overflow; scale their columns")
		}
	}
	gram, cross = mat.NewSymDense(d, nil), mat.NewDense(d, c, nil)
	at, trace := 0, 0.0
	for i := range d {
		for j := i; j < d; j++ {
			gram.SetSym(i, j, float64(sums[at]))
			at++
		}
		if i < d-1 {
			trace += gram.At(i, i)
		}
	}
	for i := range d {
		for j := range c {
			cross.Set(i, j, float64(sums[at]))
			at++
		}
	}
	return gram, cross, trace / float64(d-1), nil
}
