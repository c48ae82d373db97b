package typed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph/dataset"
)

// encoding is how several tables become one graph. It is graph.Graph.Encoding, and so saved with the
// data set and the model.
type encoding struct {
	Nodes    []nodeEncoding    `json:"node_tables"` // ascending by type
	Edges    []edgeEncoding    `json:"edge_tables"` // ascending by name
	Merge    string            `json:"merge,omitempty"`
	Directed dataset.Direction `json:"directed,omitempty"`
}

// nodeEncoding is that of the table of one type.
type nodeEncoding struct {
	Type     string          `json:"type"`
	Encoding json.RawMessage `json:"encoding"` // a dataset.Encoding

	e *dataset.Encoding
}

// edgeEncoding is that of the table of one relation.
type edgeEncoding struct {
	Source   string          `json:"source"` // types of the ends
	Relation string          `json:"relation"`
	Target   string          `json:"target"`
	Encoding json.RawMessage `json:"encoding"`

	e *dataset.Encoding
}

// name is that of the relation in the graph.
func (r *edgeEncoding) name() string { return r.Source + "-" + r.Relation + "-" + r.Target }

// maxTypes bounds the types: a node's is a byte.
const maxTypes = 1 << 8

// Encodes reports whether an encoding is that of several tables.
func Encodes(text []byte) bool {
	var has struct {
		Nodes []json.RawMessage `json:"node_tables"`
	}
	return json.Unmarshal(text, &has) == nil && has.Nodes != nil
}

// Target returns the type whose nodes have labels, "" where the encoding is not that of several tables
// or no type has them.
func Target(text []byte) string {
	var c struct {
		Nodes []struct {
			Type     string `json:"type"`
			Encoding struct {
				Label string `json:"label"`
			} `json:"encoding"`
		} `json:"node_tables"`
	}
	if json.Unmarshal(text, &c) != nil { // Encodes says whether it is one
		return ""
	}
	for _, n := range c.Nodes {
		if n.Encoding.Label != "" {
			return n.Type
		}
	}
	return ""
}

// parse reads an encoding and refuses one that Read could not have written.
func parse(text []byte) (*encoding, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	c := &encoding{}
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("typed: encoding: %w", err)
	}
	if d.More() {
		return nil, errors.New("typed: encoding: bytes after its end")
	}
	if err := errors.Join(c.Directed.Valid(), c.valid()); err != nil {
		return nil, fmt.Errorf("typed: encoding: %w", err)
	}
	var err error
	for k := range c.Nodes {
		if _, c.Nodes[k].e, err = (dataset.ImportConfig{Like: c.Nodes[k].Encoding}).Alike(); err != nil {
			return nil, fmt.Errorf("typed: nodes of type %s: %w", c.Nodes[k].Type, err)
		}
	}
	for k := range c.Edges {
		if _, c.Edges[k].e, err = (dataset.ImportConfig{Like: c.Edges[k].Encoding}).Alike(); err != nil {
			return nil, fmt.Errorf("typed: edges %s: %w", c.Edges[k].name(), err)
		}
	}
	return c, nil
}

// valid checks the names of types and relations.
func (c *encoding) valid() error {
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
			if c.place(end) < 0 {
				return fmt.Errorf("relation %s must join types that have a table of nodes (got %q)", r.name(), end)
			}
		}
		if r.Relation == "" {
			return fmt.Errorf("relation %s must have a name between its types", r.name())
		}
		names = append(names, r.name())
	}
	return dataset.CheckRelations(names)
}

// place returns the number of a type, −1 where there is none of that name.
func (c *encoding) place(kind string) int {
	return slices.IndexFunc(c.Nodes, func(n nodeEncoding) bool { return n.Type == kind })
}

func plainName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
