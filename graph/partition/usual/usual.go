// Package usual chooses a partitioning policy where the user asks for none.
package usual

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
)

// mostSites is how many sites Policy makes parts of.
const mostSites = 64

// Policy returns the policy for so many parts of g, 0 for any number: by-column if g says
// which site each node belongs to and the sites are as many, else random. text says what becomes of the sites; empty:
// there are none, or one part has them all.
func Policy(g *graph.Graph, parts int) (policy, text string) {
	sites := len(g.Sites)
	switch {
	case g.Site == nil || sites < 2 || parts == 1:
		return "random", ""
	case parts != 0 && parts != sites:
		return "random", fmt.Sprintf("%s has %d sites, but %d peers share its nodes at random: leave out peers, and each site is a peer", g.Name, sites, parts)
	case sites > mostSites:
		return "random", fmt.Sprintf("%s has %d sites, more than %d: its nodes are shared at random; with policy by-column each site is a peer", g.Name, sites, mostSites)
	}
	return "by-column", fmt.Sprintf("each of the %d sites of %s is a peer (policy by-column)", sites, g.Name)
}
