package linear

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
)

// Joint is what all peers know of the targets of a regression, zeros and ones or standardised numbers, before its
// normal equations are summed.
type Joint struct {
	Rows      float64   // of all peers
	Weight    float64   // of all rows together
	Squares   []float64 // [C] Σ w·y² of all peers
	Exclusive bool      // the targets of each row add up to 1
	Numbers   bool      // the targets are numbers that add up to 0 over all rows

	RestWeight float64   // Weight of all peers but this one
	Rest       []float64 // [C] Squares of all peers but this one

	// The sums of products with column From, and with all behind it, may be so far from the exact ones beyond the
	// rounding of float32, times the lengths of columns before it over √Weight.
	From  int
	Apart float64
}

// NewJoint returns what is known of a regression's targets. classes are the counts of each class among the labelled
// training nodes of all peers; own are this peer's labels. weight is the weight of a label of each class (nil = 1); it
// is 1 if a node may have several classes.
func NewJoint(classes []float64, labelled float64, own graph.Labels, weight []float32) Joint {
	if own.Kind() == graph.Numbers {
		return numbersJoint(labelled, own)
	}
	k := Joint{Rows: labelled, Exclusive: !own.Multi()}
	count := own.Count()
	for c, n := range classes {
		w := 1.0
		if weight != nil && k.Exclusive {
			w = float64(weight[c])
		}
		k.Squares, k.Rest = append(k.Squares, w*n), append(k.Rest, w*(n-count[c]))
		k.Weight, k.RestWeight = k.Weight+w*n, k.RestWeight+w*(n-count[c])
	}
	if !k.Exclusive {
		k.Weight, k.RestWeight = labelled, labelled-float64(own.Labelled())
	}
	return k
}

// numbersJoint is NewJoint of standardised numbers: over all training nodes their sum is 0, and their squares add up to
// their count.
func numbersJoint(labelled float64, own graph.Labels) Joint {
	k := Joint{Rows: labelled, Numbers: true, Weight: labelled, RestWeight: labelled - float64(own.Labelled())}
	for c := range own.Classes {
		rest := labelled
		for i := c; i < len(own.Values); i += own.Classes {
			if v := float64(own.Values[i]); v == v {
				rest -= v * v
			}
		}
		k.Squares, k.Rest = append(k.Squares, labelled), append(k.Rest, max(rest, 0))
	}
	return k
}

// off bounds the error of a product of two columns, or of a column and a target, in units of their lengths. Over n rows
// it is λ·√n·2⁻²⁴ with probability 1 − 2exp(−λ²/2) if rounding errors are independent (Higham and Mary, SIAM J. Sci.
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

// small is the squared length at which a column is left out: compared with Apart, or with the last digit of a float32.
func (k Joint) small() float64 { return 16*k.Apart + 1e-30 }

// Check returns an error that is comm.ErrRefused unless n, of all peers, less own, of this one, may be the normal
// equations of rows with such targets. Weights and targets must add up to what is known. The Gram matrix of the other
// peers must be positive semidefinite, and their columns must explain no more of a target than there is. These limits
// allow only for rounding.
func (n Normal) Check(ctx context.Context, own Normal, k Joint) error {
	eps := k.off(n)
	if eps >= 1 {
		return nil // noise hides all
	}
	if v := n.gram[0][0]; math.Abs(v-k.Weight) > eps*k.Weight {
		return comm.Refused("the weights of all training nodes must add up to %.6g (got %.6g)", k.Weight, v)
	}
	for c := range k.Squares {
		if v := n.cross[0][c]; k.Numbers && math.Abs(v) > eps*k.Weight {
			return comm.Refused("the standardised targets of column %d must add up to 0 (got %.6g)", c, v)
		} else if k.Numbers {
			continue
		}
		if v := n.cross[0][c]; math.Abs(v-k.Squares[c]) > eps*k.Weight {
			return comm.Refused("the labels of class %d must add up to %.6g (got %.6g)", c, k.Squares[c], v)
		}
	}
	for j := range n.Columns() {
		if !k.Exclusive || n.gram[j][j] < k.small() {
			continue
		}
		all, most := 0.0, eps*math.Sqrt(k.Weight*n.gram[j][j])*float64(len(k.Squares)+1)
		for c := range k.Squares {
			all += n.cross[j][c]
		}
		if v := n.gram[j][0]; !(math.Abs(all-v) <= most) {
			return comm.Refused("the products of column %d with all labels must add up to %.6g, that with the "+
				"constant (got %.6g)", j, v, all)
		}
	}
	return k.definite(ctx, n, own, eps)
}

// definite checks the Gram matrix of the other peers, and how much of each target their columns explain. Both are in
// units of the lengths that columns and targets have over all peers, in which a sum is off by less than eps.
func (k Joint) definite(ctx context.Context, n, own Normal, eps float64) error {
	d, c := n.Columns(), len(k.Squares)
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
			return comm.Refused("the Gram matrix's diagonal at the other peers must be at least 0 (got %.6g)",
				v*n.gram[i][i])
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
	if c == 0 {
		return nil
	}
	blas64.Trsm(blas.Left, blas.Trans, 1,
		blas64.Triangular{N: d, Stride: d, Data: a.Data, Uplo: blas.Upper, Diag: blas.NonUnit}, cross)
	for o, s := range k.Squares {
		if s == 0 {
			continue
		}
		explained := 0.0
		for i := range d {
			explained += cross.Data[i*c+o] * cross.Data[i*c+o]
		}
		if most := math.Sqrt(max(k.Rest[o], 0)/s) + math.Sqrt(2*eps); math.Sqrt(explained) > most {
			return comm.Refused("the columns of the other peers must explain at most %.6g of class %d (got %.6g)",
				k.Rest[o], o, explained*s)
		}
	}
	return nil
}

// PartLimit returns what another peer's Part for the last k columns may be. Over the rows of the others, the squares of
// column j add up to at most squares[j] and the squares of target o to at most targets[o].
func PartLimit(k int, squares, targets []float64) func(i int) comm.Limit {
	d := len(squares)
	before := triangle(d - k)
	gram := triangle(d) - before
	return func(i int) comm.Limit {
		if i < gram {
			return gramLimit(squares, i+before)
		}
		i -= gram
		return crossLimit(squares[d-k+i/len(targets)], targets[i%len(targets)])
	}
}

// triangle is how many numbers the first n rows of a lower triangle have.
func triangle(n int) int { return n * (n + 1) / 2 }

// gramLimit is the limit of number i of the lower triangle of a Gram matrix, row by row.
func gramLimit(squares []float64, i int) comm.Limit {
	row := int((math.Sqrt(float64(8*i+1)) - 1) / 2)
	for triangle(row) > i { // the root is rounded
		row--
	}
	for triangle(row+1) <= i {
		row++
	}
	col := i - triangle(row)
	most := math.Sqrt(squares[row]*squares[col]) * rounding
	if row == col {
		return comm.Limit{What: "the Gram matrix's diagonal", Least: 0, Most: most}
	}
	return comm.Limit{What: "the Gram matrix", Least: -most, Most: most}
}

// crossLimit is the limit of a product of a column and a target whose squares add up to so much.
func crossLimit(column, target float64) comm.Limit {
	most := math.Sqrt(column*max(target, 0)) * rounding
	return comm.Limit{What: "a product with the labels", Least: -most, Most: most}
}
