package dataset

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// TableFacts describes a table with `rows` rows read. It returns an error if nearly all rows were skipped.
func TableFacts(t *table.Table, rows int, format table.Format) (table.TableFacts, error) {
	f := table.TableFacts{File: filepath.Base(t.Path), Rows: rows, Skipped: format.Faults.Count(t.Path)}
	f.Encoding = t.Charset
	if t.Comma != 0 {
		f.Delimiter = string(t.Comma)
	}
	if f.Skipped == 0 || !format.Faults.Skip {
		return f, nil
	}
	f.Reasons = format.Faults.Reasons(t.Path)
	if f.Skipped >= 9*f.Rows {
		return f, fmt.Errorf("%s: rows at fault must be under 90 %% to be skipped (got %d of %d: %s)", t.Path,
			f.Skipped, f.Skipped+f.Rows, strings.Join(f.Reasons[:min(len(f.Reasons), 5)], "; "))
	}
	return f, nil
}

// facts returns what the tables became: e with p's columns, and g.
func (p *Profile) facts(e *Encoding, g *graph.Graph, r *Reading) (*table.Facts, error) {
	f := p.Known(e, r)
	f.Edges.Merge, f.Edges.Relation, f.Edges.Directed = e.Merge, e.Relation, string(e.Directed)
	var found []ColumnProfile
	if p != nil { // else e is the encoding of other tables
		found = p.Edges
	}
	e.EdgeFacts(f, "", found)
	if err := f.AddGraph(g, r.Source, r.Target); err != nil {
		return nil, err
	}
	f.Warn()
	f.CheckDisguise(g.X, g.Labels)
	return f, nil
}

// Known returns what the table of nodes became: e with p's columns (nil = columns of other tables).
func (p *Profile) Known(e *Encoding, r *Reading) *table.Facts {
	f := &table.Facts{Tables: r.Tables, Label: e.Label}
	if p != nil {
		p.addColumns(f, e)
		f.AddSpelled(e.Label, p.Spelled, p.Classes, e.Classes)
	}
	f.AddSpelled(e.Site, r.Spelled, nil, nil)
	r.addUnknown(f, e)
	return f
}

// addColumns adds what each column became.
func (p *Profile) addColumns(f *table.Facts, e *Encoding) {
	of := make(map[string]*ColumnProfile, len(p.Columns))
	for k := range p.Columns {
		of[p.Columns[k].Name] = &p.Columns[k]
	}
	for k := range e.Columns {
		c, one := &e.Columns[k], of[e.Columns[k].Name]
		out, s := columnFacts("", c), one.Stats
		if s != nil {
			if out.Missing = s.Missing; c.Kind == table.Categorical {
				f.AddSpelled(c.Name, s.Spelled, one.Values, c.Values)
			}
		}
		switch c.Kind {
		case table.Ignored:
			if out.Kind = table.Dropped; s != nil {
				out.Why = cmp.Or(one.Why, unlike)
				out.Hint = hint(s, c.Name)
			}
		case table.Categorical:
			if s != nil && 10*s.Dressed > 9*s.Texts && s.Dressed > 0 {
				f.Warnings = append(f.Warnings, fmt.Sprintf("column %s becomes categories%s", c.Name, hint(s, c.Name)))
			}
		case table.Numeric:
			if s != nil && s.Constant() {
				out.Why = "the same in each row"
			}
			if s == nil {
				break
			}
			if v, line := s.Outlier(); v != 0 {
				f.Warnings = append(f.Warnings,
					fmt.Sprintf("column %s has %g on line %d, over a million times as large as all "+
						"others, which become nearly one number: correct it (option missing reads it as no value)",
						c.Name, v, line))
			}
		case table.Date:
			out.Why = "time, year and week"
			if c.Clock {
				out.Why = "time, year, week and day"
			}
			if day, month := s.Orders(); day && month && s.Ambiguous() {
				f.Warnings = append(f.Warnings, fmt.Sprintf("column %s: dates are read day first, and could be month "+
					"first (option date %s:mdy)", c.Name, c.Name))
			}
		case table.Age:
			out.Why = "years until " + c.Until
		case table.Text:
			out.Why = fmt.Sprintf("words hashed by FNV-1a with seed %d", c.Seed)
		}
		f.Columns = append(f.Columns, out)
	}
}

// columnFacts returns the facts of an encoding's column; its name is prefix and the column's name.
func columnFacts(prefix string, c *table.Column) table.ColumnFacts {
	return table.ColumnFacts{Name: prefix + c.Name, Kind: string(c.Kind), Features: c.Features(), Values: len(c.Values)}
}

// unlike is why a column is dropped that this site alone would keep.
const unlike = "the sites together have too many categories or too few nodes of each, or one ignores it"

// EdgeFacts adds the facts of a table of edges' columns to f; their names begin with prefix. found is what was found in
// them (nil = they were read like other tables).
func (e *Encoding) EdgeFacts(f *table.Facts, prefix string, found []ColumnProfile) {
	of := make(map[string]*ColumnProfile, len(found))
	for k := range found {
		of[found[k].Name] = &found[k]
	}
	for _, c := range e.EdgeColumns {
		out := columnFacts(prefix, &c)
		if one := of[c.Name]; one != nil {
			out.Missing = one.Stats.Missing
			f.AddSpelled(out.Name, one.Stats.Spelled, one.Values, c.Values)
			delete(of, c.Name)
		}
		f.EdgeColumns = append(f.EdgeColumns, out)
	}
	for _, c := range found {
		if of[c.Name] != nil {
			f.EdgeColumns = append(f.EdgeColumns, table.ColumnFacts{Name: prefix + c.Name, Kind: table.Dropped,
				Missing: c.Stats.Missing, Why: cmp.Or(c.Why, unlike)})
		}
	}
}

// hint returns what the user can do about a dropped column.
func hint(s *table.Stats, name string) string {
	switch {
	case s.Dressed > 0 && 10*s.Dressed > 9*s.Texts:
		comma := ""
		if s.Commas > 0 {
			comma = "; if the comma is a decimal one, give option decimal-comma"
		}
		return fmt.Sprintf("; its cells look like numbers with thousands separators, %% or currency, such as %.40q: "+
			"write plain numbers%s", s.Example, comma)
	case s.Texts > 0 && 10*s.Commas > 9*s.Texts:
		return "; its cells look like numbers with a decimal comma (option decimal-comma)"
	case s.Texts > 0 && 10*s.Points > 9*s.Texts:
		return "; its cells look like numbers with a decimal point (omit option decimal-comma)"
	case s.Words >= 3*s.Texts && s.Texts > 0:
		return fmt.Sprintf("; option text %s:256 makes features of its words", name)
	case s.Cells() > 0:
		return fmt.Sprintf("; option categorical %s keeps it", name)
	}
	return ""
}

// addUnknown adds columns without values, and cells with categories and classes that the encoding does not know.
func (r *Reading) addUnknown(f *table.Facts, e *Encoding) {
	if len(f.Columns) == 0 {
		for _, c := range e.Columns {
			f.Columns = append(f.Columns, columnFacts("", &c))
		}
	}
	for k, c := range e.Columns {
		f.Columns[k].Unknown, f.Columns[k].Example = r.Unknown[k], r.Example[k]
		if len(r.Tables) > 0 && r.Tables[0].Rows > 0 && c.Kind != table.Ignored && !r.filled[k] {
			f.Warnings = append(f.Warnings, fmt.Sprintf("no node has a value of column %s", c.Name))
		}
	}
	if r.NoneLabels > 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf(
			"column %s: \"none\" in %d cells means no label; option class-order with all classes makes it one",
			e.Label, r.NoneLabels))
	}
	if r.NewClasses > 0 {
		f.Warnings = append(f.Warnings,
			fmt.Sprintf("column %s: a class that the model does not know in %d cells, such as %q: "+
				"their nodes count as nodes without a label", e.Label, r.NewClasses, r.NewClass))
	}
}
