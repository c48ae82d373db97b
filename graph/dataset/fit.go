package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// Bounds on the values of a categorical column: the most frequent maxValues of the first MaxTracked
// that occur get a feature column each, all others share "other".
const (
	maxValues  = 256
	MaxTracked = 1 << 14
)

// ColumnStats is what one pass over a column finds out.
type ColumnStats struct {
	Numbers, Missing int
	Mean, M2         float64 // running mean and sum of squared deviations (Welford 1962)
	Texts            int     // cells that are neither missing nor numbers
	line             int     // where the first of them stands
	text             string
	Count            map[string]int
	Overflow         bool // more distinct values than are counted
}

func (s *ColumnStats) add(cell string, line int) {
	cell = strings.TrimSpace(cell)
	if n, ok := s.Count[cell]; ok || len(s.Count) < MaxTracked {
		if !ok {
			cell = strings.Clone(cell) // not the whole row's memory
		}
		s.Count[cell] = n + 1
	} else {
		s.Overflow = true
	}
	if missing(cell) {
		s.Missing++
		return
	}
	v, ok := table.Number(cell)
	if !ok {
		if s.Texts == 0 {
			s.line, s.text = line, strings.Clone(cell)
		}
		s.Texts++
		return
	}
	s.Numbers++
	d := v - s.Mean
	s.Mean += d / float64(s.Numbers)
	s.M2 += float64(d * (v - s.Mean))
}

// column decides what becomes of the column; kind is the user's choice or "".
func (s *ColumnStats) column(t *table.Table, at int, kind Kind) (Column, error) {
	c := Column{Name: t.Columns[at], Kind: kind}
	distinct := len(s.Count)
	switch {
	case kind == Numeric && s.Texts > 0:
		return c, t.Fault(s.line, at, "%.40q is not a number", s.text)
	case kind != "":
	case s.Texts == 0 && s.Numbers > 0:
		c.Kind = Numeric
	case s.Numbers > 9*s.Texts:
		return c, t.Fault(s.line, at, "%.40q is not a number, though %d other cells are: correct it, or say whether the column is numeric, categorical or ignored", s.text, s.Numbers)
	case s.Texts == 0 || s.Overflow || distinct > 1 && distinct == s.Texts+s.Numbers+min(s.Missing, 1):
		c.Kind = Ignored // empty, or a text of its own in every row
	default:
		c.Kind = Categorical
	}
	switch c.Kind {
	case Numeric:
		c.Missing = s.Missing > 0
		c.Mean, c.Std = s.Mean, 1
		if s.Numbers > 0 && s.M2 > 0 {
			c.Std = math.Sqrt(s.M2 / float64(s.Numbers))
		}
		if !(c.Std > 0 && c.Std <= math.MaxFloat64) || math.IsInf(c.Mean, 0) {
			return c, fmt.Errorf("dataset: %s: column %s: its numbers are too large to be standardised", t.Path, c.Name)
		}
	case Categorical:
		c.Values = Frequent(s.Count)
	}
	return c, nil
}

// Frequent returns the values that get a feature column each, ascending.
func Frequent(count map[string]int) []string {
	values := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	values = slices.Clone(values[:min(len(values), maxValues)])
	slices.Sort(values)
	return values
}

// Profile is what a first pass over a user's tables finds: for who encodes the tables of several
// owners alike.
type Profile struct {
	Config    ImportConfig    // with its defaults
	Columns   []ColumnProfile // those without a role, in the table's order
	Classes   []string        // ordered as numbers where all are, else as text
	Relations []string        // of the table of edges, ascending
	labelled  int             // nodes that have a label
}

// ColumnProfile is one column of a table of nodes.
type ColumnProfile struct {
	Column              // what Import makes of it
	Stats  *ColumnStats // nil: the user ignores it
}

// Profile reads the table of nodes once and, where edges have types, the table of edges for the
// names of these.
func (c ImportConfig) Profile() (*Profile, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	t, err := table.Open(c.Nodes)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	kinds, err := c.kinds(t)
	if err != nil {
		return nil, err
	}
	stats, classes, labelled, err := c.scan(t, kinds)
	if err != nil {
		return nil, err
	}
	p := &Profile{Config: c, Classes: SortNames(classes), labelled: labelled}
	roles := []string{c.ID, c.Label, c.Split, c.Site}
	for k, name := range t.Columns {
		if name == "" || slices.Contains(roles, name) {
			continue
		}
		column := ColumnProfile{Column{Name: name, Kind: Ignored}, stats[k]}
		if stats[k] != nil {
			if column.Column, err = stats[k].column(t, k, kinds[k]); err != nil {
				return nil, err
			}
		}
		p.Columns = append(p.Columns, column)
	}
	p.Relations, err = c.relations()
	return p, err
}

// Encoding returns an encoding with the roles that the user gave to columns, and nothing of what
// the tables hold.
func (c ImportConfig) Encoding() Encoding {
	return Encoding{ID: c.ID, Label: c.Label, Multi: c.Multi, Split: c.Split, Site: c.Site, Source: c.Source, Target: c.Target,
		Weight: c.Weight, Relation: c.Relation}
}

// fit decides how the columns of the table of nodes become features, classes and sites.
func (c *ImportConfig) fit() (*Encoding, error) {
	p, err := c.Profile()
	if err != nil {
		return nil, err
	}
	e := c.Encoding()
	if c.Label != "" {
		if p.labelled == 0 {
			return nil, fmt.Errorf("dataset: %s: column %s: no node has a label", c.Nodes, c.Label)
		}
		if !c.Multi && p.labelled > 2 && len(p.Classes) == p.labelled {
			return nil, fmt.Errorf("dataset: %s: column %s must hold classes (got %d labels, each once)", c.Nodes, c.Label, p.labelled)
		}
		e.Classes = p.Classes
	}
	for _, column := range p.Columns {
		e.Columns = append(e.Columns, column.Column)
	}
	e.Relations = p.Relations
	return &e, nil
}

// scan reads the table of nodes once: what its columns hold, its classes, and how many nodes have a
// label.
func (c *ImportConfig) scan(t *table.Table, kinds []Kind) (stats []*ColumnStats, classes map[string]bool, labelled int, err error) {
	stats = make([]*ColumnStats, len(t.Columns))
	for k := range stats {
		if kinds[k] != Ignored {
			stats[k] = &ColumnStats{Count: map[string]int{}}
		}
	}
	label, e := t.Find(c.Label), &Encoding{Multi: c.Multi}
	classes = map[string]bool{}
	err = t.Each(func(cells []string, line int) error {
		for k, s := range stats {
			if s != nil {
				s.add(cells[k], line)
			}
		}
		if label < 0 {
			return nil
		}
		found := e.split(cells[label])
		labelled += min(1, len(found))
		for _, name := range found {
			if !classes[name] {
				classes[strings.Clone(name)] = true
			}
		}
		if len(classes) > MaxClasses {
			return t.Fault(line, label, "more than %d classes", MaxClasses)
		}
		return nil
	})
	return stats, classes, labelled, err
}

// split returns the labels in a cell; none where it is empty or NaN. "none" may be a class.
func (e *Encoding) split(cell string) []string {
	cell = strings.TrimSpace(cell)
	if cell == "" || strings.EqualFold(cell, "nan") {
		return nil
	}
	if !e.Multi {
		return []string{cell}
	}
	var out []string
	for name := range strings.SplitSeq(cell, ";") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// kinds returns the user's choice for every column; Ignored for the columns that have another role.
func (c *ImportConfig) kinds(t *table.Table) ([]Kind, error) {
	out := make([]Kind, len(t.Columns))
	for k, name := range t.Columns {
		if name == "" {
			out[k] = Ignored
		}
	}
	for _, list := range []struct {
		field string
		names []string
		kind  Kind
	}{
		{"ID", []string{c.ID}, Ignored}, {"Label", []string{c.Label}, Ignored}, {"Split", []string{c.Split}, Ignored}, {"Site", []string{c.Site}, Ignored},
		{"Numeric", c.Numeric, Numeric}, {"Categorical", c.Categorical, Categorical}, {"Ignore", c.Ignore, Ignored},
	} {
		for _, name := range list.names {
			if name == "" {
				continue
			}
			at, err := t.Column(name, list.field)
			if err != nil {
				return nil, err
			}
			if out[at] != "" {
				return nil, fmt.Errorf("dataset: %s: column %s has two roles, the second being %s", t.Path, name, list.field)
			}
			out[at] = list.kind
		}
	}
	return out, nil
}

// SortNames returns the keys of names: as numbers where all are, else as text.
func SortNames(names map[string]bool) []string {
	numeric := true
	for name := range names {
		if _, err := strconv.ParseInt(name, 10, 64); err != nil {
			numeric = false
		}
	}
	return slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		if numeric {
			x, _ := strconv.ParseInt(a, 10, 64)
			y, _ := strconv.ParseInt(b, 10, 64)
			if x != y {
				return cmp.Compare(x, y)
			}
		}
		return cmp.Compare(a, b)
	})
}
