package graph

import (
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph/section"
)

// Relations are the typed edges of a graph with R relations between D destinations and S sources. The relations'
// adjacencies are stacked: row r·D+i of Adj, which is R·D × S, has the in-edges of destination i under relation r. A
// pair may be in several relations. The zero value is a graph without types.
type Relations struct {
	Names []string // [R]
	Adj   CSR
}

// MaxRelations bounds R: a layer has weights for each relation.
const MaxRelations = 1 << 16

// Count returns R; 0 if edges have no types.
func (t *Relations) Count() int { return len(t.Names) }

// Stack returns the rows of all adjacencies, which have the same sources, one below the other. If some have weights,
// the others have weight 1; if some have edge columns, the others' are zeros.
func Stack(list []*CSR) CSR {
	n, rows := 0, 0
	for _, g := range list {
		n, rows = n+g.NumEdges(), rows+g.NumDst
	}
	out, at := roomFor(rows, list[0].NumSrc, int64(n), list...), 0
	for _, g := range list {
		base := int64(len(out.Col))
		for _, end := range g.RowPtr[1:] {
			at++
			out.RowPtr[at] = base + end
		}
		for k, j := range g.Col {
			out.take(g, int64(k), j)
		}
	}
	return *out
}

// Relation returns relation k of g, a stack of relations; it shares g's columns, weights and rows.
func (g *CSR) Relation(k, relations int) *CSR {
	n := g.NumDst / relations
	lo, hi := g.RowPtr[k*n], g.RowPtr[(k+1)*n]
	one := &CSR{NumDst: n, NumSrc: g.NumSrc, RowPtr: make([]int64, n+1), Col: g.Col[lo:hi:hi]}
	for i := range one.RowPtr {
		one.RowPtr[i] = g.RowPtr[k*n+i] - lo
	}
	if g.Weight != nil {
		one.Weight = g.Weight[lo:hi:hi]
	}
	if g.Edge != nil {
		one.Edge = g.Edge[lo:hi:hi]
	}
	return one
}

// StackedRows returns the rows of the destinations dst, out of n, in a stack of relations, relation by relation.
func StackedRows(dst []int32, n, relations int) []int32 {
	rows := make([]int32, 0, relations*len(dst))
	for r := range relations {
		for _, i := range dst {
			rows = append(rows, int32(r*n)+i)
		}
	}
	return rows
}

// Without returns the relations without the edges into or out of nodes whose split is one of gone,
// as CSR.Without does.
func (t *Relations) Without(split []Split, gone ...Split) *CSR {
	list := make([]*CSR, t.Count())
	for k := range list {
		list[k] = t.Adj.Relation(k, t.Count()).Without(split, gone...)
	}
	out := Stack(list)
	return &out
}

// Deal returns the N×N adjacency of each of R relations between n nodes. Relation kind[k], in [0, R), has a directed
// edge from src[k] to dst[k] with weight weight[k] (nil = all 1), as FromEdges makes it with b.
func Deal(n, relations int, kind, src, dst []int32, weight []float32, b Build) ([]*CSR, error) {
	of := make([][]int32, relations)
	for k, r := range kind {
		if r < 0 || int(r) >= relations {
			return nil, fmt.Errorf("relation of edge %d must be 0 to %d (got %d)", k, relations-1, r)
		}
		of[r] = append(of[r], int32(k))
	}
	list := make([]*CSR, relations)
	for r, entries := range of {
		one := Build{Directed: true, KeepLoops: b.KeepLoops, Edge: selectRows(b.Edge, 1, entries)}
		g, err := FromEdges(n, selectRows(src, 1, entries), selectRows(dst, 1, entries), selectRows(weight, 1, entries),
			one)
		if err != nil {
			return nil, err
		}
		list[r] = &g
	}
	return list, nil
}

// InverseNames returns the names of relations and then the name of the reverse of each.
func InverseNames(names []string) []string {
	both := slices.Clone(names)
	for _, name := range names {
		both = append(both, name+" (inverse)")
	}
	return both
}

// WithInverses returns the relations between n nodes for an encoder of a directed graph. Unless every relation's
// reverse is among the relations, the reverse of each follows as a relation itself (Schlichtkrull et al., ESWC 2018,
// §2.1), named "NAME (inverse)".
func WithInverses(names []string, list []*CSR) Relations {
	reversed, closed := make([]*CSR, len(list)), true
	for k, g := range list {
		r := g.Transpose(nil)
		reversed[k] = r
		closed = closed && slices.ContainsFunc(list, func(g *CSR) bool {
			return slices.Equal(g.RowPtr, r.RowPtr) && slices.Equal(g.Col, r.Col) && slices.Equal(g.Weight, r.Weight)
		})
	}
	if closed {
		return Relations{slices.Clone(names), Stack(list)}
	}
	return Relations{InverseNames(names), Stack(append(slices.Clone(list), reversed...))}
}

// Valid returns an error that names the first broken invariant of relations between dst
// destinations and src sources, or nil. Every typed edge must be an edge of adj as well.
func (t *Relations) Valid(adj *CSR) error {
	n := t.Count()
	if n == 0 {
		if t.Adj.NumEdges() != 0 {
			return fmt.Errorf("%d typed edges of no relation", t.Adj.NumEdges())
		}
		return nil
	}
	if n > MaxRelations {
		return fmt.Errorf("there must be at most %d relations (got %d)", MaxRelations, n)
	}
	g := &t.Adj
	if int64(n)*int64(adj.NumDst) > math.MaxInt32 {
		return fmt.Errorf("relations times nodes must be at most %d (got %d times %d)", math.MaxInt32, n,
			adj.NumDst)
	}
	if g.NumDst != n*adj.NumDst || g.NumSrc != adj.NumSrc {
		return fmt.Errorf("typed adjacency of %d×%d for %d relations of %d×%d", g.NumDst, g.NumSrc, n,
			adj.NumDst, adj.NumSrc)
	}
	if err := g.Valid(); err != nil {
		return err
	}
	if err := g.validWeights(); err != nil {
		return err
	}
	for row := range g.NumDst {
		i := row % adj.NumDst
		all, _ := adj.Row(i)
		col, _ := g.Row(row)
		for _, j := range col {
			if _, ok := slices.BinarySearch(all, j); !ok {
				return fmt.Errorf("relation %q joins source %d to destination %d, which the graph does not",
					t.Names[row/adj.NumDst], j, i)
			}
		}
	}
	return nil
}

// Sections returns the relations as sections adj/1/… and relations/…; none if edges have no types.
func (t *Relations) Sections() []section.Section {
	if t.Count() == 0 {
		return nil
	}
	return append(t.Adj.Sections(1), section.Strings("relations", t.Names)...)
}

// read reads the relations of a file whose untyped adjacency is adj, nothing if it has none.
func (t *Relations) read(f *section.Arrays, adj *CSR) (err error) {
	*t = Relations{}
	if t.Names, err = f.Strings("relations", -1); err != nil || t.Names == nil {
		return err
	}
	n := len(t.Names)
	if n < 1 || n > MaxRelations || int64(n)*int64(adj.NumDst) > math.MaxInt32 {
		return f.Errorf("relations/ptr", "there must be 1 to %d relations, and relations times nodes at most %d "+
			"(got %d relations, %d nodes)", MaxRelations, math.MaxInt32, n, adj.NumDst)
	}
	if t.Adj, err = readCSR(f, 1, n*adj.NumDst, adj.NumSrc); err != nil {
		return err
	}
	if err := t.Valid(adj); err != nil {
		return f.Errorf("adj/1/col", "%w", err)
	}
	return nil
}
