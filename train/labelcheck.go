package train

import (
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// labelLimit returns what each of the numbers of another peer may be: it has at most all nodes that the holder of s has
// not. The first reals of them are parts of real numbers.
func labelLimit(s *shard.Shard, reals int) func(int) comm.Limit {
	most := float64(s.Nodes) - float64(s.Owned)
	return func(i int) comm.Limit {
		if i < reals {
			return comm.Limit{What: "a part of a sum of targets", Least: 0, Most: 1 << 62}
		}
		return comm.Limit{What: "a label count", Least: 0, Most: most}
	}
}

// checkLabels returns an error unless sums, less own, may be the numbers of the other peers: a labelled node has one
// class, or of several at most all, and is in one split.
func checkLabels(sums, own []int64, s *shard.Shard) error {
	others := slices.Clone(sums)
	for i, n := range own {
		others[i] -= n
		if others[i] < 0 {
			return comm.Refused("label count %d of the other peers must be at least 0 (got %d)", i, others[i])
		}
	}
	classes, totals := s.Labels.Classes, others[len(others)-3:]
	for k, nodes := range totals[:2] {
		if s.Labels.Kind() == graph.Numbers {
			break
		}
		counts := others[k*classes : (k+1)*classes]
		all := int64(0)
		for c, n := range counts {
			if all += n; n > nodes {
				return comm.Refused("the training nodes of class %d at the other peers must be at most their %d "+
					"labelled ones (got %d)", c, nodes, n)
			}
		}
		if !s.Labels.Multi() && all != nodes {
			return comm.Refused("the training nodes of all classes at the other peers must be their %d labelled ones "+
				"(got %d)", nodes, all)
		}
	}
	all, nodes := int64(0), s.Nodes-int64(s.Owned)
	for _, n := range totals {
		all += n
	}
	if all > nodes {
		return comm.Refused("the labelled nodes of the other peers must be at most their %d nodes (got %d)", nodes, all)
	}
	return nil
}
