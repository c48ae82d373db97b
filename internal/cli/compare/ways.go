package compare

import (
	"fmt"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/plan"
)

// The ways of training, in the order in which they are shown.
const (
	alone    = "alone"
	features = "features"
	together = "together"
	pooled   = "pooled"
	sage     = "pooled-sage"
)

// way is one way of training.
type way struct {
	key, title string
	raw        string // place that sees raw data
	trial      heddle.Trial
}

// waysOf returns the ways of training by p on a graph with features, or without. All train by the same settings, except
// features (onFeatures) and GraphSAGE on pooled data, which has its defaults.
func waysOf(p heddle.Plan, hasFeatures bool) []way {
	one := byOnePeer(p)
	all := []way{{alone, "each site alone", "each site", heddle.Trial{Plan: one, Alone: true}}}
	if hasFeatures {
		all = append(all, way{features, "features only", "one place", heddle.Trial{Plan: one}})
	}
	all = append(all, way{together, "together", "each site; rows are sent", heddle.Trial{Plan: p}},
		way{pooled, "pooled data", "one place", heddle.Trial{Plan: one, Pooled: true}})
	if p.Method != plan.FullBatch || p.Gradient().Model != "sage" {
		all = append(all, way{sage, "pooled GraphSAGE", "one place", heddle.Trial{Plan: pooledPlan(p, "sage"),
			Pooled: true}})
	}
	for k := range all {
		all[k].trial.Name = all[k].title
	}
	return all
}

// pooledPlan returns the defaults of a model that is trained on pooled data, by p's seed and metric.
func pooledPlan(p heddle.Plan, model string) heddle.Plan {
	q := heddle.Defaults(plan.FullBatch, model)
	q.Peers, q.Seed, q.Metric, q.Positive, q.Transport = 1, p.Seed, p.Metric, p.Positive, p.Transport
	q.Inductive, q.Gradient().Patience = p.Inductive, patience
	return q
}

// byOnePeer returns p for one peer, without what only several need: from one peer nothing leaves,
// so nothing is hidden from others.
func byOnePeer(p heddle.Plan) heddle.Plan {
	p.Peers, p.Federation().SecureSums, p.ClassMeans.Epsilon, p.Link = plan.AutoPeers, "auto", 0, ""
	return p
}

// rawBytes returns what all sites but the first would send if the data were pooled there: 4 bytes
// for each value of dense features, 8 for each value of sparse ones with its column, and 8 for each
// edge.
func rawBytes(shards []*shard.Shard) (rows, edges int64) {
	for _, s := range shards[1:] {
		if s.X.Sparse != nil {
			rows += 8 * int64(s.X.Sparse.NNZ())
		} else {
			rows += 4 * int64(s.Owned) * int64(s.X.Cols())
		}
		edges += 8 * int64(s.Adj.NumEdges()) / 2
	}
	return rows, edges
}

// departed lists what left the sites, besides sums, in a run that trained by these plans.
func departed(plans []heddle.Plan, shards []*shard.Shard) (string, error) {
	nodes, numbers, stored := 0, 0.0, 0
	for _, s := range shards {
		sum := 0.0
		for k, p := range plans {
			d, err := disclosure.Of(p, s)
			if err != nil {
				return "", err
			}
			if sum += d.Fresh; k == 0 {
				nodes, stored = nodes+d.Nodes, max(stored, d.Median())
			}
		}
		numbers = max(numbers, sum)
	}
	if nodes == 0 || numbers == 0 {
		return "Only sums left the sites.", nil
	}
	return fmt.Sprintf("Sums left the sites, and rows of at most %.0f numbers for %d nodes with a neighbor at another "+
		"site; the features of such a node have %d. Rows can reveal features: "+
		"https://github.com/heddle-gnn/heddle/blob/main/docs/explanation/privacy.md", numbers, nodes, stored), nil
}
