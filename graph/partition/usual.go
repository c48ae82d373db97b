package partition

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
)

// mostSites is the greatest number of sites for which Usual makes parts.
const mostSites = 64

// mostEdges is the number of stored edges up to which multilevel takes at most some seconds.
const mostEdges = 20e6

// Usual returns the default policy for that many parts of g (0 = any number). It is by-column if g has each node's site
// and there are as many sites. Else it is random or, for a cluster, a policy that balances the work and cuts few edges:
// multilevel, restream:5 for large graphs. text explains the parts' relation to the sites (empty = there are none, or
// one part has them all).
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
