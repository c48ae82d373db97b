package align

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/edgelist"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/typed"
	"github.com/heddle-gnn/heddle/mat"
)

// SiteConfig lists one site's tables of a graph that several sites hold together without pooling it. The tables of
// nodes have the site's own nodes only. An edge to a node of another site has that site's name in a column; if both
// sites list it, it counts once.
type SiteConfig struct {
	dataset.ImportConfig
	// NodeTables and EdgeTables are tables of several types, as in typed.Config, instead of Nodes and
	// Edges; a column is then COLUMN or TABLE.COLUMN. A site may lack the table of a type that others have.
	NodeTables, EdgeTables []string
	Sites                  []string // names of all sites; in a column of sites, none of them means "missing"
	Here                   string   // this site's name; where a nodes' table has a column Site, each of its cells
	// column of the edges with the site of the source, if empty Here ("" = all are here)
	SourceSite string
	TargetSite string // the same for the target
	MinTexts   int    // nodes of this site that must have a text or a class before the others get it
}

// Validate reports every field that is out of its bounds, or nil.
func (c SiteConfig) Validate() error {
	var faults []error
	must := func(ok bool, format string, got ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, got...))
		}
	}
	must(c.Here != "", "this site must have a name (got none)")
	must(c.MinTexts >= 1, "MinTexts must be at least 1 (got %d)", c.MinTexts)
	must(c.SourceSite == "" || c.SourceSite != c.TargetSite,
		"the sites of sources and of targets must be in two columns (got both in %s)", c.SourceSite)
	if len(c.NodeTables) == 0 {
		return errors.Join(append(faults, c.ImportConfig.Validate())...)
	}
	must(c.Relation == "", "each table of edges is a relation, without a column of relations (got %s)", c.Relation)
	return errors.Join(faults...)
}

// Tables is a site's tables on the way to an encoding that all sites share.
type Tables struct {
	cfg   SiteConfig
	nodes []nodeTable      // one, or one of each type that this site has
	edges []edgeTable      // one at most, or one of each relation that this site has
	names *typed.Encodings // types and relations
	like  *typed.Encodings // the encoding of a model that these tables are read by (nil = the sites agree on one)
	named map[string]int   // nodes of each other site, whose names that site gets
}

// nodeTable is a table of nodes.
type nodeTable struct {
	dataset.ImportConfig
	kind    string           // type of the nodes (empty = nodes have no types)
	profile *dataset.Profile // nil = read like other tables
}

// edgeTable is a table of edges.
type edgeTable struct {
	typed.EdgeTable
	of      typed.EdgeEncoding      // types of the ends and name of the relation, "" of nodes without types
	profile []dataset.ColumnProfile // of the columns that are features
}

// table returns the table of nodes of that type (nil = this site has none).
func (t *Tables) table(kind string) *nodeTable {
	if k := slices.IndexFunc(t.nodes, func(n nodeTable) bool { return n.kind == kind }); k >= 0 {
		return &t.nodes[k]
	}
	return nil
}

// OpenSite reads a site's tables: what is wrong with them is best found before it meets the others.
func OpenSite(cfg SiteConfig) (t *Tables, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := cfg.Format.Again(func() (err error) { t, err = cfg.open(); return err }); err != nil {
		return nil, err
	}
	return t, t.summable()
}

// open finds out what the columns hold, and reads all by it to find faults.
func (c SiteConfig) open() (t *Tables, err error) {
	t = &Tables{cfg: c}
	if c.Like != nil {
		if t.like, err = typed.Parse(c.Like); err != nil {
			return nil, err
		}
		if len(c.NodeTables) == 0 && !t.like.Untyped() {
			return nil, errors.New("the model was trained on tables of several types (got one table of nodes)")
		}
		for _, n := range t.like.Nodes {
			n.Of.Site = "" // each site's own affair
		}
	}
	if len(c.NodeTables) > 0 {
		err = t.openTypes()
	} else {
		err = t.openOne()
	}
	if err != nil {
		return nil, err
	}
	_, err = t.read(cmp.Or(t.like, t.alone()))
	return t, err
}

// openOne is for one table of nodes without a type, and at most one of edges.
func (t *Tables) openOne() error {
	n := nodeTable{ImportConfig: t.cfg.ImportConfig}
	var found []dataset.ColumnProfile
	if t.like == nil {
		if err := n.open(); err != nil {
			return err
		}
		found = n.profile.Edges
	}
	t.names, t.nodes = typed.One(&dataset.Encoding{}), []nodeTable{n}
	if n.Edges != "" {
		t.edges = []edgeTable{{EdgeTable: typed.EdgeTable{ImportConfig: n.ImportConfig, SourceSite: t.cfg.SourceSite,
			TargetSite: t.cfg.TargetSite}, profile: found}}
	}
	return nil
}

// open finds out what the columns hold.
func (n *nodeTable) open() (err error) {
	if n.profile, err = n.ImportConfig.Profile(); err == nil {
		n.ImportConfig = n.profile.Config
	}
	return err
}

// alone returns what this site's tables would become without the other sites' tables.
func (t *Tables) alone() *typed.Encodings {
	if t.like != nil {
		return nil
	}
	if t.names.Untyped() {
		return typed.One(t.nodes[0].profile.Encoding())
	}
	e := *t.names
	e.Nodes, e.Edges = slices.Clone(e.Nodes), slices.Clone(e.Edges)
	for k := range t.nodes {
		e.Nodes[k].Of = t.nodes[k].profile.Encoding()
	}
	for k := range t.edges {
		e.Edges[k].Of = typed.EdgeRoles(t.edges[k].ImportConfig)
		e.Edges[k].Of.EdgeColumns = dataset.EdgeFeatures(t.edges[k].profile)
	}
	return &e
}

// crossEdges is a site's edges to the nodes of one other site.
type crossEdges struct {
	names       []string // the other site's nodes, each once
	lines       []where  // of each, the first
	here, there []int32  // ends of each edge: a node, and a place in names
	weight      []float32
	// relation of each edge as it ends at the node here, 0 or 1 if there are only directions; nil = neither
	kind []int32
	x    []float32 // row of columns of each edge
}

// where is a row of a table.
type where struct {
	file, unit string
	line       int
}

// siteEdges is a site's table of edges: those between its own nodes, and those to other sites by
// their names.
type siteEdges struct {
	src, dst []int32
	weight   []float32 // nil = all 1
	// relation of each from Src to Dst, by its number in Encoding.Relations; nil = edges have no types
	kind  []int32
	cross map[string]*crossEdges
	x     []float32 // row of columns of each edge between own nodes
}

// fault returns an error that names the file and the line of a site's node, by its place in names.
func (s *siteEdges) fault(site string, name int, text string) error {
	at := s.cross[site].lines[name]
	return fmt.Errorf("%s: %s %d: %s", at.file, at.unit, at.line, text)
}

// reading is what a site's tables are by an encoding that all sites share.
type reading struct {
	own   *graph.Graph // without edges yet
	edges *siteEdges
	facts *table.Facts // without what the graph has
	// edges between own nodes as they are listed
	source, target []int32
}

// read reads the site's tables.
func (t *Tables) read(by *typed.Encodings) (r *reading, err error) {
	e := by.Relations()
	r = &reading{edges: &siteEdges{cross: map[string]*crossEdges{}}, facts: &table.Facts{}}
	if e.Weight != "" {
		r.edges.weight = []float32{}
	}
	types, index := make([]*graph.Graph, len(by.Nodes)), make([]end, len(by.Nodes))
	for k := range by.Nodes {
		n := &by.Nodes[k]
		index[k].prefix = by.Prefix(n.Type, "/")
		c := t.table(n.Type)
		if c == nil {
			continue
		}
		g, names, what, err := t.readNodes(c, n.Of)
		if err != nil {
			return nil, err
		}
		c.SplitRandomly(n.Of, g)
		n.Facts(r.facts, c.profile, g, what)
		types[k], index[k].Ends = g, dataset.Ends{File: c.Nodes, Index: names}
	}
	var first []int32
	if r.own, first, err = by.Join(types); err != nil {
		return nil, err
	}
	for k := range index {
		index[k].First = first[k]
	}
	for k := range t.edges {
		if err := t.readRelation(&t.edges[k], by, e, index, r); err != nil {
			return nil, err
		}
	}
	if r.own.Encoding, err = by.Seal(); err != nil {
		return nil, err
	}
	r.own.Name = t.cfg.Name
	r.source, r.target = r.edges.src, r.edges.dst
	t.named = map[string]int{}
	for site, x := range r.edges.cross {
		t.named[site] = len(x.names)
	}
	r.edges.merge(e)
	return r, nil
}

// readRelation reads the table of edges of one relation; index has the nodes of each type.
func (t *Tables) readRelation(c *edgeTable, by *typed.Encodings, e *dataset.Encoding, index []end, r *reading) error {
	ends := [2]end{}
	for k, kind := range [2]string{c.of.Source, c.of.Target} {
		ends[k] = end{prefix: by.Prefix(kind, "/")}
		if at := by.Place(kind); at >= 0 {
			ends[k] = index[at]
		}
	}
	of := relationOf{}
	for by.Edges[of.kind].Name() != c.of.Name() {
		of.first += by.Edges[of.kind].Of.EdgeWidth()
		of.kind++
	}
	of.columns = *by.Edges[of.kind].Of
	of.columns.EdgeColumns = dated(of.columns.EdgeColumns, c.profile)
	before := len(r.edges.src)
	if err := t.readEdges(c, e, ends, of, r); err != nil || by.Untyped() {
		return err
	}
	r.facts.Relations = append(r.facts.Relations,
		table.RelationFacts{Name: c.of.Name(), Listed: len(r.edges.src) - before})
	return nil
}

// readNodes reads a table of nodes, which must all be of this site.
func (t *Tables) readNodes(c *nodeTable,
	e *dataset.Encoding) (*graph.Graph, map[string]int32, *dataset.Reading, error) {
	here, err := e.Dated(c.Date)
	if err != nil {
		return nil, nil, nil, err
	}
	here.Site = c.Site
	if c.profile != nil {
		here.Columns = dated(e.Columns, c.profile.Columns)
	}
	g, index, r, err := here.ReadNodes(c.Nodes, c.Format)
	if err != nil {
		return nil, nil, nil, err
	}
	if c.kind == "" {
		err = dataset.Rows(c.Nodes, g)
	}
	for i, s := range g.Site {
		if g.Sites[s] != t.cfg.Here {
			return nil, nil, nil, fmt.Errorf("%s: column %s: node %q must be of %q, whose table it is (got %q)",
				c.Nodes, c.Site, g.IDs[i], t.cfg.Here, g.Sites[s])
		}
	}
	g.Site, g.Sites = nil, nil
	return g, index, r, err
}

// dated returns the columns with dates read as this site writes them.
func dated(columns []table.Column, found []dataset.ColumnProfile) []table.Column {
	columns = slices.Clone(columns)
	for k := range columns {
		for _, own := range found {
			if c := &columns[k]; own.Name == c.Name && own.Stats != nil {
				c.MonthFirst = own.Stats.MonthFirst(c)
			}
		}
	}
	return columns
}

// merge merges edges that are listed more than once. An edge to another site that both list counts once,
// with the larger of their weights.
func (s *siteEdges) merge(e *dataset.Encoding) {
	kind := s.kind
	if kind == nil && e.Directed.OneWay() {
		kind = make([]int32, len(s.src)) // an edge and its reverse are two
	}
	s.src, s.dst, s.kind, s.weight, s.x = merge(e, s.src, s.dst, kind, s.weight, s.x)
	for _, x := range s.cross {
		// The two ends are numbered apart, so that an edge and its reverse are one only if they are.
		n := int32(0)
		for _, i := range x.here {
			n = max(n, i+1)
		}
		for k := range x.there {
			x.there[k] += n
		}
		x.here, x.there, x.kind, x.weight, x.x = merge(e, x.here, x.there, x.kind, x.weight, x.x)
		for k := range x.there {
			x.there[k] -= n
		}
	}
}

// merge merges edges and their rows of columns.
func merge(e *dataset.Encoding, src, dst, kind []int32,
	weight, x []float32) (srcs, dsts, kinds []int32, weights, rows []float32) {
	wide := e.EdgeWidth()
	if wide > 0 {
		edgelist.MergeColumns(e.Merge, src, dst, kind, mat.View(len(src), wide, x))
	}
	srcs, dsts, kinds, weights, first := edgelist.Merge(e.Merge, src, dst, kind, weight)
	if first == nil {
		return srcs, dsts, kinds, weights, x
	}
	for _, k := range first {
		rows = append(rows, x[int(k)*wide:(int(k)+1)*wide]...)
	}
	return srcs, dsts, kinds, weights, rows
}

// name returns the place of another site's node among the names of that site, and adds it if it
// is new; place has the known ones.
func (s *siteEdges) name(place map[[2]string]int32, site, name string, line where) int32 {
	x := s.cross[site]
	if x == nil {
		x = &crossEdges{}
		s.cross[site] = x
	}
	i, ok := place[[2]string{site, name}]
	if !ok {
		name = strings.Clone(name)
		i = int32(len(x.names))
		place[[2]string{site, name}] = i
		x.names, x.lines = append(x.names, name), append(x.lines, line)
	}
	return i
}

// end is what an end of an edge may be.
type end struct {
	dataset.Ends
	prefix string // of their names at all sites
}

// What ends returns instead of the end of an edge that another site has.
const (
	inside  = -1 // both are nodes here
	skipped = -2 // one may be among the rows that were skipped
)

// ends returns the numbers of the ends of an edge at this site, and which of the two is at another site (foreign), with
// that site's name. sites are the columns of the ends' sites (−1 = none).
func (of *Tables) ends(t *table.Table, c *edgeTable, row *dataset.EdgeRow, sites [2]int, ends *[2]end) (
	found [2]int32, other string, foreign int, err error) {
	foreign = inside
	for k := range ends {
		e, site := &ends[k], of.cfg.Here
		if sites[k] >= 0 {
			name := strings.TrimSpace(t.Cell(row.Cells[sites[k]]))
			if !table.Missing(name) || slices.Contains(of.cfg.Sites, name) {
				site = name
			}
		}
		fault := func(format string, args ...any) error { return t.Fault(row.Line, row.Ends[k], format, args...) }
		name := row.Cells[row.Ends[k]]
		if site != of.cfg.Here {
			if other != "" {
				return found, other, foreign, fault("one end of the edge must be at %s", of.cfg.Here)
			}
			other, foreign = strings.Clone(site), k
			continue
		}
		i, must, ok := e.Find(name)
		switch {
		case !ok && c.Format.Faults.Told(e.File):
			return found, other, skipped, nil
		case !ok && e.File == "":
			return found, other, foreign, fault("node must have the name of its site, as this one has no table of its "+
				"type (got %.40q)", name)
		case !ok:
			return found, other, foreign,
				fault("node must be a name in %s%s, or the name of its site (got %.40q)", e.File, must, name)
		}
		found[k] = i
	}
	return found, other, foreign, nil
}

// relationOf is what all edges of a table have in common.
type relationOf struct {
	kind    int32            // of several types: number of the relation in Encoding.Relations
	columns dataset.Encoding // with the columns of this table, dates as this site writes them
	first   int              // place of the first of these among all
}

// readEdges reads a table of edges.
func (of *Tables) readEdges(c *edgeTable, e *dataset.Encoding, ends [2]end, own relationOf, r *reading) error {
	format := c.Format
	format.Edges = true
	t, err := table.Open(c.Edges, format)
	if err != nil {
		return err
	}
	defer t.Close()
	sites := [2]int{-1, -1}
	for k, column := range [2]struct{ name, role string }{
		{c.SourceSite, "the sources' sites, option source-site-column"},
		{c.TargetSite, "the targets' sites, option target-site-column"}} {
		if column.name != "" {
			if sites[k], err = t.Column(column.name, column.role); err != nil {
				return err
			}
		}
	}
	wide := make([]float32, e.EdgeWidth())
	out, place := r.edges, map[[2]string]int32{} // site and name → place in names
	for site, x := range out.cross {
		for k, name := range x.names {
			place[[2]string{site, name}] = int32(k)
		}
	}
	rows, kinds := 0, len(e.Relations) > 0 || e.Directed.OneWay()
	err = own.columns.EachEdge(t, func(row *dataset.EdgeRow) error {
		end, other, foreign, err := of.ends(t, c, row, sites, &ends)
		if err != nil || foreign == skipped {
			return err
		}
		kind := own.kind + row.Kind // one of them is 0
		copy(wide[own.first:], row.X)
		rows++
		if foreign >= 0 {
			name := ends[foreign].prefix + table.Whole(row.Cells[row.Ends[foreign]])
			end[foreign] = out.name(place, other, name, where{c.Edges, t.Unit, row.Line})
		}
		if e.Directed == dataset.OutOf { // messages then go in the other direction
			end[0], end[1] = end[1], end[0]
			if foreign >= 0 {
				foreign = 1 - foreign
			}
		}
		if foreign == 1 { // it ends there, its reverse here
			kind = e.Reverse(kind)
		} else if foreign == 0 { // the node here first
			end[0], end[1] = end[1], end[0]
		}
		if x := out.cross[other]; x != nil {
			x.here, x.there, x.weight = append(x.here, end[0]), append(x.there, end[1]), append(x.weight, row.Weight)
			x.x = append(x.x, wide...)
			if kinds {
				x.kind = append(x.kind, kind)
			}
			return nil
		}
		out.x = append(out.x, wide...)
		if len(e.Relations) > 0 {
			out.kind = append(out.kind, kind)
		}
		out.src, out.dst = append(out.src, end[0]), append(out.dst, end[1])
		if out.weight != nil {
			out.weight = append(out.weight, row.Weight)
		}
		return nil
	})
	what, lost := dataset.TableFacts(t, rows, c.Format)
	r.facts.Tables = append(r.facts.Tables, what)
	return cmp.Or(err, lost)
}

// Draft returns this site's part as far as it is known before it meets the others, for what it would send: any node may
// be one that another site reads. If this site has no labels there are two classes.
func (t *Tables) Draft() (*shard.Shard, error) {
	r, err := t.read(cmp.Or(t.like, t.alone()))
	if err != nil {
		return nil, err
	}
	n, e := len(r.own.IDs), r.edges
	adj, err := graph.FromEdges(n, e.src, e.dst, e.weight, graph.Build{Directed: true})
	if err != nil {
		return nil, err
	}
	s := shard.Whole(&graph.Graph{Name: t.cfg.Name, Adj: adj, X: r.own.X, Labels: r.own.Labels, Split: r.own.Split,
		Types: r.own.Types, Encoding: r.own.Encoding})
	s.Labels.Classes = max(s.Labels.Classes, 2)
	all := mat.EveryRow(n)
	s.Rank, s.Parts, s.Boundary, s.HaloPtr = slices.Index(t.cfg.Sites, t.cfg.Here), len(t.cfg.Sites), nil, []int{n}
	for q := range t.cfg.Sites {
		if s.HaloPtr = append(s.HaloPtr, n); q == s.Rank {
			s.Boundary = append(s.Boundary, nil)
		} else {
			s.Boundary = append(s.Boundary, all)
		}
	}
	return s, nil
}
