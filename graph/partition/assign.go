package partition

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/internal/rng"
)

// assigner assigns the nodes of a source by rules, step after step. Between steps the owners are all there is of it, so
// that it goes on from any step with the owners of the one before.
type assigner struct {
	rules Rules
	src   source
	key   rng.Key
	owner []int32 // −1: none yet; while clustering the cluster
	view  *View
}

// kind is what a step does.
type kind string

// The kinds of step, as progress shows them.
const (
	clustering kind = "cluster"
	joining    kind = "join clusters"
	assigning  kind = "assign"
	keeping    kind = "keep bounds"
)

func (r Rules) assigner(src source, parts int, key rng.Key) (*assigner, error) {
	if r.Passes > 1 && r.State < Masters {
		return nil, fmt.Errorf("partition: %d passes of a rule that does not read masters are as good as one", r.Passes)
	}
	l, err := r.Goal.limits(src, parts)
	if err != nil {
		return nil, err
	}
	total := src.size()
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
func (r Rules) steps() (list []kind) {
	passes := max(r.Passes, 1)
	if r.clusters {
		list = append(slices.Repeat([]kind{clustering}, clusterings-1), joining)
		passes -= clusterings
	}
	return append(append(list, slices.Repeat([]kind{assigning}, passes)...), keeping)
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
		if err := a.view.hold.check(); err != nil {
			return fmt.Errorf("partition: %w", err)
		}
		return nil
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
	return a.src.runs(false, func(r *run) error {
		for i := range r.n() {
			if p := a.owner[int(r.first)+i]; p >= 0 {
				s.load[p].Vertices++
				s.load[p].Edges += r.edges(i)
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
	return a.src.runs(true, func(r *run) error {
		s.run = r
		for i := range r.n() {
			v, edges := r.first+int32(i), r.edges(i)
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
	return a.src.runs(true, func(r *run) error {
		faults := make([]error, parts)
		var wait sync.WaitGroup
		for k := range parts {
			wait.Go(func() {
				s := *a.view
				s.run, s.near = r, make([]int32, len(s.near))
				for i := r.n() * k / parts; i < r.n()*(k+1)/parts; i++ {
					v := r.first + int32(i)
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
