package eval

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// What is summed of each column of numbers y and their predictions f, in the units that the model predicts in: in
// standardised ones 0 is the mean of the training nodes. All sums are of numbers that are not negative.
const (
	sumOver    = iota // y − f where y is above f
	sumUnder          // f − y if positive
	sumSquares        // (y − f)²
	sumHigh           // y if positive
	sumLow            // −y if positive
	sumAround         // y²
	sumErrors4        // (y − f)⁴
	sumCross          // (y − f)²·y²
	sumAround4        // y⁴
	sumsOf            // the number of sums; the last three give the error by chance
)

// shortSums are those without the last three.
const shortSums = sumErrors4

// numbers are the sums of C columns of numbers over some rows.
type numbers struct {
	rows int64
	sums [][sumsOf]float64 // [C]
	unit []float64         // [C] the unit of the sums, in units of the data
}

// unitsOf returns the deviations of standardised columns, [C], or 1 for columns that are not.
func unitsOf(labels graph.Labels) []float64 {
	unit := make([]float64, labels.Classes)
	for c := range unit {
		if unit[c] = 1; labels.Units != nil {
			unit[c] = labels.Units[c].Deviation
		}
	}
	return unit
}

// add adds a row.
func (n *numbers) add(row, values []float32) {
	n.rows++
	for c, v := range values {
		y, e := float64(v), float64(v)-float64(row[c])
		s := &n.sums[c]
		s[sumOver] += max(e, 0)
		s[sumUnder] += max(-e, 0)
		s[sumSquares] += e * e
		s[sumHigh] += max(y, 0)
		s[sumLow] += max(-y, 0)
		s[sumAround] += y * y
		s[sumErrors4] += e * e * e * e
		s[sumCross] += e * e * y * y
		s[sumAround4] += y * y * y * y
	}
}

// write writes the first sums of each column to v, each of them.
func (n *numbers) write(v []int64, each int) {
	for c := range n.sums {
		for k := range each {
			PutReal(v[(c*each+k)*RealLen:], n.sums[c][k])
		}
	}
}

// readNumbers returns what write wrote of the given number of rows.
func readNumbers(v []int64, rows int64, unit []float64, each int) numbers {
	n := numbers{rows: rows, unit: unit, sums: make([][sumsOf]float64, len(unit))}
	for c := range n.sums {
		for k := range each {
			n.sums[c][k] = Real(v[(c*each+k)*RealLen:])
		}
	}
	return n
}

// check returns an error if no rows can give these sums.
func (n *numbers) check() error {
	for c, s := range n.sums {
		rows := float64(n.rows)
		apart := s[sumOver] + s[sumUnder]
		if size := s[sumHigh] + s[sumLow]; apart*apart > rows*s[sumSquares]*(1+1e-6)+1e-6 ||
			size*size > rows*s[sumAround]*(1+1e-6)+1e-6 {
			return fmt.Errorf("the sums of column %d must be sums of %d rows (got %g with squares of "+
				"%g, and %g with %g)", c, n.rows, apart, s[sumSquares], size, s[sumAround])
		}
	}
	return nil
}

// baseline returns the sums of a model that predicts 0, the mean of the training nodes.
func (n *numbers) baseline() numbers {
	out := numbers{rows: n.rows, unit: n.unit, sums: make([][sumsOf]float64, len(n.sums))}
	for c, s := range n.sums {
		s[sumOver], s[sumUnder], s[sumSquares] = s[sumHigh], s[sumLow], s[sumAround] // no more of it is asked for
		out.sums[c] = s
	}
	return out
}

// spread is the sum of squares of the numbers around their mean.
func spread(s *[sumsOf]float64, rows float64) float64 {
	mean := (s[sumHigh] - s[sumLow]) / rows
	return s[sumAround] - rows*mean*mean
}

// of returns a metric, the mean over columns, or NaN if there are no rows or, for R², all numbers are the same.
func (n *numbers) of(m Metric) float64 {
	mean := 0.0
	for c := range n.sums {
		x, _ := n.column(m, c)
		mean += x / float64(len(n.sums))
	}
	return mean
}

// column returns a metric of column c and its standard error, which is NaN if the sums are short.
func (n *numbers) column(m Metric, c int) (x, err float64) {
	s, rows, unit := &n.sums[c], float64(n.rows), n.unit[c]
	if n.rows == 0 {
		return math.NaN(), math.NaN()
	}
	square := s[sumSquares] / rows
	switch m {
	case "r2":
		all := spread(s, rows)
		if !(all > rows*1e-12) {
			return math.NaN(), math.NaN()
		}
		x = 1 - s[sumSquares]/all
		// The variance of (e² − (1 − R²)·y²)/Var y, by the delta method.
		v := s[sumErrors4] - 2*(1-x)*s[sumCross] + (1-x)*(1-x)*s[sumAround4]
		return x, math.Sqrt(max(v, 0)) / all
	case "rmse":
		x = math.Sqrt(square)
		return unit * x, unit * math.Sqrt(max(s[sumErrors4]/rows-square*square, 0)/rows) / max(2*x,
			math.SmallestNonzeroFloat32)
	default: // mae
		x = (s[sumOver] + s[sumUnder]) / rows
	}
	return unit * x, unit * math.Sqrt(max(square-x*x, 0)/rows)
}

// interval returns the bounds of m with 95 % certainty, by its standard error over rows; columns count as independent.
func (n *numbers) interval(m Metric) (low, high float64) {
	x, v := n.of(m), 0.0
	for c := range n.sums {
		_, err := n.column(m, c)
		v += err * err / float64(len(n.sums)*len(n.sums))
	}
	half := 1.96 * math.Sqrt(v)
	if low, high = x-half, x+half; m != "r2" {
		low = max(low, 0)
	}
	return low, high
}

// countNumbers returns the sums of some rows.
func countNumbers(scores mat.Dense, labels graph.Labels, rows []int32) numbers {
	n := numbers{sums: make([][sumsOf]float64, labels.Classes), unit: unitsOf(labels)}
	for i := range numbersOf(rows, scores.Rows) {
		if labels.Has(i) {
			n.add(scores.Row(i), labels.Values[i*labels.Classes:(i+1)*labels.Classes])
		}
	}
	return n
}
