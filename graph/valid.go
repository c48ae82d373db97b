package graph

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/mat"
)

// Identity returns the features of n nodes that have none: the n×n identity, sparse, so that a
// first linear layer learns one row for each node.
func Identity(n int) Features {
	s := &mat.Sparse{Rows: n, Cols: n, RowPtr: make([]int64, n+1), Col: make([]int32, n), Val: make([]float32, n)}
	for i := range n {
		s.RowPtr[i+1], s.Col[i], s.Val[i] = int64(i+1), int32(i), 1
	}
	return Features{Sparse: s}
}

// Numbers returns the column of the one in each row of f; ok is false where f has more about any node than its number
// (Identity).
func (f Features) Numbers() (numbers []int64, ok bool) {
	x := f.Sparse
	if x == nil || x.NNZ() != x.Rows {
		return nil, false
	}
	for i := range x.Rows {
		col, val := x.Row(i)
		if len(col) != 1 || val[0] != 1 {
			return nil, false
		}
		numbers = append(numbers, int64(col[0]))
	}
	return numbers, true
}

// Numbered returns g, or if it has no features, a copy in which each node is known by its number
// (Identity).
func (g *Graph) Numbered() *Graph {
	if g.X.Cols() > 0 {
		return g
	}
	numbered := *g
	numbered.X = Identity(g.N())
	return &numbered
}

func finite(v float32) bool { return math.Abs(float64(v)) <= math.MaxFloat32 }

// Valid returns an error that names the first broken shape, or the row and column of the first
// value that is not a finite number.
func (f Features) Valid() error {
	if f.Sparse != nil {
		if err := f.Sparse.Valid(); err != nil {
			return err
		}
		for i := range f.Sparse.Rows {
			col, val := f.Sparse.Row(i)
			for k, v := range val {
				if !finite(v) {
					return fmt.Errorf("feature at row %d, column %d must be a finite number (got %v)", i, col[k],
						v)
				}
			}
		}
		return nil
	}
	if err := f.Dense.Valid(); err != nil {
		return err
	}
	for i := range f.Dense.Rows {
		for j, v := range f.Dense.Row(i) {
			if !finite(v) {
				return fmt.Errorf("feature at row %d, column %d must be a finite number (got %v)", i, j, v)
			}
		}
	}
	return nil
}

// Valid returns an error unless s is one of the splits.
func (s Split) Valid() error {
	if s > Test {
		return fmt.Errorf("split must be 0 (none) to %d (test) (got %d)", Test, s)
	}
	return nil
}

// validWeights returns an error that names the first weight that is negative or not finite, or nil.
func (g *CSR) validWeights() error {
	for k, w := range g.Weight {
		if !(w >= 0 && finite(w)) {
			return fmt.Errorf("weight of edge %d must be a finite number, 0 or more (got %v)", k, w)
		}
	}
	return nil
}

// Valid returns an error that names the first label of n nodes that is out of range, or nil.
func (l Labels) Valid(n int) error {
	switch {
	case l.Classes < 0:
		return fmt.Errorf("%d classes", l.Classes)
	case l.Names != nil && len(l.Names) != l.Classes:
		return fmt.Errorf("%d class names for %d classes", len(l.Names), l.Classes)
	case l.Class != nil && l.Bits != nil || l.Values != nil && (l.Class != nil || l.Bits != nil):
		return fmt.Errorf("labels must be of one kind: one class a node, several, or numbers")
	case l.Values != nil && (l.Classes == 0 || len(l.Values) != n*l.Classes):
		return fmt.Errorf("%d targets for %d nodes of %d numbers", len(l.Values), n, l.Classes)
	case l.Class != nil && len(l.Class) != n:
		return fmt.Errorf("%d labels for %d nodes", len(l.Class), n)
	case l.Bits != nil && (l.Classes == 0 && len(l.Bits) != 0 ||
		l.Classes > 0 && (len(l.Bits)%l.Classes != 0 || len(l.Bits)/l.Classes != n)):
		return fmt.Errorf("%d label bits for %d nodes of %d classes", len(l.Bits), n, l.Classes)
	}
	for i, c := range l.Class {
		if c < -1 || int(c) >= l.Classes {
			return fmt.Errorf("label of node %d must be -1 (none) or a class in [0, %d) (got %d)", i, l.Classes,
				c)
		}
	}
	for k, b := range l.Bits {
		if b > 1 {
			return fmt.Errorf("label of node %d for class %d must be 0 or 1 (got %d)", k/l.Classes, k%l.Classes,
				b)
		}
	}
	for k, v := range l.Values {
		if none := v != v; none != (l.Values[k/l.Classes*l.Classes] != l.Values[k/l.Classes*l.Classes]) ||
			!none && !finite(v) {
			return fmt.Errorf("target of node %d in column %d must be a finite number, or NaN in all columns: "+
				"no target (got %v)", k/l.Classes, k%l.Classes, v)
		}
	}
	return nil
}

// Valid returns an error that names the first broken invariant of the task, or nil.
func (g *Graph) Valid() error {
	n := g.N()
	if g.Adj.NumSrc != n {
		return fmt.Errorf("destinations and sources must be the same nodes (got %d and %d)", n, g.Adj.NumSrc)
	}
	if err := g.ValidTables(); err != nil {
		return err
	}
	if g.Site != nil && len(g.Site) != n {
		return fmt.Errorf("%d site marks for %d nodes", len(g.Site), n)
	}
	for i, s := range g.Site {
		if s < 0 || int(s) >= len(g.Sites) {
			return fmt.Errorf("site of node %d is %d, out of [0, %d)", i, s, len(g.Sites))
		}
	}
	return nil
}

// ValidTables returns an error that names the first broken invariant of the nodes' tables and of the edges into them,
// which may come from more nodes, or nil.
func (g *Graph) ValidTables() error {
	n := g.N()
	if err := g.Adj.Valid(); err != nil {
		return err
	}
	if err := g.Adj.validWeights(); err != nil {
		return err
	}
	if err := g.Typed.Valid(&g.Adj); err != nil {
		return err
	}
	if g.X.Rows() != n && g.X.Cols() != 0 {
		return fmt.Errorf("%d rows of features for %d nodes", g.X.Rows(), n)
	}
	if err := g.X.Valid(); err != nil {
		return err
	}
	if err := g.Types.Valid(n, g.X); err != nil {
		return err
	}
	if err := g.Typed.ValidEdges(&g.Adj, g.EdgeX); err != nil {
		return err
	}
	if err := g.Labels.Valid(n); err != nil {
		return err
	}
	if len(g.Split) != n {
		return fmt.Errorf("%d split marks for %d nodes", len(g.Split), n)
	}
	for i, s := range g.Split {
		if err := s.Valid(); err != nil {
			return fmt.Errorf("split of node %d: %w", i, err)
		}
	}
	if g.IDs != nil && len(g.IDs) != n {
		return fmt.Errorf("%d names for %d nodes", len(g.IDs), n)
	}
	return nil
}
