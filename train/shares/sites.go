package shares

import (
	"context"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// siteMoves are how many times the move of its logits to its own shares each site may make; validation nodes choose one for
// all sites, or none. Logits are not calibrated: where they tell the classes badly, the shares are worth more than they say.
var siteMoves = []float64{1, 2, 4, 8}

// surely is by how many standard errors a move must be better than none.
const surely = 2

// SiteCounts is how many counts SiteShares sums.
func SiteCounts() int { return 2 * len(siteMoves) }

// SiteShares sums, over all peers, how many validation nodes are right only with, and only without, each move of logits to the
// shares of the classes at each site (closed.ToSiteShares). It returns how many times the move is best made (0: not at all),
// and how many more nodes are right by it. others is how many such nodes the other peers have at most.
func SiteShares(ctx context.Context, r comm.Reducer, id comm.ReduceID, s *shard.Shard, logits mat.Dense, others int64) (times float64, gain int64, err error) {
	nodes := s.NodesIn(graph.Val)
	right := func(logits mat.Dense) []bool {
		all := make([]bool, len(nodes))
		for k, i := range nodes {
			all[k] = s.Labels.Has(int(i)) && eval.ArgMax(logits.Row(int(i))) == int(s.Labels.Class[i])
		}
		return all
	}
	c := &comm.Contribution{ID: id, Counts: make([]int64, SiteCounts()), CountBits: comm.CountBits(s.Nodes),
		CountLimit: func(int) comm.Limit {
			return comm.Limit{What: "a count of validation nodes", Least: 0, Most: float64(others)}
		}}
	before := right(logits)
	for m, times := range siteMoves {
		moved := logits.Clone()
		closed.ToSiteShares(times, s.Labels, s.Split, moved)
		for k, is := range right(moved) {
			if is && !before[k] {
				c.Counts[2*m]++
			} else if !is && before[k] {
				c.Counts[2*m+1]++
			}
		}
	}
	if _, err := r.Reduce(ctx, c); err != nil {
		return 0, 0, err
	}
	for m, t := range siteMoves {
		won, lost := c.Counts[2*m], c.Counts[2*m+1]
		if won-lost > gain && float64(won-lost) > surely*math.Sqrt(float64(won+lost)) {
			times, gain = t, won-lost
		}
	}
	return times, gain, nil
}
