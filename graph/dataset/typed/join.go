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
func (c *Encoding) Join(types []*graph.Graph) (*graph.Graph, []int32, error) {
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
	g.Labels = c.labels(types, len(g.Split))
	return g, first, nil
}

// labels returns the labels of n nodes: those of the one type that has any; nodes of the others have none.
func (c *Encoding) labels(types []*graph.Graph, n int) graph.Labels {
	target := slices.IndexFunc(c.Nodes, func(n NodeEncoding) bool { return n.Of.Label != "" })
	before := 0 // nodes
	for k := range max(target, 0) {
		if types[k] != nil {
			before += len(types[k].Split)
		}
	}
	var own graph.Labels
	if target >= 0 && types[target] != nil {
		own = types[target].Labels
	}
	if target < 0 {
		return graph.Labels{}.None(graph.Single, n)
	}
	of, kind := c.Nodes[target].Of, graph.Single
	l := graph.Labels{Classes: len(of.Classes)}
	switch {
	case of.Regression:
		l.Classes, kind = 1, graph.Numbers
	case of.Multi:
		kind = graph.Several
	}
	l = l.None(kind, n)
	if l.Names = of.Classes; of.Regression {
		l.Names = []string{of.Label}
	}
	if kind == graph.Single {
		copy(l.Class[before:], own.Class)
	} else {
		copy(l.Values[min(before, len(l.Values)):], own.Values)
		copy(l.Bits[min(before*l.Classes, len(l.Bits)):], own.Bits)
	}
	return l
}
