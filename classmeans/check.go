package classmeans

import (
	"context"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// What other peers may send. All of it is exact: no data break these limits (docs/explanation/robustness.md).

const (
	// mostSquare bounds the square of one row in a regression, in mean squares of all rows: a few rows decide no
	// regression. On 13 public graphs no row came above 34 (docs/explanation/robustness.md).
	mostSquare = 64
	// mostNeighbours is how many rows of length 1 a sum of neighbours' class rows may have in a regression.
	mostNeighbours = 1 << 10
)

// unknown returns what is known of the other peers' features before their statistics are.
func (t *Trainer) unknown() linear.Rest {
	r := linear.Rest{Rows: float64(t.shard.Nodes) - float64(t.shard.Owned), Length: 1}
	if t.config.RowNorm == "none" {
		r.Length = math.Inf(1)
	}
	return r
}

// learn takes the statistics of all peers; own are this peer's part.
func (t *Trainer) learn(own mat.Dense) error {
	t.rest = t.unknown()
	if t.Leaves {
		return nil
	}
	t.rest.Rows = t.nodes - float64(len(t.present()))
	return t.rest.Learn(t.stats, own, t.apart)
}

// atMost returns a limit of counts.
func atMost(what string, most float64) func(int) comm.Limit {
	return func(int) comm.Limit { return comm.Limit{What: what, Least: 0, Most: most} }
}

// within returns a limit of sums of either sign.
func within(what string, most float64) func(int) comm.Limit {
	return func(int) comm.Limit { return comm.Limit{What: what, Least: -most, Most: most} }
}

// classRows returns how many rows of the other peers are in the sum of each class in round r, or of all classes.
func (t *Trainer) classRows(r int) []float64 {
	all, own := t.Labels.Classes, t.shard.Labels.Select(t.train).Count()
	switch {
	case t.config.residual():
		return []float64{t.Labels.Labelled - float64(len(t.train))}
	case r > 0:
		return []float64{t.rest.Rows}
	}
	n := make([]float64, len(all))
	for c := range n {
		if all[c] >= t.leastClass() {
			n[c] = all[c] - own[c]
		}
	}
	return n
}

// checkClassCounts checks how many rows, in units, the sums of each class include in round r; own are this peer's
// counts.
func (t *Trainer) checkClassCounts(r int, counts, own []int64) error {
	all, room := int64(0), int64(t.shard.Nodes)*int64(len(counts)) // each soft count is rounded
	for c, n := range counts {
		all += n - own[c]
		if known := t.Labels.Classes[c]; r == 0 && known >= t.leastClass() && n != int64(known*unit) {
			return comm.Refused("the training nodes of class %d must be %g, as was counted before (got %g)", c, known,
				float64(n)/unit)
		} else if r == 0 && known < t.leastClass() && n != 0 {
			return comm.Refused("the training nodes of class %d, which has too few, must be 0 (got %g)", c,
				float64(n)/unit)
		}
	}
	if most := int64(t.rest.Rows * unit); all > most+room {
		return comm.Refused("the classes of the other peers' nodes must add up to at most %g (got %g)", t.rest.Rows,
			float64(all)/unit)
	}
	return nil
}

// deviationLimit returns what another peer's sums and sums of squares of the products with u may be.
func (t *Trainer) deviationLimit(u mat.Dense) func(i int) comm.Limit {
	if t.Leaves {
		return nil
	}
	squares := t.rest.Projected(u)
	return func(i int) comm.Limit {
		if c := i - u.Cols; c >= 0 {
			return comm.Limit{What: "the sum of squares of a class's column", Least: 0, Most: squares[c]}
		}
		most := math.Sqrt(t.rest.Rows * squares[i])
		return comm.Limit{What: "the sum of a class's column", Least: -most, Most: most}
	}
}

// checkDeviations checks sums and sums of squares of k columns; own are this peer's part.
func (t *Trainer) checkDeviations(sums, own []float32, apart []float64) error {
	if t.Leaves {
		return nil
	}
	k := len(sums) / 2
	for c := range k {
		sum, square := float64(sums[c])-float64(own[c]), float64(sums[k+c])-float64(own[k+c])
		room := math.Abs(float64(sums[k+c]))*1e-5 + largest(apart)
		if most := math.Sqrt(t.rest.Rows * (max(square, 0) + room)); math.Abs(sum) > most*(1+1e-5)+
			math.Abs(float64(sums[c]))*1e-5+largest(apart) {
			return comm.Refused("the sum of column %d at the other peers must be between -%.6g and %.6g, "+
				"by its squares (got %.6g)", c, most, most, sum)
		}
	}
	return nil
}

// allow notes how large a row of the columns of round r may be in a regression, squared. Its columns before any hop
// have these mean squares over all nodes; components and logits are about 1 at most, and log(1 + degree) is 16 at most.
func (t *Trainer) allow(r int, squares []float64) {
	spec := t.model.Spec.Closed
	all := float64(spec.Columns(r, t.config.Classes)) + 3
	kept := 1
	if spec.AllHops {
		kept = spec.HopsOf(r) + 1
	}
	for _, q := range squares {
		all += float64(kept) * max(q-1, 0)
	}
	if spec.Sums(r) {
		all += mostNeighbours * mostNeighbours / mostSquare
	}
	t.allowed = append(t.allowed[:r], mostSquare*all)
}

// bounded scales rows of the columns up to round r for a regression: if a row's columns of a round are larger than
// allowed, it makes them smaller.
func (t *Trainer) bounded(r int, rows mat.Dense) {
	at := 1
	for round := range r + 1 {
		width := t.model.Spec.Closed.Columns(round, t.config.Classes)
		for i := range rows.Rows {
			block, square := rows.Row(i)[at:at+width], 0.0
			for _, v := range block {
				square += float64(v) * float64(v)
			}
			if square > t.allowed[round] {
				f := math.Sqrt(t.allowed[round] / square)
				for k, v := range block {
					block[k] = float32(f * float64(v))
				}
			}
		}
		at += width
	}
}

// largest returns the largest of x, 0 if x is empty.
func largest(x []float64) float64 { return slices.Max(append(x, 0)) }

// squares bounds the weighted sum of squares of each column of the rounds up to r over the other peers' training nodes.
// w is the sum for the constant column.
func (t *Trainer) squares(r int, w float64) []float64 {
	all := []float64{w}
	for k := range r + 1 {
		width := t.model.Spec.Closed.Columns(k, t.config.Classes)
		all = append(all, slices.Repeat([]float64{w * t.allowed[k]}, width)...)
	}
	return all
}

// joint returns what is known of the targets of all peers.
func (t *Trainer) joint() linear.Joint {
	return linear.NewJoint(t.Labels.Classes, t.Labels.Labelled, t.shard.Labels.Select(t.train), t.weight)
}

// checkEquations checks the normal equations after round r; own are this peer's part.
func (t *Trainer) checkEquations(ctx context.Context, r int, all, own linear.Normal, k linear.Joint) error {
	w, at := k.RestWeight, 1
	for round := range r + 1 {
		width, square, room := t.model.Spec.Closed.Columns(round, t.config.Classes), 0.0, 0.0
		for j := at; j < at+width; j++ {
			square += all.Square(j) - own.Square(j)
			room += all.Square(j) * 1e-4
		}
		if most := w * t.allowed[round]; square > most+room {
			return comm.Refused("the squares of the columns of round %d at the other peers' training nodes must add "+
				"up to at most %.6g (got %.6g)", round+1, most, square)
		}
		at += width
	}
	return all.Check(ctx, own, k)
}

// checkMetric checks the counts of a metric over n rows of the other peers.
func checkMetric(a eval.Accumulator, all, own []int64, n int64) error {
	rest := slices.Clone(all)
	for i, v := range own {
		rest[i] -= v
	}
	if err := a.Check(rest, n); err != nil {
		return comm.Refused("the counts of the other peers: %v", err)
	}
	return nil
}

// ownValidating returns how many labelled nodes of this peer validate.
func (t *Trainer) ownValidating() int64 {
	return int64(t.shard.Labels.Select(t.shard.NodesIn(graph.Val)).Labelled())
}

// randomLimit bounds another peer's part for the random features that follow d standardised columns. The squares of
// each standardised column add up to the weights of all peers, with a wide margin for rounding, and random features are
// between −√2 and √2.
func (t *Trainer) randomLimit(d, random int, k linear.Joint) func(i int) comm.Limit {
	w := k.RestWeight
	squares := append([]float64{w}, slices.Repeat([]float64{4 * k.Weight}, d-1)...)
	return linear.PartLimit(random, append(squares, slices.Repeat([]float64{2 * w}, random)...), k.Rest)
}
