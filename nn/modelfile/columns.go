package modelfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/nn"
)

// encoding is the part of graph.Graph.Encoding on columns, of one table of nodes or of several types.
type encoding struct {
	Columns []json.RawMessage `json:"columns"`
	Edges   []json.RawMessage `json:"edge_columns"`
	Nodes   []struct {
		Type     string   `json:"type"`
		Encoding encoding `json:"encoding"`
	} `json:"node_tables"`
	Relations []struct {
		Source, Relation, Target string
		Encoding                 encoding `json:"encoding"`
	} `json:"edge_tables"`
}

// encoded is a column that became features, and how.
type encoded struct{ name, how string }

// columns returns the columns that became features of nodes and, with edges, of edges.
func (e encoding) columns(edges bool) (all []encoded, err error) {
	add := func(table string, list []json.RawMessage) {
		for _, text := range list {
			var one struct {
				Name string `json:"name"`
				Kind string `json:"kind"`
			}
			var plain bytes.Buffer
			err = errors.Join(err, json.Unmarshal(text, &one), json.Compact(&plain, text))
			if one.Kind != "ignored" {
				all = append(all, encoded{table + one.Name, plain.String()})
			}
		}
	}
	add("", e.Columns)
	for _, n := range e.Nodes {
		add(n.Type+".", n.Encoding.Columns)
	}
	if edges {
		add("", e.Edges)
		for _, r := range e.Relations {
			add(r.Source+"-"+r.Relation+"-"+r.Target+".", r.Encoding.Edges)
		}
	}
	return all, err
}

// SameColumns returns an error that names the first column whose encoding differs between a model of spec and
// other data. Both encodings are graph.Graph.Encoding; if either is empty there is nothing to compare.
func SameColumns(spec nn.Spec, model, other []byte) error {
	if len(model) == 0 || len(other) == 0 {
		return nil
	}
	var columns [2][]encoded
	for k, text := range [][]byte{model, other} {
		var e encoding
		err := json.Unmarshal(text, &e)
		if err == nil {
			columns[k], err = e.columns(spec.ReadsEdgeColumns())
		}
		if err != nil {
			return fmt.Errorf("encoding of columns: %w", err)
		}
	}
	for i, must := range columns[0] {
		if i >= len(columns[1]) {
			return fmt.Errorf("column %d must be %q, as in the model (got no more columns)", i+1, must.name)
		}
		switch got := columns[1][i]; {
		case got.name != must.name:
			return fmt.Errorf("column %d must be %q, as in the model (got %q)", i+1, must.name, got.name)
		case got.how != must.how:
			return fmt.Errorf("column %q must become features as in the model, by %.200s (got %.200s)", must.name,
				must.how, got.how)
		}
	}
	if n := len(columns[0]); len(columns[1]) > n {
		return fmt.Errorf("there must be %d columns, as in the model (got %q as another)", n, columns[1][n].name)
	}
	return nil
}
