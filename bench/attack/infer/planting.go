package infer

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/heddle-gnn/heddle/bench/attack/recorded"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/privacy/attack"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// Planting is the table of a member that chose it so that the rows of others reveal which of their nodes have a rare
// column. Some of its nodes of each class have one chosen column, and its other nodes lose the chosen columns.
type Planting struct {
	Columns []int32        // of each class
	Shards  []*shard.Shard // of all members
}

// A rare column is one that at least leastHolders nodes have, and at most mostHolders of all.
const (
	leastHolders = 8
	mostHolders  = 0.01
)

// Plant returns shards with a planted table at the attacker: `each` of its nodes in each class train, and have the
// column next to their own, or only this column. Columns are random rare ones; sums of an earlier run reveal which are
// rare.
func Plant(shards []*shard.Shard, attacker, each int, next bool, key rng.Key) (*Planting, error) {
	own := shards[attacker]
	classes := own.Labels.Classes
	if own.Owned < each*classes {
		return nil, fmt.Errorf("the attacker must have %d nodes for each of %d classes (got %d)", each, classes,
			own.Owned)
	}
	holders := make([]int, own.X.Cols())
	for _, s := range shards {
		for v := range s.Owned {
			col, _ := attack.NonZeros(s.X, int32(v))
			for _, j := range col {
				holders[j]++
			}
		}
	}
	p := &Planting{Shards: slices.Clone(shards)}
	for _, j := range key.FoldString("columns").Perm(len(holders)) {
		if n := holders[j]; n >= leastHolders && float64(n) <= mostHolders*float64(own.Nodes) &&
			len(p.Columns) < classes {
			p.Columns = append(p.Columns, int32(j))
		}
	}
	if len(p.Columns) < classes {
		return nil, fmt.Errorf("%d columns must have %d nodes, and at most %g of all (got %d)", classes, leastHolders,
			mostHolders, len(p.Columns))
	}
	to := *own
	to.Labels.Class, to.Split = slices.Clone(own.Labels.Class), slices.Clone(own.Split)
	planted := make(map[int]int32)
	for k, v := range key.FoldString("nodes").Perm(own.Owned)[:each*classes] {
		planted[int(v)] = p.Columns[k%classes]
		to.Labels.Class[v], to.Split[v] = int32(k%classes), graph.Train
	}
	x := mat.New(own.Owned, own.X.Cols())
	for v := range own.Owned {
		column, is := planted[v]
		if !is || next {
			col, val := attack.NonZeros(own.X, int32(v))
			for k, j := range col {
				if !slices.Contains(p.Columns, j) {
					x.Set(v, int(j), val[k])
				}
			}
		}
		if is {
			x.Set(v, int(column), 1)
		}
	}
	to.X = graph.Features{Dense: x}
	if own.X.Sparse != nil {
		sparse := &mat.Sparse{Cols: x.Cols, RowPtr: []int64{0}}
		for v := range own.Owned {
			col, val := attack.NonZeros(graph.Features{Dense: x}, int32(v))
			sparse.Col, sparse.Val, sparse.Rows = append(sparse.Col, col...), append(sparse.Val, val...), v+1
			sparse.RowPtr = append(sparse.RowPtr, int64(len(sparse.Col)))
		}
		to.X = graph.Features{Sparse: sparse}
	}
	p.Shards[attacker] = &to
	return p, nil
}

// Read is what rows reveal of columns: the area under the curve of a score, mean over the columns that any of the nodes
// has.
type Read struct {
	Number  float64 // by the number of the column's class in the first round
	All     float64 // by the best linear combination of the numbers of all rounds
	Holders int     // nodes that have one of the columns
}

// Train trains by p over the shards, and reads the planted columns from the rows of all other members.
func (pl *Planting) Train(ctx context.Context, p plan.Plan, attacker int) (Read, error) {
	run, err := recorded.Train(ctx, p, pl.Shards, attacker)
	if err != nil {
		return Read{}, err
	}
	return (&Run{Run: run}).Columns(pl.Columns)
}

// Columns reads from the rows of all other members which nodes have columns[c], of each class c.
func (run *Run) Columns(columns []int32) (r Read, err error) {
	z, has, err := run.received(columns)
	if err != nil {
		return r, err
	}
	form, gram, d, read := run.Model.Closed, covariance(z), len(z[0]), 0.0
	attack.FactorLower(gram, d)
	for c, j := range columns {
		filter := make([]float64, 0, d)
		// rounds that the model does not keep are 0
		for _, means := range form.Means[min(form.Spec.Alone, len(form.Means)):] {
			for _, w := range means.Value.Row(int(j)) {
				filter = append(filter, float64(w))
			}
		}
		filter = append(filter, make([]float64, d-len(filter))...)
		attack.Substitute(gram, filter)
		var number, combined [2][]float64 // of nodes without the column, and with it
		for i, row := range z {
			k := 0
			if has[i][c] {
				k = 1
			}
			number[k], combined[k] = append(number[k], row[min(c, d-1)]), append(combined[k], floats.Dot(filter, row))
		}
		if len(number[1]) > 0 {
			r.Holders += len(number[1])
			r.Number, r.All, read = r.Number+Area(number[1], number[0]), r.All+Area(combined[1], combined[0]), read+1
		}
	}
	if read == 0 {
		return r, fmt.Errorf("a node that the attacker reads must have one of the columns (got none of %v)", columns)
	}
	r.Number, r.All = r.Number/read, r.All/read
	return r, nil
}

// received returns the rows of all other members that the attacker gets, each with all numbers of a node, and which of
// the columns each node has.
func (run *Run) received(columns []int32) (z [][]float64, has [][]bool, err error) {
	form := run.Model.Closed
	if form == nil || form.Spec.Hops == 0 {
		return nil, nil, ErrNothing
	}
	for victim, own := range run.Shards {
		if victim == run.Attacker || len(own.Boundary[run.Attacker]) == 0 {
			continue
		}
		before, _, err := run.crossing(victim)
		if err != nil {
			return nil, nil, err
		}
		_, source := graph.Factors(own.Adj.Degrees(), form.Spec.Edges())
		for i, v := range own.Boundary[run.Attacker] {
			var row []float64
			for _, rows := range before {
				for _, x := range rows.Row(i) {
					row = append(row, float64(x))
				}
			}
			if source != nil { // only the owner has the degree: it is given
				floats.Scale(1/source[v], row)
			}
			col, _ := attack.NonZeros(own.X, v)
			one := make([]bool, len(columns))
			for c, j := range columns {
				_, one[c] = slices.BinarySearch(col, j)
			}
			z, has = append(z, row), append(has, one)
		}
	}
	if len(z) == 0 {
		return nil, nil, ErrNothing
	}
	return z, has, nil
}

// covariance returns the lower triangle of the covariance of the numbers in rows z, with a small ridge.
func covariance(z [][]float64) []float64 {
	d := len(z[0])
	gram, mean := make([]float64, d*d), make([]float64, d)
	for _, row := range z {
		for k, v := range row {
			mean[k] += v / float64(len(z))
		}
	}
	for _, row := range z {
		for k, v := range row {
			for l := range k + 1 {
				gram[k*d+l] += (v - mean[k]) * (row[l] - mean[l]) / float64(len(z))
			}
		}
	}
	most := 0.0
	for k := range d {
		most = max(most, gram[k*d+k])
	}
	for k := range d {
		gram[k*d+k] += 1e-4*most + 1e-12
	}
	return gram
}
