package linear

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/heddle-gnn/heddle/kernels"
	hmat "github.com/heddle-gnn/heddle/mat"
)

// Normal has the normal equations of regressions on columns that come in blocks. Once the peers have summed the
// products of all columns with one another and with the targets, each solves a regression on any subset of columns at
// home. Column 0 is the constant: every regression has it and none penalises it.
type Normal struct {
	gram  [][]float64 // row i: the products of column i with columns 0 to i
	cross [][]float64 // [D] products with the C targets
}

// Columns returns how many columns there are, the constant included.
func (n Normal) Columns() int { return len(n.gram) }

// Part returns this peer's part of what Extend needs for the last k columns of z, N×D. It has the products of each with
// itself, with all columns before it, and with the targets y, N×C. Row i counts weight[i].
func Part(z hmat.Dense, k int, y hmat.Dense, weight []float32) []float32 {
	d, c := z.Cols, y.Cols
	gram, cross, weighted := hmat.New(k, d), hmat.New(k, c), z.ColRange(d-k, d).Clone()
	for i, w := range weight {
		kernels.Scale(w, weighted.Row(i))
	}
	kernels.GemmTN(k, d, z.Rows, weighted.Data, weighted.Stride, z.Data, z.Stride, gram.Data, d, false)
	kernels.GemmTN(k, c, z.Rows, weighted.Data, weighted.Stride, y.Data, y.Stride, cross.Data, c, false)
	sums := make([]float32, 0, PartLen(d, k, c))
	for i := range k {
		sums = append(sums, gram.Row(i)[:d-k+i+1]...)
	}
	return append(sums, cross.Data...)
}

// PartLen is the length of Part for the last k of d columns and c targets.
func PartLen(d, k, c int) int { return k*(d-k) + k*(k+1)/2 + k*c }

// Extend returns n with k more columns, from the sum of all peers' Parts.
func (n Normal) Extend(sums []float32, k, c int) (Normal, error) {
	if !(kernels.MaxAbs(sums) <= math.MaxFloat32) {
		return n, errors.New("the squares of the columns of all peers together overflow; scale the features")
	}
	old := len(n.gram)
	more := Normal{gram: n.gram[:old:old], cross: n.cross[:old:old]}
	take := func(count int) []float64 {
		row := make([]float64, count)
		for i := range row {
			row[i] = float64(sums[i])
		}
		sums = sums[count:]
		return row
	}
	for i := range k {
		more.gram = append(more.gram, take(old+i+1))
	}
	for range k {
		more.cross = append(more.cross, take(c))
	}
	return more, nil
}

// Square returns the sum of squares of column j.
func (n Normal) Square(j int) float64 { return n.gram[j][j] }

// Moments returns mean and deviation of column j over the training nodes, as they are weighted.
func (n Normal) Moments(j int) (mean, deviation float64) {
	count := n.gram[0][0]
	mean = n.gram[j][0] / count
	return mean, math.Sqrt(max(n.gram[j][j]/count-float64(mean*mean), 0))
}

// Predicted returns mean and deviation over the training nodes, as they are weighted, of each output of a solution of
// Solve on these columns.
func (n Normal) Predicted(columns []int, w hmat.Dense) (mean, deviation []float64) {
	d, count := len(columns), n.gram[0][0]
	mean, deviation = make([]float64, w.Cols), make([]float64, w.Cols)
	means := make([]float64, d)
	for a, i := range columns {
		means[a] = n.gram[i][0] / count
	}
	for o := range w.Cols {
		mean[o] = float64(w.At(d, o))
		square := 0.0
		for a, i := range columns {
			v := float64(w.At(a, o))
			mean[o] += float64(v * means[a])
			row := 0.0
			for b, j := range columns[:a+1] { // columns ascend
				part := (n.gram[i][j]/count - float64(means[a]*means[b])) * float64(w.At(b, o))
				if row += part; b < a {
					row += part
				}
			}
			square += float64(v * row)
		}
		deviation[o] = math.Sqrt(max(square, 0))
	}
	return mean, deviation
}

// Solve returns, for each λ, the weights, (len(columns)+1)×C, of the regression on the given columns that minimises Σ
// w‖zW − y‖² + λ·Σ_j v_j‖W_j‖², v_j the variance of column j times the count of nodes: the penalty of columns that were
// standardised first (Hoerl and Kennard 1970; by Cholesky in float64). The last row is the constant's. A λ that is too
// small for the precision of the sums has the weights of the next larger one.
func (n Normal) Solve(ctx context.Context, columns []int, lambdas []float64) ([]hmat.Dense, error) {
	d, c, count := len(columns), len(n.cross[0]), n.gram[0][0]
	if !(count > 0) {
		return nil, errors.New("no training node has a label")
	}
	// Centred and scaled columns: the constant drops out, and the diagonal is 1.
	mean, scale := make([]float64, d), make([]float64, d)
	for i, j := range columns {
		var deviation float64
		if mean[i], deviation = n.Moments(j); deviation > 1e-7*(math.Abs(mean[i])+1e-20) {
			scale[i] = 1 / deviation
		}
	}
	at := func(i, j int) float64 {
		if i < j {
			i, j = j, i
		}
		return n.gram[i][j]
	}
	gram := blas64.Symmetric{N: d, Stride: max(d, 1), Data: make([]float64, d*d), Uplo: blas.Upper}
	cross := blas64.General{Rows: d, Cols: c, Stride: c, Data: make([]float64, d*c)}
	for a, i := range columns {
		for b := a; b < d; b++ {
			v := (at(i, columns[b])/count - float64(mean[a]*mean[b])) * scale[a] * scale[b]
			gram.Data[a*d+b] = v
		}
		for o := range c {
			cross.Data[a*c+o] = (n.cross[i][o] - float64(mean[a]*n.cross[0][o])) / count * scale[a]
		}
	}
	all := make([]hmat.Dense, len(lambdas))
	for k := len(lambdas) - 1; k >= 0; k-- {
		w, ok, err := penalised(ctx, gram, cross, lambdas[k])
		if err != nil {
			return nil, err
		}
		if !ok && k == len(lambdas)-1 {
			return nil, errors.New("the equations are singular: features may hold NaN or be far too large")
		} else if !ok { // columns depend on one another, and the penalty is below the rounding of their products
			copy(all, slices.Repeat(all[k+1:k+2], k+1))
			break
		}
		out := hmat.New(d+1, c)
		for o := range c {
			constant := n.cross[0][o] / count
			for a := range d {
				v := w.Data[a*c+o] * scale[a]
				constant -= v * mean[a]
				out.Set(a, o, float32(v))
			}
			out.Set(d, o, float32(constant))
		}
		all[k] = out
	}
	return all, nil
}

// penalised solves (gram + λ)·w = cross; gram has the upper triangle. A column without variance has a
// diagonal of 0, and its weight is 0. ok is false if λ is too small.
func penalised(ctx context.Context, gram blas64.Symmetric, cross blas64.General,
	lambda float64) (w blas64.General, ok bool, err error) {
	w = cross
	w.Data = slices.Clone(cross.Data)
	if gram.N == 0 {
		return w, true, nil
	}
	a := gram
	a.Data = slices.Clone(gram.Data)
	for i := range a.N {
		a.Data[i*a.Stride+i] += lambda
	}
	if ok, err = cholesky(ctx, a); !ok || err != nil {
		return w, ok, err
	}
	return w, true, solveCholesky(ctx, a, w)
}
