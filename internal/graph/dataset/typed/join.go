package typed

import (
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Join puts the nodes of all types together, type after type, and returns the number of each type's
// first. Nodes are called TYPE/NAME. A type that has no table here is nil.
func (c *Encodings) Join(types []*graph.Graph) (*graph.Graph, []int32, error) {
	if c.Untyped() {
		return types[0], []int32{0}, nil
	}
	g, first := &graph.Graph{}, []int32{}
	var x []graph.Features
	t := &g.Types
	t.Of, t.Ptr = []uint8{}, []int64{0}
	for k, of := range types {
		if of == nil {
			of = &graph.Graph{}
		}
		n, f := len(of.Split), of.X
		if len(g.Split)+n > math.MaxInt32 {
			return nil, nil, fmt.Errorf("nodes must be at most %d (got more)", math.MaxInt32)
		}
		first = append(first, int32(len(g.Split)))
		t.Names = append(t.Names, c.Nodes[k].Type)
		for i := range n {
			t.Of = append(t.Of, uint8(k))
			g.IDs = append(g.IDs, c.Nodes[k].Type+"/"+of.IDs[i])
		}
		if f.Cols() == 0 { // no features, or no nodes
			width := max(1, c.Nodes[k].Of.Width())
			f.Dense = mat.View(n, width, slices.Repeat([]float32{1}, n*width))
		}
		x = append(x, f)
		t.Ptr = append(t.Ptr, t.Ptr[k]+int64(f.Cols()))
		g.Split = append(g.Split, of.Split...)
	}
	g.X.Sparse = graph.Diagonal(x)
	g.Labels = c.labels(types, first, len(g.Split))
	return g, first, nil
}

// labels returns the labels of n nodes. Only nodes of one type may have any; first has each type's first node.
func (c *Encodings) labels(types []*graph.Graph, first []int32, n int) graph.Labels {
	target := slices.IndexFunc(c.Nodes, func(n NodeEncoding) bool { return n.Of.Label != "" })
	if target < 0 {
		return graph.Labels{}.None(graph.Single, n)
	}
	own := c.Nodes[target].Of.NoLabels()
	if of := types[target]; of != nil && len(of.Split) > 0 {
		own = of.Labels
	}
	return own.Within(n, int(first[target]))
}

// nobody owns a node of a table without a column of owners, until its neighbours decide.
const nobody = -1

// owned gives every node that nobody owns to the site that owns most of its neighbours, of several
// the first. Neighbours of neighbours count if no neighbour has an owner, and so on; a node that
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
