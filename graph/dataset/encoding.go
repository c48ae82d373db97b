package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/mat"
)

// Encoding is how a user's tables become a graph: what each column means and how its cells become
// features. It is saved with the data set and the model, so that other tables are read in exactly
// the same way.
type Encoding struct {
	ID      string   `json:"id"`              // column of the nodes' names
	Label   string   `json:"label,omitempty"` // column of the labels, or "": none
	Multi   bool     `json:"multi,omitempty"` // a node may have several labels, separated by ";"
	Classes []string `json:"classes,omitempty"`
	Split   string   `json:"split,omitempty"` // column of train, val, test, none; or ""
	Site    string   `json:"site,omitempty"`  // column of the nodes' owners, or ""
	Source  string   `json:"source"`          // columns of the table of edges
	Target  string   `json:"target"`
	Weight  string   `json:"weight,omitempty"`

	Relation  string   `json:"relation,omitempty"`  // column of the relations, or ""
	Relations []string `json:"relations,omitempty"` // their names, ascending

	Columns []Column `json:"columns"` // every other column of the table of nodes, in its order
}

// Kind says how a column of the user's table becomes features.
type Kind string

// A number v becomes (v − Mean)/Std, a missing one 0; where numbers were missing, an indicator
// column follows. A category becomes a one-hot row of Values and "other". An ignored column becomes
// nothing.
const (
	Numeric     Kind = "numeric"
	Categorical Kind = "categorical"
	Ignored     Kind = "ignored"
)

// Column is the encoding of one column.
type Column struct {
	Name    string   `json:"name"`
	Kind    Kind     `json:"kind"`
	Mean    float64  `json:"mean,omitempty"`
	Std     float64  `json:"std,omitempty"`     // standard deviation over the table (population), 1 for a constant column
	Missing bool     `json:"missing,omitempty"` // numbers were missing: an indicator column follows
	Values  []string `json:"values,omitempty"`  // ascending
}

// width returns the number of feature columns.
func (c *Column) width() int {
	switch c.Kind {
	case Numeric:
		if c.Missing {
			return 2
		}
		return 1
	case Categorical:
		return len(c.Values) + 1
	}
	return 0
}

// Width returns the number of feature columns, F.
func (e *Encoding) Width() int {
	n := 0
	for k := range e.Columns {
		n += e.Columns[k].width()
	}
	return n
}

// parseEncoding reads the JSON of graph.Graph.Encoding and refuses one that Import could not have
// written.
func parseEncoding(text []byte) (*Encoding, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var e Encoding
	if err := d.Decode(&e); err != nil {
		return nil, fmt.Errorf("dataset: encoding: %w", err)
	}
	if d.More() {
		return nil, errors.New("dataset: encoding: bytes after its end")
	}
	if e.ID == "" || e.Source == "" || e.Target == "" {
		return nil, errors.New("dataset: encoding: id, source and target must name columns")
	}
	if e.Multi && len(e.Classes) == 0 || len(e.Classes) > MaxClasses {
		return nil, fmt.Errorf("dataset: encoding: number of classes must be 1 to %d (got %d)", MaxClasses, len(e.Classes))
	}
	if err := CheckRelations(e.Relations); err != nil {
		return nil, fmt.Errorf("dataset: encoding: %w", err)
	}
	seen := map[string]bool{}
	for _, c := range e.Columns {
		switch {
		case seen[c.Name]:
			return nil, fmt.Errorf("dataset: encoding: column %s occurs twice", c.Name)
		case c.Kind != Numeric && c.Kind != Categorical && c.Kind != Ignored:
			return nil, fmt.Errorf("dataset: encoding: kind of column %s must be %s, %s or %s (got %q)", c.Name, Numeric, Categorical, Ignored, c.Kind)
		case c.Kind == Numeric && !(c.Std > 0 && c.Std <= math.MaxFloat64 && math.Abs(c.Mean) <= math.MaxFloat64):
			return nil, fmt.Errorf("dataset: encoding: column %s must have a finite mean and a finite standard deviation above 0 (got %v and %v)", c.Name, c.Mean, c.Std)
		case !rising(c.Values):
			return nil, fmt.Errorf("dataset: encoding: values of column %s are not ascending", c.Name)
		}
		seen[c.Name] = true
	}
	return &e, nil
}

func rising(values []string) bool {
	for k := 1; k < len(values); k++ {
		if values[k-1] >= values[k] {
			return false
		}
	}
	return true
}

// missing reports whether a cell says that there is no value.
func missing(cell string) bool {
	switch strings.ToLower(strings.TrimSpace(cell)) {
	case "", "na", "n/a", "nan", "null", "none":
		return true
	}
	return false
}

// encode appends the features of one row to x. at[k] is the place of column k in the table, unused
// where ignored.
func (e *Encoding) encode(x *mat.Sparse, t *table.Table, cells []string, line int, at []int) error {
	first := 0
	put := func(j int, v float64) {
		if f := float32(v); f != 0 {
			x.Col, x.Val = append(x.Col, int32(first+j)), append(x.Val, f)
		}
	}
	for k := range e.Columns {
		switch c := &e.Columns[k]; c.Kind {
		case Numeric:
			cell := cells[at[k]]
			if missing(cell) {
				if c.Missing {
					put(1, 1)
				}
				break
			}
			v, ok := table.Number(cell)
			z := (v - c.Mean) / c.Std
			if !ok || math.Abs(z) > math.MaxFloat32 {
				return t.Fault(line, at[k], "%.40q is not a number, or too far from the others", cell)
			}
			put(0, z)
		case Categorical:
			place, ok := slices.BinarySearch(c.Values, strings.TrimSpace(cells[at[k]]))
			if !ok {
				place = len(c.Values)
			}
			put(place, 1)
		}
		first += e.Columns[k].width()
	}
	x.Rows++
	x.RowPtr = append(x.RowPtr, int64(len(x.Col)))
	return nil
}
