package partition

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// Assignment is a policy at work on a Source, step after step. Between steps Owner is all there is of it, so that it goes
// on from any step with the owners of the one before.
type Assignment struct {
	Owner []int32 // [N]; −1: none yet
	// Step does step k of those that Steps lists.
	Step func(k int) error
}

// Begin returns a policy at work on src. read returns src's graph in memory, with its edges or without, for policies that
// look at it as a whole; of Rules it may be nil.
func Begin(p Policy, src Source, parts int, key rng.Key, read func(edges bool) (*graph.Graph, error)) (*Assignment, error) {
	if rules, ok := p.(Rules); ok {
		a, err := rules.assigner(src, parts, key)
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

// Steps returns what a policy does, step by step, as progress shows it: "cluster", "join clusters", "assign", "keep bounds".
func Steps(p Policy) []string {
	if rules, ok := p.(Rules); ok {
		return rules.steps()
	}
	return []string{assigning}
}

// assigner assigns the nodes of a source by rules, step after step. Between steps the owners are all there is of it, so
// that it goes on from any step with the owners of the one before.
type assigner struct {
	rules Rules
	src   Source
	key   rng.Key
	owner []int32 // −1: none yet; while clustering the cluster
	view  *View
}

// The kinds of step, as progress shows them.
const (
	clustering = "cluster"
	joining    = "join clusters"
	assigning  = "assign"
	keeping    = "keep bounds"
)

func (r Rules) assigner(src Source, parts int, key rng.Key) (*assigner, error) {
	if r.Passes > 1 && r.State < Masters {
		return nil, fmt.Errorf("partition: %d passes of a rule that does not read masters are as good as one", r.Passes)
	}
	l, err := r.Goal.limits(src, parts)
	if err != nil {
		return nil, err
	}
	total := src.Size()
	a := &assigner{rules: r, src: src, key: key, owner: slices.Repeat([]int32{-1}, int(total.Vertices))}
	s := &View{Key: key, rules: &a.rules, state: r.State, hold: &holding{l, make([]int64, len(l.most))}, owner: a.owner,
		w: make([]int64, len(l.bounds)), load: make([]Load, parts), near: make([]int32, parts+1), total: total}
	for p := range parts {
		s.most = append(s.most, total.Vertices)
		for d, b := range l.bounds {
			if b.name == "vertices" {
				s.most[p] = l.most[p*len(l.bounds)+d]
			}
		}
	}
	a.view = s
	return a, nil
}

// steps returns what is to do, in order.
func (r Rules) steps() (list []string) {
	passes := max(r.Passes, 1)
	if r.clusters {
		list = append(slices.Repeat([]string{clustering}, clusterings-1), joining)
		passes -= clusterings
	}
	return append(append(list, slices.Repeat([]string{assigning}, passes)...), keeping)
}

// step does step k.
func (a *assigner) step(k int) error {
	switch kind := a.rules.steps()[k]; {
	case kind == clustering:
		return a.cluster(k == 0, nil)
	case kind == joining:
		return a.join()
	case kind == keeping && a.rules.State == None:
		if err := a.tally(); err != nil {
			return err
		}
		return a.view.hold.check()
	case kind == keeping:
		if err := a.tally(); err != nil {
			return err
		}
		return a.view.hold.repair(a.src, a.owner)
	case a.rules.State == None:
		return a.inParallel()
	}
	if err := a.tally(); err != nil {
		return err
	}
	if a.rules.terms != nil {
		return a.greedily()
	}
	return a.inOrder()
}

// tally counts what the parts hold.
func (a *assigner) tally() (err error) {
	s := a.view
	if s.hold, err = s.hold.limits.holding(a.src, a.owner); err != nil {
		return err
	}
	clear(s.load)
	return a.src.Runs(false, func(r *Run) error {
		for i := range r.N() {
			if p := a.owner[int(r.First)+i]; p >= 0 {
				s.load[p].Vertices++
				s.load[p].Edges += r.Edges(i)
			}
		}
		return nil
	})
}

// inOrder assigns the nodes one after another.
func (a *assigner) inOrder() error {
	s := a.view
	put := func(p int32, edges, sign int64) {
		s.hold.add(s.w, p, sign)
		s.load[p].Vertices += sign
		s.load[p].Edges += sign * edges
	}
	return a.src.Runs(true, func(r *Run) error {
		s.run = r
		for i := range r.N() {
			v, edges := r.First+int32(i), r.Edges(i)
			s.hold.weigh(s.w, r, i)
			if p := a.owner[v]; p >= 0 {
				put(p, edges, -1)
			}
			p := a.rules.Vertex(v, s)
			if err := inRange(v, p, s.Parts()); err != nil {
				return err
			}
			a.owner[v] = p
			put(p, edges, 1)
		}
		return nil
	})
}

// inParallel assigns the nodes of each run in parts, as many as there are processors.
func (a *assigner) inParallel() error {
	parts := runtime.GOMAXPROCS(0)
	return a.src.Runs(true, func(r *Run) error {
		faults := make([]error, parts)
		var wait sync.WaitGroup
		for k := range parts {
			wait.Go(func() {
				s := *a.view
				s.run, s.near = r, make([]int32, len(s.near))
				for i := r.N() * k / parts; i < r.N()*(k+1)/parts; i++ {
					v := r.First + int32(i)
					a.owner[v] = a.rules.Vertex(v, &s)
					if faults[k] = inRange(v, a.owner[v], s.Parts()); faults[k] != nil {
						return
					}
				}
			})
		}
		wait.Wait()
		for _, err := range faults { // that of the lowest node, whatever the parts
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func inRange(v, p int32, parts int) error {
	if p < 0 || int(p) >= parts {
		return fmt.Errorf("partition: the rule gives node %d to part %d, out of [0, %d)", v, p, parts)
	}
	return nil
}
