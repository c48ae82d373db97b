// Package partition decides which part of a graph owns each node: policies, the goals that bound them, and the quality
// of their partitions.
package partition

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/rng"
)

// Policy decides which part owns each node. This determines the partition: an edge belongs to the owner of its
// destination.
type Policy interface {
	// Assign returns the owner, in [0, parts), of each of g's nodes. The same key gives the same owners everywhere.
	Assign(g *graph.Graph, parts int, key rng.Key) (owner []int32, err error)
}

// Partition assigns the nodes of g by a policy, with random choices by seed, and cuts g accordingly. parts may be 0 if
// the policy knows the number (ByColumn).
func Partition(g *graph.Graph, p Policy, parts int, seed uint64) ([]*shard.Shard, error) {
	owner, err := p.Assign(g, parts, Key(seed))
	if err != nil {
		return nil, err
	}
	if parts == 0 {
		parts = len(g.Sites)
	}
	return shard.Cut(g, owner, parts)
}

// Key returns the key of a policy's random choices for that seed.
func Key(seed uint64) rng.Key { return rng.New(seed).FoldString("partition") }

// Random deals the nodes by a random permutation: parts differ by at most one node.
type Random struct{}

// Contiguous gives part p the p-th range of nodes in the order of their IDs: parts differ by at most one node.
type Contiguous struct{}

// ByColumn gives each node to its natural owner, Graph.Site. It determines the number of parts: parts must be 0 or that
// number.
type ByColumn struct{}

// names of the policies without a number in them, as on the command line.
var names = []struct {
	name   string
	policy Policy
}{{"random", Random{}}, {"contiguous", Contiguous{}}, {"by-column", ByColumn{}}, {"fennel", Fennel{Even, 1}},
	{"multilevel", Multilevel{}}}

// ParsePolicy returns the policy of that name: random, contiguous, by-column, fennel, multilevel or restream:N (N
// passes of fennel).
func ParsePolicy(name string) (Policy, error) {
	var known []string
	for _, p := range names {
		if p.name == name {
			return p.policy, nil
		}
		known = append(known, p.name)
	}
	if passes, ok := strings.CutPrefix(name, "restream:"); ok {
		n, err := strconv.Atoi(passes)
		if err != nil || n < 1 || n > maxPasses {
			return nil, fmt.Errorf("the passes of restream:N must be 1 to %d (got %q)", maxPasses, name)
		}
		return Fennel{Even, n}, nil
	}
	return nil, fmt.Errorf("policy must be one of %s, restream:N (got %q)", strings.Join(known, ", "), name)
}

// Needs returns the bytes of memory that p needs for a graph of n nodes and that many stored edges, in addition to 9
// bytes a node. For a policy that has the whole graph in memory, it returns all memory that it needs.
func Needs(p Policy, n, edges int64) (bytes int64, whole bool) {
	switch p := p.(type) {
	case Multilevel:
		return 100*n + 60*edges, true
	case Fennel:
		if p.clusters() {
			return min(tied*n, mostTies)*60 + 200*min(n, mostClusters), false
		}
	}
	return 0, false
}

const maxPasses = 1000

// Bounded returns p with the goal. Policies that balance use it; the result of other policies is checked, and refused
// if it breaks the goal.
func Bounded(p Policy, goal Goal) Policy {
	switch p := p.(type) {
	case Fennel:
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
	if err := c.goal.Check(InMemory{g}, owner, parts); err != nil {
		return nil, err
	}
	return owner, nil
}

// Assign implements Policy.
func (Random) Assign(g *graph.Graph, parts int, key rng.Key) ([]int32, error) {
	if err := shard.CheckParts(g.N(), parts); err != nil {
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
	if err := shard.CheckParts(g.N(), parts); err != nil {
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
		return nil, errors.New("policy by-column needs the site of each node (got none): import the tables with " +
			"a site column, or choose another policy")
	}
	if parts != 0 && parts != len(g.Sites) {
		return nil, fmt.Errorf("by-column: number of parts must be %d (or 0), the number of sites (got %d)",
			len(g.Sites), parts)
	}
	if err := shard.CheckSites(g.Site, g.Sites); err != nil {
		return nil, err
	}
	return append([]int32(nil), g.Site...), nil
}

// runOf returns which of `parts` ranges of nearly equal length contains index at of n.
func runOf(at, n, parts int) int32 { return int32(int64(at) * int64(parts) / int64(n)) }
