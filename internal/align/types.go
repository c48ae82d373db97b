package align

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/typed"
)

// columns returns the columns of all tables: of nodes, and then of edges.
func (t *Tables) columns(a *typed.Encodings) (list []columnsOf) {
	for _, n := range a.Nodes {
		of := columnsOf{columns: n.Of.Columns}
		if n := t.table(n.Type); n != nil {
			of.found = n.profile.Columns
		}
		list = append(list, of)
	}
	for k := range a.Edges {
		e := &a.Edges[k]
		list = append(list, columnsOf{columns: e.Of.EdgeColumns, found: t.found(e.Name())})
	}
	return list
}

// found returns what this site found in the columns of a relation's table (nil = it has no such table).
func (t *Tables) found(relation string) []dataset.ColumnProfile {
	at := slices.IndexFunc(t.edges, func(t edgeTable) bool { return t.of.Name() == relation })
	if at < 0 {
		return nil
	}
	return t.edges[at].profile
}

// counts returns the counts of the columns of all tables.
func (t *Tables) counts(a *typed.Encodings) (out []float32) {
	for _, of := range t.columns(a) {
		out = append(out, of.counts()...)
	}
	return out
}

// squares returns the squares of the columns of all tables.
func (t *Tables) squares(a *typed.Encodings, counts []float32) (out []float32, err error) {
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
	if a == nil { // the tables are read as a model's, without sums
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
func (t *Tables) fit(a *typed.Encodings, counts, squares []float32) (err error) {
	for _, of := range t.columns(a) {
		if counts, squares, err = of.fit(counts, squares); err != nil {
			return err
		}
	}
	return nil
}

// openTypes finds a site's tables of several types and what their columns hold.
func (t *Tables) openTypes() error {
	c := &t.cfg
	of, err := typed.Config{Nodes: c.NodeTables, Edges: c.EdgeTables, Tables: c.ImportConfig}.Site(c.SourceSite,
		c.TargetSite)
	if err != nil {
		return err
	}
	t.names = of.Encoding
	for k, config := range of.Nodes {
		n := nodeTable{ImportConfig: config, kind: t.names.Nodes[k].Type}
		if c.Like == nil {
			if err := n.open(); err != nil {
				return err
			}
		}
		t.nodes = append(t.nodes, n)
	}
	for k, one := range of.Edges {
		e := edgeTable{EdgeTable: one, of: t.names.Edges[k]}
		if c.Like == nil {
			if e.profile, err = e.ProfileEdges(); err != nil {
				return err
			}
		}
		t.edges = append(t.edges, e)
	}
	for _, column := range []string{c.SourceSite, c.TargetSite} {
		has := func(e edgeTable) bool {
			return e.SourceSite != "" && column == c.SourceSite || e.TargetSite != "" && column == c.TargetSite
		}
		if column != "" && !slices.ContainsFunc(t.edges, has) {
			return fmt.Errorf("column %s of the ends' sites must be in a table of edges", column)
		}
	}
	return nil
}

// typeSchema is what a site sends of the table of one type, relationSchema of the table of one relation.
type (
	typeSchema struct {
		Type   string
		Schema schema
	}
	relationSchema struct {
		Source, Relation, Target string // "" without types of nodes, and no Roles then
		Roles                    dataset.Encoding
		Columns                  columnSchema // features of the edges
	}
)

// types returns the schema of each type; without types they are one, "".
func (s schema) types() []typeSchema {
	if len(s.Types) == 0 {
		return []typeSchema{{Schema: s}}
	}
	return s.Types
}

// name returns the name of the relation.
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
		e := &t.edges[k]
		s.Tables = append(s.Tables, relationSchema{e.of.Source, e.of.Relation, e.of.Target,
			*typed.EdgeRoles(e.ImportConfig), told(e.profile, t.cfg.MinTexts)})
	}
	return s
}

// validTypes checks what a site sends of several types: each by itself.
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

// agreeAll returns how the tables become one graph, except what fit takes from sums. An error names the
// sites that differ.
func agreeAll(sites []string, schemas []schema) (*typed.Encodings, error) {
	for q := range schemas {
		if (len(schemas[q].Types) > 0) != (len(schemas[0].Types) > 0) {
			return nil, fmt.Errorf("all sites must have tables of several types (option nodes TYPE=FILE), "+
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
	e, err := agreeTypes(sites, schemas)
	if err != nil {
		return nil, err
	}
	if e.Edges, err = agreeRelations(sites, schemas); err != nil {
		return nil, err
	}
	if !e.Untyped() {
		return e, e.Valid()
	}
	one := e.Nodes[0].Of
	for _, of := range e.Edges {
		one.EdgeColumns = of.Of.EdgeColumns
	}
	return typed.One(one), nil
}

// agreeEdgeColumns decides what becomes of the columns of a table of edges: the features.
func agreeEdgeColumns(sites []string, schemas []columnSchema) ([]table.Column, error) {
	columns, err := agreeColumns(sites, schemas)
	columns = slices.DeleteFunc(columns, func(c table.Column) bool { return c.Kind == table.Ignored })
	if len(columns) == 0 {
		columns = nil
	}
	return columns, err
}

// agreeTypes returns the types that any site has, each as the sites that have it agree.
func agreeTypes(sites []string, schemas []schema) (*typed.Encodings, error) {
	names, has := map[string][]string{}, map[string][]schema{} // sites of each type
	for q, s := range schemas {
		for _, of := range s.types() {
			names[of.Type], has[of.Type] = append(names[of.Type], sites[q]), append(has[of.Type], of.Schema)
		}
	}
	e, labelled := &typed.Encodings{Merge: schemas[0].Merge, Directed: schemas[0].Directed}, ""
	for _, kind := range slices.Sorted(maps.Keys(has)) {
		one, err := agree(names[kind], has[kind])
		if err != nil && kind != "" {
			err = fmt.Errorf("%w (nodes of type %.40s)", err, kind)
		}
		if err != nil {
			return nil, err
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
		if err != nil && len(schemas[0].Types) > 0 {
			err = fmt.Errorf("%w (edges %.80s)", err, name)
		}
		if err != nil {
			return nil, err
		}
		all[name].Of.EdgeColumns = columns
		out = append(out, all[name])
	}
	return out, nil
}
