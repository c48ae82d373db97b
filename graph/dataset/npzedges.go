package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
	"github.com/heddle-gnn/heddle/mat"
)

// edges reads the adjacency of n nodes, the relations, which meta.json may
// name, and the columns of edges.
func (a arrays) edges(g *graph.Graph, n int, m meta) error {
	src, dst, weight, err := a.pairs(n, n)
	if err != nil {
		return err
	}
	x, rows, err := a.edgeColumns(len(src))
	if err != nil {
		return err
	}
	var kind []int32
	names := m.Relations
	if a.Has("edge_type") {
		if kind, names, err = a.relations(n, len(src), names); err != nil {
			return err
		}
	}
	b := graph.Build{Directed: m.Directed, Edge: rows}
	if err := SetEdges(g, n, src, dst, weight, kind, names, x, b); err != nil {
		return a.Fault("edge_index", err)
	}
	return nil
}

// pairs reads the two ends of each edge, from one of sources nodes to one of targets, and the weights (nil = all 1).
func (a arrays) pairs(sources, targets int) (src, dst []int32, weight []float32, err error) {
	pairs, shape, err := npy.Read[int32](a.Archive, "edge_index", 2, -1)
	if err != nil {
		return nil, nil, nil, err
	}
	for k, i := range pairs {
		n := sources
		if k >= shape[1] {
			n = targets
		}
		if i < 0 || int(i) >= n {
			return nil, nil, nil, a.Fault("edge_index", fmt.Errorf("entry [%d, %d] must be a node, 0 to %d (got %d)",
				k/shape[1], k%shape[1], n-1, i))
		}
	}
	src, dst = pairs[:shape[1]], pairs[shape[1]:]
	if !a.Has("edge_weight") {
		return src, dst, nil, nil
	}
	if weight, _, err = npy.Read[float32](a.Archive, "edge_weight", shape[1]); err != nil {
		return nil, nil, nil, err
	}
	for k, w := range weight {
		if !finite(w) || w <= 0 {
			return nil, nil, nil,
				a.Fault("edge_weight", fmt.Errorf("entry %d must be a finite number above 0 (got %v)", k, w))
		}
	}
	return src, dst, weight, nil
}

// SetEdges gives g, with n nodes, the edges from src to dst, made by graph.FromEdges with b; b's rows are rows of x.
// kind has each edge's relation as an index of names (nil = edges have no types). Unless b is directed, each relation
// gets its reverse.
func SetEdges(g *graph.Graph, n int, src, dst []int32, weight []float32, kind []int32, names []string, x mat.Dense,
	b graph.Build) (err error) {
	if g.Adj, err = graph.FromEdges(n, src, dst, weight, b); err != nil {
		return err
	}
	if kind != nil {
		list, err := graph.Deal(n, len(names), kind, src, dst, weight, b)
		if err != nil {
			return err
		}
		if b.Directed {
			g.Typed = graph.Relations{Names: slices.Clone(names), Adj: graph.Stack(list)}
		} else {
			g.Typed = graph.WithInverses(names, list)
		}
	}
	if b.Edge != nil {
		g.EdgeX, _ = g.Typed.CompactEdges(&g.Adj, x)
	}
	return nil
}

// edgeColumns reads the columns of the edges and the row of each edge; rows is nil if edges have no columns.
func (a arrays) edgeColumns(edges int) (x mat.Dense, rows []int32, err error) {
	if !a.Has("edge_attr") {
		if a.Has("edge_row") {
			err = a.Fault("edge_row", errors.New("rows of edge_attr, which is not there"))
		}
		return x, nil, err
	}
	if x, err = npy.Matrix(a.Archive, "edge_attr", -1); err != nil {
		return x, nil, err
	}
	if x.Cols == 0 || !a.Has("edge_row") && x.Rows != edges {
		return x, nil,
			a.Fault("edge_attr",
				fmt.Errorf("must have a row for each of %d edges and at least one column (got shape %s)", edges,
					npy.ShapeText([]int{x.Rows, x.Cols})))
	}
	rows = mat.EveryRow(edges)
	if a.Has("edge_row") {
		if rows, _, err = npy.Read[int32](a.Archive, "edge_row", edges); err != nil {
			return x, nil, err
		}
	}
	for k, r := range rows {
		if r < -1 || int(r) >= x.Rows {
			return x, nil, a.Fault("edge_row", fmt.Errorf("entry %d must be -1 (zeros) or a row, 0 to %d (got %d)", k,
				x.Rows-1, r))
		}
	}
	return x, rows, nil
}

// relations reads the relation of each edge, and the names of all: from meta.json, or their numbers.
func (a arrays) relations(n, edges int, names []string) ([]int32, []string, error) {
	kind, _, err := npy.Read[int32](a.Archive, "edge_type", edges)
	if err != nil {
		return nil, nil, err
	}
	count := len(names)
	if count == 0 {
		for _, r := range kind {
			count = max(count, int(r)+1)
		}
	}
	if err := relationLimit(count, n); err != nil {
		return nil, nil, a.Fault("edge_type", err)
	}
	for r := len(names); r < count; r++ {
		names = append(names, strconv.Itoa(r))
	}
	for k, r := range kind {
		if r < 0 || int(r) >= count {
			return nil, nil,
				a.Fault("edge_type", fmt.Errorf("entry %d must be a relation, 0 to %d (got %d)", k, count-1, r))
		}
	}
	return kind, names, nil
}

// relationLimit refuses more relations, including reverses, than a graph of n nodes may have. Row r·n + i of the
// stacked adjacency has the edges of relation r into node i, and int32 numbers the rows.
func relationLimit(count, n int) error {
	if count < 1 || 2*count > graph.MaxRelations || 2*int64(count)*int64(n) > math.MaxInt32 {
		return fmt.Errorf("there must be 1 to %d relations, and relations times nodes at most %d (got %d relations, "+
			"%d nodes)", graph.MaxRelations/2, math.MaxInt32/2, count, n)
	}
	return nil
}
