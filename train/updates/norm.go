// Package updates checks the sums of a round's updates against the limits of the plan.
package updates

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Norm is a Reducer of updates, whose Counts begin with the reals loss and labels (eval.Real). The norm of a member's
// update is at most Most per label. Norm scales its own update down to that and refuses a sum of the others' updates that
// is longer than their labels allow. A member that lies can use up the limit of all others.
type Norm struct {
	comm.Reducer
	Most float64
	Rest float64 // labels of the other members, at most
}

// Reduce implements comm.Reducer.
func (n Norm) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	labels := eval.Real(c.Counts[eval.RealLen:])
	if norm := distance(c.Update, nil); norm > n.Most*labels {
		for i := range c.Update {
			c.Update[i] = float32(float64(c.Update[i]) * (n.Most * labels / norm))
		}
	}
	own := slices.Clone(c.Update)
	limit := n.Most * n.Rest * (1 + 1e-5)
	c.UpdateLimit = func(int) comm.Limit { return comm.Limit{What: "an update", Least: -limit, Most: limit} }
	r, err := n.Reducer.Reduce(ctx, c)
	if err != nil || slices.ContainsFunc(r.Meta, func(b []byte) bool { return b != nil && !slices.Equal(b[:min(len(b), c.Common)], c.Meta[:c.Common]) }) {
		return r, err // the masks do not cancel if members differ in Common: the sum may be noise
	}
	most := n.Most * (eval.Real(c.Counts[eval.RealLen:]) - labels)
	room := 1e-5*(most+distance(own, nil)) + slices.Max(append(r.Error, 0))*math.Sqrt(float64(len(own)))
	if norm := distance(c.Update, own); norm > most+room {
		return r, fmt.Errorf("%v: %w", c.ID, comm.Refused("the sum of the other peers' updates must be at most %.6g long (got %.6g)", most, norm))
	}
	return r, nil
}

// distance is the Euclidean norm of x − y, or of x where y is nil.
func distance(x, y []float32) float64 {
	sum := 0.0
	for i, v := range x {
		d := float64(v)
		if y != nil {
			d -= float64(y[i])
		}
		sum += d * d
	}
	return math.Sqrt(sum)
}

// SumBits returns the bits of a number in sums of that format (comm.Contribution.Bits): of int16, int8, auto (int16) or empty
// (float32, 0 bits); −1: it is none of these.
func SumBits(format string) int {
	switch format {
	case "":
		return 0
	case "int8":
		return 8
	case "int16", "auto":
		return 16
	}
	return -1
}
