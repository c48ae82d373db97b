package align

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/typed"
)

// schema is what one site sends the others of its table of nodes, so that all encode theirs alike:
// names, and no number.
type schema struct {
	dataset.Encoding // its columns without Mean and Std; an ignored one has no values
	Marks            []mark
	// Like is the SHA-256 of the encoding that this site reads by, if it asks no other: then there is nothing else.
	Like string
	few  map[string]int // texts of each column that too few nodes have: not sent

	// Of several types these, and nothing of the above but Merge and Like.
	Types  []typeSchema     `json:",omitempty"`
	Tables []relationSchema `json:",omitempty"`
}

// mark is what a site sends of a column besides its kind and categories.
type mark struct {
	Empty    bool // no cell here has a value
	Sparse   bool // most rows have a text here that no other row has
	Many     bool // more than table.Usual categories here, which are not sent unless Asked
	Asked    bool // the user asks for these categories
	DayFirst bool // dates can be read so
	MonFirst bool
	Unclear  bool `json:",omitempty"` // both, and the two readings give different dates
}

// schema returns what the other sites need to know.
func (t *Tables) schema() schema {
	if t.like != nil {
		sum := sha256.Sum256(t.cfg.Like)
		return schema{Like: hex.EncodeToString(sum[:])}
	}
	if !t.names.Untyped() {
		return t.typeSchemas()
	}
	return t.nodes[0].schema(t.cfg.MinTexts)
}

// schema describes one table of nodes, without the texts that fewer nodes than least have.
func (t *nodeTable) schema(least int) schema {
	s, p := schema{Encoding: t.ImportConfig.Encoding()}, t.profile
	of := told(p.Columns, least)
	s.Columns, s.Marks, s.few = of.Columns, of.Marks, of.few
	enough := func(column string, names []string, nodes func(name string) int) (out []string) {
		for _, name := range names {
			if nodes(name) >= least {
				out = append(out, name)
			} else {
				s.few[column]++
			}
		}
		return out
	}
	if s.Classes = p.Classes; s.ClassOrder == nil { // else the user lists them
		s.Classes = enough(s.Label, p.Classes, func(name string) int { return p.Nodes[name] })
	}
	if s.Relations = p.Relations; p.Apart != nil {
		s.Relations = enough(s.Relation, p.Relations, p.Apart.Count)
	}
	if t.Edges != "" {
		s.Tables = []relationSchema{{Columns: told(p.Edges, least)}}
	}
	return s
}

// columnSchema is what a site sends of the columns of a table, with a mark for each.
type columnSchema struct {
	Columns []table.Column
	Marks   []mark
	few     map[string]int // texts of each column that too few nodes have: not sent
}

// texts returns the columns whose texts are sent.
func (s *columnSchema) texts(table string) (list []Texts) {
	for _, c := range s.Columns {
		if len(c.Values) > 0 || s.few[c.Name] > 0 {
			list = append(list, Texts{Column: table + c.Name, Sent: c.Values, Few: s.few[c.Name]})
		}
	}
	return list
}

// valid checks it.
func (s *columnSchema) valid() error {
	if len(s.Marks) != len(s.Columns) {
		return fmt.Errorf("%d marks for %d columns", len(s.Marks), len(s.Columns))
	}
	for _, c := range s.Columns {
		if c.Std = 1; len(c.Values) > table.MaxTracked { // Std is agreed on later
			return fmt.Errorf("column %.40q must have at most %d values (got %d)", c.Name, table.MaxTracked,
				len(c.Values))
		}
		if err := c.Valid(); err != nil {
			return err
		}
	}
	return nil
}

// told returns what a site sends about columns: no text that fewer than `least` nodes have.
func told(found []dataset.ColumnProfile, least int) (s columnSchema) {
	s.few = map[string]int{}
	for _, p := range found {
		c, m := table.Column{Name: p.Name, Kind: p.Kind}, mark{}
		if stats := p.Stats; stats != nil {
			c.Missing, c.Clock, c.Until, c.Width, c.Seed = p.Missing, p.Clock, p.Until, p.Width, p.Seed
			m.Empty = stats.Cells() == 0
			if c.Kind == table.Ignored { // whether it is, the sites decide together
				c.Kind = table.Categorical
			}
			switch c.Kind {
			case table.Date, table.Age:
				m.DayFirst, m.MonFirst = stats.Orders()
				m.Unclear = m.DayFirst && m.MonFirst && stats.Ambiguous()
			case table.Categorical:
				distinct, _ := stats.Values()
				m.Asked = stats.Asked != nil
				m.Sparse, m.Many = stats.Sparse(), stats.Overflow || distinct > table.Usual
				if m.Asked || !m.Many && !m.Sparse {
					c.Values, s.few[c.Name] = stats.Shared(least)
				}
			}
		}
		s.Columns, s.Marks = append(s.Columns, c), append(s.Marks, m)
	}
	return s
}

// Texts are the texts of one column that the other sites get.
type Texts struct {
	Column string
	Name   bool // these are names of classes or relations
	Sent   []string
	Few    int // texts that too few nodes have: not sent
}

// Sent is what the other sites get of the tables, except sums and numbers.
type Sent struct {
	Columns []string       // names of all columns
	Texts   []Texts        // of columns
	Names   map[string]int // nodes of each other site whose names it gets
}

// Told lists the columns with texts that are sent.
func (s *Sent) Told() (columns []string) {
	for _, t := range s.Texts {
		if !t.Name && len(t.Sent) > 0 {
			columns = append(columns, t.Column)
		}
	}
	return columns
}

// Sends returns what the other sites get.
func (t *Tables) Sends() Sent {
	s, out := t.schema(), Sent{Names: t.named}
	add := func(table string, of *columnSchema) {
		for _, c := range of.Columns {
			out.Columns = append(out.Columns, table+c.Name)
		}
		out.Texts = append(out.Texts, of.texts(table)...)
	}
	nodes := func(table string, s *schema) {
		for _, c := range [...]Texts{{Column: s.Label, Sent: s.Classes}, {Column: s.Relation, Sent: s.Relations}} {
			if c.Column == "" || s.Regression && c.Column == s.Label {
				continue
			}
			out.Texts = append(out.Texts, Texts{table + c.Column, true, c.Sent, s.few[c.Column]})
		}
		add(table, s.columns())
	}
	for _, of := range s.types() {
		nodes(t.names.Prefix(of.Type, "."), &of.Schema)
	}
	for k := range s.Tables {
		add(t.names.Prefix(s.Tables[k].name(), "."), &s.Tables[k].Columns)
	}
	return out
}

// allClasses is what to do about a class that too few nodes have.
const allClasses = "give option class-order with all classes at every site"

// unsent refuses a class or relation of this site that no site sent.
func (t *Tables) unsent(a *typed.Encodings) error {
	for k := range a.Nodes {
		n := t.table(a.Nodes[k].Type)
		if n == nil || n.profile == nil {
			continue
		}
		for _, of := range []struct {
			column      string
			found, sent []string
			remedy      string
		}{{n.Label, n.profile.Classes, a.Nodes[k].Of.Classes, "or " + allClasses},
			{n.Relation, n.profile.Relations, a.Relations().Relations,
				"or give each relation a table (option edges, SOURCE-RELATION-TARGET=FILE)"}} {
			for _, name := range of.found {
				if of.column != "" && !slices.Contains(of.sent, table.NewSpellings(of.sent).Find(name)) {
					return fmt.Errorf("%s: column %s: %.40q must be of at least %d nodes at one of the sites, "+
						"as it is not sent otherwise: correct it, leave it empty, %s",
						n.Nodes, of.column, name, t.cfg.MinTexts, of.remedy)
				}
			}
		}
	}
	return nil
}

// columns returns the columns of the table of nodes.
func (s *schema) columns() *columnSchema { return &columnSchema{s.Encoding.Columns, s.Marks, s.few} }

// encode returns the schema as it is sent.
func (s schema) encode() ([]byte, error) { return json.Marshal(s) }

// parseSchema reads what encode wrote, and refuses what no site could have found.
func parseSchema(text []byte) (s schema, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("schema: %w", err)
	}
	if err := s.validTypes(); err != nil {
		return s, fmt.Errorf("schema: %w", err)
	}
	return s, s.valid()
}

// valid checks what a site sends of one table of nodes.
func (s *schema) valid() error {
	if len(s.Classes) > dataset.MaxClasses {
		return fmt.Errorf("schema: classes must be at most %d (got %d)", dataset.MaxClasses, len(s.Classes))
	}
	if err := dataset.CheckRelations(s.Relations); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if err := s.columns().valid(); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	return nil
}

// agree returns the encoding that the sites' schemas make together, in the first one's order of
// columns, for fit to complete. An error names the sites that differ.
func agree(sites []string, schemas []schema) (*dataset.Encoding, error) {
	if k := slices.IndexFunc(schemas, func(s schema) bool { return s.Label != "" }); k >= 0 {
		by := schemas[k]
		schemas = slices.Clone(schemas)
		for q := range schemas {
			if s := &schemas[q]; s.Label == "" { // a site without labels needs no empty column of them
				s.Label, s.Split, s.SplitTime = by.Label, by.Split, by.SplitTime
				s.Multi, s.Regression, s.ClassOrder = by.Multi, by.Regression, by.ClassOrder
			}
		}
	}
	first := schemas[0]
	e := first.Encoding
	e.Site = "" // each site's own affair
	// Sites that have each.
	classes, relations := map[string]int{}, map[string]int{}
	for q, s := range schemas {
		for _, role := range [][3]string{{"names of the nodes", first.ID, s.ID}, {"labels", first.Label, s.Label},
			{"splits", first.Split, s.Split}, {"sources", first.Source, s.Source}, {"targets", first.Target, s.Target},
			{"weights", first.Weight, s.Weight}, {"relations", first.Relation, s.Relation},
			{"split by time and its dates", first.SplitTime, s.SplitTime}} {
			if role[1] != role[2] {
				return nil, fmt.Errorf("the column of the %s must have one name at all sites "+
					"(got %q at %s and %q at %s)", role[0], role[1], sites[0], role[2], sites[q])
			}
		}
		if s.Multi != first.Multi {
			return nil, fmt.Errorf("nodes have several labels at one of %s and %s, and one at the other",
				sites[0], sites[q])
		}
		if s.Regression != first.Regression {
			return nil, fmt.Errorf("labels are numbers (regression) at one of %s and %s, "+
				"and classes at the other", sites[0], sites[q])
		}
		if !slices.Equal(s.ClassOrder, first.ClassOrder) {
			return nil, fmt.Errorf("the order of classes must be the same at all sites "+
				"(got %q at %s and %q at %s)", first.ClassOrder, sites[0], s.ClassOrder, sites[q])
		}
		for _, name := range s.Classes {
			classes[name]++
		}
		for _, name := range s.Relations {
			relations[name]++
		}
	}
	e.Relations = slices.Sorted(maps.Keys(relations))
	if err := cmp.Or(dataset.CheckRelations(e.Relations), dataset.OneSpelling(e.Relations)); err != nil {
		return nil, fmt.Errorf("column %s, of all sites together: %w", e.Relation, err)
	}
	table.Unite(classes, e.ClassOrder...) // facts name them
	if e.Label != "" && !e.Regression && len(classes) == 0 || len(classes) > dataset.MaxClasses {
		return nil, fmt.Errorf("column %s: all sites together must have 1 to %d classes, each of enough "+
			"nodes of a site to be sent (got %d): "+allClasses, e.Label, dataset.MaxClasses, len(classes))
	}
	e.Classes, e.Columns = dataset.SortNames(classes), nil
	if e.ClassOrder != nil {
		e.Classes = e.ClassOrder
	}
	if e.Label == "" || e.Regression {
		e.Classes = nil
	}
	of := make([]columnSchema, len(schemas))
	for q := range schemas {
		of[q] = *schemas[q].columns()
	}
	var err error
	e.Columns, err = agreeColumns(sites, of)
	return &e, err
}

// agreeColumns decides what becomes of the columns of a table, in the first site's order.
func agreeColumns(sites []string, schemas []columnSchema) (out []table.Column, err error) {
	place := make([]map[string]int, len(schemas)) // of each column
	for q, s := range schemas {
		place[q] = make(map[string]int, len(s.Columns))
		for k, c := range s.Columns {
			place[q][c.Name] = k
		}
	}
	for _, c := range schemas[0].Columns {
		one, err := agreeColumn(c.Name, sites, schemas, place)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	for q, s := range schemas {
		for _, c := range s.Columns {
			if _, ok := place[0][c.Name]; !ok {
				return nil, fmt.Errorf("%s has a column %.40q, which %s has not%s: add it there, or "+
					"ignore it here",
					sites[q], c.Name, sites[0], writes(sites[0], c.Name, schemas[0]))
			}
		}
	}
	return out, nil
}

// writes reports another spelling of the name of a column at a site; "" if it has none.
func writes(site, name string, s columnSchema) string {
	var names []string
	for _, c := range s.Columns {
		names = append(names, c.Name)
	}
	other := table.NewSpellings(names).Find(name)
	if other == name {
		return ""
	}
	return fmt.Sprintf(" (%s has %.40q)", site, other)
}

// agreeColumn decides what becomes of one column, whose place at each site place has. A site with no value in it has no
// say. Texts that mostly differ at every site are ignored, and so are more categories than table.Usual, unless a user
// asks for them.
func agreeColumn(name string, sites []string, schemas []columnSchema, place []map[string]int) (table.Column, error) {
	out, by, values := table.Column{Name: name}, -1, map[string]int{} // sites that have each
	sparse, many, asked, unclear := true, -1, -1, -1                  // and a site of each kind
	day, month := true, true
	for q, s := range schemas {
		at, ok := place[q][name]
		if !ok {
			return out, fmt.Errorf("%s has no column %.40q, which %s has%s: add it there, or ignore it here",
				sites[q], name, sites[0], writes(sites[q], name, s))
		}
		c, m := s.Columns[at], s.Marks[at]
		missing, clock := out.Missing || c.Missing, out.Clock || c.Clock
		if m.Empty && c.Kind != table.Ignored {
			out.Missing = missing
			continue
		}
		if by >= 0 && c.Kind != out.Kind {
			return out, fmt.Errorf("column %.40q is %s at %s and %s at %s: correct the one, "+
				"or say there what it is", name, out.Kind, sites[by], c.Kind, sites[q])
		}
		if by >= 0 && (c.Until != out.Until || c.Width != out.Width || c.Seed != out.Seed) {
			return out, fmt.Errorf("column %.40q must be asked for alike at all sites "+
				"(got %s at %s and %s at %s)", name, form(out), sites[by], form(c), sites[q])
		}
		if by < 0 {
			by, out = q, table.Column{Name: name, Kind: c.Kind, Until: c.Until, Width: c.Width, Seed: c.Seed}
		}
		out.Missing, out.Clock = missing, clock
		sparse, day, month = sparse && m.Sparse, day && m.DayFirst, month && m.MonFirst
		if m.Unclear {
			unclear = q
		}
		if m.Many {
			many = q
		}
		if m.Asked {
			asked = q
		}
		for _, v := range c.Values {
			values[v]++
		}
	}
	switch {
	case by < 0 || out.Kind == table.Ignored:
		return table.Column{Name: name, Kind: table.Ignored}, nil
	case out.Kind == table.Date || out.Kind == table.Age:
		if out.MonthFirst = !day; day || month {
			break
		}
		if unclear >= 0 {
			return out, fmt.Errorf("the dates of column %.40q are day first at one site and month "+
				"first at another, "+
				"and at %s they can be either: say there which (option date %.40s:dmy or :mdy)", name,
				sites[unclear], name)
		}
		out.MonthFirst = !schemas[by].Marks[place[by][name]].DayFirst // each site reads its own
	case out.Kind == table.Categorical:
		return agreeValues(out, values, sparse, many, asked, sites, schemas, place)
	}
	return out, nil
}

// agreeValues decides what becomes of a column of categories; many and asked are sites with too many and with a user
// who asks for all of them (−1 = none).
func agreeValues(out table.Column, values map[string]int, sparse bool, many, asked int, sites []string,
	schemas []columnSchema, place []map[string]int) (table.Column, error) {
	out.Missing = false
	if _, empty := values[""]; len(values) == 0 || len(values) == 1 && empty {
		return table.Column{Name: out.Name, Kind: table.Ignored}, nil // too few nodes have each text
	}
	table.Unite(values)
	if asked < 0 && (sparse || many >= 0 || len(values) > table.Usual+1) { // and one for empty cells
		return table.Column{Name: out.Name, Kind: table.Ignored}, nil
	}
	for q, s := range schemas {
		at := place[q][out.Name]
		if m := s.Marks[at]; asked >= 0 && !m.Asked && !m.Empty && (m.Many || m.Sparse) {
			return out, fmt.Errorf("%s asks for column %.40q (option categorical), and at %s it has too many "+
				"categories: all sites must ask for it, or none", sites[asked], out.Name, sites[q])
		}
	}
	if len(values) > table.MaxTracked {
		return out, fmt.Errorf("column %.40q has more than %d categories at all sites together: ignore it",
			out.Name, table.MaxTracked)
	}
	out.Values = slices.Sorted(maps.Keys(values))
	return out, nil
}

// form writes what a user asks of a column.
func form(c table.Column) string {
	switch c.Kind {
	case table.Text:
		return fmt.Sprintf("%d columns of words, seed %d", c.Width, c.Seed)
	case table.Age:
		return "years until " + c.Until
	}
	return string(c.Kind)
}
