package align

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/dataset/typed"
)

// agreed is how the tables of all sites become one graph.
type agreed struct {
	types *typed.Encoding     // of several types; nil: there is one table of nodes
	nodes []*dataset.Encoding // of that table, or of each type's
	edges *dataset.Encoding   // relations, weights and merging of all edges
}

// agreedTypes is that of an encoding of several types.
func agreedTypes(e *typed.Encoding) *agreed {
	a := &agreed{types: e, edges: e.Relations()}
	for _, n := range e.Nodes {
		a.nodes = append(a.nodes, n.Of)
	}
	return a
}

// text is graph.Graph.Encoding.
func (a *agreed) text() ([]byte, error) {
	if a.types != nil {
		return a.types.Seal()
	}
	return json.Marshal(a.nodes[0])
}

// kind returns the type of the k-th table of nodes, "" where nodes have none.
func (a *agreed) kind(k int) string {
	if a.types == nil {
		return ""
	}
	return a.types.Nodes[k].Type
}

// columns are those of all tables: of nodes, and then of edges.
func (t *Tables) columns(a *agreed) (list []columnsOf) {
	for k, e := range a.nodes {
		of := columnsOf{columns: e.Columns}
		if n := t.table(a.kind(k)); n != nil {
			of.found = n.profile.Columns
		}
		list = append(list, of)
	}
	if a.types == nil {
		of := columnsOf{columns: a.edges.EdgeColumns}
		if len(t.edges) > 0 {
			of.found = t.edges[0].profile
		}
		return append(list, of)
	}
	for k := range a.types.Edges {
		e := &a.types.Edges[k]
		list = append(list, columnsOf{columns: e.Of.EdgeColumns, found: t.found(e.Name())})
	}
	return list
}

// found is what this site found in the columns of a relation's table; nil: it has no such table.
func (t *Tables) found(relation string) []dataset.ColumnProfile {
	at := slices.IndexFunc(t.edges, func(t edgeTable) bool { return t.name == relation })
	if at < 0 {
		return nil
	}
	return t.edges[at].profile
}

// counts are those of the columns of all tables.
func (t *Tables) counts(a *agreed) (out []float32) {
	for _, of := range t.columns(a) {
		out = append(out, of.counts()...)
	}
	return out
}

// squares are those of the columns of all tables.
func (t *Tables) squares(a *agreed, counts []float32) (out []float32, err error) {
	for _, of := range t.columns(a) {
		var one []float32
		if one, counts, err = of.squares(counts); err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return out, nil
}

// summable refuses numbers whose sums do not fit those over the sites.
func (t *Tables) summable() error {
	a := t.alone()
	if a == nil { // the tables are read as those of a model, without sums
		return nil
	}
	for _, of := range t.columns(a) {
		if err := of.summable(); err != nil {
			return err
		}
	}
	return nil
}

// fit completes the encodings from the sums of all sites.
func (t *Tables) fit(a *agreed, counts, squares []float32) (err error) {
	for _, of := range t.columns(a) {
		if counts, squares, err = of.fit(counts, squares); err != nil {
			return err
		}
	}
	if a.types != nil {
		a.edges = a.types.Relations()
	}
	return nil
}

// openTypes finds a site's tables of several types and what their columns hold.
func (t *Tables) openTypes() (err error) {
	c := &t.cfg
	if t.of, err = (typed.Config{Nodes: c.NodeTables, Edges: c.EdgeTables, Tables: c.ImportConfig}).Site(); err != nil {
		return err
	}
	if c.Like != nil {
		e, err := typed.Parse(c.Like)
		if err != nil {
			return err
		}
		t.like = agreedTypes(e)
		for _, n := range t.like.nodes {
			n.Site = ""
		}
	}
	for k := range t.of.Nodes {
		n := nodeTable{ImportConfig: t.of.Nodes[k].Config, kind: t.of.Encoding.Nodes[k].Type}
		if c.Like == nil {
			if err := n.open(); err != nil {
				return err
			}
		}
		t.nodes = append(t.nodes, n)
	}
	for k := range t.of.Edges {
		one, e := &t.of.Edges[k], &t.of.Encoding.Edges[k]
		of := edgeTable{ImportConfig: one.Config, source: e.Source, target: e.Target, name: e.Name(),
			sourceSite: one.Column(c.SourceSite), targetSite: one.Column(c.TargetSite)}
		if c.Like == nil {
			if of.profile, err = of.ProfileEdges(); err != nil {
				return err
			}
		}
		t.edges = append(t.edges, of)
	}
	for _, column := range []string{c.SourceSite, c.TargetSite} {
		has := func(e edgeTable) bool {
			return e.sourceSite != "" && column == c.SourceSite || e.targetSite != "" && column == c.TargetSite
		}
		if column != "" && !slices.ContainsFunc(t.edges, has) {
			return fmt.Errorf("column %s of the ends' sites must be in a table of edges", column)
		}
	}
	return nil
}

// aloneTypes is what this site's tables of several types would become without the others.
func (t *Tables) aloneTypes() *agreed {
	e := *t.of.Encoding
	e.Nodes, e.Edges = slices.Clone(e.Nodes), slices.Clone(e.Edges)
	for k := range t.nodes {
		e.Nodes[k].Of = t.nodes[k].encoding()
	}
	for k := range t.edges {
		e.Edges[k].Of = t.edges[k].roles()
		e.Edges[k].Of.EdgeColumns = features(t.edges[k].profile)
	}
	return agreedTypes(&e)
}

// roles is the encoding of a table of edges of several types.
func (c *edgeTable) roles() *dataset.Encoding {
	e := c.ImportConfig.Encoding()
	e.ID = "id" // an encoding must name one, and a table of edges has none
	return &e
}

// typeSchema is what a site tells of the table of one type, relationSchema of that of one relation.
type (
	typeSchema struct {
		Type   string
		Schema schema
	}
	relationSchema struct {
		Source, Relation, Target string // "" where there is one table of edges, and no Roles then
		Roles                    dataset.Encoding
		Columns                  columnSchema // features of the edges
	}
)

// name is that of the relation.
func (s *relationSchema) name() string {
	return (&typed.EdgeEncoding{Source: s.Source, Relation: s.Relation, Target: s.Target}).Name()
}

// typeSchemas returns what the other sites need to know of tables of several types.
func (t *Tables) typeSchemas() schema {
	s := schema{Encoding: dataset.Encoding{Merge: t.cfg.Merge, Directed: t.cfg.Directed}}
	for k := range t.nodes {
		s.Types = append(s.Types, typeSchema{t.nodes[k].kind, t.nodes[k].schema(t.cfg.MinTexts)})
	}
	for k := range t.edges {
		e := &t.of.Encoding.Edges[k]
		s.Tables = append(s.Tables, relationSchema{e.Source, e.Relation, e.Target, *t.edges[k].roles(),
			told(t.edges[k].profile, t.cfg.MinTexts)})
	}
	return s
}

// validTypes checks what a site tells of several types: each by itself.
func (s *schema) validTypes() error {
	for k := range s.Types {
		one := &s.Types[k].Schema
		if len(one.Types) > 0 || len(one.Tables) > 0 || one.Like != "" {
			return fmt.Errorf("type %.40q must be one table", s.Types[k].Type)
		}
		if err := one.valid(); err != nil {
			return err
		}
	}
	if len(s.Tables) > 1 && len(s.Types) == 0 {
		return errors.New("relations between types need types")
	}
	if err := s.Directed.Valid(); err != nil {
		return err
	}
	for k := range s.Tables {
		t := &s.Tables[k]
		if len(s.Types) > 0 && (t.Roles.ID == "" || t.Roles.Source == "" || t.Roles.Target == "") {
			return fmt.Errorf("the ends of relation %.40q must be columns", t.Relation)
		}
		if err := t.Columns.valid(); err != nil {
			return err
		}
	}
	return nil
}

// agreeAll returns how the tables become one graph, but for the sums that fit takes. An error names the
// sites that differ.
func agreeAll(sites []string, schemas []schema) (*agreed, error) {
	for q := range schemas {
		if (len(schemas[q].Types) > 0) != (len(schemas[0].Types) > 0) {
			return nil, fmt.Errorf("all sites must have tables of several types (--nodes TYPE=FILE), "+
				"or none: %s and %s do not", sites[0], sites[q])
		}
		if m, first := schemas[q].Merge, schemas[0].Merge; m != first {
			return nil, fmt.Errorf("repeated edges must be merged alike at all sites "+
				"(got %q at %s and %q at %s)", first, sites[0], m, sites[q])
		}
		if d, first := schemas[q].Directed, schemas[0].Directed; d != first {
			return nil, fmt.Errorf("messages must go the same way at all sites (got %q at %s and %q at %s)",
				first, sites[0], d, sites[q])
		}
	}
	if len(schemas[0].Types) == 0 {
		return agreeOne(sites, schemas)
	}
	e, err := agreeTypes(sites, schemas)
	if err != nil {
		return nil, err
	}
	if e.Edges, err = agreeRelations(sites, schemas); err != nil {
		return nil, err
	}
	if err := e.Valid(); err != nil {
		return nil, err
	}
	return agreedTypes(e), nil
}

// agreeOne returns how one table of nodes and one of edges become one graph.
func agreeOne(sites []string, schemas []schema) (*agreed, error) {
	e, err := agree(sites, schemas)
	if err != nil {
		return nil, err
	}
	var names []string // of the sites that have a table of edges
	var has []columnSchema
	for q := range schemas {
		if len(schemas[q].Tables) > 0 {
			names, has = append(names, sites[q]), append(has, schemas[q].Tables[0].Columns)
		}
	}
	e.EdgeColumns, err = agreeEdgeColumns(names, has)
	return &agreed{nodes: []*dataset.Encoding{e}, edges: e}, err
}

// agreeEdgeColumns decides what becomes of the columns of a table of edges: the features.
func agreeEdgeColumns(sites []string, schemas []columnSchema) ([]table.Column, error) {
	if len(schemas) == 0 {
		return nil, nil
	}
	columns, err := agreeColumns(sites, schemas)
	columns = slices.DeleteFunc(columns, func(c table.Column) bool { return c.Kind == table.Ignored })
	if len(columns) == 0 {
		columns = nil
	}
	return columns, err
}

// agreeTypes returns the types that any site has, each as the sites that have it agree.
func agreeTypes(sites []string, schemas []schema) (*typed.Encoding, error) {
	names, has := map[string][]string{}, map[string][]schema{} // sites of each type
	for q, s := range schemas {
		for _, of := range s.Types {
			names[of.Type], has[of.Type] = append(names[of.Type], sites[q]), append(has[of.Type], of.Schema)
		}
	}
	e, labelled := &typed.Encoding{Merge: schemas[0].Merge, Directed: schemas[0].Directed}, ""
	for _, kind := range slices.Sorted(maps.Keys(has)) {
		one, err := agree(names[kind], has[kind])
		if err != nil {
			return nil, fmt.Errorf("%w (nodes of type %.40s)", err, kind)
		}
		if one.Label != "" && labelled != "" {
			return nil, fmt.Errorf("nodes of one type must have labels (got %s at %s and %s at %s)", labelled,
				names[labelled][0], kind, names[kind][0])
		}
		if one.Label != "" {
			labelled = kind
		}
		e.Nodes = append(e.Nodes, typed.NodeEncoding{Type: kind, Of: one})
	}
	return e, nil
}

// agreeRelations returns the relations that any site lists.
func agreeRelations(sites []string, schemas []schema) ([]typed.EdgeEncoding, error) {
	all := map[string]typed.EdgeEncoding{}
	by, has := map[string][]string{}, map[string][]columnSchema{} // sites of each relation
	for q, s := range schemas {
		for k := range s.Tables {
			t := &s.Tables[k]
			e := typed.EdgeEncoding{Source: t.Source, Relation: t.Relation, Target: t.Target, Of: &dataset.Encoding{
				ID:     t.Roles.ID,
				Source: t.Roles.Source, Target: t.Roles.Target, Weight: t.Roles.Weight, Merge: schemas[0].Merge,
				Directed: schemas[0].Directed}}
			name := e.Name()
			by[name], has[name] = append(by[name], sites[q]), append(has[name], t.Columns)
			first, ok := all[name]
			if !ok {
				all[name] = e
				continue
			}
			for _, role := range [][3]string{{"sources", first.Of.Source, t.Roles.Source},
				{"targets", first.Of.Target, t.Roles.Target}, {"weights", first.Of.Weight, t.Roles.Weight}} {
				if role[1] != role[2] {
					return nil, fmt.Errorf("the column of the %s of %.80s must have one name at all sites "+
						"(got %q at %s and %q at %s)", role[0], name, role[1], by[name][0], role[2], sites[q])
				}
			}
		}
	}
	out := []typed.EdgeEncoding{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		columns, err := agreeEdgeColumns(by[name], has[name])
		if err != nil {
			return nil, fmt.Errorf("%w (edges %.80s)", err, name)
		}
		all[name].Of.EdgeColumns = columns
		out = append(out, all[name])
	}
	return out, nil
}

// readTypes reads tables of several types.
func (t *Tables) readTypes(a *agreed, r *reading) error {
	types, index := make([]*graph.Graph, len(a.nodes)), make([]end, len(a.nodes))
	r.what, r.facts = &dataset.Reading{}, &table.Facts{}
	for k, e := range a.nodes {
		index[k].prefix = a.kind(k) + "/"
		c := t.table(a.kind(k))
		if c == nil {
			continue
		}
		g, names, what, err := t.readNodes(c, e)
		if err != nil {
			return err
		}
		if e.Split == "" && e.SplitTime == "" && e.Label != "" {
			typed.Draw(c.ImportConfig, g)
		}
		a.types.Nodes[k].Facts(r.facts, c.profile, g, what)
		types[k], index[k].Ends = g, dataset.Ends{File: c.Nodes, Index: names}
	}
	own, first, err := a.types.Join(types)
	if err != nil {
		return err
	}
	r.own = own
	for k := range index {
		index[k].first = first[k]
	}
	for k := range t.edges {
		c := &t.edges[k]
		ends := [2]end{}
		for j, kind := range [2]string{c.source, c.target} {
			ends[j] = end{prefix: kind + "/"}
			if at := a.types.Place(kind); at >= 0 {
				ends[j] = index[at]
			}
		}
		of := relationOf{}
		for a.types.Edges[of.kind].Name() != c.name {
			of.first += a.types.Edges[of.kind].Of.EdgeWidth()
			of.kind++
		}
		of.columns = a.types.Edges[of.kind].Of
		before := len(r.edges.src)
		if err := t.readEdges(c, a.edges, ends, of, r); err != nil {
			return err
		}
		r.facts.Relations = append(r.facts.Relations,
			table.RelationFacts{Name: c.name, Listed: len(r.edges.src) - before})
	}
	return nil
}

// typeFacts says what this site's tables of several types became.
func (m *meeting) typeFacts(g *graph.Graph, relations *graph.Relations) (*table.Facts, error) {
	f := m.reading.facts
	f.Tables = append(f.Tables, m.reading.what.Tables...)
	f.Edges.Merge, f.Edges.Directed = m.encoded.edges.Merge, string(m.encoded.edges.Directed)
	for k := range m.encoded.types.Edges {
		e := &m.encoded.types.Edges[k]
		e.Of.EdgeFacts(f, e.Name()+".", m.c.Tables.found(e.Name()))
	}
	for _, n := range m.encoded.nodes {
		f.Label = cmp.Or(f.Label, n.Label)
	}
	n := int64(g.Adj.NumDst)
	for k := range f.Relations {
		place, _ := slices.BinarySearch(m.encoded.edges.Relations, f.Relations[k].Name)
		at := int64(place)
		f.Relations[k].Kept = int(relations.Adj.RowPtr[(at+1)*n] - relations.Adj.RowPtr[at*n])
	}
	if err := f.AddGraph(g, m.reading.what.Source, m.reading.what.Target); err != nil {
		return nil, err
	}
	f.Warn()
	f.CheckDisguise(g.X, g.Labels)
	return f, nil
}
