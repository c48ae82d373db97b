package infer

import (
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// mostPairs is the largest number of edges that are attacked, with as many pairs without an edge.
const mostPairs = 2000

// Links infers which of a victim's boundary nodes share an edge that no other site has, from the rows that the victim
// sends. It ranks pairs by how similar the directions of their rows are, of all messages together (link stealing: He et
// al., USENIX Security 2021), or by how similar one node's sum over neighbours is to the other's row. The better of
// the two counts. The baseline compares only rows before aggregation, since joined nodes have similar
// features.
func (run *Run) Links(victim int) (Finding, error) {
	own, boundary := run.Shards[victim], run.Shards[victim].Boundary[run.Attacker]
	joined, apart := pairsOf(own, boundary, rng.New(run.Plan.Seed).FoldString("pairs"))
	return run.tellApart(victim, joined, apart)
}

// LinksAmong is Links for the pairs whose nodes, by their numbers in the whole graph, are both in the victim's
// boundary; joined marks the pairs with an edge.
func (run *Run) LinksAmong(victim int, pairs [][2]int32, joined []bool) (Finding, error) {
	own, at := run.Shards[victim], map[int64]int{}
	for i, v := range own.Boundary[run.Attacker] {
		at[own.Global[v]] = i
	}
	var with, without [][2]int
	for k, p := range pairs {
		i, one := at[int64(p[0])]
		j, two := at[int64(p[1])]
		switch {
		case !one || !two:
		case joined[k]:
			with = append(with, [2]int{i, j})
		default:
			without = append(without, [2]int{i, j})
		}
	}
	return run.tellApart(victim, with, without)
}

// tellApart measures how well a victim's rows distinguish pairs with an edge, by place in the boundary, from pairs
// without one.
func (run *Run) tellApart(victim int, joined, apart [][2]int) (Finding, error) {
	f := Finding{Attack: "edges among boundary nodes", Holder: "a reader of the rows", Measure: "AUC"}
	before, after, err := run.crossing(victim)
	if err == nil && (len(joined) == 0 || len(apart) == 0) {
		err = ErrNothing
	}
	if err != nil {
		return f, err
	}
	all, first := directions(slices.Concat(before, after)), directions(before)
	score := func(of func(i, j int) float64) float64 {
		return Area(scores(joined, of), scores(apart, of))
	}
	f.Tried = len(joined) + len(apart)
	f.Base = score(func(i, j int) float64 { return cosine(first, i, j) })
	f.Value = score(func(i, j int) float64 { return cosine(all, i, j) })
	if sums := sameWidth(before, after); len(sums) > 0 {
		f.Value = max(f.Value, score(func(i, j int) (v float64) {
			for _, pair := range sums {
				v += mutual(pair, i, j)
			}
			return v
		}))
	}
	return f, nil
}

// crossing returns the rows of a victim's boundary nodes before aggregation, and the aggregated ones.
func (run *Run) crossing(victim int) (before, after []mat.Dense, err error) {
	if len(run.Shards[victim].Boundary[run.Attacker]) == 0 {
		return nil, nil, ErrNothing
	}
	if form := run.Model.Closed; form != nil {
		if form.Spec.Own > 0 { // no edge has entered the first rows that are sent
			rows, err := run.Rows(victim, run.Shards[0].Labels.Classes)
			if err != nil {
				return nil, nil, err
			}
			return rows[:1], rows[1:], nil
		}
		if form.Spec.Hops+form.Spec.LogitHops == 0 {
			return nil, nil, ErrNothing
		}
		rows, err := run.Rows(victim, form.Spec.MapWidth(form.Spec.Alone, run.Shards[0].Labels.Classes))
		if err != nil {
			return nil, nil, err
		}
		for r, at := 0, 0; at < len(rows); r++ { // also of rounds that the model does not keep
			for range min(form.Spec.LogitHopsOf(r), len(rows)-at) {
				if form.Spec.Hops == 0 && len(before) == 0 { // the first logits, which no edge has entered
					before = append(before, rows[at])
				} else {
					after = append(after, rows[at])
				}
				at++
			}
			for k := range min(form.Spec.HopsOf(r), len(rows)-at) {
				if k == 0 {
					before = append(before, rows[at])
				} else {
					after = append(after, rows[at])
				}
				at++
			}
		}
		return before, after, nil
	}
	if beside := run.Model.Encoder.Classes; beside != nil { // rounds of class means come before the first layer's rows
		rows, err := run.Rows(victim, run.Shards[0].Labels.Classes)
		if err != nil {
			return nil, nil, err
		}
		for at := range min(len(rows), beside.Spec.Rounds*beside.Spec.Hops) {
			if at%beside.Spec.Hops > 0 {
				after = append(after, rows[at])
			}
		}
	}
	for k, l := range run.Model.Layers {
		rows, err := run.Rows(victim, l.Spec.In)
		if err != nil {
			continue // sparse rows
		}
		if k == 0 {
			before = append(before, rows[0])
			after = append(after, rows[1:min(len(rows), max(1, run.Plan.Gradient().Hops))]...)
			continue
		}
		after = append(after, rows[len(rows)-1])
	}
	if len(before) == 0 {
		return nil, nil, ErrNothing
	}
	return before, after, nil
}

// pairsOf returns edges between boundary nodes, and as many pairs without one, as places in the boundary.
func pairsOf(own *shard.Shard, boundary []int32, key rng.Key) (joined, apart [][2]int) {
	at := make(map[int32]int)
	for i, v := range boundary {
		at[v] = i
	}
	for i, v := range boundary {
		near, _ := own.Adj.Row(int(v))
		for _, u := range near {
			if j, is := at[u]; is && j < i {
				joined = append(joined, [2]int{j, i})
			}
		}
	}
	if len(joined) > mostPairs {
		some := make([][2]int, 0, mostPairs)
		for _, k := range key.Perm(len(joined))[:mostPairs] {
			some = append(some, joined[k])
		}
		joined = some
	}
	n := uint64(len(boundary))
	for k := uint64(0); len(apart) < len(joined) && k < 1000*n; k++ {
		i, j := int(key.Fold(1).Uint64(2*k)%n), int(key.Fold(1).Uint64(2*k+1)%n)
		near, _ := own.Adj.Row(int(boundary[i]))
		if i != j && !slices.Contains(near, boundary[j]) {
			apart = append(apart, [2]int{i, j})
		}
	}
	return joined, apart
}

func scores(pairs [][2]int, of func(i, j int) float64) (all []float64) {
	for _, p := range pairs {
		all = append(all, of(p[0], p[1]))
	}
	return all
}

// directions returns the rows of all messages side by side, each column at mean 0 and deviation 1, each row at
// length 1.
func directions(messages []mat.Dense) mat.Dense {
	if len(messages) == 0 {
		return mat.Dense{}
	}
	cols := 0
	for _, m := range messages {
		cols += m.Cols
	}
	x := mat.New(messages[0].Rows, cols)
	first := 0
	for _, m := range messages {
		for c := range m.Cols {
			sum, square := 0.0, 0.0
			for i := range m.Rows {
				v := float64(m.At(i, c))
				sum, square = sum+v, square+v*v
			}
			n := float64(max(m.Rows, 1))
			deviation := math.Sqrt(max(square/n-sum*sum/n/n, 0))
			for i := range m.Rows {
				if deviation > 0 {
					x.Set(i, first+c, float32((float64(m.At(i, c))-sum/n)/deviation))
				}
			}
		}
		first += m.Cols
	}
	for i := range x.Rows {
		shorten(x.Row(i))
	}
	return x
}

// shorten scales x to length 1.
func shorten(x []float32) {
	square := 0.0
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	for i := range x {
		if square > 0 {
			x[i] = float32(float64(x[i]) / math.Sqrt(square))
		}
	}
}

func cosine(x mat.Dense, i, j int) float64 { return dot(x.Row(i), x.Row(j)) }

func dot(a, b []float32) (sum float64) {
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}

// sameWidth returns pairs of rows that no edge has entered and of their sums over neighbours, as directions.
func sameWidth(before, after []mat.Dense) (pairs [][2]mat.Dense) {
	for k := range min(len(before), len(after)) {
		if before[k].Cols == after[k].Cols {
			pairs = append(pairs, [2]mat.Dense{directions(before[k : k+1]), directions(after[k : k+1])})
		}
	}
	return pairs
}

// mutual returns how much of the other's row each of two nodes' sums contains beyond its own row.
func mutual(pair [2]mat.Dense, i, j int) float64 {
	row, sum := pair[0], pair[1]
	return dot(sum.Row(i), row.Row(j)) + dot(sum.Row(j), row.Row(i))
}
