package linear

import (
	"math"

	"github.com/heddle-gnn/heddle/comm"
	hmat "github.com/heddle-gnn/heddle/mat"
)

// Rest is what a peer knows of the rows of all others: their number, how long a row is at most, and how large the
// squares of each column together. All limits that follow are inequalities that are true whatever the rows are.
type Rest struct {
	Rows    float64   // at most
	Length  float64   // of a row, at most (+Inf = not known)
	squares []float64 // [F] sum of squares of each column, at most
}

// rounding is what bounds have to spare for float32: rows are normalised and summed in it.
const rounding = 1 + 1e-5

// StatisticsLimit returns what Statistics of another peer may be, one of r.Rows rows at most.
func (r Rest) StatisticsLimit() func(i int) comm.Limit {
	sum, square := math.MaxFloat32, math.MaxFloat32
	if !math.IsInf(r.Length, 1) {
		sum, square = r.Rows*r.Length*rounding, r.Rows*r.Length*r.Length*rounding
	}
	return func(i int) comm.Limit {
		if i%2 == 0 {
			return comm.Limit{What: "the sum of a column", Least: -sum, Most: sum}
		}
		return comm.Limit{What: "the sum of squares of a column", Least: 0, Most: square}
	}
}

// Learn takes the Statistics of all peers, F×2, and this one's own. apart is how far the former may be from the exact
// sums, by column (comm.Reduced.Error). The error names the number that no rows can produce.
func (r *Rest) Learn(all, own hmat.Dense, apart []float64) error {
	r.squares = make([]float64, all.Rows)
	slack := func(k, j int) float64 {
		e := math.Abs(float64(all.At(j, k)))*(rounding-1) + 1e-40 // there are no digits below
		if apart != nil {
			e += apart[k%len(apart)]
		}
		return e
	}
	length, room := 0.0, 0.0
	for j := range r.squares {
		sum, square := float64(all.At(j, 0))-float64(own.At(j, 0)), float64(all.At(j, 1))-float64(own.At(j, 1))
		if square < -slack(1, j) {
			return comm.Refused("the sum of squares of column %d at the other peers must be at least 0 (got %.6g)", j,
				square)
		}
		length += square
		room += slack(1, j)
		r.squares[j] = max(square, 0) + slack(1, j)
		if most := math.Sqrt(r.Rows * r.squares[j]); math.Abs(sum) > most*rounding+slack(0, j) { // Cauchy and Schwarz
			return comm.Refused("the sum of column %d at the other peers must be between -%.6g and %.6g, "+
				"by its squares (got %.6g)", j, most, most, sum)
		}
	}
	if most := r.Rows * r.Length * r.Length; length > most*rounding+room { // false if nothing is known
		return comm.Refused("the squares of all columns at the other peers must add up to at most %.6g (got %.6g)",
			most, length)
	}
	return nil
}

// SumsLimit returns what Means.Sums of another peer may be, if the others have n[c] rows in column c of P at most,
// or one number for all columns, and no number of P is larger than most.
func (r Rest) SumsLimit(m *Means, n []float64, columns int, most float64) func(i int) comm.Limit {
	return func(i int) comm.Limit {
		j, rows := i/columns, n[i%columns%len(n)]
		v := math.Sqrt(rows * r.squares[j])
		if rows > 0 { // the length may be infinite
			v = min(v, rows*r.Length)
		}
		v *= most * float64(m.common[j]) * rounding
		return comm.Limit{What: "the sum of a feature over a class", Least: -v, Most: v}
	}
}

// CheckSums returns an error unless the sums of all peers, less this one's own, may come from a P as in SumsLimit.
func (r Rest) CheckSums(m *Means, sums, own hmat.Dense, n []float64, most float64, apart []float64) error {
	if math.IsInf(r.Length, 1) {
		return nil // the limit of each number is all that is known
	}
	for c := range sums.Cols {
		square := 0.0
		for j, f := range m.common {
			v := math.Abs(float64(sums.At(j, c)) - float64(own.At(j, c)))
			v -= math.Abs(float64(sums.At(j, c))) * (rounding - 1)
			if apart != nil {
				v -= apart[c%len(apart)]
			}
			v = max(v, 0) / float64(f)
			square += v * v
		}
		if limit := n[c%len(n)] * r.Length * most; math.Sqrt(square) > limit*rounding {
			return comm.Refused("the sum of the rows of class %d at the other peers must be at most %.6g long "+
				"(got %.6g)", c, limit, math.Sqrt(square))
		}
	}
	return nil
}

// Projected returns the largest sum of squares that the products of the other peers' rows with each column of u may
// have.
func (r Rest) Projected(u hmat.Dense) []float64 {
	total := 0.0
	for _, s := range r.squares {
		total += s
	}
	if r.Rows > 0 {
		total = min(total, r.Rows*r.Length*r.Length)
	}
	squares := make([]float64, u.Cols)
	for j := range u.Rows {
		for c, v := range u.Row(j) {
			squares[c] += float64(v) * float64(v)
		}
	}
	for c, v := range squares {
		if v > 0 { // total may be infinite
			squares[c] *= total * rounding
		}
	}
	return squares
}
