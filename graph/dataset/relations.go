package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// maxRelations bounds the relations of a table of edges: a graph has a row for every node in each relation and its
// reverse.
const maxRelations = 1 << 12

// relations reads the names of the relations in the table of edges, ascending, and how many edges without a common end
// each has; none if edges have no types.
func (c *ImportConfig) relations() ([]string, table.Apart, error) {
	switch {
	case c.Directed == BothWays && c.Relation == "":
		return []string{plain}, nil, nil
	case c.Relation == "" || c.Edges == "":
		return nil, nil, nil
	}
	t, ends, err := c.openEdges()
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	at, err := t.Column(c.Relation, "the edges' relations, option relation-column")
	if err != nil {
		return nil, nil, err
	}
	seen := table.Apart{}
	if err := t.Each(func(cells []string, line int) error {
		name := strings.TrimSpace(cells[at])
		if name == "" {
			return t.Fault(line, at, "must be the name of the edge's relation (got nothing)")
		}
		if seen.Add(name, cells[ends[0]], cells[ends[1]]); len(seen) > maxRelations {
			return t.Fault(line, at, "more than %d relations", maxRelations)
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	names := slices.Sorted(maps.Keys(seen))
	if err := cmp.Or(CheckRelations(names), OneSpelling(names)); err != nil {
		return nil, nil, fmt.Errorf("%s: column %s: %w", c.Edges, c.Relation, err)
	}
	return names, seen, nil
}

// OneSpelling returns an error if a relation has several spellings.
func OneSpelling(names []string) error {
	spelled := map[string]string{}
	for _, name := range names {
		key := table.Key(name)
		if other, ok := spelled[key]; ok {
			return fmt.Errorf("a relation must be written in one way (got %q and %q)", other, name)
		}
		spelled[key] = name
	}
	return nil
}

// CheckRelations refuses names that a typed graph cannot have.
func CheckRelations(names []string) error {
	if len(names) > maxRelations {
		return fmt.Errorf("there must be at most %d relations (got %d)", maxRelations, len(names))
	}
	if !slices.Equal(names, slices.Compact(slices.Sorted(slices.Values(names)))) {
		return errors.New("the names of the relations are not ascending")
	}
	all := graph.InverseNames(names)
	slices.Sort(all)
	for k := 1; k < len(all); k++ {
		if all[k] == all[k-1] {
			return fmt.Errorf("a relation is called %q, as the reverse of another is", all[k])
		}
	}
	return nil
}

// relationAt returns the number of the relation of a row of the table of edges.
func (e *Encoding) relationAt(t *table.Table, cells []string, line, at int) (int32, error) {
	name := strings.TrimSpace(cells[at])
	r, ok := slices.BinarySearch(e.Relations, name)
	if !ok {
		return 0, t.Fault(line, at, "relation must be one of %s (got %.40q)", shorten(e.Relations), name)
	}
	return int32(r), nil
}

// Reverse returns the number of the reverse of relation r, among e's relations followed by their reverses. Edges
// without types have one relation, 0.
func (e *Encoding) Reverse(r int32) int32 {
	count := int32(max(1, len(e.Relations)))
	return (r + count) % (2 * count)
}

// OneWay reports whether messages have only one direction.
func (d Direction) OneWay() bool { return d == Into || d == OutOf }

// Typed returns the relations of a graph of n nodes: e's relations, then the reverse of each. If messages have one
// direction, it returns only e's relations, or only the reverses. Destinations are the first `own` nodes (all except
// the halo, in a shard). Edge k goes from src[k] to dst[k] in relation kind[k] of these, and has row rows[k] of columns
// (nil = edges have none).
func (e *Encoding) Typed(own, n int, kind, src, dst []int32, weight []float32, rows []int32) (graph.Relations, error) {
	if len(e.Relations) == 0 {
		return graph.Relations{}, nil
	}
	names := graph.InverseNames(e.Relations)
	switch e.Directed {
	case Into:
		names = names[:len(e.Relations)]
	case OutOf:
		names = names[len(e.Relations):]
	}
	if int64(len(names))*int64(n) > math.MaxInt32 {
		return graph.Relations{}, fmt.Errorf("relations and their reverses times nodes must be at most %d "+
			"(got %d times %d)", math.MaxInt32, len(names), n)
	}
	list, err := graph.Deal(n, len(names), kind, src, dst, weight, graph.Build{Edge: rows})
	if err != nil {
		return graph.Relations{}, err
	}
	for k, g := range list {
		list[k] = g.First(own)
	}
	return graph.Relations{Names: names, Adj: graph.Stack(list)}, nil
}

// BothWays returns typed edges and then the reverse of each, in the relation's reverse, with the same row of columns.
// If messages have one direction it returns only the edges, and nothing if edges have no types.
func (e *Encoding) BothWays(kind, src, dst []int32, weight []float32,
	rows []int32) (kinds, srcs, dsts []int32, weights []float32, of []int32) {
	switch {
	case len(e.Relations) == 0:
		return nil, nil, nil, nil, nil
	case e.Directed.OneWay():
		return kind, src, dst, weight, rows
	}
	kinds = slices.Clone(kind)
	for _, r := range kind {
		kinds = append(kinds, e.Reverse(r))
	}
	if weight != nil {
		weights = append(slices.Clip(weight), weight...)
	}
	if rows != nil {
		of = append(slices.Clip(rows), rows...)
	}
	return kinds, slices.Concat(src, dst), slices.Concat(dst, src), weights, of
}
