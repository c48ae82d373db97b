package typed

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
)

// nobody owns a node of a table without a column of owners, until its neighbours say who does.
const nobody = -1

// owned gives every node that nobody owns to the site that owns most of its neighbours, of several
// the first. Neighbours of neighbours count where no neighbour has an owner, and so on; a node that
// no path joins to one with an owner is the first site's.
func owned(g *graph.Graph) {
	back := g.Adj.Transpose(nil)
	count := make([]int, len(g.Sites))
	for changed := true; changed; {
		changed = false
		next := slices.Clone(g.Site)
		for i, of := range g.Site {
			if of != nobody {
				continue
			}
			clear(count)
			for _, adj := range []*graph.CSR{&g.Adj, back} {
				col, _ := adj.Row(i)
				for _, j := range col {
					if s := g.Site[j]; s != nobody {
						count[s]++
					}
				}
			}
			if most := slices.Max(count); most > 0 {
				next[i], changed = int32(slices.Index(count, most)), true
			}
		}
		g.Site = next
	}
	for i, of := range g.Site {
		if of == nobody {
			g.Site[i] = 0
		}
	}
}
