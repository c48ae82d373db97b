package results

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/rng"
)

// fewLabels returns g with `labels` training nodes of each class at each of the sites, or as many as there are. The
// other training nodes keep only their edges.
func fewLabels(g *graph.Graph, sites []*shard.Shard, labels int, seed uint64) *graph.Graph {
	owner := make([]int, g.N())
	for rank, s := range sites {
		for _, v := range s.Global[:s.Owned] {
			owner[v] = rank
		}
	}
	to := *g
	to.Split = make([]graph.Split, g.N())
	copy(to.Split, g.Split)
	kept := make([]int, len(sites)*g.Labels.Classes)
	for _, v := range rng.New(seed).FoldString("bench/labels").Perm(g.N()) {
		if g.Split[v] != graph.Train || g.Labels.Class[v] < 0 {
			continue
		}
		if at := owner[v]*g.Labels.Classes + int(g.Labels.Class[v]); kept[at] < labels {
			kept[at]++
		} else {
			to.Split[v] = graph.None
		}
	}
	return &to
}
