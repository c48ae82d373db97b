package plan

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/train"
)

// ForGraph returns p with policy auto replaced by its meaning for g: by-column if g has the site of each node and there
// are as many peers as sites, else random, or with the methods of a cluster (full-batch, mini-batch) multilevel or
// restream:5. If g has sites, a Note or a Warning reports how they are used.
func (p Plan) ForGraph(g *graph.Graph) (Plan, []train.Event) {
	if p.Policy != "auto" || g == nil {
		return p, nil
	}
	parts := max(0, p.Peers)
	policy, text := partition.Usual(g, parts, !p.Federated())
	if p.Policy = policy; text == "" {
		return p, nil
	}
	kind := train.Warning
	if policy == "by-column" {
		kind = train.Note
	}
	return p, []train.Event{{Kind: kind, Text: text}}
}
