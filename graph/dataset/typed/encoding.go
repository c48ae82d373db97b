package typed

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph/dataset"
)

// Encoding is how several tables become one graph. It is graph.Graph.Encoding, and so saved with the
// data set and the model.
type Encoding struct {
	Nodes    []NodeEncoding    `json:"node_tables"` // ascending by type
	Edges    []EdgeEncoding    `json:"edge_tables"` // ascending by name
	Merge    string            `json:"merge,omitempty"`
	Directed dataset.Direction `json:"directed,omitempty"`

	Part bool `json:"-"` // one site's: others may have the tables of more types
}

// NodeEncoding is that of the table of one type.
type NodeEncoding struct {
	Type     string          `json:"type"`
	Encoding json.RawMessage `json:"encoding"` // Of, once it is complete

	Of *dataset.Encoding `json:"-"`
}

// EdgeEncoding is that of the table of one relation.
type EdgeEncoding struct {
	Source   string          `json:"source"` // types of the ends
	Relation string          `json:"relation"`
	Target   string          `json:"target"`
	Encoding json.RawMessage `json:"encoding"`

	Of *dataset.Encoding `json:"-"`
}

// Name is that of the relation in the graph.
func (r *EdgeEncoding) Name() string { return r.Source + "-" + r.Relation + "-" + r.Target }

// maxTypes bounds the types: a node's is a byte.
const maxTypes = 1 << 8

// Encodes reports whether an encoding is that of several tables.
func Encodes(text []byte) bool {
	var has struct {
		Nodes []json.RawMessage `json:"node_tables"`
	}
	return json.Unmarshal(text, &has) == nil && has.Nodes != nil
}

// Parse reads an encoding and refuses one that Read could not have written.
func Parse(text []byte) (*Encoding, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	c := &Encoding{}
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	if d.More() {
		return nil, errors.New("encoding: bytes after its end")
	}
	if err := errors.Join(c.Directed.Valid(), c.Valid()); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	var err error
	for k := range c.Nodes {
		if _, c.Nodes[k].Of, err = (dataset.ImportConfig{Like: c.Nodes[k].Encoding}).Alike(); err != nil {
			return nil, fmt.Errorf("nodes of type %s: %w", c.Nodes[k].Type, err)
		}
	}
	for k := range c.Edges {
		if _, c.Edges[k].Of, err = (dataset.ImportConfig{Like: c.Edges[k].Encoding}).Alike(); err != nil {
			return nil, fmt.Errorf("edges %s: %w", c.Edges[k].Name(), err)
		}
	}
	return c, nil
}

// Seal returns the encoding as JSON, once Of of every table is complete.
func (c *Encoding) Seal() (text []byte, err error) {
	for k := range c.Nodes {
		if c.Nodes[k].Encoding, err = json.Marshal(c.Nodes[k].Of); err != nil {
			return nil, err
		}
	}
	for k := range c.Edges {
		if c.Edges[k].Encoding, err = json.Marshal(c.Edges[k].Of); err != nil {
			return nil, err
		}
	}
	return json.Marshal(c)
}

// Relations returns what the tables of edges have in common: the names of all relations, how repeated
// edges are merged, and a column of weights where any table has one; and the columns of all.
func (c *Encoding) Relations() *dataset.Encoding {
	all := &dataset.Encoding{Merge: c.Merge, Directed: c.Directed}
	for k := range c.Edges {
		n := &c.Edges[k]
		all.Relations = append(all.Relations, n.Name())
		all.EdgeColumns = append(all.EdgeColumns, n.Of.EdgeColumns...)
		all.Weight = cmp.Or(all.Weight, n.Of.Weight)
	}
	return all
}

// Valid checks the names of types and relations.
func (c *Encoding) Valid() error {
	if len(c.Nodes) == 0 || len(c.Nodes) > maxTypes {
		return fmt.Errorf("there must be 1 to %d tables of nodes (got %d)", maxTypes, len(c.Nodes))
	}
	for k, n := range c.Nodes {
		if !plainName(n.Type) {
			return fmt.Errorf("a type of nodes must be a name of letters, digits and _ (got %q)", n.Type)
		}
		if k > 0 && c.Nodes[k-1].Type >= n.Type {
			return fmt.Errorf("each type of nodes must have one table (got two of %s, or another order)", n.Type)
		}
	}
	names := []string{}
	for _, r := range c.Edges {
		for _, end := range []string{r.Source, r.Target} {
			if !c.Part && c.Place(end) < 0 {
				return fmt.Errorf("relation %s must join types that have a table of nodes (got %q)", r.Name(), end)
			}
		}
		if r.Relation == "" {
			return fmt.Errorf("relation %s must have a name between its types", r.Name())
		}
		if len(names) > 0 && names[len(names)-1] == r.Name() {
			return fmt.Errorf("each relation must have one table of edges (got two of %s)", r.Name())
		}
		names = append(names, r.Name())
	}
	return dataset.CheckRelations(names)
}

// Place returns the number of a type, −1 where there is none of that name.
func (c *Encoding) Place(kind string) int {
	return slices.IndexFunc(c.Nodes, func(n NodeEncoding) bool { return n.Type == kind })
}

func plainName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
