package partition

import (
	"fmt"
	"strconv"
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

// names of the policies that have no number in them, as the command line has them.
var names = []struct {
	name   string
	policy Policy
}{{"random", Random{}}, {"contiguous", Contiguous{}}, {"contiguous-vertices", Contiguous{}}, {"contiguous-edges", ContiguousEdges()},
	{"hash", Hash()}, {"by-column", ByColumn{}}, {"ldg", LDG(1)}, {"fennel", Fennel(1)}, {"fec", FEC()}, {"multilevel", Multilevel{}}}

// ParsePolicy returns the policy of that name: random, contiguous (or contiguous-vertices), contiguous-edges, hash,
// by-column, ldg, fennel, fec, multilevel, restream:N (N passes of fennel) or restream:N:ldg.
func ParsePolicy(name string) (Policy, error) {
	var known []string
	for _, p := range names {
		if p.name == name {
			return p.policy, nil
		}
		known = append(known, p.name)
	}
	if passes, ok := strings.CutPrefix(name, "restream:"); ok {
		passes, ldg := strings.CutSuffix(passes, ":ldg")
		n, err := strconv.Atoi(passes)
		if err != nil || n < 1 || n > maxPasses {
			return nil, fmt.Errorf("partition: policy %q, want restream:N or restream:N:ldg of N passes, 1 to %d", name, maxPasses)
		}
		if ldg {
			return LDG(n), nil
		}
		return Fennel(n), nil
	}
	if ParseVertexCut(name) != nil {
		return nil, fmt.Errorf("partition: policy %q: %s", name, vertexCuts)
	}
	return nil, fmt.Errorf("partition: no policy %q, want one of %s, restream:N, restream:N:ldg", name, strings.Join(known, ", "))
}

const maxPasses = 1000

// Bounded returns p held to the goal. Policies that balance plan by it; what others put where is checked, and refused
// where it breaks the goal.
func Bounded(p Policy, goal Goal) Policy {
	switch p := p.(type) {
	case Rules:
		p.Goal = goal
		return p
	case Multilevel:
		return Multilevel{goal}
	}
	return checked{p, goal}
}

type checked struct {
	Policy
	goal Goal
}

// Assign implements Policy.
func (c checked) Assign(g *graph.Graph, parts int, key rng.Key) ([]int32, error) {
	owner, err := c.Policy.Assign(g, parts, key)
	if err != nil {
		return nil, err
	}
	if parts == 0 {
		parts = len(g.Sites)
	}
	if err := c.goal.Check(g, owner, parts); err != nil {
		return nil, err
	}
	return owner, nil
}

// Assign implements Policy.
func (Random) Assign(g *graph.Graph, parts int, key rng.Key) ([]int32, error) {
	if err := enough(g, parts); err != nil {
		return nil, err
	}
	owner := make([]int32, g.N())
	for at, i := range key.Perm(g.N()) {
		owner[i] = runOf(at, g.N(), parts)
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
		owner[i] = runOf(i, g.N(), parts)
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

// runOf returns which of parts runs of nearly equal length holds place at of n.
func runOf(at, n, parts int) int32 { return int32(int64(at) * int64(parts) / int64(n)) }

func enough(g *graph.Graph, parts int) error { return enoughNodes(g.N(), parts) }

func enoughNodes(n, parts int) error {
	if parts < 1 {
		return fmt.Errorf("partition: %d parts, want 1 or more", parts)
	}
	if parts > n {
		return fmt.Errorf("partition: %d parts for a graph of %d nodes, want at most one part a node", parts, n)
	}
	return nil
}
