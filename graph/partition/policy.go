package partition

import (
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// Policy decides which part owns each node. Everything else about a partition follows from that: an edge lies with
// the owner of its destination.
type Policy interface {
	// Assign returns the owner, in [0, parts), of each of g's nodes. The same key gives the same owners everywhere.
	Assign(g *graph.Graph, parts int, key rng.Key) (owner []int32, err error)
}

// Random deals the nodes out by a keyed permutation: parts differ by at most one node.
type Random struct{}

// Contiguous gives part p the p-th run of nodes in the order of their IDs: parts differ by at most one node.
type Contiguous struct{}

// ByColumn gives each node to its natural owner, Graph.Site. It alone knows how many parts there are: 0 means that
// number, any other is refused.
type ByColumn struct{}

// names of the policies, as the command line has them.
var names = []struct {
	name   string
	policy Policy
}{{"random", Random{}}, {"contiguous", Contiguous{}}, {"by-column", ByColumn{}}}

// ParsePolicy returns the policy of that name: random, contiguous or by-column.
func ParsePolicy(name string) (Policy, error) {
	var known []string
	for _, p := range names {
		if p.name == name {
			return p.policy, nil
		}
		known = append(known, p.name)
	}
	return nil, fmt.Errorf("partition: no policy %q, want one of %s", name, strings.Join(known, ", "))
}

// Assign implements Policy.
func (Random) Assign(g *graph.Graph, parts int, key rng.Key) ([]int32, error) {
	if err := enough(g, parts); err != nil {
		return nil, err
	}
	owner := make([]int32, g.N())
	for at, i := range key.Perm(g.N()) {
		owner[i] = run(at, g.N(), parts)
	}
	return owner, nil
}

// Assign implements Policy.
func (Contiguous) Assign(g *graph.Graph, parts int, _ rng.Key) ([]int32, error) {
	if err := enough(g, parts); err != nil {
		return nil, err
	}
	owner := make([]int32, g.N())
	for i := range owner {
		owner[i] = run(i, g.N(), parts)
	}
	return owner, nil
}

// Assign implements Policy.
func (ByColumn) Assign(g *graph.Graph, parts int, _ rng.Key) ([]int32, error) {
	if g.Site == nil {
		return nil, fmt.Errorf("partition: by-column needs a graph that says which site each node belongs to, and %q does not", g.Name)
	}
	if parts != 0 && parts != len(g.Sites) {
		return nil, fmt.Errorf("partition: by-column: %d parts for %d sites, want %d (or 0: as many as sites)", parts, len(g.Sites), len(g.Sites))
	}
	if err := enough(g, len(g.Sites)); err != nil {
		return nil, err
	}
	return append([]int32(nil), g.Site...), nil
}

// run returns which of parts runs of nearly equal length holds place at of n.
func run(at, n, parts int) int32 { return int32(int64(at) * int64(parts) / int64(n)) }

func enough(g *graph.Graph, parts int) error {
	if parts < 1 {
		return fmt.Errorf("partition: %d parts, want 1 or more", parts)
	}
	if parts > g.N() {
		return fmt.Errorf("partition: %d parts for a graph of %d nodes, want at most one part a node", parts, g.N())
	}
	return nil
}
