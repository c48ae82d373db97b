package closed

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// Surroundings is the part of a graph that a forward pass over some nodes reads: all of it, or a site's part with rows
// from other sites.
type Surroundings interface {
	Features() graph.Features // features of the nodes, as from Encoder.Input or AdjacencyRows
	Degrees() []float32       // degrees of the nodes
	// Aggregate writes, for each node, the weighted sum (Layout.Edges) of its neighbours' rows to y; x has the nodes'
	// own rows. Errors call the rows what.
	Aggregate(y, x mat.Dense, what string) error
	// ClassSums returns for each node the sum of its neighbours' ClassRows in round r, from 0; logits are the nodes'
	// own.
	ClassSums(r int, logits mat.Dense) (mat.Dense, error)
}

// Walk is the forward pass: it returns the logits of the nodes in v, and the inputs of the last head. labels and split
// are the nodes'. trained reports whether any node of the graph was a training node, at this site or another.
func (m *Form) Walk(v Surroundings, labels graph.Labels, split []graph.Split, trained bool) (
	logits, columns mat.Dense, err error) {
	spec, x := m.Spec, v.Features()
	var train, others []int32 // nodes in the means, or nil if none
	var y, p mat.Dense
	leaveOut := spec.LeaveOut && trained
	if leaveOut {
		train, others = spec.Present(split, labels)
		y, logits = labels.Rows(train), spec.Prior(x.Rows(), m.Counts[0].Value.Row(0))
	}
	all := NewColumns(x.Rows(), m.Heads[len(m.Heads)-1].Inputs())
	for r, head := range m.Heads {
		if leaveOut {
			p = spec.Targets(r, train, others, y, logits)
		}
		own, z := m.Source(r, x, p)
		if err := m.RoundColumns(v, r, own, z, logits, all); err != nil {
			return logits, columns, err
		}
		if r == 0 && m.Own != nil {
			all.Add(m.OwnColumns(x))
		}
		if leaveOut || spec.Own > 0 || spec.LogitHops > 0 || r == len(m.Heads)-1 {
			columns = all.Written()
			logits = head.Logits(columns)
		}
	}
	return logits, columns, nil
}

// Source returns the columns of round r, from 0, before any hop: own columns, which heads read, and z, which are
// aggregated. p has the targets of the round (Targets); if it is empty, no part of a node is removed.
func (m *Form) Source(r int, x graph.Features, p mat.Dense) (own, z mat.Dense) {
	own = Times(x, m.Means[r].Value)
	if !p.Empty() {
		m.LeaveOwn(r, x, own, p)
	}
	return own, m.Spec.Coarsen(r, x, own)
}

// Columns are columns of some nodes, written from left to right.
type Columns struct {
	all mat.Dense
	end int // number of written columns
}

// NewColumns returns memory for columns of n nodes.
func NewColumns(n, columns int) *Columns { return new(Columns).Clear(n, columns) }

// Clear empties c for other columns and returns it; views of the old ones must not be used any more. It allocates only
// if the new columns are larger.
func (c *Columns) Clear(n, columns int) *Columns {
	if c.end = 0; n*columns > len(c.all.Data) {
		c.all = mat.New(n, columns)
	}
	c.all = mat.View(n, columns, c.all.Data)
	return c
}

// Next returns the memory of the next columns.
func (c *Columns) Next(columns int) mat.Dense {
	c.end += columns
	return c.all.ColRange(c.end-columns, c.end)
}

// Add appends x and returns its memory.
func (c *Columns) Add(x mat.Dense) mat.Dense {
	y := c.Next(x.Cols)
	y.CopyFrom(x)
	return y
}

// Written returns the columns so far.
func (c *Columns) Written() mat.Dense { return c.all.ColRange(0, c.end) }

// RoundColumns appends the columns of round r, from 0, of the nodes in v. own and z are its Source, and logits are from
// the last round. OwnColumns follow after the first round.
func (m *Form) RoundColumns(v Surroundings, r int, own, z, logits mat.Dense, columns *Columns) error {
	spec := m.Spec
	if hops := spec.LogitHopsOf(r); hops > 0 {
		x := spec.Before(logits)
		for k := range hops {
			y := columns.Next(x.Cols)
			if err := v.Aggregate(y, x, fmt.Sprintf("logits of round %d, hop %d", r, k)); err != nil {
				return err
			}
			x = y
		}
	}
	hops := spec.HopsOf(r)
	if spec.AllHops || hops == 0 {
		y := columns.Add(own)
		if len(y.Data) > 0 && &own.Data[0] == &z.Data[0] { // else the aggregated columns differ from the kept ones
			z = y
		}
	}
	for k := range hops {
		var y mat.Dense
		if spec.AllHops || k == hops-1 {
			y = columns.Next(z.Cols)
		} else {
			y = mat.New(z.Rows, z.Cols)
		}
		if err := v.Aggregate(y, z, fmt.Sprintf("rows of round %d, hop %d", r+1, k)); err != nil {
			return err
		}
		z = y
	}
	if r == 0 && spec.Degree {
		columns.Add(degreeColumn(v.Degrees()))
	}
	if spec.Sums(r) {
		sums, err := v.ClassSums(r, logits)
		if err != nil {
			return err
		}
		columns.Add(spec.SumColumns(sums, logits))
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

// WholeGraph returns the surroundings of all nodes of a graph with edges adj and features x, for layout s.
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

func (v *wholeGraph) Aggregate(y, x mat.Dense, _ string) error {
	aggregate.Into(y, aggregate.Sum{}, v.adj, x)
	return nil
}

func (v *wholeGraph) ClassSums(_ int, logits mat.Dense) (mat.Dense, error) {
	rows := graph.Features{Dense: v.spec.ClassRows(v.x, logits)}
	return aggregate.Features(aggregate.Sum{}, v.near, rows).Dense, nil
}
