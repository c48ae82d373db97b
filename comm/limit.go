package comm

import (
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/kernels"
)

// Limit is what a number of one member's part of a sum may be.
type Limit struct {
	What        string  // for errors, as "the diagonal of the Gram matrix"
	Least, Most float64 // both included
}

// refusal returns the error of a number v that exceeds the limit by more than slack (nil = it does not). NaN is beyond
// every limit.
func (l Limit) refusal(v, slack float64) error {
	switch {
	case v >= l.Least-slack && v <= l.Most+slack:
		return nil
	case v > l.Most:
		return Refused("%s must be at most %.6g (got %.6g)", l.What, l.Most, v)
	}
	return Refused("%s must be at least %.6g (got %.6g)", l.What, l.Least, v)
}

// ofSum is the limit of a sum over `others` other members whose parts have limit l, and this one's own part.
func (l Limit) ofSum(own float64, others int) Limit {
	n := float64(others)
	return Limit{"the sum of " + l.What, own + n*l.Least, own + n*l.Most}
}

// float32Error is how far rounding to float32 may move a number of that magnitude, with space for a sum of others'.
func float32Error(v float64) float64 { return math.Abs(v) * 0x1p-22 }

// checkFloats returns the check of what another member gives of an Update in float32. Numbers that are not finite are
// not the other member's fault if this member's Update has some, too: training has diverged.
func (c *Contribution) checkFloats() func(at int, b []byte) error {
	finite := floatVector(c.Update).finite()
	return func(at int, b []byte) error {
		if c.UpdateLimit == nil && (!finite || floatVector(floats(b)).finite()) {
			return nil
		}
		for i, v := range floats(b) {
			if finite && v-v != 0 {
				return Refused("update[%d] must be finite (got %g)", at+i, v)
			}
			if c.UpdateLimit == nil || v-v != 0 {
				continue
			}
			if err := c.UpdateLimit(at+i).refusal(float64(v), float32Error(float64(v))); err != nil {
				return err
			}
		}
		return nil
	}
}

func (x floatVector) finite() bool { return kernels.MaxAbs(x) <= math.MaxFloat32 }

// checkGrid returns the check of the largest magnitudes by column that another member gives.
func (c *Contribution) checkGrid(g *Fixed) func(at int, b []byte) error {
	most, bound := make([]Limit, len(g.magnitudes)), largest(g.members)
	if c.UpdateLimit != nil {
		for i := range c.Update {
			l, k := c.UpdateLimit(i), g.stepOf(i)
			if v := max(-l.Least, l.Most); v >= most[k].Most {
				most[k] = Limit{"the largest magnitude of " + l.What, 0, v}
			}
		}
	}
	return func(at int, b []byte) error {
		for i, v := range floats(b) {
			if !(v >= 0 && v <= bound) {
				return Refused("a largest magnitude must be between 0 and %g (got %g)", bound, v)
			}
			if c.UpdateLimit == nil {
				continue
			}
			if err := most[at+i].refusal(float64(v), float32Error(float64(v))); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkFixed returns the check of what another member gives of an Update in fixed point: rounding moved it by half a
// step at most.
func (c *Contribution) checkFixed(g *Fixed) func(at int, b []byte) error {
	if c.UpdateLimit == nil {
		return nil
	}
	return func(at int, b []byte) error {
		for i := range len(b) / (c.Bits / 8) {
			k := g.stepOf(at + i)
			step := g.step[k/g.columns][k%g.columns]
			v := float64(intAt(b, i, c.Bits)) * step
			if err := c.UpdateLimit(at+i).refusal(v, step/2+float32Error(v)); err != nil {
				return err
			}
		}
		return nil
	}
}

// Guard returns the check of c's sums over `members` members, to be called when they have replaced this member's part.
// They must be within what the part and the limits of the others' parts allow, since the member that sums may lie, too.
// Its argument is Reduced.Error; its error comes with the length of Update or Counts and the index of the number in it,
// as they are sent.
func (c *Contribution) Guard(members int) func(apart []float64) (length, i int, err error) {
	var update []float32
	var counts []int64
	if c.UpdateLimit != nil && floatVector(c.Update).finite() {
		update = slices.Clone(c.Update)
	}
	var form countForm
	if c.CountLimit != nil {
		counts, form = slices.Clone(c.Counts), c.countForm(members)
	}
	g := Fixed{parts: c.Parts, columns: max(c.Columns, 1)}
	if g.parts == nil {
		g.parts = []int{len(c.Update)}
	}
	return func(apart []float64) (length, i int, err error) {
		for i, v := range update {
			l := c.UpdateLimit(i).ofSum(float64(v), members-1)
			slack := float32Error(max(math.Abs(l.Least), math.Abs(l.Most)))
			if apart != nil {
				slack += apart[g.stepOf(i)]
			}
			if err := l.refusal(float64(c.Update[i]), slack); err != nil {
				return len(update), i, err
			}
		}
		for i, v := range counts {
			if err := c.CountLimit(i).ofSum(float64(v), members-1).refusal(float64(c.Counts[i]), 0); err != nil {
				return form.at[len(counts)], form.at[i], err
			}
		}
		return 0, 0, nil
	}
}
