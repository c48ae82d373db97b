package graphs

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
)

// Typed is the name of a generated graph. Only the types of its edges reveal which neighbours are alike.
const Typed = "drawn-typed"

// DrawTyped returns 2,400 nodes of three classes, with 24 columns of zeros and ones that reveal little of them, and
// four edges of each of two relations from each node. Three quarters of the relation trusts end at a node of the same
// class, and three quarters of disputes at one of the next class; the others end anywhere. A tenth of the nodes train,
// a tenth validate. A node has 16 neighbours. If types are ignored, 7 of them are of its class. Among the four by each
// relation and direction, three are of the class that these imply.
func DrawTyped(seed uint64) (*graph.Graph, error) {
	p := &population{key: rng.New(seed).FoldString(Typed)}
	p.people(2400, 3, 1)
	to := func(next int32) func(class, draw int32) int32 {
		return func(class, draw int32) int32 {
			if draw < 625 { // and a third of the others
				return (class + next) % 3
			}
			return draw % 3
		}
	}
	names := []string{"disputes", "trusts"}
	var kind, src, dst []int32
	for k, name := range names {
		s, d := p.edges(name, 4, to(int32(1-k)))
		src, dst = append(src, s...), append(dst, d...)
		for range s {
			kind = append(kind, int32(k))
		}
	}
	n := len(p.class)
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		return nil, err
	}
	list, err := graph.Deal(n, len(names), kind, src, dst, nil, graph.Build{})
	if err != nil {
		return nil, err
	}
	g := &graph.Graph{Name: Typed, Adj: adj, Typed: graph.WithInverses(names, list),
		Labels: graph.Labels{Classes: 3, Class: p.class}}
	g.X.Dense, g.Split = p.bits(24), p.shares(0.1, 0.1)
	return g, nil
}
