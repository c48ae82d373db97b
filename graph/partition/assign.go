package partition

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
)

// Assignment runs a policy on a Source, step after step. Between steps Owner is its only state, so it can continue at
// any step from the owners after the step before.
type Assignment struct {
	Owner []int32 // [N] (−1 = none yet)
	// Step runs step k of those that Steps lists.
	Step func(k int) error
}

// Begin returns an Assignment for a policy and src. read returns src's graph in memory, with or without its edges, for
// policies that need it as a whole; Fennel does not call it.
func Begin(p Policy, src Source, parts int, key rng.Key,
	read func(edges bool) (*graph.Graph, error)) (*Assignment, error) {
	if f, ok := p.(Fennel); ok {
		a, err := f.assigner(src, parts, key)
		if err != nil {
			return nil, err
		}
		return &Assignment{a.owner, a.step}, nil
	}
	goal := Goal{}
	if c, ok := p.(checked); ok {
		p, goal = c.Policy, c.goal
	}
	_, edges := p.(Multilevel)
	owner := make([]int32, src.Size().Vertices)
	return &Assignment{owner, func(int) error {
		g, err := read(edges)
		if err != nil {
			return err
		}
		found, err := p.Assign(g, parts, key)
		if err != nil {
			return err
		}
		copy(owner, found)
		return goal.Check(src, owner, parts)
	}}, nil
}

// Steps returns the names of a policy's steps, for progress: "cluster", "join clusters", "assign", "keep bounds".
func Steps(p Policy) []string {
	if f, ok := p.(Fennel); ok {
		return f.steps()
	}
	return []string{assigning}
}
