package typed

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph/dataset"
)

// SiteTables are one site's tables of a graph of several types that several sites hold together (package
// align). Their roles are found, and none is read yet.
type SiteTables struct {
	Encoding *Encoding // names of types and relations; without Of where no model's was given
	Nodes    []NodeTable
	Edges    []EdgeTable
}

// NodeTable is the table of Encoding.Nodes at its place.
type NodeTable struct {
	Config dataset.ImportConfig // of this table alone
}

// EdgeTable is the table of Encoding.Edges at its place.
type EdgeTable struct {
	Config dataset.ImportConfig // of this table alone
	column func(text string) string
}

// Column returns the column of this table that text names, as COLUMN or SOURCE-RELATION-TARGET.COLUMN;
// "" if it names none.
func (t *EdgeTable) Column(text string) string { return t.column(text) }

// Site finds the tables of one site, which may lack types that other sites have, also such as its own
// edges end at. Where Tables.Like is a model's encoding, Encoding has the part of it that is of these tables.
func (c Config) Site() (*SiteTables, error) {
	r := &tablesReader{config: c}
	r.Part = true
	r.Merge, r.Directed = c.Tables.Merge, c.Tables.Directed
	like := (*Encoding)(nil)
	if c.Tables.Like != nil {
		var err error
		if like, err = Parse(c.Tables.Like); err != nil {
			return nil, err
		}
		r.Merge, r.Directed = like.Merge, like.Directed
	}
	if err := r.names(); err != nil {
		return nil, err
	}
	columns, err := r.allColumns()
	if err != nil {
		return nil, err
	}
	if err := r.everyColumn(columns); err != nil {
		return nil, err
	}
	target, err := r.target(columns)
	if err != nil {
		return nil, err
	}
	if target >= 0 { // a site without the type whose nodes have labels is told of them as the others are
		if err := r.ofLabels(target, columns); err != nil {
			return nil, err
		}
	}
	t := &SiteTables{Encoding: &r.Encoding}
	for k := range r.Encoding.Nodes {
		n := &r.Encoding.Nodes[k]
		t.Nodes = append(t.Nodes, NodeTable{r.nodeConfig(k, columns[n.Type], k == target)})
	}
	for k := range r.Encoding.Edges {
		name := r.Encoding.Edges[k].Name()
		t.Edges = append(t.Edges, EdgeTable{r.edgeConfig(k, columns[name]),
			func(text string) string { return r.one(text, name, columns[name]) }})
	}
	if like == nil {
		return t, nil
	}
	return t, t.alike(like)
}

// alike gives each table the encoding that it has in the model's.
func (t *SiteTables) alike(like *Encoding) error {
	for k := range t.Encoding.Nodes {
		n := &t.Encoding.Nodes[k]
		at := like.Place(n.Type)
		if at < 0 {
			return fmt.Errorf("the tables must be of types of the model's (got %s)", n.Type)
		}
		*n = like.Nodes[at]
		t.Nodes[k].Config.Like = n.Encoding
		site := t.Nodes[k].Config.Site
		var err error
		if t.Nodes[k].Config, _, err = t.Nodes[k].Config.Alike(); err != nil {
			return err
		}
		t.Nodes[k].Config.Site = site // each site's own affair
	}
	for k := range t.Encoding.Edges {
		n := &t.Encoding.Edges[k]
		at := slices.IndexFunc(like.Edges, func(e EdgeEncoding) bool { return e.Name() == n.Name() })
		if at < 0 {
			return fmt.Errorf("the relations must be of those of the model (got %s)", n.Name())
		}
		*n = like.Edges[at]
		of := t.Edges[k].Config
		t.Edges[k].Config.Source, t.Edges[k].Config.Target, t.Edges[k].Config.Weight = n.Of.Source, n.Of.Target,
			n.Of.Weight
		t.Edges[k].Config.Merge = of.Merge
	}
	return nil
}
