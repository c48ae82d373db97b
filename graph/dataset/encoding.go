package dataset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/edgelist"
)

// Encoding is how a user's tables become a graph: what each column means and how its cells become features. It is saved
// with the data set and the model, so that other tables are read in the same way.
type Encoding struct {
	ID      string   `json:"id"`              // column of the nodes' names
	Label   string   `json:"label,omitempty"` // column of the labels, or "": none
	Multi   bool     `json:"multi,omitempty"` // a node may have several labels, separated by ";"
	Classes []string `json:"classes,omitempty"`
	// ClassOrder are all classes in the order that the user gives (nil = none).
	ClassOrder []string `json:"class_order,omitempty"`
	// Regression: labels are numbers.
	Regression bool   `json:"regression,omitempty"`
	Split      string `json:"split,omitempty"` // column of train, val, test, none; or ""
	Site       string `json:"site,omitempty"`  // column of the nodes' owners, or ""
	Source     string `json:"source"`          // columns of the table of edges
	Target     string `json:"target"`
	Weight     string `json:"weight,omitempty"`
	Merge      string `json:"merge,omitempty"` // weight of repeated edges: see ImportConfig

	Relation  string   `json:"relation,omitempty"`  // column of the relations, or ""
	Relations []string `json:"relations,omitempty"` // their names, ascending

	Columns []table.Column `json:"columns"` // every other column of the table of nodes, in its order

	Directed    Direction      `json:"directed,omitempty"`     // direction of the edges' messages
	EdgeColumns []table.Column `json:"edge_columns,omitempty"` // columns of the table of edges that are features
	SplitTime   string         `json:"split_time,omitempty"`   // COLUMN:T1:T2 of the split by time, or ""
	Missing     []string       `json:"missing,omitempty"`      // texts that mean no value, as in table.Format
}

// Width returns the number of feature columns, F.
func (e *Encoding) Width() int { return width(e.Columns) }

// EdgeWidth returns the number of feature columns of edges.
func (e *Encoding) EdgeWidth() int { return width(e.EdgeColumns) }

func width(columns []table.Column) int {
	n := 0
	for k := range columns {
		n += columns[k].Features()
	}
	return n
}

// ParseEncoding reads the JSON of graph.Graph.Encoding and refuses one that Import could not have
// written.
func ParseEncoding(text []byte) (*Encoding, error) {
	var e Encoding
	if err := Decode(text, &e); err != nil {
		return nil, err
	}
	_, err := parseTimeSplit(e.SplitTime)
	switch {
	case e.ID == "" || e.Source == "" || e.Target == "":
		err = errors.New("id, source and target must name columns")
	case e.Regression && (e.Label == "" || e.Multi || len(e.Classes) > 0):
		err = errors.New("regression needs a label, without multi and classes")
	case e.Multi && len(e.Classes) == 0 || len(e.Classes) > MaxClasses:
		err = fmt.Errorf("number of classes must be 1 to %d (got %d)", MaxClasses, len(e.Classes))
	}
	if err := cmp.Or(err, edgelist.CheckMerge(e.Merge), CheckRelations(e.Relations), e.Directed.Valid(),
		validColumns(e.Columns), validColumns(e.EdgeColumns)); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return &e, nil
}

// Decode reads the JSON of an encoding into e, and refuses fields that e lacks.
func Decode(text []byte, e any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	if d.More() {
		return errors.New("encoding: bytes after its end")
	}
	return nil
}

// Dated returns e for tables with other orders of day and month; dates has them as in ImportConfig.
func (e *Encoding) Dated(dates []string) (*Encoding, error) {
	list, err := (&ImportConfig{Date: dates}).asked()
	here := *e
	here.Columns = slices.Clone(e.Columns)
	for _, one := range list {
		k := slices.IndexFunc(e.Columns, func(c table.Column) bool {
			return c.Name == one.Name && (c.Kind == table.Date || c.Kind == table.Age)
		})
		if k < 0 {
			return nil, fmt.Errorf("date must be a column of dates of the model (got %q)", one.Name)
		}
		if one.MonthFirst || one.DayFirst {
			here.Columns[k].MonthFirst = one.MonthFirst
		}
	}
	return &here, err
}

// validColumns returns an error if a column is invalid or a name occurs twice.
func validColumns(columns []table.Column) error {
	seen := map[string]bool{}
	for _, c := range columns {
		if seen[c.Name] {
			return fmt.Errorf("column %s occurs twice", c.Name)
		}
		if err := c.Valid(); err != nil {
			return err
		}
		seen[c.Name] = true
	}
	return nil
}

// cellPlace is the position of a feature column's cells.
type cellPlace struct {
	column  int // index in the table; unused if the features are ignored
	spelled table.Spellings
}

// findPlaces finds the columns of features in a table; what names their role.
func findPlaces(t *table.Table, columns []table.Column, what string) ([]cellPlace, error) {
	at := make([]cellPlace, len(columns))
	for k, c := range columns {
		if c.Kind == table.Ignored {
			continue
		}
		var err error
		if at[k].column, err = t.Column(c.Name, string(c.Kind)+" "+what); err != nil {
			return nil, err
		}
		at[k].spelled = table.NewSpellings(c.Values)
	}
	return at, nil
}

// encode appends the features of one row to x.
func (n *nodeReader) encode(cells []string, line int) error {
	x := n.x
	n.strange = n.strange[:0]
	if err := encodeCells(n.t, n.e.Columns, n.at, cells, line, func(j int, f float32) {
		x.Col, x.Val = append(x.Col, int32(j)), append(x.Val, f)
	}, func(k int) { n.strange = append(n.strange, k) }); err != nil {
		return err
	}
	x.Rows++
	x.RowPtr = append(x.RowPtr, int64(len(x.Col)))
	return nil
}

// encodeCells calls put with the features of a row that are not 0, ascending, and strange with the columns for which
// the cell's category is unknown.
func encodeCells(t *table.Table, columns []table.Column, at []cellPlace, cells []string, line int,
	put func(j int, f float32), strange func(k int)) error {
	first := 0
	for k := range columns {
		c := &columns[k]
		if c.Kind == table.Ignored {
			continue
		}
		cell := at[k].spelled.Find(t.Cell(cells[at[k].column]))
		known, err := c.Encode(t, cell, func(j int, v float64) {
			if f := float32(v); f != 0 {
				put(first+j, f)
			}
		})
		if err != nil {
			return t.Fault(line, at[k].column, "%v", err)
		}
		if !known && !table.Missing(cell) {
			strange(k)
		}
		first += c.Features()
	}
	return nil
}
