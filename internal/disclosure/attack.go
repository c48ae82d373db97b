package disclosure

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/privacy/attack"
	"github.com/heddle-gnn/heddle/plan"
)

// nodesFor returns the number of a site's nodes with which its own attacks can train a model within limit. Larger sites
// use an even sample of this size.
func nodesFor(limit time.Duration) int { return min(max(int(1000*limit.Seconds()), 1000), 5000) }

// Attack runs our own attacks on the rows of own, as a member that receives them would, for about limit, and returns
// what they recover.
func (d *Disclosure) Attack(ctx context.Context, own *shard.Shard, limit time.Duration) (string, error) {
	switch {
	case !d.Plan.Federated():
		return "the features themselves leave", nil
	case d.Fresh == 0:
		return "only sums leave", nil
	}
	own, err := some(own, nodesFor(limit))
	if err != nil {
		return "", err
	}
	if d.Plan.Method == plan.ClassMeans && d.Plan.ClassMeans.Epsilon == 0 && !attack.Bags(own.X) {
		return attack.Share(own.X, int(math.Ceil(d.Fresh))), nil
	}
	got, err := attack.Check(ctx, d.Plan, own, limit)
	if errors.Is(err, attack.ErrUnmeasured) {
		return "not measured: " + err.Error(), nil
	}
	return got.String(), err
}

// some returns own, or a graph of `most` of its nodes: first those that others read and those that train, each of the
// two kinds evenly.
func some(own *shard.Shard, most int) (*shard.Shard, error) {
	if own.Owned <= most {
		return own, nil
	}
	first := make([]bool, own.Owned)
	for _, list := range own.Boundary {
		for _, i := range list {
			first[i] = true
		}
	}
	var lists [2][]int32
	for i, is := range first {
		k := 1
		if is || own.Split[i] == graph.Train {
			k = 0
		}
		lists[k] = append(lists[k], int32(i))
	}
	var nodes []int32
	for _, list := range lists {
		n := min(len(list), most-len(nodes))
		for k := range n {
			nodes = append(nodes, list[k*len(list)/n])
		}
	}
	slices.Sort(nodes)
	place := make(map[int32]int32)
	for k, i := range nodes {
		place[i] = int32(k)
	}
	var src, dst []int32
	for k, i := range nodes {
		near, _ := own.Adj.Row(int(i))
		for _, j := range near {
			if at, is := place[j]; is {
				src, dst = append(src, at), append(dst, int32(k))
			}
		}
	}
	adj, err := graph.FromEdges(len(nodes), src, dst, nil, graph.Build{Directed: true})
	if err != nil {
		return nil, err
	}
	g := &graph.Graph{Name: own.Name, Adj: adj, X: own.X.Select(nodes), Labels: own.Labels.Select(nodes)}
	for _, i := range nodes {
		g.Split = append(g.Split, own.Split[i])
	}
	return shard.Whole(g), nil
}
