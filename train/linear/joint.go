package linear

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/heddle-gnn/heddle/comm"
)

// Joint is what all peers know of the targets of a regression, zeros and ones, before its normal equations are summed.
type Joint struct {
	Rows      float64   // of all peers
	Weight    float64   // of all rows together
	Squares   []float64 // [C] Σ w·y² of all peers
	Rest      []float64 // [C] the same of all but this one
	Exclusive bool      // the targets of each row add up to 1

	// The sums of products with column From, and with all behind it, may be so far from the exact ones beyond the rounding
	// of float32, times the lengths of columns before it over √Weight.
	From  int
	Apart float64
}

// off bounds the error of a product of two columns, or of a column and a target, in units of their lengths. Over n rows
// it is λ·√n·2⁻²⁴ with probability 1 − 2exp(−λ²/2) where rounding errors are independent (Higham and Mary, SIAM J. Sci.
// Comput. 2019); λ is 8. Columns that are as small as Apart are left out.
func (k Joint) off(n Normal) float64 {
	eps := (8*math.Sqrt(k.Rows) + 16) * 0x1p-24
	if k.Apart == 0 {
		return eps
	}
	least := k.Weight
	for j := k.From; j < n.Columns(); j++ {
		if v := n.gram[j][j]; v > k.small() {
			least = min(least, v)
		}
	}
	target := k.Weight
	for _, s := range k.Squares {
		if s > 0 {
			target = min(target, s)
		}
	}
	return eps + k.Apart*max(1/least, math.Sqrt2/math.Sqrt(k.Weight*least), 1/math.Sqrt(target*least))
}

// small is the length of a column, squared, that is left out: beside Apart, or since float32 has no digits for it.
func (k Joint) small() float64 { return 16*k.Apart + 1e-30 }

// Check returns an error that is comm.ErrRefused unless n, of all peers, less own, of this one, may be the normal
// equations of rows with such targets: weights and targets add up to what is known, the Gram matrix of the other peers is
// positive semidefinite, and their columns explain no more of a target than there is. Rounding is all that these have to
// spare.
func (n Normal) Check(ctx context.Context, own Normal, k Joint) error {
	d, eps := n.Columns(), k.off(n)
	if v := n.gram[0][0]; math.Abs(v-k.Weight) > eps*k.Weight {
		return comm.Refused("the weights of all training nodes must add up to %.6g (got %.6g)", k.Weight, v)
	}
	for c, v := range n.cross[0] {
		if math.Abs(v-k.Squares[c]) > eps*k.Weight {
			return comm.Refused("the labels of class %d must add up to %.6g (got %.6g)", c, k.Squares[c], v)
		}
	}
	for j := range d {
		if !k.Exclusive || n.gram[j][j] < k.small() {
			continue
		}
		all, most := 0.0, eps*math.Sqrt(k.Weight*n.gram[j][j])*float64(len(k.Squares)+1)
		for _, v := range n.cross[j] {
			all += v
		}
		if v := n.gram[j][0]; !(math.Abs(all-v) <= most) {
			return comm.Refused("the products of column %d with all labels must add up to %.6g, that with the constant (got %.6g)", j, v, all)
		}
	}
	return n.definite(ctx, own, k)
}

// definite checks the Gram matrix of the other peers, and how much of each target their columns explain. Both are in units
// of the lengths that columns and targets have over all peers, in which a sum is off by less than eps.
func (n Normal) definite(ctx context.Context, own Normal, k Joint) error {
	d, c, eps := n.Columns(), len(k.Squares), k.off(n)
	inverse := make([]float64, d)
	for j := range d {
		if v := n.gram[j][j]; v > k.small() {
			inverse[j] = 1 / math.Sqrt(v)
		}
	}
	ridge := 4 * float64(d) * eps // twice the norm that the errors of the total and of the own part may have
	a := blas64.Symmetric{N: d, Stride: d, Data: make([]float64, d*d), Uplo: blas.Upper}
	cross := blas64.General{Rows: d, Cols: c, Stride: c, Data: make([]float64, d*c)}
	for i := range d {
		for j := i; j < d; j++ {
			a.Data[i*d+j] = (n.gram[j][i] - own.gram[j][i]) * inverse[i] * inverse[j]
		}
		if v := a.Data[i*d+i]; v < -2*eps {
			return comm.Refused("the Gram matrix's diagonal at the other peers must be at least 0 (got %.6g)", v*n.gram[i][i])
		}
		a.Data[i*d+i] += ridge
		for o := range c {
			if s := k.Squares[o]; s > 0 {
				cross.Data[i*c+o] = (n.cross[i][o] - own.cross[i][o]) * inverse[i] / math.Sqrt(s)
			}
		}
	}
	ok, err := cholesky(ctx, a)
	if err != nil {
		return err
	}
	if !ok {
		return comm.Refused("the Gram matrix of the other peers must be positive semidefinite")
	}
	blas64.Trsm(blas.Left, blas.Trans, 1, blas64.Triangular{N: d, Stride: d, Data: a.Data, Uplo: blas.Upper, Diag: blas.NonUnit}, cross)
	for o, s := range k.Squares {
		if s == 0 {
			continue
		}
		explained := 0.0
		for i := range d {
			explained += cross.Data[i*c+o] * cross.Data[i*c+o]
		}
		if most := math.Sqrt(max(k.Rest[o], 0)/s) + math.Sqrt(2*eps); math.Sqrt(explained) > most {
			return comm.Refused("the columns of the other peers must explain at most %.6g of class %d (got %.6g)", k.Rest[o], o, explained*s)
		}
	}
	return nil
}

// PartLimit returns what another peer's Part for the last k columns may be, where the squares of column j over the rows
// of the others add up to at most squares[j], and those of target o to at most targets[o].
func PartLimit(k int, squares, targets []float64) func(i int) comm.Limit {
	d, c := len(squares), len(targets)
	most, diagonal := make([]float64, 0, PartLen(d, k, c)), map[int]bool{}
	for i := d - k; i < d; i++ {
		for j := range i + 1 {
			most = append(most, math.Sqrt(squares[i]*squares[j])*rounding)
		}
		diagonal[len(most)-1] = true
	}
	gram := len(most)
	for i := d - k; i < d; i++ {
		for _, s := range targets {
			most = append(most, math.Sqrt(squares[i]*max(s, 0))*rounding)
		}
	}
	return func(i int) comm.Limit {
		switch {
		case diagonal[i]:
			return comm.Limit{What: "the Gram matrix's diagonal", Least: 0, Most: most[i]}
		case i < gram:
			return comm.Limit{What: "the Gram matrix", Least: -most[i], Most: most[i]}
		}
		return comm.Limit{What: "a product with the labels", Least: -most[i], Most: most[i]}
	}
}
