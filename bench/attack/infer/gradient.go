package infer

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/privacy/attack"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// Gradients looks for the rows of a victim's training nodes in the sums of rounds. It subtracts its own part, which
// leaves the sum of the other members' parts; with two members this is the victim's part. Secure sums make no
// difference to it.
//
// With encoder mlp the gradient of the first weights is XᵀΔ, where X are the training nodes' features. The row of a
// word that only one node has is a multiple of that node's δ. So directions that occur twice are nodes, and all other
// rows are combinations of them. Dropout hides other words in each round. With encoder pca the first layer's gradient
// is ZᵀΔ of the aggregated rows: with one node each column is a multiple of its z. With encoder classes the sum of a
// class's features shows a node that is alone in its class. A row counts as found if all columns are right, with pca if
// the cosine is at least 0.999.
func (run *Run) Gradients(ctx context.Context, victim int) (Finding, error) {
	own := run.Shards[victim]
	nodes := own.NodesIn(graph.Train)
	f := Finding{Attack: "rows of training nodes in sums", Holder: "a member: the total less its own part",
		Measure: "rows found", Tried: len(nodes)}
	if len(run.Shards) == 2 {
		f.Holder = "the other of two members"
	}
	var claims [][]int32
	var err error
	switch kind := run.Plan.Encoder().Kind; {
	case len(nodes) == 0:
		return f, ErrNothing
	case kind == "mlp" && own.X.Sparse != nil:
		claims, err = run.raysOf(ctx)
	case kind == "classes" && own.X.Sparse != nil:
		claims = run.aloneInClass()
	case kind == "pca" && run.Plan.Gradient().Model == "gcn":
		if len(run.Shards) > 2 || len(nodes) > 1 {
			f.Measure = "rows found (tried for one node of two members)"
			return f, nil
		}
		cosine, err := run.leading(own.Global[nodes[0]])
		if cosine >= 0.999 {
			f.Value = 1
		}
		return f, err
	default:
		return f, ErrNothing
	}
	for _, i := range nodes {
		col, _ := own.X.Sparse.Row(int(i))
		if slices.ContainsFunc(claims, func(c []int32) bool { return slices.Equal(c, col) }) {
			f.Value++
		}
	}
	return f, err
}

// others returns, for each kept round of a stage, the other members' parts of the gradient of its first weights.
func (run *Run) others(stage int, rows, cols int) (all []mat.Dense) {
	for _, s := range run.sums {
		if s.id.Kind != ofRound || s.id.Stage != stage || len(s.all) < rows*cols {
			continue
		}
		g := mat.New(rows, cols)
		for i := range g.Data {
			g.Data[i] = s.all[i] - s.own[i]
		}
		all = append(all, g)
	}
	return all
}

// near is the distance of two directions that float32 sums may leave between multiples of one vector.
const near = 1e-3

// claim is a row that rounds have shown.
type claim struct {
	seen  int           // rounds
	votes map[int32]int // rounds with the word
}

// words returns the words in more than a quarter of the rounds: dropout leaves out three of ten each time.
func (c *claim) words() (set []int32) {
	for j, n := range c.votes {
		if 4*n > c.seen {
			set = append(set, j)
		}
	}
	slices.Sort(set)
	return set
}

// raysOf returns the sets of words that rounds of encoder mlp show.
func (run *Run) raysOf(ctx context.Context) ([][]int32, error) {
	var all []*claim
	w := run.Model.Encoder.Layer.Params()[0].Value
	for _, g := range run.others(0, w.Rows, w.Cols) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, set := range rays(g) {
			all = join(all, set)
		}
	}
	var sets [][]int32
	for _, c := range all {
		sets = append(sets, c.words())
	}
	return sets, nil
}

// join adds a round's set to the claim that shares the most words with it, at least a third of all of both, or to the
// list.
func join(all []*claim, set []int32) []*claim {
	if len(set) == 0 {
		return all
	}
	var best *claim
	most := 1.0 / 3
	for _, c := range all {
		words, both := c.words(), 0
		for _, j := range set {
			if _, has := slices.BinarySearch(words, j); has {
				both++
			}
		}
		if share := float64(both) / float64(len(words)+len(set)-both); share > most {
			best, most = c, share
		}
	}
	if best == nil {
		best = &claim{votes: make(map[int32]int)}
		all = append(all, best)
	}
	best.seen++
	for _, j := range set {
		best.votes[j]++
	}
	return all
}

// ray is a direction of several rows of a gradient. It belongs to one node unless it is a combination of others.
type ray struct {
	u    []float32
	rows []int
}

// rays returns the sets of rows of XᵀΔ that belong to one row of X, which has zeros and ones.
func rays(g mat.Dense) (sets [][]int32) {
	length := make([]float64, g.Rows)
	for j := range g.Rows {
		length[j] = math.Sqrt(dot(g.Row(j), g.Row(j)))
	}
	least := 1e-6 * slices.Max(length)
	var all []ray
	for j := range g.Rows {
		if length[j] <= least {
			continue
		}
		u := slices.Clone(g.Row(j))
		shorten(u)
		k := slices.IndexFunc(all, func(r ray) bool { return apart(r.u, u) < near })
		if k < 0 {
			k = len(all)
			all = append(all, ray{u: u})
		}
		all[k].rows = append(all[k].rows, j)
	}
	all = slices.DeleteFunc(all, func(r ray) bool { return len(r.rows) < 2 })
	all = extreme(all)
	if len(all) == 0 {
		return nil
	}
	d := dictionary(all)
	size := make([]float64, len(all)) // of a word that only this node has
	for k, r := range all {
		for _, j := range r.rows {
			size[k] += length[j] / float64(len(r.rows))
		}
	}
	sets = make([][]int32, len(all))
	for j := range g.Rows {
		if length[j] <= least {
			continue
		}
		guess := d.Pursue(g.Row(j), len(all), near)
		for i, k := range guess.Col {
			if x := guess.Value[i] / size[k]; x > 0.5 && x < 2 {
				sets[k] = append(sets[k], int32(j))
			}
		}
	}
	return sets
}

func apart(a, b []float32) float64 { return math.Sqrt(max(0, 2-2*dot(a, b))) }

func dictionary(all []ray) *attack.Dictionary {
	m := mat.New(len(all), len(all[0].u))
	for k, r := range all {
		copy(m.Row(k), r.u)
	}
	return attack.NewDictionary(m)
}

// extreme leaves out rays that are combinations of others: of words that several nodes, and the same ones, have.
func extreme(all []ray) (kept []ray) {
	slices.SortStableFunc(all, func(a, b ray) int { return len(a.rows) - len(b.rows) })
	for k := 0; k < len(all); {
		rest := slices.Concat(all[:k], all[k+1:])
		if len(rest) == 0 {
			break
		}
		if guess := dictionary(rest).Pursue(all[k].u, 8, near); guess.Miss <= near && len(guess.Col) > 1 {
			all = rest
			continue
		}
		k++
	}
	return all
}

// rare is the value that package linear adds to variances before it takes the square root.
const rare = 0.05

// aloneInClass returns the words of each class's first sum over the other members. They are a node's words if it is the
// only one in its class. The factors of the sums follow from the variances, which all members know.
func (run *Run) aloneInClass() (claims [][]int32) {
	form := run.Model.Closed
	k := slices.IndexFunc(run.sums, func(s sum) bool { return s.id.Kind == ofMeans && s.id.Round == 0 })
	if k < 0 || form == nil || form.Inverse == nil {
		return nil
	}
	s := run.sums[k]
	cols := form.Means[0].Value.Cols
	for c := range cols {
		x := make([]float64, 0, len(s.all)/cols)
		for j, inverse := range form.Inverse.Value.Data {
			variance := 1/float64(inverse) - float64(run.Plan.ClassMeans.Shrink)
			i := j*cols + c
			x = append(x, float64(s.all[i]-s.own[i])*math.Sqrt(max(variance, 0)+rare))
		}
		var set []int32
		for j, v := range x {
			if v > slices.Max(x)/2 {
				set = append(set, int32(j))
			}
		}
		claims = append(claims, set)
	}
	return claims
}

// leading returns the cosine of the row that rounds of encoder pca show, and the aggregated row of a node: each round's
// gradient has rank 1, and dropout hides other columns in each.
func (run *Run) leading(node int64) (float64, error) {
	g, err := whole(run.Shards)
	if err != nil {
		return 0, err
	}
	w := run.Model.Layers[0].Params()[0].Value
	var z []float32
	for _, g := range run.others(1, w.Rows, w.Cols) {
		z = fill(z, column(g))
	}
	if z == nil {
		return 0, ErrNothing
	}
	rows := run.Model.Encoder.Encode(g.X)
	truth := aggregate.Features(aggregate.Sum{}, graph.Normalise(&g.Adj, g.Adj.Degrees(), graph.GCN),
		rows).Dense.Row(int(node))
	if run.Model.Encoder.Classes != nil && len(z) > len(truth) {
		z = z[:len(truth)] // the components, before columns of classes
	}
	if len(truth) != len(z) {
		return 0, fmt.Errorf("a row of %d columns must be found (got %d)", len(truth), len(z))
	}
	return math.Abs(dot(z, truth)) / math.Sqrt(dot(z, z)*dot(truth, truth)), nil
}

// column returns the longest column of g.
func column(g mat.Dense) []float32 {
	best, most := make([]float32, g.Rows), 0.0
	one := make([]float32, g.Rows)
	for c := range g.Cols {
		for i := range one {
			one[i] = g.At(i, c)
		}
		if n := dot(one, one); n > most {
			most = n
			copy(best, one)
		}
	}
	return best
}

// fill adds to x the values of y, a multiple of the same row, where x has none.
func fill(x, y []float32) []float32 {
	if x == nil {
		return y
	}
	common, square := 0.0, 0.0
	for i, v := range x {
		if v != 0 && y[i] != 0 {
			common += float64(v) * float64(y[i])
			square += float64(y[i]) * float64(y[i])
		}
	}
	for i, v := range x {
		if v == 0 && square > 0 {
			x[i] = float32(common / square * float64(y[i]))
		}
	}
	return x
}

// Thinned returns the shards with only n training nodes at one site, spread over as many classes as possible. The other
// nodes of that site are in no split.
func Thinned(shards []*shard.Shard, site, n int) ([]*shard.Shard, error) {
	one := *shards[site]
	nodes := one.NodesIn(graph.Train)
	if len(nodes) < n {
		return nil, fmt.Errorf("site %d must have at least %d training nodes (got %d)", site, n, len(nodes))
	}
	rank, seen := make(map[int32]int), make(map[int32]int) // of a node in its class
	for _, i := range nodes {
		c := one.Labels.Class[i]
		rank[i] = seen[c]
		seen[c]++
	}
	slices.SortStableFunc(nodes, func(a, b int32) int { return rank[a] - rank[b] })
	one.Split = slices.Clone(one.Split)
	for _, i := range nodes[n:] {
		one.Split[i] = graph.None
	}
	all := slices.Clone(shards)
	all[site] = &one
	return all, nil
}
