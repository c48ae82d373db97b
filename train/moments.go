package train

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// For each column of numbers peers sum the positive part, the negative part and the squares, each as a real
// (eval.PutReal). Terms are never negative, and the sums over all peers do not depend on the partition, within the
// rounding of float64.
const moments = 3 * eval.RealLen

// leastDeviation is the smallest deviation that sums in units of 2⁻⁴⁰ distinguish from none.
const leastDeviation = 1e-5

// writeMoments writes the moments of labels to sums.
func writeMoments(sums []int64, l graph.Labels) {
	var all [][3]float64
	for range l.Classes {
		all = append(all, [3]float64{})
	}
	for i, v := range l.Values {
		if v == v {
			s, y := &all[i%l.Classes], float64(v)
			s[0], s[1], s[2] = s[0]+max(y, 0), s[1]+max(-y, 0), s[2]+y*y
		}
	}
	for c, s := range all {
		for k, x := range s {
			eval.PutReal(sums[c*moments+k*eval.RealLen:], x)
		}
	}
}

// readMoments finds the units of c from the moments of the nodes that train in any case, and of those that do if no
// node must validate.
func (c *LabelCounts) readMoments(stay, held []float64) {
	for k := 0; k < len(stay); k += moments {
		var s [3]float64
		for m := range s {
			s[m] = realOf(stay[k+m*eval.RealLen:])
			if c.HeldOut == 0 {
				s[m] += realOf(held[k+m*eval.RealLen:])
			}
		}
		c.Classes = append(c.Classes, c.Labelled)
		u := graph.Unit{Deviation: 1}
		if c.Labelled > 0 {
			u.Mean = (s[0] - s[1]) / c.Labelled
			u.Deviation = math.Sqrt(max(s[2]/c.Labelled-u.Mean*u.Mean, 0))
		}
		c.Units = append(c.Units, u)
	}
}

// realOf is eval.Real of sums that are kept as numbers.
func realOf(sums []float64) float64 {
	var v [eval.RealLen]int64
	for k := range v {
		v[k] = int64(sums[k])
	}
	return eval.Real(v[:])
}

// Fault returns an error that names the first column of numbers, of those names or none, that cannot be standardised.
func (c LabelCounts) Fault(names []string) error {
	if c.Labelled == 0 {
		return nil
	}
	for k, u := range c.Units {
		name := graph.Labels{Names: names}.Name(k)
		switch {
		case u.Mean-u.Mean != 0 || u.Deviation-u.Deviation != 0:
			return fmt.Errorf("target %s is too large to be summed over the peers: give it in larger units", name)
		case u.Deviation < leastDeviation:
			return fmt.Errorf("target %s must differ between the %g training nodes by more than %g (got a standard "+
				"deviation of %.2g): give it in smaller units", name, c.Labelled, leastDeviation, u.Deviation)
		}
	}
	return nil
}
