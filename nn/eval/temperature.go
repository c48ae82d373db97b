package eval

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// gridSize is how many temperatures are tried: from 1/64 to 8, two an octave.
const gridSize = 19

// leastOfClass is how many positive rows, and how many negative ones, a class needs for a temperature of its own.
const leastOfClass = 10

// gridTemperature returns temperature k of the grid.
func gridTemperature(k int) float64 { return math.Exp2(float64(k)/2 - 6) }

// Temperatures are what logits are divided by for probabilities.
type Temperatures struct {
	Shared  float64   // of all classes (0 = 1)
	Classes []float64 // [C] the temperature of each class if a node may have several (nil = Shared)
}

// Of(k) is the temperature of class k.
func (t Temperatures) Of(k int) float64 {
	switch {
	case t.Classes != nil:
		return t.Classes[k]
	case t.Shared != 0:
		return t.Shared
	}
	return 1
}

// Likelihoods returns how many numbers WriteLikelihoods writes of labels of kind k, and how many of them, the first,
// may exceed the number of all rows.
func Likelihoods(k graph.TargetKind, classes int) (numbers, wide int) {
	if k != graph.Several {
		return gridSize, gridSize
	}
	return (gridSize+1)*classes + 1, gridSize * classes
}

// WriteLikelihoods writes to v the negative log-likelihood of the labels at each temperature of the grid, in units of
// 2⁻¹⁶; each row is rounded by itself. If a node may have several classes, it does so class by class, and appends how
// many rows have each class, and the number of rows. Numbers have no likelihood.
func WriteLikelihoods(v []int64, logits mat.Dense, labels graph.Labels) {
	numbers, wide := Likelihoods(labels.Kind(), labels.Classes)
	clear(v[:numbers])
	if labels.Kind() == graph.Numbers {
		return
	}
	eachRow(logits, labels, nil, func(row []float32, class int, bits []uint8) {
		if bits == nil {
			addLosses(v, func(t float64) float64 { return lossAt(row, class, t) })
			return
		}
		for k, x := range row {
			addLosses(v[gridSize*k:], func(t float64) float64 { return binaryLossAt(x, bits[k] != 0, t) })
			v[wide+k] += int64(bits[k])
		}
		v[numbers-1]++
	})
}

// addLosses adds a loss at each temperature of the grid.
func addLosses(v []int64, loss func(temperature float64) float64) {
	for k := range gridSize {
		x := loss(gridTemperature(k))
		if !(x <= 1<<20) {
			x = 1 << 20
		}
		v[k] += int64(math.RoundToEven(x * fine))
	}
}

// lossAt is the cross-entropy of a row at a temperature.
func lossAt(row []float32, class int, temperature float64) (sum float64) {
	top := float64(row[ArgMax(row)])
	for _, x := range row {
		sum += math.Exp((float64(x) - top) / temperature)
	}
	return math.Log(sum) - (float64(row[class])-top)/temperature
}

// binaryLossAt is the cross-entropy of a logit at a temperature.
func binaryLossAt(x float32, positive bool, temperature float64) float64 {
	z := float64(x) / temperature
	if positive {
		z = -z
	}
	return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) // log(1+e^z)
}

// FitTemperatures returns those that fit best, from sums of WriteLikelihoods over validation rows (temperature scaling:
// Guo et al., ICML 2017, §4.2). They lie in [1/64, 8]; without rows Shared is 1. A class with fewer than 10 positive or
// fewer than 10 negative rows gets Shared.
func FitTemperatures(v []int64, k graph.TargetKind, classes int) (t Temperatures) {
	if k != graph.Several {
		t.Shared = fitted(v, 1)
		return t
	}
	numbers, wide := Likelihoods(k, classes)
	all := make([]int64, gridSize)
	for i, x := range v[:wide] {
		all[i%gridSize] += x
	}
	t.Shared = fitted(all, 1)
	for c := range classes {
		own := t.Shared
		if has := v[wide+c]; has >= leastOfClass && v[numbers-1]-has >= leastOfClass {
			own = fitted(v[gridSize*c:], t.Shared)
		}
		t.Classes = append(t.Classes, own)
	}
	return t
}

// fitted is the temperature of the lowest point of the grid, refined by the parabola through it and its neighbours over
// log T, rounded to four digits. A prior of one observation, (ln T/usual)²/2, keeps it near the usual one if there are
// few rows, or if all are right.
func fitted(v []int64, usual float64) float64 {
	at := func(k int) float64 {
		x := math.Log(gridTemperature(k) / usual)
		return float64(v[k])/fine + x*x/2
	}
	best := 0
	for k := range gridSize {
		if at(k) < at(best) {
			best = k
		}
	}
	t := gridTemperature(best)
	if best > 0 && best < gridSize-1 {
		before, here, after := at(best-1), at(best), at(best+1)
		if bend := before - 2*here + after; bend > 0 {
			t *= math.Exp2((before - after) / bend / 4) // half an octave a step
		}
	}
	unit := math.Pow(10, math.Floor(math.Log10(t))-3)
	return math.Round(math.Round(t/unit)*unit*1e6) / 1e6
}
