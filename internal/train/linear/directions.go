package linear

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	hmat "github.com/heddle-gnn/heddle/mat"
)

// directionPenalty is the λ of the ridge regression whose weights are directions: each column has variance 1.
const directionPenalty = 0.01

// Directions returns the k directions of the D − 1 columns behind the constant that explain the C targets best,
// (D−1)×k: the weights of a ridge regression, or with k < C their k leading singular vectors.
func (n Normal) Directions(ctx context.Context, k int) (hmat.Dense, error) {
	f := n.Columns() - 1
	columns := make([]int, f)
	for j := range columns {
		columns[j] = j + 1
	}
	solved, err := n.Solve(ctx, columns, []float64{directionPenalty})
	if err != nil {
		return hmat.Dense{}, err
	}
	g := solved[0].RowRange(0, f)
	if k >= g.Cols {
		return g, nil
	}
	c := g.Cols
	v := blas64.Symmetric{N: c, Stride: c, Data: make([]float64, c*c), Uplo: blas.Upper}
	for i := range f {
		for a, x := range g.Row(i) {
			for b := a; b < c; b++ {
				v.Data[a*c+b] += float64(x) * float64(g.At(i, b))
			}
		}
	}
	if ok, err := eigenvectors(ctx, v); err != nil || !ok {
		return g.ColRange(0, k).Clone(), err
	}
	leading := hmat.New(f, k)
	for i := range f {
		for o := range k { // the last eigenvalues are the largest
			sum := 0.0
			for b, x := range g.Row(i) {
				sum += float64(float64(x) * v.Data[b*c+c-1-o])
			}
			leading.Set(i, o, float32(sum))
		}
	}
	return leading, nil
}
