package typed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph/dataset"
)

// Encodings are how several tables become one graph. Their JSON is graph.Graph.Encoding, and so saved with the
// data set and the model. One table of nodes without a type is stored as a dataset.Encoding.
type Encodings struct {
	Nodes    []NodeEncoding    `json:"node_tables"` // ascending by type
	Edges    []EdgeEncoding    `json:"edge_tables"` // ascending by name
	Merge    string            `json:"merge,omitempty"`
	Directed dataset.Direction `json:"directed,omitempty"`

	Part bool `json:"-"` // one site's: others may have the tables of more types
}

// NodeEncoding is the encoding of the table of one type.
type NodeEncoding struct {
	Type     string          `json:"type"`
	Encoding json.RawMessage `json:"encoding"` // Of, once it is complete

	Of *dataset.Encoding `json:"-"`
}

// EdgeEncoding is the encoding of the table of one relation.
type EdgeEncoding struct {
	Source   string          `json:"source"` // types of the ends
	Relation string          `json:"relation"`
	Target   string          `json:"target"`
	Encoding json.RawMessage `json:"encoding"`

	Of *dataset.Encoding `json:"-"`
}

// Name is the name of the relation in the graph.
func (r *EdgeEncoding) Name() string { return r.Source + "-" + r.Relation + "-" + r.Target }

// One returns the encoding of one table of nodes without a type and its table of edges.
func One(e *dataset.Encoding) *Encodings {
	return &Encodings{Nodes: []NodeEncoding{{Of: e}}, Edges: []EdgeEncoding{{Of: e}}, Merge: e.Merge,
		Directed: e.Directed}
}

// Untyped reports whether there is one table of nodes, without a type.
func (c *Encodings) Untyped() bool { return len(c.Nodes) == 1 && c.Nodes[0].Type == "" }

// Prefix is what the name of a table has before the name of its node or column.
func (c *Encodings) Prefix(table, separator string) string {
	if c.Untyped() {
		return ""
	}
	return table + separator
}

// maxTypes bounds the types: a node's is a byte.
const maxTypes = 1 << 8

// Encodes reports whether an encoding is of tables of several types.
func Encodes(text []byte) bool {
	var has struct {
		Nodes []json.RawMessage `json:"node_tables"`
	}
	return json.Unmarshal(text, &has) == nil && has.Nodes != nil
}

// Parse reads an encoding and refuses one that Read could not have written.
func Parse(text []byte) (*Encodings, error) {
	if !Encodes(text) {
		e, err := dataset.ParseEncoding(text)
		if err != nil {
			return nil, err
		}
		return One(e), nil
	}
	c := &Encodings{}
	if err := dataset.Decode(text, c); err != nil {
		return nil, err
	}
	if err := errors.Join(c.Directed.Valid(), c.Valid()); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	var err error
	for k := range c.Nodes {
		if c.Nodes[k].Of, err = dataset.ParseEncoding(c.Nodes[k].Encoding); err != nil {
			return nil, fmt.Errorf("nodes of type %s: %w", c.Nodes[k].Type, err)
		}
	}
	for k := range c.Edges {
		if c.Edges[k].Of, err = dataset.ParseEncoding(c.Edges[k].Encoding); err != nil {
			return nil, fmt.Errorf("edges %s: %w", c.Edges[k].Name(), err)
		}
	}
	return c, nil
}

// Seal returns the encoding as JSON, once Of of every table is complete.
func (c *Encodings) Seal() (text []byte, err error) {
	if c.Untyped() {
		return json.Marshal(c.Nodes[0].Of)
	}
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
func (c *Encodings) Relations() *dataset.Encoding {
	if c.Untyped() {
		return c.Edges[0].Of
	}
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
func (c *Encodings) Valid() error {
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

// within refuses tables of types and relations that a model's encoding lacks.
func (c *Encodings) within(like *Encodings) error {
	types, relations := like.tableNames()
	for _, n := range c.Nodes {
		if !slices.Contains(types, n.Type) {
			return fmt.Errorf("the tables must be of types of the model, %s (got %s)", strings.Join(types, ", "),
				n.Type)
		}
	}
	for _, e := range c.Edges {
		if !slices.Contains(relations, e.Name()) {
			return fmt.Errorf("the relations must be of the model, %s (got %s)", strings.Join(relations, ", "),
				e.Name())
		}
	}
	return nil
}

// tableNames returns the names of types and relations.
func (c *Encodings) tableNames() (nodes, edges []string) {
	for _, n := range c.Nodes {
		nodes = append(nodes, n.Type)
	}
	for _, e := range c.Edges {
		edges = append(edges, e.Name())
	}
	return nodes, edges
}

// Place returns the number of a type, −1 if there is none of that name.
func (c *Encodings) Place(kind string) int {
	return slices.IndexFunc(c.Nodes, func(n NodeEncoding) bool { return n.Type == kind })
}

func plainName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
