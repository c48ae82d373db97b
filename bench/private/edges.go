package private

import (
	"context"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/bench/attack/infer"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// canaries is how many pairs of nodes a run decides on by a coin.
const canaries = 1000

// known measures how well two attackers detect whether a pair of nodes has an edge. The pairs are random among nodes
// with the same most probable class, and a coin decides which of them get an edge. So what nodes have in common reveals
// nothing.
func known(ctx context.Context, p *page.Page, root string, names []string, runs int) error {
	p.Text("Area under the ROC curve (0.5: chance, 1: certainty) of attacks on single edges: %d pairs of nodes\n"+
		"of the same predicted class, to half of which an edge was added by a coin, in each of %d runs. The\n"+
		"attackers have every node's class row and all sums of neighbours' rows, of two releases, which is\n"+
		"more than a site or a reader of the model gets. `alone` knows no edge and compares the sums with\n"+
		"the rows, `all others` knows every edge but the pair's: the attacker that δ and ε are about.", canaries, runs)
	p.Table("graph %s", "alone, no noise %s", "ε 8 %s", "ε 4 %s", "ε 1 %s", "all others, no noise %s", "ε 8 %s",
		"ε 4 %s", "ε 1 %s")
	for _, name := range names {
		figures := make([]figure, 8)
		for k := range runs {
			_, c, err := planted(ctx, root, name, k)
			if err != nil {
				return err
			}
			for i, epsilon := range []float64{0, 8, 4, 1} {
				alone, others, err := c.attack(epsilon)
				if err != nil {
					return fmt.Errorf("%s, ε %g: %w", name, epsilon, err)
				}
				figures[i], figures[4+i] = append(figures[i], alone), append(figures[4+i], others)
			}
		}
		row := []any{name}
		for _, f := range figures {
			row = append(row, f)
		}
		p.Row(row...)
	}
	return nil
}

// coins are pairs of nodes, to some of which an edge was added.
type coins struct {
	rows   mat.Dense // class rows
	before graph.CSR // edges without the pairs' edges
	after  graph.CSR
	pairs  [][2]int32
	added  []bool
}

// decide samples the pairs, of nodes without an edge, each node in one pair at most.
func decide(g *graph.Graph, rows mat.Dense, key rng.Key) (*coins, error) {
	n := g.N()
	class := make([]int, n)
	for i := range n {
		class[i] = slices.Index(rows.Row(i), slices.Max(rows.Row(i)))
	}
	c := &coins{rows: rows, before: g.Adj}
	used := map[int32]bool{}
	var src, dst []int32
	for at := uint64(0); len(c.pairs) < canaries && at < 1000*canaries; at++ {
		i, j := int32(key.Uint64(2*at)%uint64(n)), int32(key.Uint64(2*at+1)%uint64(n))
		col, _ := g.Adj.Row(int(i))
		if i == j || used[i] || used[j] || class[i] != class[j] || slices.Contains(col, j) {
			continue
		}
		used[i], used[j] = true, true
		c.pairs = append(c.pairs, [2]int32{i, j})
		c.added = append(c.added, key.Fold(1).Uint64(at)%2 == 0)
		if c.added[len(c.added)-1] {
			src, dst = append(src, i), append(dst, j)
		}
	}
	for i := range n {
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			if int(j) < i {
				src, dst = append(src, int32(i)), append(dst, j)
			}
		}
	}
	var err error
	c.after, err = graph.FromEdges(n, src, dst, nil, graph.Build{})
	return c, err
}

// attack returns how well both attackers do on sums of this ε (0 = exact sums).
func (c *coins) attack(epsilon float64) (alone, others float64, err error) {
	const releases = 2
	rows := c.rows.Clone()
	mechanism, err := dp.NewEdges(dp.Guarantee{Epsilon: max(epsilon, 1), Delta: delta}, releases, secret())
	if err != nil {
		return 0, 0, err
	}
	mechanism.Bound(rows)
	ids := make([]int64, rows.Rows)
	for i := range ids {
		ids[i] = int64(i)
	}
	exact := sums(&c.before, c.rows)
	var one, two []float64 // of each pair
	one, two = make([]float64, len(c.pairs)), make([]float64, len(c.pairs))
	for k := range releases {
		seen := sums(&c.after, c.rows)
		if epsilon > 0 {
			if seen, err = mechanism.Release(fmt.Sprint(k), &c.after, ids, rows); err != nil {
				return 0, 0, err
			}
		}
		for p, pair := range c.pairs {
			for end := range 2 {
				i, other := int(pair[end]), c.rows.Row(int(pair[1-end]))
				for j, v := range seen.Row(i) {
					one[p] += float64(v) * float64(other[j])
					two[p] += float64(v-exact.At(i, j)) * float64(other[j])
				}
			}
		}
	}
	return c.area(one), c.area(two), nil
}

// sums returns the sum of the neighbours' rows of each node.
func sums(adj *graph.CSR, rows mat.Dense) mat.Dense {
	out := mat.New(rows.Rows, rows.Cols)
	for i := range out.Rows {
		col, _ := adj.Row(i)
		for _, j := range col {
			if int(j) == i {
				continue
			}
			for k, v := range rows.Row(int(j)) {
				out.Row(i)[k] += v
			}
		}
	}
	return out
}

// area is the area under the ROC curve of a score for pairs with an added edge against pairs without.
func (c *coins) area(score []float64) float64 {
	var with, without []float64
	for p, v := range score {
		if c.added[p] {
			with = append(with, v)
		} else {
			without = append(without, v)
		}
	}
	return infer.Area(with, without)
}
