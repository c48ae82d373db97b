package typed

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/edgelist"
)

// profile decides what the columns of all tables become.
func (r *tablesReader) profile() error {
	columns, target, err := r.roles()
	if err != nil {
		return err
	}
	for _, name := range r.config.Embed {
		if r.Place(name) < 0 {
			return fmt.Errorf("types with learned rows must be types of nodes (got %q)", name)
		}
	}
	for k := range r.Encodings.Nodes {
		n := &r.Encodings.Nodes[k]
		p, err := r.nodeConfig(k, columns[n.Type], k == target).Profile()
		if err != nil {
			return err
		}
		if n.Of, err = p.Local(); err != nil {
			return err
		}
		if slices.Contains(r.config.Embed, n.Type) {
			if err := r.embed(k, p); err != nil {
				return err
			}
		}
		r.profiles = append(r.profiles, p)
	}
	for k := range r.Encodings.Edges {
		e := &r.Encodings.Edges[k]
		c := r.edgeConfig(k, columns[e.Name()])
		e.Of = EdgeRoles(c)
		e.Of.Missing = c.Format.Missing
		found, err := c.ProfileEdges()
		if err != nil {
			return err
		}
		if err := c.CheckEdges(found); err != nil {
			return err
		}
		e.Of.EdgeColumns = dataset.EdgeFeatures(found)
		r.edgeProfiles = append(r.edgeProfiles, found)
	}
	return nil
}

// EdgeRoles returns the encoding of a table of edges without what its columns hold.
func EdgeRoles(c dataset.ImportConfig) *dataset.Encoding {
	e := c.Encoding()
	e.ID = "id" // an encoding must name one, and a table of edges has none
	return &e
}

// roles returns the columns of each table, by its name, and the number of the type with labels (-1 = none). It refuses
// roles that no column has.
func (r *tablesReader) roles() (columns map[string][]string, target int, err error) {
	if columns, err = r.allColumns(); err == nil {
		err = r.everyColumn(columns)
	}
	if err != nil {
		return nil, -1, err
	}
	if target, err = r.target(columns); err == nil && (target >= 0 || !r.Part) { // other sites may have the labels
		err = r.ofLabels(target, columns)
	}
	return columns, target, err
}

// maxEmbedded bounds the names in an encoding, which is in every model and part.
const maxEmbedded = 1 << 18

// embed gives the nodes of type k a column each: their names are a category.
func (r *tablesReader) embed(k int, p *dataset.Profile) (err error) {
	n := &r.Encodings.Nodes[k]
	_, index, _, err := n.Of.ReadNodes(r.nodes[k], r.config.Tables.Format)
	if err != nil {
		return err
	}
	if len(index) > maxEmbedded {
		return fmt.Errorf("%s: at most %d nodes can have a column each (got %d of type %s)", r.nodes[k],
			maxEmbedded, len(index), n.Type)
	}
	names := table.Column{Name: n.Of.ID, Kind: table.Categorical, Values: slices.Sorted(maps.Keys(index))}
	p.Columns = append(p.Columns, dataset.ColumnProfile{Column: names})
	n.Of, err = p.Local()
	return err
}

// allColumns returns the columns of each table, by its name.
func (r *tablesReader) allColumns() (map[string][]string, error) {
	columns := map[string][]string{}
	nodes, edges := r.tableNames()
	for k, name := range slices.Concat(nodes, edges) {
		var err error
		if columns[name], err = r.columns(slices.Concat(r.nodes, r.edges)[k], k >= len(nodes)); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

// columns returns the names of a table's columns; a list of edges has none.
func (r *tablesReader) columns(path string, edges bool) ([]string, error) {
	format := r.config.Tables.Format
	if format.Edges = edges; edges && (edgelist.Config{Path: path}).Numbered() {
		return nil, nil
	}
	t, err := table.Open(path, format)
	if err != nil {
		return nil, err
	}
	return t.Columns, t.Close()
}

// everyColumn refuses a column that the user names and no table that may have it has.
func (r *tablesReader) everyColumn(columns map[string][]string) error {
	c := &r.config.Tables
	type role struct {
		name string
		list []string
	}
	edge := slices.DeleteFunc(slices.Clone(c.EdgeColumns), func(text string) bool { return text == "all" })
	nodes, edges := r.tableNames()
	for _, kind := range []struct {
		tables  []string
		of, how string
		roles   []role
	}{
		{nodes, "nodes", "TYPE.COLUMN", []role{
			{"numeric", c.Numeric}, {"categorical", c.Categorical}, {"ignored", c.Ignore}, {"text", c.Text},
			{"date", c.Date}, {"age", c.Age}, {"ID", []string{c.ID}}, {"label", []string{c.Label}},
			{"split", []string{c.Split}}, {"split time", []string{c.SplitTime}}, {"site", []string{c.Site}}}},
		{edges, "edges", "SOURCE-RELATION-TARGET.COLUMN", []role{
			{"source", []string{c.Source}}, {"target", []string{c.Target}}, {"weight", []string{c.Weight}},
			{"edge", edge}}},
	} {
		for _, role := range kind.roles {
			for _, text := range role.list {
				if text != "" && !slices.ContainsFunc(kind.tables,
					func(name string) bool { _, ok := r.at(text, name, columns[name]); return ok }) {
					must := ""
					for _, name := range kind.tables {
						if hint := table.NewSpellings(columns[name]).Must(text); hint != "" {
							must = ": it must be " + hint
						}
					}
					return fmt.Errorf("%s column %s must be in a table of %s, as COLUMN or %s%s",
						role.name, text,
						kind.of, kind.how, must)
				}
			}
		}
	}
	return nil
}

// ofLabels refuses settings of labels, such as their split, that no column serves. Target is the type that has labels
// (−1 = none has).
func (r *tablesReader) ofLabels(target int, columns map[string][]string) error {
	c := &r.config.Tables
	if target < 0 {
		if c.Multi || c.Regression || len(c.ClassOrder) > 0 || c.Split != "" || c.SplitTime != "" {
			return errors.New("a column of labels must be named where their kind, order or split is")
		}
		return nil
	}
	name := r.Encodings.Nodes[target].Type
	for _, text := range []string{c.Split, c.SplitTime} {
		if _, ok := r.at(text, name, columns[name]); text != "" && !ok {
			return fmt.Errorf("the split must be by a column of %s, whose nodes have labels (got %s)", name,
				text)
		}
	}
	return nil
}

// target returns the number of the one type that has the column of labels, −1 without labels.
func (r *tablesReader) target(columns map[string][]string) (int, error) {
	target := -1
	if r.config.Tables.Label == "" {
		return target, nil
	}
	for k, n := range r.Encodings.Nodes {
		if _, ok := r.at(r.config.Tables.Label, n.Type, columns[n.Type]); !ok {
			continue
		}
		if target >= 0 {
			return -1, fmt.Errorf("column %s must be in the table of one type, whose nodes have labels "+
				"(got %s and %s): name it TYPE.%[1]s", r.config.Tables.Label, r.Encodings.Nodes[target].Type, n.Type)
		}
		target = k
	}
	return target, nil
}

// own returns the entries of a list that are about one table.
func (r *tablesReader) own(list []string, name string, columns []string) (out []string) {
	for _, text := range list {
		if rest, ok := r.at(text, name, columns); ok && text != "" {
			out = append(out, rest)
		}
	}
	return out
}

// one returns the column that has a role in one table, "" if none has.
func (r *tablesReader) one(text, name string, columns []string) string {
	return strings.Join(r.own([]string{text}, name, columns), "")
}

// nodeConfig returns how the table of type k is read.
func (r *tablesReader) nodeConfig(k int, columns []string, labels bool) dataset.ImportConfig {
	c, name := r.config.Tables, r.Encodings.Nodes[k].Type
	c.Name, c.Nodes, c.Edges = name, r.nodes[k], ""
	c.Numeric, c.Categorical, c.Ignore = r.own(c.Numeric, name, columns), r.own(c.Categorical, name, columns),
		r.own(c.Ignore, name, columns)
	c.Text, c.Date, c.Age = r.own(c.Text, name, columns), r.own(c.Date, name, columns), r.own(c.Age, name, columns)
	c.ID, c.Site = r.one(c.ID, name, columns), r.one(c.Site, name, columns)
	c.Source, c.Target, c.Weight, c.EdgeColumns, c.Directed = "", "", "", nil, ""
	if !labels {
		c.Label, c.Split, c.SplitTime, c.Multi, c.Regression, c.ClassOrder = "", "", "", false, false, nil
		return c
	}
	c.Label, c.Split, c.SplitTime = r.one(c.Label, name, columns), r.one(c.Split, name, columns),
		r.one(c.SplitTime, name, columns)
	return c
}

// edgeConfig returns how the table of relation k is read.
func (r *tablesReader) edgeConfig(k int, columns []string) dataset.ImportConfig {
	e := &r.Encodings.Edges[k]
	name := e.Name()
	end := func(text, usual, kind string) string {
		if at := r.one(text, name, columns); at != "" {
			return at
		}
		if !slices.Contains(columns, usual) && slices.Contains(columns, kind) && e.Source != e.Target {
			return kind
		}
		return usual
	}
	c := dataset.ImportConfig{Edges: r.edges[k], Format: r.config.Tables.Format, Merge: r.config.Tables.Merge,
		Directed: r.Directed, Source: end(r.config.Tables.Source, "source", e.Source),
		Target: end(r.config.Tables.Target, "target", e.Target), Weight: r.one(r.config.Tables.Weight, name, columns)}
	for _, text := range r.config.Tables.EdgeColumns {
		if text == "all" && len(columns) > 0 {
			c.EdgeColumns = append(c.EdgeColumns, text)
		}
	}
	c.EdgeColumns = append(c.EdgeColumns, r.own(r.config.Tables.EdgeColumns, name, columns)...)
	return c
}

// SiteTables are one site's tables of a graph of several types that several sites hold together (package
// align). Their roles are known, and none is read yet.
type SiteTables struct {
	Encoding *Encodings             // names of types and relations, without Of
	Nodes    []dataset.ImportConfig // of each of Encoding.Nodes
	Edges    []EdgeTable            // of each of Encoding.Edges
}

// EdgeTable is a table of edges, which may end at nodes of other sites.
type EdgeTable struct {
	dataset.ImportConfig
	SourceSite, TargetSite string // columns with the sites of the ends ("" = all are here)
}

// Site finds the tables of one site, which may lack types that other sites have, even if its
// edges end at them. If Tables.Like is a model's encoding, all must be of its types and relations.
// sourceSite and targetSite are columns, as COLUMN or SOURCE-RELATION-TARGET.COLUMN.
func (c Config) Site(sourceSite, targetSite string) (*SiteTables, error) {
	r := &tablesReader{config: c}
	r.Part = true
	if _, err := r.begin(); err != nil {
		return nil, err
	}
	columns, target, err := r.roles()
	if err != nil {
		return nil, err
	}
	t := &SiteTables{Encoding: &r.Encodings}
	for k := range r.Encodings.Nodes {
		t.Nodes = append(t.Nodes, r.nodeConfig(k, columns[r.Encodings.Nodes[k].Type], k == target))
	}
	for k := range r.Encodings.Edges {
		name := r.Encodings.Edges[k].Name()
		t.Edges = append(t.Edges, EdgeTable{r.edgeConfig(k, columns[name]),
			r.one(sourceSite, name, columns[name]), r.one(targetSite, name, columns[name])})
	}
	return t, nil
}
