// Package edgelist reads lists of edges between numbered nodes in the formats that are in use:
// text, tables, arrays of NumPy.
package edgelist

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// Edge is an edge of a list. Weight is 1 if none is read.
type Edge struct {
	Source, Target int64
	Weight         float32
	At             int64 // line, row or entry in the file, see List.Unit
}

// List is an open list of edges, which is read once and in memory that does not depend on its
// length.
type List struct {
	Path  string
	Unit  string // what Edge.At counts
	Nodes int64  // number of nodes that the file gives, above all IDs (-1 = none)
	next  func() (Edge, error)
	close func() error
}

// Config names a list of edges and its format.
type Config struct {
	Path string
	// Format is text, csv, tsv, parquet or npz (empty = by the suffix, before .gz or .zst). The suffixes .txt, .el,
	// .wel, .edges and .edgelist are text.
	Format string
	// Source and Target are columns by name or, in files without names, by number from 1; empty is source and target,
	// or 1 and 2. Weight is the column of the weights, each above 0 (empty = all weigh 1).
	Source, Target, Weight string
	Cells                  table.Format // of a table
	// Nodes is how many there are (0 = as the file gives, or one more than the largest ID). Nodes of a list that
	// has 1 and not 0 are numbered from 1, unless there are more of them: their IDs are their names then.
	Nodes int
	// Strict refuses an edge that occurs twice and one from a node to itself; otherwise such are
	// merged and dropped.
	Strict bool
	Merge  string // of edges that are listed more than once: see Merge
}

// Listed are edges as a list has them, in its order.
type Listed struct {
	Source, Target []int32
	weight         []float32 // (nil = all 1)
	nodes          int       // of the graph
	first          int       // ID of the first, 0 or 1
}

// formats has the function that opens each format.
var formats = map[string]func(Config) (*List, error){
	"text": openText, "csv": openTableEdges, "tsv": openTableEdges, "parquet": openTableEdges,
	"npz": openArchive,
}

// kind returns the name in formats.
func (c Config) kind() (string, error) {
	name := c.Format
	if name == "" {
		first := c.Path
		if files, err := table.Files(c.Path); err == nil { // whose fault the opening function reports
			first = files[0]
		}
		plain := strings.TrimSuffix(strings.TrimSuffix(first, ".gz"), ".zst")
		if name = strings.TrimPrefix(filepath.Ext(plain), "."); table.IsList(first) {
			name = "text"
		}
	}
	if formats[name] == nil {
		return "", fmt.Errorf("%s: format of edges must be text, csv, tsv, parquet or npz, by "+
			"option edge-format or the name's suffix (got %q); %s", c.Path, name, table.WayOut)
	}
	return name, nil
}

// Numbered reports whether the format is known and no table, whose nodes may have names.
func (c Config) Numbered() bool {
	format, err := c.kind()
	return err == nil && format != "csv" && format != "tsv" && format != "parquet"
}

// Open opens the list. Strict is Read's.
func (c Config) Open() (*List, error) {
	name, err := c.kind()
	if err != nil {
		return nil, err
	}
	c.Format = name
	return formats[name](c)
}

// All gives the edges in the file's order. An error is the last that is given; it names the file
// and the place.
func (e *List) All() iter.Seq2[Edge, error] {
	return func(yield func(Edge, error) bool) {
		for {
			edge, err := e.next()
			if err == io.EOF {
				return
			}
			if err == nil {
				err = e.check(edge)
			}
			if !yield(edge, err) || err != nil {
				return
			}
		}
	}
}

func (e *List) check(edge Edge) error {
	top, hint := e.Nodes, ""
	if top < 0 {
		top, hint = math.MaxInt32, ": names of nodes need their table (option nodes)"
	}
	for _, id := range [2]int64{edge.Source, edge.Target} {
		if id < 0 || id >= top {
			return e.Fault(edge, "node must be 0 to %d (got %d)%s", top-1, id, hint)
		}
	}
	if !(edge.Weight > 0 && edge.Weight <= math.MaxFloat32) {
		return e.Fault(edge, "weight must be a finite number above 0 (got %v)", edge.Weight)
	}
	return nil
}

// Fault names the file and the place of an edge.
func (e *List) Fault(edge Edge, format string, args ...any) error {
	return fmt.Errorf("%s: %s %d: %w", e.Path, e.Unit, edge.At, fmt.Errorf(format, args...))
}

// Close closes the file.
func (e *List) Close() error { return e.close() }

// Batches reads the list and gives the ends of many edges at a time, valid until yield returns,
// whose error ends it. It may be called as often as it takes, and is what external.WriteNodes stores
// a graph from that does not fit into memory.
func (c Config) Batches(yield func(src, dst []int32) error) (err error) {
	list, err := c.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	const batch = 1 << 16
	src, dst := make([]int32, 0, batch), make([]int32, 0, batch)
	for e, err := range list.All() {
		if err != nil {
			return err
		}
		if src, dst = append(src, int32(e.Source)), append(dst, int32(e.Target)); len(src) == batch {
			if err := yield(src, dst); err != nil {
				return err
			}
			src, dst = src[:0], dst[:0]
		}
	}
	if len(src) == 0 {
		return nil
	}
	return yield(src, dst)
}

// Size reads the list and returns how many nodes and edges there are, in memory that does not
// depend on its length.
func (c Config) Size() (nodes int, edges int64, err error) {
	list, err := c.Open()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	top := int64(-1)
	for e, err := range list.All() {
		if err != nil {
			return 0, 0, err
		}
		top = max(top, e.Source, e.Target)
		edges++
	}
	nodes, err = c.nodes(list, top, edges)
	return nodes, edges, err
}

// A list without a number of nodes may leave out many IDs. There are at most this many nodes, or this many for each
// edge, so that one damaged number does not ask for much memory.
const (
	FreeNodes   = 1 << 20
	NodesByEdge = 64
)

// Read makes a graph of only a list of edges: nodes without features or labels. Edges are
// undirected, whichever way they are listed.
func Read(c Config) (*graph.Graph, *Listed, error) {
	if err := CheckMerge(c.Merge); err != nil {
		return nil, nil, err
	}
	list, err := c.Open()
	if err != nil {
		return nil, nil, err
	}
	l, err := c.load(list)
	if err = errors.Join(err, list.Close()); err != nil {
		return nil, nil, err
	}
	src, dst, _, weight, _ := Merge(c.Merge, l.Source, l.Target, nil, l.weight)
	name, _, _ := strings.Cut(filepath.Base(c.Path), ".")
	g := &graph.Graph{Name: name, Labels: graph.Labels{Class: slices.Repeat([]int32{-1}, l.nodes)},
		Split: make([]graph.Split, l.nodes)}
	if g.Adj, err = graph.FromEdges(l.nodes, src, dst, weight, graph.Build{}); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	for i := range l.first * l.nodes {
		g.IDs = append(g.IDs, strconv.Itoa(l.first+i))
	}
	return g, l, nil
}

// watched is the number of edges, about a mebibyte of text, after which Cells.Watch is called.
const watched = 1 << 16

// load reads the list into memory.
func (c Config) load(list *List) (*Listed, error) {
	if c.Nodes < 0 || c.Nodes > math.MaxInt32 {
		return nil, fmt.Errorf("%s: number of nodes must be 0 (as in the file) to %d (got %d)", c.Path, math.MaxInt32,
			c.Nodes)
	}
	l, seen := &Listed{}, map[[2]int32]bool{}
	if c.Weight != "" {
		l.weight = []float32{}
	}
	last, least := int64(-1), int64(math.MaxInt64)
	for e, err := range list.All() {
		if err != nil {
			return nil, err
		}
		last, least = max(last, e.Source, e.Target), min(least, e.Source, e.Target)
		if id := max(e.Source, e.Target); c.Nodes > 0 && id >= int64(c.Nodes)+min(least, 1) {
			return nil, list.Fault(e, "node must be 0 to %d (got %d)", c.Nodes-1, id)
		}
		if c.Strict {
			pair := [2]int32{int32(e.Source), int32(e.Target)}
			switch {
			case pair[0] == pair[1]:
				return nil, list.Fault(e, "node %d is joined to itself", e.Source)
			case seen[pair]:
				return nil, list.Fault(e, "edge from %d to %d is there already", e.Source, e.Target)
			}
			seen[pair] = true
		}
		l.Source, l.Target = append(l.Source, int32(e.Source)), append(l.Target, int32(e.Target))
		if watch := c.Cells.Watch; watch != nil && len(l.Source)%watched == 0 {
			if err := watch(1 << 20); err != nil {
				return nil, err
			}
		}
		if c.Weight != "" {
			l.weight = append(l.weight, e.Weight)
		}
	}
	if least == 1 && list.Nodes < 0 && (c.Nodes == 0 || last == int64(c.Nodes)) {
		l.first, last = 1, last-1
		for k := range l.Source {
			l.Source[k], l.Target[k] = l.Source[k]-1, l.Target[k]-1
		}
	}
	var err error
	l.nodes, err = c.nodes(list, last, int64(len(l.Source)))
	return l, err
}

// nodes returns how many nodes a list with that largest ID has.
func (c Config) nodes(list *List, top, edges int64) (int, error) {
	if c.Nodes > 0 {
		if top >= int64(c.Nodes) {
			return 0, fmt.Errorf("%s: node must be 0 to %d (got %d)", c.Path, c.Nodes-1, top)
		}
		return c.Nodes, nil
	}
	said := list.Nodes
	if said < 0 {
		said = top + 1
	}
	if said > max(FreeNodes, NodesByEdge*edges) {
		return 0, fmt.Errorf("%s: %d nodes and %d edges: where that is so, say how many nodes there are; "+
			"IDs that leave many numbers out need a table of the nodes", c.Path, said, edges)
	}
	return int(said), nil
}
