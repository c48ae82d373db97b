package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// Profile is the result of a first pass over a user's tables, with which the tables of several owners can be encoded
// alike.
type Profile struct {
	Config    ImportConfig    // with its defaults
	Columns   []ColumnProfile // columns without a role, in the table's order
	Classes   []string        // in the given order, else as numbers if all are numbers, else as text
	Nodes     map[string]int  // nodes of each class
	Relations []string        // relations in the table of edges, ascending
	Apart     table.Apart     // edges of each; nil if the user names the relations
	Edges     []ColumnProfile // EdgeColumns of the table of edges
	Spelled   []string        // classes with several spellings, as table.Unite writes them
	labelled  int             // number of nodes with a label
}

// ColumnProfile is one column of a table of nodes.
type ColumnProfile struct {
	table.Column              // what Import makes of it
	Why          string       // why it is ignored ("" = the user asks for it)
	Stats        *table.Stats // nil = the user ignores it
}

// Profile reads the table of nodes once and, if edges have types, the table of edges for the types' names.
func (c ImportConfig) Profile() (*Profile, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	s, err := c.scan(nil)
	if err != nil {
		return nil, err
	}
	if err := s.complete(c.scan); err != nil {
		return nil, err
	}
	c.ID = s.id
	spelled := table.Unite(s.classes, c.ClassOrder...)
	p := &Profile{Config: c, Classes: SortNames(s.classes), Nodes: s.classes, Spelled: spelled, labelled: s.labelled}
	if c.ClassOrder != nil {
		for _, name := range p.Classes {
			if !slices.Contains(c.ClassOrder, name) {
				return nil, fmt.Errorf("%s: column %s: the order of classes must name all of them (got no %q)",
					c.Nodes, c.Label, name)
			}
		}
		p.Classes = c.ClassOrder
	}
	roles := []string{c.ID, c.Label, c.Split, c.Site}
	for k, name := range s.names {
		if name == "" || slices.Contains(roles, name) {
			continue
		}
		one := ColumnProfile{Column: table.Column{Name: name, Kind: table.Ignored}, Stats: s.stats[k]}
		if one.Stats != nil {
			one.Column, one.Why = one.Stats.Column(name)
		}
		p.Columns = append(p.Columns, one)
	}
	if p.Relations, p.Apart, err = c.relations(); err != nil {
		return nil, err
	}
	p.Edges, err = c.ProfileEdges()
	return p, err
}

// Encoding returns an encoding with the roles that the user gave to columns, and nothing from the tables' contents.
func (c ImportConfig) Encoding() Encoding {
	return Encoding{ID: c.ID, Label: c.Label, Multi: c.Multi, Regression: c.Regression, ClassOrder: c.ClassOrder,
		Split: c.Split, Site: c.Site, Source: c.Source, Target: c.Target, Weight: c.Weight, Relation: c.Relation,
		Merge: c.Merge, Directed: c.Directed, SplitTime: c.SplitTime}
}

// Local returns the encoding that Import makes of the tables.
func (p *Profile) Local() (*Encoding, error) {
	e, c := p.Encoding(), &p.Config
	e.Missing = c.Format.Missing // with several sites, each site has its own
	if c.Label != "" {
		if p.labelled == 0 {
			return nil, fmt.Errorf("%s: column %s: no node has a label", c.Nodes, c.Label)
		}
		if !c.Multi && !c.Regression && c.ClassOrder == nil && p.labelled > 2 && len(p.Classes) == p.labelled {
			return nil, fmt.Errorf("%s: column %s must hold classes (got %d labels, each once): "+
				"give option regression for numbers", c.Nodes, c.Label, p.labelled)
		}
		if len(p.Classes) == 1 && !c.Multi {
			return nil, fmt.Errorf("%s: column %s must have at least two classes (got %s only)", c.Nodes,
				c.Label, p.Classes[0])
		}
	}
	return e, c.CheckEdges(p.Edges)
}

// Encoding is Local without its checks.
func (p *Profile) Encoding() *Encoding {
	e := p.Config.Encoding()
	e.Classes, e.Relations, e.EdgeColumns = p.Classes, p.Relations, EdgeFeatures(p.Edges)
	for _, one := range p.Columns {
		e.Columns = append(e.Columns, one.Column)
	}
	return &e
}

// scanned is the result of one pass over a table of nodes.
type scanned struct {
	names    []string // names of the columns
	id       string   // the column of the nodes' names
	stats    []*table.Stats
	classes  map[string]int // nodes of each class
	labelled int            // number of nodes with a label
}

// complete calls scan again for the columns whose values the first pass began to count too late.
func (s *scanned) complete(scan func(only map[int]*table.Stats) (*scanned, error)) error {
	again := map[int]*table.Stats{}
	for k, one := range s.stats {
		if one != nil {
			if next := one.Again(); next != nil {
				again[k], s.stats[k] = next, next
			}
		}
	}
	if len(again) == 0 {
		return nil
	}
	_, err := scan(again)
	return err
}

// scan reads the table of nodes once: its columns' contents, its classes, and how many nodes have a label. If only is
// not nil, it computes the statistics of only these columns.
func (c *ImportConfig) scan(only map[int]*table.Stats) (*scanned, error) {
	t, err := table.Open(c.Nodes, c.Format)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	s := &scanned{names: t.Columns, id: cmp.Or(c.ID, t.NameColumn()), stats: make([]*table.Stats, len(t.Columns)),
		classes: map[string]int{}}
	if only == nil {
		if err := c.begin(t, s); err != nil {
			return nil, err
		}
	}
	var at []int // columns with statistics
	for k := range s.stats {
		if only[k] != nil {
			s.stats[k] = only[k]
		}
		if s.stats[k] != nil {
			at = append(at, k)
		}
	}
	t.Leave(func(k int) bool { return !slices.Contains(c.Ignore, t.Columns[k]) })
	label, e := t.Find(c.Label), &Encoding{Multi: c.Multi, Classes: c.ClassOrder}
	return s, t.Each(func(cells []string, line int) error {
		for _, k := range at {
			s.stats[k].Add(t, cells[k], line)
		}
		if label < 0 || only != nil {
			return nil
		}
		found := e.split(t.Cell(cells[label]))
		s.labelled += min(1, len(found))
		if c.Regression {
			return nil
		}
		for _, name := range found {
			s.classes[strings.Clone(name)]++
		}
		if len(s.classes) > MaxClasses {
			return t.Fault(line, label, "more than %d classes", MaxClasses)
		}
		return nil
	})
}

// split returns the labels in a cell; none if the text means that there is no value, unless a class has that name.
func (e *Encoding) split(cell string) (out []string) {
	cells := []string{cell}
	if e.Multi {
		cells = strings.Split(cell, ";")
	}
	for _, name := range cells {
		name = strings.TrimSpace(name)
		if !table.Missing(name) || name != "" && slices.Contains(e.Classes, name) {
			out = append(out, name)
		}
	}
	return out
}

// begin makes the statistics of the columns, with the user's wishes for each: none for columns that the user ignores or
// that have another role.
func (c *ImportConfig) begin(t *table.Table, s *scanned) error {
	list, err := c.asked()
	if err != nil {
		return err
	}
	if by, _ := parseTimeSplit(c.SplitTime); by != nil { // Validate has checked it
		if _, err := t.Column(by.Column, "the split by time, option split-time"); err != nil {
			return err
		}
	}
	role := make([]bool, len(t.Columns))
	all := []asked{{table.Column{Name: s.id}, "the nodes' names, option id-column"}, {table.Column{Name: c.Label},
		"the labels, option label-column"}, {table.Column{Name: c.Split}, "the splits, option split-column"},
		{table.Column{Name: c.Site}, "the nodes' owners, option site-column"}}
	for _, a := range append(all, list...) {
		if a.Name == "" {
			continue
		}
		at, err := t.Column(a.Name, a.role)
		if err != nil && slices.ContainsFunc(t.Columns, func(c string) bool {
			return strings.Contains(c, ",") && strings.Contains(c, a.Name)
		}) {
			err = fmt.Errorf("%w; a name with a comma needs quotes: '\"a, b\"'", err)
		}
		if err != nil {
			return err
		}
		if role[at] {
			return fmt.Errorf("%s: column %s must have one role (got another, too: %s)", t.Path, a.Name,
				a.role)
		}
		role[at] = true
		if a.Kind != "" && a.Kind != table.Ignored {
			s.stats[at] = &table.Stats{Asked: &a.Column}
		}
	}
	for k, name := range t.Columns {
		if name != "" && !role[k] {
			s.stats[k] = &table.Stats{}
		}
		if wrong := t.Unread[name]; wrong != nil && s.stats[k] != nil {
			err = errors.Join(err,
				fmt.Errorf("%s: column %s: %w: ignore the column to leave it out", t.Path, name, wrong))
		}
	}
	return err
}

// asked is the user's wish for a column.
type asked struct {
	table.Column
	role string
}

// asked returns the user's wishes for the columns.
func (c *ImportConfig) asked() (out []asked, err error) {
	for _, list := range []struct {
		role  string
		names []string
		kind  table.ColumnKind
	}{{"numeric columns, option numeric", c.Numeric, table.Numeric},
		{"categorical columns, option categorical", c.Categorical, table.Categorical},
		{"ignored columns, option ignore", c.Ignore, table.Ignored}} {
		for _, name := range list.names {
			out = append(out, asked{table.Column{Name: name, Kind: list.kind}, list.role})
		}
	}
	for _, text := range c.Text {
		name, width, _ := cutLast(text)
		n, err := strconv.Atoi(width)
		if err != nil || n < 1 || n > table.MaxWidth {
			return nil, fmt.Errorf("text must be COLUMN:WIDTH, the width 1 to %d (got %q)",
				table.MaxWidth, text)
		}
		out = append(out, asked{table.Column{Name: name, Kind: table.Text, Width: n, Seed: c.Seed},
			"text columns, option text"})
	}
	for _, text := range c.Date {
		name, order, ok := cutLast(text)
		if ok && order != "dmy" && order != "mdy" {
			name, order = text, "" // the column's own name has a colon
		}
		out = append(out, asked{table.Column{Name: name, Kind: table.Date, MonthFirst: order == "mdy",
			DayFirst: order == "dmy"},
			"date columns, option date"})
	}
	for _, text := range c.Age {
		name, until, _ := cutLast(text)
		if _, ok := table.ParseDate(until, false); !ok {
			return nil, fmt.Errorf("age must be COLUMN:DATE, the date year-month-day (got %q)", text)
		}
		out = append(out, asked{table.Column{Name: name, Kind: table.Age, Until: until}, "age columns, option age"})
	}
	return out, nil
}

// cutLast cuts text at its last colon.
func cutLast(text string) (before, after string, found bool) {
	if k := strings.LastIndexByte(text, ':'); k >= 0 {
		return text[:k], text[k+1:], true
	}
	return text, "", false
}

// SortNames returns the keys of names in order: as numbers if all are whole ones, else as text.
func SortNames[V any](names map[string]V) []string {
	numeric := true
	for name := range names {
		if _, err := strconv.ParseInt(table.Key(name), 10, 64); err != nil {
			numeric = false
		}
	}
	return slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		if numeric {
			x, _ := strconv.ParseInt(table.Key(a), 10, 64)
			y, _ := strconv.ParseInt(table.Key(b), 10, 64)
			if x != y {
				return cmp.Compare(x, y)
			}
		}
		return cmp.Compare(a, b)
	})
}
