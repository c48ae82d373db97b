package closed

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// Surroundings are what a forward pass sees of the graph around some nodes: all of it, or a site's part with rows that
// other sites send.
type Surroundings interface {
	Features() graph.Features // of the nodes, as Encoder.Input or AdjacencyRows returns them
	Degrees() []float32       // of the nodes
	// Aggregate returns for each node the weighted sum (Layout.Edges) of its neighbours' rows; x has the nodes' own. An
	// error calls the rows what.
	Aggregate(x mat.Dense, what string) (mat.Dense, error)
	// ClassSums returns for each node the sum of its neighbours' ClassRows in round r, from 0; logits are the nodes'
	// own.
	ClassSums(r int, logits mat.Dense) (mat.Dense, error)
}

// Walk is the forward pass: it returns the logits of the nodes in v, and the columns that the last head reads. labels
// and split are the nodes', and trained reports whether any node of the graph was trained on, at this site or another.
func (m *Form) Walk(v Surroundings, labels graph.Labels, split []graph.Split, trained bool) (
	logits, columns mat.Dense, err error) {
	spec, x := m.Spec, v.Features()
	var train, others []int32 // that the means were made of, or nil if none
	var y, p mat.Dense
	leaveOut := spec.LeaveOut && trained
	if leaveOut {
		train, others = spec.Present(split, labels)
		y, logits = labels.Rows(train), spec.Prior(x.Rows(), m.Counts[0].Value.Row(0))
	}
	var all []graph.Features
	for r, head := range m.Heads {
		if leaveOut {
			p = spec.Targets(r, train, others, y, logits)
		}
		own, z := m.Source(r, x, p)
		err := m.RoundColumns(v, r, own, z, logits, func(x mat.Dense) mat.Dense {
			all = append(all, graph.Features{Dense: x})
			return x
		})
		if err != nil {
			return logits, columns, err
		}
		if r == 0 && m.Own != nil {
			all = append(all, graph.Features{Dense: m.OwnColumns(x)})
		}
		if leaveOut || spec.Own > 0 || spec.LogitHops > 0 || r == len(m.Heads)-1 {
			columns = graph.Columns(all).Dense
			logits = head.Logits(columns)
		}
	}
	return logits, columns, nil
}

// Source returns the columns of round r, from 0, before any hop: the columns that heads read and the ones that are
// aggregated. p has the targets of the round (Targets); if it is empty, no part of a node is taken out.
func (m *Form) Source(r int, x graph.Features, p mat.Dense) (own, z mat.Dense) {
	own = Times(x, m.Means[r].Value)
	if !p.Empty() {
		m.LeaveOwn(r, x, own, p)
	}
	return own, m.Spec.Coarsen(r, x, own)
}

// RoundColumns passes to add, in order, what round r, from 0, adds to the columns of the nodes in v. own and z are its
// Source, and logits are from the round before. add returns where the columns are from then on. OwnColumns follow those
// of the first round.
func (m *Form) RoundColumns(v Surroundings, r int, own, z, logits mat.Dense,
	add func(x mat.Dense) mat.Dense) (err error) {
	spec := m.Spec
	if hops := spec.LogitHopsOf(r); hops > 0 {
		x := spec.Before(logits)
		for k := range hops {
			if x, err = v.Aggregate(x, fmt.Sprintf("logits of round %d, hop %d", r, k)); err != nil {
				return err
			}
			x = add(x)
		}
	}
	for k := range spec.HopsOf(r) + 1 {
		if k > 0 {
			if z, err = v.Aggregate(z, fmt.Sprintf("rows of round %d, hop %d", r+1, k-1)); err != nil {
				return err
			}
			own = z
		}
		if spec.AllHops || k == spec.HopsOf(r) {
			if own = add(own); k > 0 || !spec.OwnExact { // else others than the kept ones are aggregated
				z = own
			}
		}
	}
	if r == 0 && spec.Degree {
		add(degreeColumn(v.Degrees()))
	}
	if spec.Sums(r) {
		sums, err := v.ClassSums(r, logits)
		if err != nil {
			return err
		}
		add(spec.SumColumns(sums, logits))
	}
	return nil
}

// wholeGraph is all of a graph.
type wholeGraph struct {
	x         graph.Features
	spec      Layout
	degree    []float32
	adj, near *graph.CSR
}

// WholeGraph returns what a form of layout s sees of a graph of edges adj, whose nodes have features x.
func WholeGraph(adj *graph.CSR, x graph.Features, s Layout) Surroundings {
	degree := adj.Degrees()
	v := &wholeGraph{x: x, spec: s, degree: degree, adj: graph.Normalise(adj, degree, s.Edges())}
	if s.Own > 0 {
		v.near = neighbours(adj)
	}
	return v
}

func (v *wholeGraph) Features() graph.Features { return v.x }
func (v *wholeGraph) Degrees() []float32       { return v.degree }

func (v *wholeGraph) Aggregate(x mat.Dense, _ string) (mat.Dense, error) {
	return aggregate.Features(aggregate.Sum{}, v.adj, graph.Features{Dense: x}).Dense, nil
}

func (v *wholeGraph) ClassSums(_ int, logits mat.Dense) (mat.Dense, error) {
	rows := graph.Features{Dense: v.spec.ClassRows(v.x, logits)}
	return aggregate.Features(aggregate.Sum{}, v.near, rows).Dense, nil
}
