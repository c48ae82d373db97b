package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds on the values of a categorical column: the most frequent maxValues of the first maxTracked that occur get a
// feature column each, all others share "other".
const (
	maxValues  = 256
	maxTracked = 1 << 14
)

// columnStats is what one pass over a column finds out.
type columnStats struct {
	numbers, missing int
	mean, m2         float64 // running mean and sum of squared deviations (Welford 1962)
	texts            int     // cells that are neither missing nor numbers
	line             int     // where the first of them stands
	text             string
	count            map[string]int
	overflow         bool // more distinct values than are counted
}

func (s *columnStats) add(cell string, line int) {
	cell = strings.TrimSpace(cell)
	if n, ok := s.count[cell]; ok || len(s.count) < maxTracked {
		if !ok {
			cell = strings.Clone(cell) // not the whole row's memory
		}
		s.count[cell] = n + 1
	} else {
		s.overflow = true
	}
	if missing(cell) {
		s.missing++
		return
	}
	v, ok := number(cell)
	if !ok {
		if s.texts == 0 {
			s.line, s.text = line, strings.Clone(cell)
		}
		s.texts++
		return
	}
	s.numbers++
	d := v - s.mean
	s.mean += d / float64(s.numbers)
	s.m2 += float64(d * (v - s.mean))
}

// column decides what becomes of the column; kind is the user's choice or "".
func (s *columnStats) column(t *table, at int, kind Kind) (Column, error) {
	c := Column{Name: t.columns[at], Kind: kind}
	distinct := len(s.count)
	switch {
	case kind == Numeric && s.texts > 0:
		return c, t.fault(s.line, at, "%.40q is not a number", s.text)
	case kind != "":
	case s.texts == 0 && s.numbers > 0:
		c.Kind = Numeric
	case s.numbers > 9*s.texts:
		return c, t.fault(s.line, at, "%.40q is not a number, though %d other cells are: correct it, or say whether the column is numeric, categorical or ignored", s.text, s.numbers)
	case s.texts == 0 || s.overflow || distinct > 1 && distinct == s.texts+s.numbers+min(s.missing, 1):
		c.Kind = Ignored // empty, or a text of its own in every row
	default:
		c.Kind = Categorical
	}
	switch c.Kind {
	case Numeric:
		c.Missing = s.missing > 0
		c.Mean, c.Std = s.mean, 1
		if s.numbers > 0 && s.m2 > 0 {
			c.Std = math.Sqrt(s.m2 / float64(s.numbers))
		}
		if !(c.Std > 0 && c.Std <= math.MaxFloat64) || math.IsInf(c.Mean, 0) {
			return c, fmt.Errorf("dataset: %s: column %s: its numbers are too large to be standardised", t.path, c.Name)
		}
	case Categorical:
		c.Values = frequent(s.count)
	}
	return c, nil
}

// frequent returns the values that get a feature column each, ascending.
func frequent(count map[string]int) []string {
	values := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	values = slices.Clone(values[:min(len(values), maxValues)])
	slices.Sort(values)
	return values
}

// fit reads the table of nodes once and decides how its columns become features, classes and sites; where edges have
// types, their table, for the names of these.
func (c *ImportConfig) fit() (*Encoding, error) {
	e := &Encoding{ID: c.ID, Label: c.Label, Multi: c.Multi, Split: c.Split, Site: c.Site, Source: c.Source, Target: c.Target, Weight: c.Weight, Relation: c.Relation}
	t, err := openTable(c.Nodes)
	if err != nil {
		return nil, err
	}
	defer t.close()
	kinds, err := c.kinds(t)
	if err != nil {
		return nil, err
	}
	stats, classes, labelled, err := c.survey(t, kinds)
	if err != nil {
		return nil, err
	}
	if c.Label != "" {
		if labelled == 0 {
			return nil, fmt.Errorf("dataset: %s: column %s: no node has a label", t.path, c.Label)
		}
		if !c.Multi && labelled > 2 && len(classes) == labelled {
			return nil, fmt.Errorf("dataset: %s: column %s: every one of the %d labels occurs once, want classes", t.path, c.Label, labelled)
		}
		e.Classes = sortedNames(classes)
	}
	roles := []string{e.ID, e.Label, e.Split, e.Site}
	for k, name := range t.columns {
		if name == "" || slices.Contains(roles, name) {
			continue
		}
		column := Column{Name: name, Kind: Ignored}
		if stats[k] != nil {
			if column, err = stats[k].column(t, k, kinds[k]); err != nil {
				return nil, err
			}
		}
		e.Columns = append(e.Columns, column)
	}
	e.Relations, err = c.relations()
	return e, err
}

// survey reads the table of nodes once: what its columns hold, its classes, and how many nodes have a label.
func (c *ImportConfig) survey(t *table, kinds []Kind) (stats []*columnStats, classes map[string]bool, labelled int, err error) {
	stats = make([]*columnStats, len(t.columns))
	for k := range stats {
		if kinds[k] != Ignored {
			stats[k] = &columnStats{count: map[string]int{}}
		}
	}
	label, e := t.find(c.Label), &Encoding{Multi: c.Multi}
	classes = map[string]bool{}
	err = t.each(func(cells []string, line int) error {
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
		if len(classes) > maxClasses {
			return t.fault(line, label, "more than %d classes", maxClasses)
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
func (c *ImportConfig) kinds(t *table) ([]Kind, error) {
	out := make([]Kind, len(t.columns))
	for k, name := range t.columns {
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
			at, err := t.column(name, list.field)
			if err != nil {
				return nil, err
			}
			if out[at] != "" {
				return nil, fmt.Errorf("dataset: %s: column %s has two roles, the second being %s", t.path, name, list.field)
			}
			out[at] = list.kind
		}
	}
	return out, nil
}

// sortedNames returns the keys of names: as numbers where all are, else as text.
func sortedNames(names map[string]bool) []string {
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
