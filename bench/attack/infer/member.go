package infer

import (
	"context"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/bench/attack/recorded"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	apply "github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// alarms is the fraction of false alarms at which attacks on membership are also judged.
const alarms = 0.01

// Membership distinguishes training nodes from test nodes by the margin of the model (Yeom et al., CSF 2018, with the
// margin instead of the loss). The margin is the logit of the node's class less the largest other one. The attacker has
// the model, the nodes' features, classes and neighbours. With shadows, an even number of at least 4, it compares the
// margin with the margins of this many models that it trains itself. Half of them are trained with the node, half
// without (LiRA: Carlini et al., S&P 2022). It then knows everything except which nodes of a pool were trained on; half
// of the pool's nodes of each class were.
//
// The findings are the area under the ROC curve, and how many training nodes are found at 1 % false alarms. Training
// nodes may be easier than test nodes in any model: the baseline is the same by the margin of a model that trained on
// as many test nodes.
func (run *Run) Membership(ctx context.Context, shadows int) ([]Finding, error) {
	g, err := whole(run.Shards)
	if err != nil {
		return nil, err
	}
	if g.Labels.Kind() != graph.Single || run.Model == nil {
		return nil, ErrNothing
	}
	with, without := g.InSplit(graph.Train), g.InSplit(graph.Test)
	if len(with) == 0 || len(without) == 0 {
		return nil, ErrNothing
	}
	margin, err := margins(run.Model, g)
	if err != nil {
		return nil, err
	}
	pool := poolOf(g, with, without, rng.New(run.Plan.Seed).FoldString("pool"))
	other, err := run.shadow(ctx, g, slices.Concat(with, pool), func(i int32) bool { return slices.Contains(pool, i) })
	if err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(without), func(i int32) bool { return slices.Contains(pool, i) })
	all := found("membership, by the margin", "the model, the node", at(margin, with), at(margin, without))
	for k, one := range found("", "", at(other, with), at(other, rest)) {
		all[k].Base = one.Value
	}
	if shadows < 4 {
		return all, nil
	}
	score, err := run.ratios(ctx, g, with, pool, margin, shadows/2)
	if err != nil {
		return nil, err
	}
	return append(all, found("membership, by shadow models", "the model, all data", at(score, with),
		at(score, pool))...), nil
}

func found(attack, holder string, with, without []float64) []Finding {
	n := len(with) + len(without)
	return []Finding{
		{attack, holder, "AUC", Area(with, without), 0.5, n},
		{attack, holder, "found at 1 % false alarms", Caught(with, without, alarms), alarms, n},
	}
}

func at(score []float64, nodes []int32) (of []float64) {
	for _, i := range nodes {
		of = append(of, score[i])
	}
	return of
}

// margins returns for each node the logit of its class less the largest other one.
func margins(m *nn.Model, g *graph.Graph) ([]float64, error) {
	logits, err := apply.Graph(m, g)
	if err != nil {
		return nil, err
	}
	all := make([]float64, g.N())
	for i := range all {
		if c := g.Labels.Class[i]; c >= 0 {
			all[i] = lead(logits, i, int(c))
		}
	}
	return all, nil
}

func lead(logits mat.Dense, i, c int) float64 {
	other := math.Inf(-1)
	for k, v := range logits.Row(i) {
		if k != c {
			other = max(other, float64(v))
		}
	}
	return float64(logits.At(i, c)) - other
}

// poolOf returns as many of without as there are in with, for each class if it has enough.
func poolOf(g *graph.Graph, with, without []int32, key rng.Key) (pool []int32) {
	need := make([]int, g.Labels.Classes)
	for _, i := range with {
		need[g.Labels.Class[i]]++
	}
	for _, k := range key.Perm(len(without)) {
		if c := g.Labels.Class[without[k]]; need[c] > 0 {
			need[c]--
			pool = append(pool, without[k])
		}
	}
	slices.Sort(pool)
	return pool
}

// ratios returns for each node of with and pool the log-likelihood ratio of its margin between models that trained on
// it and models that did not. Both are normal, with the means of the shadow models and one common deviation. Shadow
// models come in pairs: what one of them trains on, the other does not.
func (run *Run) ratios(ctx context.Context, g *graph.Graph, with, pool []int32, margin []float64,
	pairs int) ([]float64, error) {
	nodes := slices.Concat(with, pool)
	var in, out [2][]float64 // sums and sums of squares
	for k := range 2 {
		in[k], out[k] = make([]float64, g.N()), make([]float64, g.N())
	}
	for k := range pairs {
		half := halfOf(g, nodes, rng.New(run.Plan.Seed).FoldString("shadows").Fold(uint64(k)))
		for side := range 2 {
			trains := func(i int32) bool { return half[i] == (side == 0) }
			m, err := run.shadow(ctx, g, nodes, trains)
			if err != nil {
				return nil, err
			}
			for _, i := range nodes {
				to := &out
				if trains(i) {
					to = &in
				}
				to[0][i] += m[i]
				to[1][i] += m[i] * m[i]
			}
		}
	}
	n, variance := float64(pairs), 0.0
	for _, i := range nodes {
		for _, s := range []*[2][]float64{&in, &out} {
			s[0][i] /= n
			variance += (s[1][i]/n - s[0][i]*s[0][i]) * n / (n - 1)
		}
	}
	variance /= float64(2 * len(nodes))
	score := make([]float64, g.N())
	for _, i := range nodes {
		a, b := margin[i]-in[0][i], margin[i]-out[0][i]
		score[i] = (b*b - a*a) / max(variance, 1e-30)
	}
	return score, nil
}

// shadow trains a model of one site on the nodes that trains accepts, and returns the margins of all nodes.
func (run *Run) shadow(ctx context.Context, g *graph.Graph, nodes []int32, trains func(int32) bool) ([]float64, error) {
	one := *g
	one.Split = slices.Clone(g.Split)
	for _, i := range nodes {
		one.Split[i] = graph.Test
		if trains(i) {
			one.Split[i] = graph.Train
		}
	}
	shadow, err := recorded.Train(ctx, run.Plan, []*shard.Shard{shard.Whole(&one)}, 0)
	if err != nil {
		return nil, err
	}
	return margins(shadow.Model, &one)
}

// halfOf samples half of the nodes of each class.
func halfOf(g *graph.Graph, nodes []int32, key rng.Key) map[int32]bool {
	half, seen := make(map[int32]bool), make([]int, g.Labels.Classes)
	for _, k := range key.Perm(len(nodes)) {
		c := g.Labels.Class[nodes[k]]
		half[nodes[k]] = seen[c]%2 == 0
		seen[c]++
	}
	return half
}
