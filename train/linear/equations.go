package linear

import (
	"context"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	hmat "github.com/heddle-gnn/heddle/mat"
)

// NewJoint returns what is known of a regression's targets where all peers have labelled training nodes with so many of
// each class, and this one has own; weight is that of a label of each class, nil: 1, and of several classes 1.
func NewJoint(classes []float64, labelled float64, own graph.Labels, weight []float32) Joint {
	if own.Kind() == target.Numbers {
		return numbersJoint(labelled, own)
	}
	k := Joint{Rows: labelled, Exclusive: !own.Multi(), All: true}
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
	k := Joint{Rows: labelled, Numbers: true, All: true, Weight: labelled, RestWeight: labelled - float64(own.Labelled())}
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

// MostSquare is the largest squared length of a row in a regression whose rows come from rows of length 1: a hub's sum of
// neighbours may be longer than these.
const MostSquare = 64

// SumEquations returns the equations (equations, Ridge) of the rows of z and y of all peers, in one reduction. Rows of z
// that are longer than most, squared, are made shorter first, all but the constant in their last column.
func (k Joint) SumEquations(ctx context.Context, r comm.Reducer, id comm.ReduceID, z, y hmat.Dense, weight []float32, most float64) ([]float32, error) {
	shorten(z, most)
	own, err := equations(ctx, z, y, weight)
	if err != nil {
		return nil, err
	}
	c := &comm.Contribution{ID: id, Update: slices.Clone(own)}
	if k.All {
		c.UpdateLimit = k.equationsLimit(z.Cols, most)
	}
	said, err := r.Reduce(ctx, c)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(c.Update, func(v float32) bool { return v-v != 0 }) {
		return c.Update, nil // Ridge says so
	}
	k.Apart = slices.Max(append(said.Error, 0))
	return c.Update, k.checkEquations(ctx, c.Update, own, z.Cols, most)
}

// shorten makes rows of z, but for their last number, a constant, as long as most allows, the square of their length.
func shorten(z hmat.Dense, most float64) {
	for i := range z.Rows {
		row, square := z.Row(i)[:z.Cols-1], 0.0
		for _, v := range row {
			square += float64(v) * float64(v)
		}
		if square > most {
			f := math.Sqrt(most / square)
			for j, v := range row {
				row[j] = float32(f * float64(v))
			}
		}
	}
}

// equationsLimit returns the limits of another peer's equations of d columns, whose rows, without the constant, have a
// squared length of at most most.
func (k Joint) equationsLimit(d int, most float64) func(i int) comm.Limit {
	square := 0.0
	if k.RestWeight > 0 {
		square = min(k.RestWeight*most, 1e150) // most may be infinite, and the limit must be finite
	}
	squares := slices.Repeat([]float64{square}, d)
	squares[0] = k.RestWeight // the last column, from the end
	gram := triangle(d)
	return func(i int) comm.Limit {
		if i < gram { // an upper triangle row by row is a lower one from its end
			return gramLimit(squares, gram-1-i)
		}
		i -= gram
		return crossLimit(squares[d-1-i/len(k.Rest)], k.Rest[i%len(k.Rest)])
	}
}

// checkEquations is Normal.Check of equations of d columns, of all peers and of this one, whose rows, without the constant,
// have a squared length of at most most.
func (k Joint) checkEquations(ctx context.Context, all, own []float32, d int, most float64) error {
	n, mine := k.system(all, d), k.system(own, d)
	if !k.All {
		k.Weight, k.RestWeight = n.gram(0, 0), n.gram(0, 0)-mine.gram(0, 0)
		k.Squares, k.Rest = slices.Clone(k.Squares), slices.Clone(k.Rest)
		for c := range k.Squares {
			if k.Squares[c], k.Rest[c] = n.cross(0, c), n.cross(0, c)-mine.cross(0, c); k.Numbers {
				k.Squares[c], k.Rest[c] = 0, 0 // the sums do not say
			}
		}
	}
	square, room := 0.0, 0.0
	for j := 1; j < d; j++ {
		square += n.gram(j, j) - mine.gram(j, j)
		room += n.gram(j, j) * 1e-4
	}
	if limit := k.RestWeight * most; square > limit*rounding+room { // false where there is no limit
		return comm.Refused("the squares of all columns at the other peers' training nodes must add up to at most %.6g (got %.6g)", limit, square)
	}
	return k.check(ctx, n, mine)
}

// system returns equations of d columns as a system: the constant, their last column, comes first.
func (k Joint) system(sums []float32, d int) system {
	from := func(i int) int { return (i + d - 1) % d }
	cross, c := sums[triangle(d):], len(k.Rest)
	return system{d, func(i, j int) float64 {
		i, j = from(i), from(j)
		if i > j {
			i, j = j, i
		}
		return float64(sums[i*d-i*(i-1)/2+j-i])
	}, func(i, class int) float64 { return float64(cross[from(i)*c+class]) }}
}
