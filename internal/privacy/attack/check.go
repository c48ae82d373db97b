// Package attack has our own attacks on rows that a site sends: what a person reads before it approves a plan. They are
// given what every member has, the plan and the model; the truth only scores them.
package attack

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/comm/wire"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
	of "github.com/heddle-gnn/heddle/train"
)

// ErrUnmeasured is why Check has no figure: there is no attack on rows of the plan's encoder here, or the site has
// nothing to make an encoder of.
var ErrUnmeasured = errors.New("no attack here reads such rows")

// Check attacks a site's own rows as a member that receives them under p would. It takes about as long as limit, or
// four times as long if 50 rows take that. It returns how many of the rows that it tried it recovered exactly. The site
// does it by itself, before a run, with an encoder made of its own features and labels; no byte is sent. It tries the
// rows that other sites would receive and, if these are fewer than 50, its other rows, evenly from the fewest values to
// the most. With encoder raw, and for rows of components that are as many as the features, nothing needs to be
// attacked: the rows are the features.
//
// The error is ErrUnmeasured for logits of encoder mlp, for sites without training labels by encoders classes
// and mlp, for full-batch and mini-batch, and for plans with epsilon, which send soft labels instead of columns. Rows
// of class means must be Bags: Share is for others.
func Check(ctx context.Context, p plan.Plan, own *shard.Shard, limit time.Duration) (Recovery, error) {
	var sum Recovery
	nodes := sample(own)
	if p.Method == plan.LayerWise && (p.LayerWise.Encoder.Kind == "raw" ||
		p.LayerWise.Encoder.Kind == "pca" && p.LayerWise.Encoder.K >= own.X.Cols()) {
		for _, i := range nodes {
			col, val := NonZeros(own.X, i)
			sum.Score(own.X, i, Guess{Col: col, Value: wide(val)})
		}
		return sum, nil
	}
	var one func(i int, sum *Recovery) error
	var err error
	begun := time.Now()
	switch {
	case p.Method == plan.LayerWise && p.LayerWise.Encoder.Kind == "pca":
		one, err = checkComponents(ctx, p, own, nodes)
	case p.Method == plan.ClassMeans && p.ClassMeans.Epsilon == 0:
		one, err = checkClasses(ctx, p, own, nodes)
	case p.Method == plan.LayerWise && p.LayerWise.Encoder.Kind == "mlp" && p.LayerWise.LayerOutput == "hidden":
		one, err = checkHidden(ctx, p, own, nodes)
	default:
		err = ErrUnmeasured
	}
	if err != nil {
		return sum, err
	}
	for _, i := range Spread(len(nodes)) {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		if spent := time.Since(begun); spent > limit && sum.Tried >= leastTried ||
			spent > mostLimits*limit && sum.Tried > 0 {
			break
		}
		if err := one(i, &sum); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// Fewer rows than leastTried are no measurement, so they get up to mostLimits times the limit.
const (
	leastTried = 50
	mostLimits = 4
)

func wide(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

// sameValue reports whether all values are the same.
func sameValue(val []float32) bool { return len(val) > 0 && slices.Max(val) == slices.Min(val) }

// sample returns the nodes whose rows other sites receive, those with the fewest values first.
func sample(own *shard.Shard) (nodes []int32) {
	for _, list := range own.Boundary {
		nodes = append(nodes, list...)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if len(nodes) < leastTried {
		for i := range int32(own.Owned) {
			if at, has := slices.BinarySearch(nodes, i); !has {
				nodes = slices.Insert(nodes, at, i)
			}
		}
	}
	count := make([]int, own.Owned)
	for _, i := range nodes {
		col, _ := NonZeros(own.X, i)
		count[i] = len(col)
	}
	slices.SortStableFunc(nodes, func(a, b int32) int { return cmp.Compare(count[a], count[b]) })
	return nodes
}

// Spread returns the numbers below n so that the first k of them lie evenly among all, for every k.
func Spread(n int) []int {
	const golden = 0.6180339887498949
	order := make([]int, n)
	at := make([]float64, n)
	for i := range order {
		order[i] = i
		at[i] = 0.5 + golden*float64(i)
		at[i] -= float64(int(at[i]))
	}
	// The i-th number of a sequence of low discrepancy (Weyl) sets the rank of the i-th one.
	rank := slices.Clone(order)
	slices.SortFunc(rank, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	for place, i := range rank {
		order[i] = place
	}
	return order
}

// alone returns a group with one member.
func alone() *comm.Group { return comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1) }

// checkComponents attacks rows of components of the site's own features.
func checkComponents(
	ctx context.Context, p plan.Plan, own *shard.Shard, nodes []int32,
) (func(int, *Recovery) error, error) {
	c, err := p.Layerwise(own)
	if err != nil {
		return nil, err
	}
	model, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	g := alone()
	defer g.Close()
	v, err := linear.Components(ctx, g, comm.ReduceID{Kind: "own components"}, model.Encoder.Input(own.X),
		0, model.Encoder.Proj.W.Value.Cols, 1, 0, rng.New(p.Seed).FoldString("pca"))
	if err != nil {
		return nil, err
	}
	model.Encoder.Proj.W.Value.CopyFrom(v)
	rows := model.Encoder.Encode(own.X.Select(nodes)).Dense
	rows, err = asReceived(rows, c.Rows)
	if err != nil {
		return nil, err
	}
	dictionary := NewDictionary(v)
	return func(i int, sum *Recovery) error {
		guess, y := Guess{}, rows.Row(i)
		if _, val := NonZeros(own.X, nodes[i]); sameValue(val) {
			guess = dictionary.Even(y, p.Rows, rows.Cols/2)
		} else {
			noise, _ := Noise(y, p.Rows)
			guess = dictionary.Pursue(y, rows.Cols/2, max(Sound, math.Sqrt(noise)))
		}
		sum.Score(own.X, nodes[i], guess)
		sum.Name(own.X, nodes[i], guess)
		return nil
	}, nil
}

// asReceived returns rows as a receiver has them.
func asReceived(rows mat.Dense, coding comm.Coding) (mat.Dense, error) {
	if coding == (comm.Coding{}) || rows.Rows == 0 {
		return rows, nil
	}
	coder := wire.New(coding)
	message := coder.Append(nil, wire.Block{Dense: rows}, mat.EveryRow(rows.Rows))
	x, err := coder.Parse(message, rows.Rows, rows.Cols)
	if x.Sparse != nil {
		x.Dense = x.Sparse.Dense()
	}
	return x.Dense, err
}

// tries is how many sets Check compares for a row of class means: about a tenth of a second.
const tries = 2_000_000

// checkClasses attacks rows of class means of the site's own labels.
func checkClasses(
	ctx context.Context, p plan.Plan, own *shard.Shard, nodes []int32,
) (func(int, *Recovery) error, error) {
	site, err := apart(own)
	if err != nil {
		return nil, err
	}
	view, err := viewOf(ctx, p, own, site, nodes)
	if err != nil {
		return nil, err
	}
	return func(i int, sum *Recovery) error {
		col, _ := NonZeros(own.X, nodes[i])
		guess := Guess{}
		if bag := view.Bag(i, len(col)); bag != nil {
			guess = Evenly(bag.Search(tries, rng.New(p.Seed).Fold(uint64(i))).Set)
		}
		sum.Score(own.X, nodes[i], guess)
		return nil
	}, nil
}

// viewOf is what a receiver would have of the rows of own by p. site is own as a separate graph.
func viewOf(ctx context.Context, p plan.Plan, own, site *shard.Shard, nodes []int32) (*View, error) {
	p.Federation().MinClass = 1 // a single site has fewer of each class
	model, err := train(ctx, p, site)
	if err != nil {
		return nil, err
	}
	a := &View{Form: model.Closed, Encoder: model.Encoder, Raw: own.X, Nodes: nodes}
	a.Global = make([]int64, own.Owned)
	for i := range a.Global {
		a.Global[i] = int64(i)
	}
	if err := a.Know([]*shard.Shard{site}); err != nil {
		return nil, err
	}
	if _, source := graph.Factors(own.Adj.Degrees(), a.Form.Spec.Edges()); source != nil {
		for _, v := range nodes {
			a.Factor = append(a.Factor, source[v])
		}
	}
	for _, v := range nodes {
		a.Class = append(a.Class, max(own.Labels.Class[v], 0))
	}
	x := model.Encoder.Input(own.X.Select(nodes))
	c, err := p.ClosedForm(own)
	if err != nil {
		return nil, err
	}
	for r := range a.Form.Spec.Rounds {
		// else at least logits made of them are sent
		if a.Form.Spec.HopsOf(r) == 0 && a.Form.Spec.LogitHops == 0 {
			width := a.Form.Means[r].Value.Cols
			a.Rows, a.Step = append(a.Rows, mat.New(len(nodes), width)), append(a.Step, make([]float64, width))
			continue
		}
		z, err := asReceived(a.Sent(r, x), c.Rows)
		if err != nil {
			return nil, err
		}
		a.Rows, a.Step = append(a.Rows, z), append(a.Step, Steps(p.Rows, z))
	}
	return a, nil
}

// apart returns a site as a separate graph, without edges to others.
func apart(own *shard.Shard) (*shard.Shard, error) {
	if own.Labels.Kind() != graph.Single {
		return nil, ErrUnmeasured
	}
	var src, dst []int32
	for i := range own.Owned {
		col, _ := own.Adj.Row(i)
		for _, j := range col {
			if int(j) < own.Owned {
				src, dst = append(src, j), append(dst, int32(i))
			}
		}
	}
	adj, err := graph.FromEdges(own.Owned, src, dst, nil, graph.Build{Directed: true})
	if err != nil {
		return nil, err
	}
	return shard.Whole(&graph.Graph{Name: own.Name, Adj: adj, X: own.X, Labels: own.Labels, Split: own.Split}), nil
}

// train trains by p over only this site. Its error is ErrUnmeasured if the site cannot train so, unless ctx has ended.
func train(ctx context.Context, p plan.Plan, site *shard.Shard) (*nn.Model, error) {
	m, err := trainAlone(ctx, p, site)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(ErrUnmeasured, err)
	}
	return m, err
}

func trainAlone(ctx context.Context, p plan.Plan, site *shard.Shard) (*nn.Model, error) {
	if err := p.Check([]*shard.Shard{site}); err != nil {
		return nil, err
	}
	m, err := p.Configure(site)
	if err != nil {
		return nil, err
	}
	g := alone()
	defer g.Close()
	t, err := m.Train(ctx, &of.Place{Group: g, Sums: g}, site)
	if err != nil {
		return nil, err
	}
	return t.Model, nil
}
