package eval

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/mat"
)

// Likelihoods is how many numbers WriteLikelihoods writes: one for each temperature of a grid from 1/64 to 8, two an octave.
const Likelihoods = 19

// gridTemperature returns temperature k of the grid.
func gridTemperature(k int) float64 { return math.Exp2(float64(k)/2 - 6) }

// WriteLikelihoods writes to v the negative log-likelihood of the labels at each temperature of the grid, in units of 2⁻¹⁶;
// each row is rounded by itself. Numbers have no likelihood.
func WriteLikelihoods(v []int64, logits mat.Dense, labels graph.Labels) {
	clear(v[:Likelihoods])
	if labels.Kind() == target.Numbers {
		return
	}
	eachRow(logits, labels, nil, func(row []float32, class int, bits []uint8) {
		for k := range Likelihoods {
			loss := lossAt(row, class, bits, gridTemperature(k))
			if !(loss <= 1<<20) {
				loss = 1 << 20
			}
			v[k] += int64(math.RoundToEven(loss * fine))
		}
	})
}

// lossAt is the cross-entropy of a row at a temperature.
func lossAt(row []float32, class int, bits []uint8, temperature float64) (sum float64) {
	if bits != nil {
		for k, x := range row {
			z := float64(x) / temperature
			if bits[k] != 0 {
				z = -z
			}
			sum += max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) // log(1+e^z)
		}
		return sum
	}
	top := float64(row[ArgMax(row)])
	for _, x := range row {
		sum += math.Exp((float64(x) - top) / temperature)
	}
	return math.Log(sum) - (float64(row[class])-top)/temperature
}

// Temperature returns that by which logits are divided so that probabilities fit best, from sums of WriteLikelihoods over
// validation rows: the lowest point of the grid, refined by the parabola through it and its neighbours over log T, rounded
// to four digits. A prior of one observation, (ln T)²/2, keeps it near 1 where there are few rows, or where all are right. It
// lies in [1/64, 8], and is 1 where there are no rows (temperature scaling: Guo et al., ICML 2017, §4.2).
func Temperature(v []int64) float64 {
	at := func(k int) float64 {
		x := math.Log(gridTemperature(k))
		return float64(v[k])/fine + x*x/2
	}
	best := 0
	for k := range Likelihoods {
		if at(k) < at(best) {
			best = k
		}
	}
	t := gridTemperature(best)
	if best > 0 && best < Likelihoods-1 {
		before, here, after := at(best-1), at(best), at(best+1)
		if bend := before - 2*here + after; bend > 0 {
			t *= math.Exp2((before - after) / bend / 4) // half an octave a step
		}
	}
	unit := math.Pow(10, math.Floor(math.Log10(t))-3)
	return math.Round(math.Round(t/unit)*unit*1e6) / 1e6
}
