package partition

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
)

// mostSites is how many sites Usual makes parts of.
const mostSites = 64

// mostEdges is up to how many stored edges multilevel takes less than some seconds.
const mostEdges = 20e6

// Usual returns the policy that is taken where the user names none, for that many parts of g, 0 for any number:
// by-column if g reports which site each node belongs to and the sites are as many. Else it is random, or for the
// workers of a cluster one that gives all as much work and cuts few edges: multilevel, restream:5 for large graphs.
// text states what becomes of the sites (empty = there are none, or one part has them all).
func Usual(g *graph.Graph, parts int, cluster bool) (policy, text string) {
	sites, other := len(g.Sites), "random"
	if cluster {
		if other = "multilevel"; g.Adj.NumEdges() > mostEdges {
			other = "restream:5"
		}
	}
	switch {
	case g.Site == nil || sites < 2 || parts == 1:
		return other, ""
	case parts != 0 && parts != sites:
		return other, fmt.Sprintf("%s has %d sites, but %d peers share its nodes by policy %s: leave out peers, "+
			"and each site is a peer", g.Name, sites, parts, other)
	case sites > mostSites:
		return other, fmt.Sprintf("%s has %d sites, more than %d: its nodes are shared by policy %s; "+
			"with policy by-column each site is a peer", g.Name, sites, mostSites, other)
	}
	return "by-column", fmt.Sprintf("each of the %d sites of %s is a peer (policy by-column)", sites, g.Name)
}
