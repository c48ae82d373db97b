package align

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph/dataset"
)

// schema is what one site tells the others of its table of nodes, so that all encode theirs alike:
// names, and no number.
type schema struct {
	dataset.Encoding        // its columns without Mean and Std; an ignored one has no values
	Sparse           []bool // of each column: every row has a text of its own here, or more than are counted
	Empty            []bool // of each column: no cell here has a value
}

// schema returns what the other sites need to know.
func (t *Tables) schema() schema {
	s := schema{Encoding: t.cfg.Encoding()}
	s.Classes, s.Relations = t.profile.Classes, t.profile.Relations
	for _, p := range t.profile.Columns {
		column, sparse, empty := dataset.Column{Name: p.Name, Kind: p.Kind}, false, false
		if stats := p.Stats; stats != nil {
			distinct, cells := len(stats.Count), stats.Texts+stats.Numbers
			empty = cells == 0
			sparse = stats.Overflow || distinct == cells+min(stats.Missing, 1)
			if column.Kind == dataset.Ignored { // whether it is, the sites decide together
				column.Kind = dataset.Categorical
			}
			column.Missing = stats.Missing > 0
			if column.Kind == dataset.Categorical && !stats.Overflow {
				column.Values = slices.Sorted(maps.Keys(stats.Count))
			}
		}
		s.Columns, s.Sparse, s.Empty = append(s.Columns, column), append(s.Sparse, sparse), append(s.Empty, empty)
	}
	return s
}

// encode returns the schema as it is sent.
func (s schema) encode() ([]byte, error) { return json.Marshal(s) }

// parseSchema reads what encode wrote, and refuses what no site could have found.
func parseSchema(text []byte) (s schema, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("align: schema: %w", err)
	}
	if len(s.Sparse) != len(s.Columns) || len(s.Empty) != len(s.Columns) || len(s.Classes) > dataset.MaxClasses {
		return s, fmt.Errorf("align: schema: %d and %d marks for %d columns, %d classes", len(s.Sparse), len(s.Empty), len(s.Columns), len(s.Classes))
	}
	if err := dataset.CheckRelations(s.Relations); err != nil {
		return s, fmt.Errorf("align: schema: %w", err)
	}
	for _, c := range s.Columns {
		if c.Kind != dataset.Numeric && c.Kind != dataset.Categorical && c.Kind != dataset.Ignored || len(c.Values) > dataset.MaxTracked || !ascending(c.Values) {
			return s, fmt.Errorf("align: schema: column %.40q is of kind %.20q with %d values, or they are not ascending", c.Name, c.Kind, len(c.Values))
		}
	}
	return s, nil
}

// agree returns the encoding that the sites' schemas make together, in the first one's order of
// columns, for fit to complete. An error names the sites that differ.
func agree(sites []string, schemas []schema) (*dataset.Encoding, error) {
	first := schemas[0]
	e := first.Encoding
	e.Site = "" // each site's own affair
	classes, relations := map[string]bool{}, map[string]bool{}
	for q, s := range schemas {
		for _, role := range [][3]string{{"names of the nodes", first.ID, s.ID}, {"labels", first.Label, s.Label}, {"splits", first.Split, s.Split},
			{"sources", first.Source, s.Source}, {"targets", first.Target, s.Target}, {"weights", first.Weight, s.Weight},
			{"relations", first.Relation, s.Relation}} {
			if role[1] != role[2] {
				return nil, fmt.Errorf("align: the column of the %s must have one name at all sites (got %q at %s and %q at %s)", role[0], role[1], sites[0], role[2], sites[q])
			}
		}
		if s.Multi != first.Multi {
			return nil, fmt.Errorf("align: nodes have several labels at one of %s and %s, and one at the other", sites[0], sites[q])
		}
		for _, name := range s.Classes {
			classes[name] = true
		}
		for _, name := range s.Relations {
			relations[name] = true
		}
	}
	e.Relations = slices.Sorted(maps.Keys(relations))
	if err := dataset.CheckRelations(e.Relations); err != nil {
		return nil, fmt.Errorf("align: column %s, of all sites together: %w", e.Relation, err)
	}
	if e.Label != "" && len(classes) == 0 || len(classes) > dataset.MaxClasses {
		return nil, fmt.Errorf("align: column %s: all sites together must have 1 to %d classes (got %d)", e.Label, dataset.MaxClasses, len(classes))
	}
	e.Classes, e.Columns = dataset.SortNames(classes), nil
	if e.Label == "" {
		e.Classes = nil
	}
	for _, c := range first.Columns {
		column, err := agreeColumn(c.Name, sites, schemas)
		if err != nil {
			return nil, err
		}
		e.Columns = append(e.Columns, column)
	}
	for q, s := range schemas {
		for _, c := range s.Columns {
			if first.find(c.Name) < 0 {
				return nil, fmt.Errorf("align: %s has a column %.40q, which %s has not: add it there, or ignore it here", sites[q], c.Name, sites[0])
			}
		}
	}
	return &e, nil
}

func (s schema) find(name string) int {
	return slices.IndexFunc(s.Columns, func(c dataset.Column) bool { return c.Name == name })
}

// agreeColumn decides what becomes of one column. A site where it is empty has no say; texts that
// all differ at every site are ignored.
func agreeColumn(name string, sites []string, schemas []schema) (dataset.Column, error) {
	out, by, values, sparse := dataset.Column{Name: name}, -1, map[string]bool{}, true
	for q, s := range schemas {
		at := s.find(name)
		if at < 0 {
			return out, fmt.Errorf("align: %s has no column %.40q, which %s has: add it there, or ignore it here", sites[q], name, sites[0])
		}
		c := s.Columns[at]
		out.Missing = out.Missing || c.Missing
		if s.Empty[at] && c.Kind != dataset.Ignored {
			continue
		}
		if by >= 0 && c.Kind != out.Kind {
			return out, fmt.Errorf("align: column %.40q is %s at %s and %s at %s: correct the one, or say there what it is", name, out.Kind, sites[by], c.Kind, sites[q])
		}
		if by < 0 {
			by, out.Kind = q, c.Kind
		}
		sparse = sparse && s.Sparse[at]
		for _, v := range c.Values {
			values[v] = true
		}
	}
	if by < 0 || out.Kind == dataset.Categorical && sparse || out.Kind == dataset.Ignored {
		return dataset.Column{Name: name, Kind: dataset.Ignored}, nil
	}
	if out.Kind == dataset.Categorical {
		if out.Missing = false; len(values) > dataset.MaxTracked {
			return out, fmt.Errorf("align: column %.40q has more than %d categories at all sites together: ignore it", name, dataset.MaxTracked)
		}
		out.Values = slices.Sorted(maps.Keys(values))
	}
	return out, nil
}

// stats returns what the pass over the nodes found in the column of that name.
func (t *Tables) stats(name string) *dataset.ColumnStats {
	at := slices.IndexFunc(t.profile.Columns, func(c dataset.ColumnProfile) bool { return c.Name == name })
	return t.profile.Columns[at].Stats
}

// counts returns what the sites add up first, in the order of e's columns: of a numeric one how
// many numbers there are and their sum, of a categorical one how many nodes have each value.
func (t *Tables) counts(e *dataset.Encoding) (out []float32) {
	for _, c := range e.Columns {
		s := t.stats(c.Name)
		switch c.Kind {
		case dataset.Numeric:
			out = append(out, float32(s.Numbers), float32(s.Mean*float64(s.Numbers)))
		case dataset.Categorical:
			for _, v := range c.Values {
				out = append(out, float32(s.Count[v]))
			}
		}
	}
	return out
}

// squares returns what the sites add up next, once the counts are those of all: of each numeric
// column the sum of squared deviations from its mean over all sites.
func (t *Tables) squares(e *dataset.Encoding, counts []float32) (out []float32) {
	at := 0
	for _, c := range e.Columns {
		if c.Kind == dataset.Numeric {
			s := t.stats(c.Name)
			d := s.Mean - mean(counts[at:])
			out = append(out, float32(s.M2+float64(d*d)*float64(s.Numbers)))
		}
		at += sums(&c)
	}
	return out
}

// sums returns how many of counts are the column's.
func sums(c *dataset.Column) int {
	if c.Kind == dataset.Numeric {
		return 2
	}
	return len(c.Values)
}

func mean(counts []float32) float64 {
	if counts[0] == 0 {
		return 0
	}
	return float64(counts[1]) / float64(counts[0])
}

// fit completes an encoding that agree returned, from the counts and squares of all sites.
func fit(e *dataset.Encoding, counts, squares []float32) error {
	for k := range e.Columns {
		c := &e.Columns[k]
		n := sums(c)
		switch c.Kind {
		case dataset.Numeric:
			c.Mean, c.Std = mean(counts), 1
			if counts[0] > 0 && squares[0] > 0 {
				c.Std = math.Sqrt(float64(squares[0]) / float64(counts[0]))
			}
			if !(c.Std > 0 && c.Std <= math.MaxFloat64) || math.IsInf(c.Mean, 0) || math.IsNaN(c.Mean) {
				return fmt.Errorf("align: column %s: its numbers are too large to be standardised", c.Name)
			}
			squares = squares[1:]
		case dataset.Categorical:
			count := map[string]int{}
			for i, v := range c.Values {
				count[v] = int(counts[i])
			}
			c.Values = dataset.Frequent(count)
		}
		counts = counts[n:]
	}
	return nil
}

func ascending(values []string) bool {
	return slices.IsSorted(values) && len(slices.Compact(slices.Clone(values))) == len(values)
}
