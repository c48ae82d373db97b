// Package typed makes a graph of a user's tables of several types: a table of nodes with features for each type, and a
// table of edges for each relation between two types.
package typed

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// Config lists the tables and the roles of their columns.
type Config struct {
	Nodes []string // TYPE=FILE of each type: a table whose rows have names that are unique in that type
	Edges []string // SOURCE-RELATION-TARGET=FILE: a table or list of the edges of a relation between two types

	// Embed names types whose nodes get a column each, so that a row is learned for every node besides
	// the features of their table. Nodes that training has not seen share a column, and nothing is learned
	// of it.
	Embed []string

	// Tables has what all tables share: formats, rules, seed, and the roles of columns. COLUMN is the
	// column of every table that has one of that name; TYPE.COLUMN and
	// SOURCE-RELATION-TARGET.COLUMN are one table's. Label, Split and SplitTime belong to one type.
	// Without Source and Target a table of edges has its ends in columns source and target, or in
	// columns called as their types.
	Tables dataset.ImportConfig
}

// tablesReader reads the tables.
type tablesReader struct {
	config Config
	Encodings
	nodes, edges []string // file of each table
	types        []*graph.Graph
	index        []map[string]int32
	first        []int32                   // number of each type's first node
	listed       *dataset.TableEdges       // of all tables
	profiles     []*dataset.Profile        // of each type; nil if the encoding is a model's
	edgeProfiles [][]dataset.ColumnProfile // of each table of edges, in the same way
	facts        *table.Facts
}

// Read reads the tables. The nodes of all types are nodes of the graph, type after type in ascending
// order of their names, and called TYPE/NAME; each type's features have their own columns
// (graph.Types). A type without features has one column, which is 1: what is learned of it is a row
// for the type. The relations are called SOURCE-RELATION-TARGET, and the reverse of each follows
// unless the direction is in or out.
func (c Config) Read() (g *graph.Graph, f *table.Facts, err error) {
	if err := c.Tables.Format.Again(func() (err error) {
		r := &tablesReader{config: c, facts: &table.Facts{}}
		f = r.facts
		g, err = r.read()
		return err
	}); err != nil {
		return nil, nil, err
	}
	return g, f, nil
}

func (r *tablesReader) read() (*graph.Graph, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	for k := range r.Nodes {
		if err := r.readNodes(k); err != nil {
			return nil, err
		}
	}
	g, err := r.join()
	if err != nil {
		return nil, err
	}
	if err := dataset.Rows(strings.Join(r.config.Nodes, ", "), g); err != nil {
		return nil, err
	}
	if err := r.readEdges(g); err != nil {
		return nil, err
	}
	if g.Site != nil {
		owned(g)
	}
	if err := r.Count(r.facts, g, r.listed.Source, r.listed.Target); err != nil {
		return nil, err
	}
	g.Encoding, err = r.Seal()
	return g, err
}

// open finds the tables and what their columns become.
func (r *tablesReader) open() error {
	like, err := r.begin()
	if err != nil {
		return err
	}
	if like != nil {
		return r.alike(like)
	}
	return r.profile()
}

// begin reads the names of types and relations, and the encoding that the tables are read by (nil = their own).
func (r *tablesReader) begin() (like *Encodings, err error) {
	r.Merge, r.Directed = r.config.Tables.Merge, r.config.Tables.Directed
	if r.config.Tables.Like != nil {
		if !Encodes(r.config.Tables.Like) {
			return nil, errors.New("the model was trained on one table of nodes (got tables of several types)")
		}
		if like, err = Parse(r.config.Tables.Like); err != nil {
			return nil, err
		}
		r.Merge, r.Directed = like.Merge, like.Directed
	}
	if err := cmp.Or(r.Directed.Valid(), r.names()); err != nil || like == nil {
		return nil, err
	}
	return like, r.within(like)
}

// names reads the names of types and relations.
func (r *tablesReader) names() error {
	for _, text := range byName(r.config.Nodes) {
		name, file, ok := strings.Cut(text, "=")
		if !ok || file == "" {
			return fmt.Errorf("nodes of several types must be given as TYPE=FILE (got %q)", text)
		}
		r.Encodings.Nodes, r.nodes = append(r.Encodings.Nodes, NodeEncoding{Type: name}), append(r.nodes, file)
	}
	for _, text := range byName(r.config.Edges) {
		name, file, ok := strings.Cut(text, "=")
		source, rest, also := strings.Cut(name, "-")
		at := strings.LastIndexByte(rest, '-')
		if !ok || file == "" || !also || at < 0 {
			return fmt.Errorf("edges between types must be given as SOURCE-RELATION-TARGET=FILE (got %q)", text)
		}
		r.Encodings.Edges = append(r.Encodings.Edges,
			EdgeEncoding{Source: source, Relation: rest[:at], Target: rest[at+1:]})
		r.edges = append(r.edges, file)
	}
	return r.Valid()
}

// byName returns NAME=FILE ascending by name.
func byName(list []string) []string {
	return slices.SortedFunc(slices.Values(list), func(a, b string) int {
		x, _, _ := strings.Cut(a, "=")
		y, _, _ := strings.Cut(b, "=")
		return cmp.Compare(x, y)
	})
}

// alike gives the tables the encoding of a model's, which may have types and relations without a table here.
func (r *tablesReader) alike(like *Encodings) error {
	own, nodes, edges := r.Encodings, r.nodes, r.edges
	r.Encodings = *like
	r.nodes, r.edges = make([]string, len(like.Nodes)), make([]string, len(like.Edges))
	_, relations := r.tableNames()
	for k, n := range own.Nodes {
		r.nodes[r.Place(n.Type)] = nodes[k]
	}
	for k, e := range own.Edges {
		r.edges[slices.Index(relations, e.Name())] = edges[k]
	}
	for _, text := range r.config.Tables.Date {
		has := func(n NodeEncoding) bool { return r.dates(&n, []string{text}) != nil }
		if !slices.ContainsFunc(r.Encodings.Nodes, has) {
			return fmt.Errorf("date must be a column of dates of the model (got %q)", text)
		}
	}
	return nil
}

// dates returns what a list of dates has of a type's table that is read as a model's.
func (r *tablesReader) dates(n *NodeEncoding, list []string) []string {
	var columns []string
	for _, c := range n.Of.Columns {
		columns = append(columns, c.Name)
	}
	return r.own(list, n.Type, columns)
}

// readNodes reads the table of type k.
func (r *tablesReader) readNodes(k int) error {
	n := &r.Encodings.Nodes[k]
	if r.nodes[k] == "" {
		r.types, r.index = append(r.types, &graph.Graph{}), append(r.index, nil)
		return nil
	}
	of, err := n.Of, error(nil)
	if r.profiles == nil {
		of, err = of.Dated(r.dates(n, r.config.Tables.Date))
	}
	if err != nil {
		return err
	}
	g, index, reading, err := of.ReadNodes(r.nodes[k], r.config.Tables.Format)
	if err != nil {
		return err
	}
	r.config.Tables.SplitRandomly(n.Of, g)
	r.types, r.index = append(r.types, g), append(r.index, index)
	var p *dataset.Profile
	if r.profiles != nil {
		p = r.profiles[k]
	}
	n.Facts(r.facts, p, g, reading)
	return nil
}

// Facts adds to f what the table of the type became: g. p is what a first pass found (nil = it was read as other
// tables were).
func (n *NodeEncoding) Facts(f *table.Facts, p *dataset.Profile, g *graph.Graph, reading *dataset.Reading) {
	one := p.Known(n.Of, reading)
	if n.Type == "" {
		*f = *one
		return
	}
	f.Warnings = append(f.Warnings, one.Warnings...)
	f.Types = append(f.Types, table.TypeFacts{Name: n.Type, Nodes: len(g.Split), Features: g.X.Cols()})
	for _, c := range one.Columns {
		c.Name = n.Type + "." + c.Name
		f.Columns = append(f.Columns, c)
	}
	f.Tables = append(f.Tables, one.Tables...)
	f.AddTable(n.Type, one)
}

// join puts the nodes of all types together.
func (r *tablesReader) join() (*graph.Graph, error) {
	g, first, err := r.Join(r.types)
	if err != nil {
		return nil, err
	}
	r.first = first
	if g.Name = r.config.Tables.Name; g.Name == "" {
		_, file, _ := strings.Cut(r.config.Nodes[0], "=")
		g.Name, _, _ = strings.Cut(filepath.Base(file), ".")
	}
	sites := map[string]int{}
	for _, of := range r.types {
		for _, name := range of.Sites {
			sites[name]++
		}
	}
	r.facts.AddSpelled(r.config.Tables.Site, table.Unite(sites), nil, nil)
	g.Sites = slices.Sorted(maps.Keys(sites))
	spelled := table.NewSpellings(g.Sites)
	if len(g.Sites) == 0 {
		g.Sites = nil
		return g, nil
	}
	for k, of := range r.types {
		if of.Site == nil && len(of.Split) > 0 {
			g.Site = append(g.Site, slices.Repeat([]int32{nobody}, len(of.Split))...)
			r.facts.Warnings = append(r.facts.Warnings, fmt.Sprintf("nodes of type %s have no owner in their table: "+
				"each is of the site that owns most of its neighbours", r.Encodings.Nodes[k].Type))
			continue
		}
		for _, s := range of.Site {
			at, _ := slices.BinarySearch(g.Sites, spelled.Find(of.Sites[s]))
			g.Site = append(g.Site, int32(at))
		}
	}
	return g, nil
}

// readEdges reads the tables of edges.
func (r *tablesReader) readEdges(g *graph.Graph) error {
	all := r.Relations()
	var columns []int // first column of each table
	width := 0
	for _, n := range r.Encodings.Edges {
		columns = append(columns, width)
		width += n.Of.EdgeWidth()
	}
	edges := all.NewEdges()
	for k, n := range r.Encodings.Edges {
		source, target := r.Place(n.Source), r.Place(n.Target)
		one, reading := n.Of.NewEdges(), &dataset.Reading{}
		if r.edges[k] == "" {
			r.facts.Relations = append(r.facts.Relations, table.RelationFacts{Name: n.Name()})
			continue
		}
		ends := func(at int) dataset.Ends {
			return dataset.Ends{File: r.nodes[at], Index: r.index[at], First: r.first[at]}
		}
		if err := one.Read(r.edges[k], ends(source), ends(target), r.config.Tables.Format, reading); err != nil {
			return err
		}
		edges.Append(one, int32(k), columns[k])
		r.facts.Tables = append(r.facts.Tables, reading.Tables...)
		r.facts.Relations = append(r.facts.Relations, table.RelationFacts{Name: n.Name(), Listed: len(one.Source)})
		var found []dataset.ColumnProfile
		if r.profiles != nil {
			found = r.edgeProfiles[k]
		}
		n.Of.EdgeFacts(r.facts, n.Name()+".", found)
	}
	if err := edges.Graph(g, len(g.Split)); err != nil {
		return err
	}
	r.listed = edges
	return nil
}

// Count adds to f, which has the tables, what the graph has, and warnings. Edges between its own nodes were listed as
// src and dst.
func (c *Encodings) Count(f *table.Facts, g *graph.Graph, src, dst []int32) error {
	edges := c.Relations()
	f.Edges.Merge, f.Edges.Relation, f.Edges.Directed = edges.Merge, edges.Relation, string(edges.Directed)
	for _, n := range c.Nodes {
		f.Label = cmp.Or(f.Label, n.Of.Label)
	}
	for k := range f.Relations {
		at, _ := slices.BinarySearch(edges.Relations, f.Relations[k].Name)
		n := g.Adj.NumDst
		f.Relations[k].Kept = int(g.Typed.Adj.RowPtr[(at+1)*n] - g.Typed.Adj.RowPtr[at*n])
	}
	if err := f.AddGraph(g, src, dst); err != nil {
		return err
	}
	f.Warn()
	f.CheckDisguise(g.X, g.Labels)
	return nil
}

// at returns the column that text names in the table of that name, which has these columns. TABLE.COLUMN is this
// table's or another's. The name of a column ends at a colon.
func (r *tablesReader) at(text, name string, columns []string) (string, bool) {
	has := func(text string) bool {
		short, _, _ := strings.Cut(text, ":")
		return slices.Contains(columns, text) || slices.Contains(columns, short)
	}
	nodes, edges := r.tableNames()
	for _, other := range slices.Concat(nodes, edges) {
		if rest, ok := strings.CutPrefix(text, other+"."); ok {
			return rest, other == name && (has(rest) || columns == nil) // a list's columns have no names
		}
	}
	return text, has(text)
}
