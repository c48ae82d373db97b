package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
)

// SiteConfig says where one site's tables are, of a graph that several sites hold together without pooling it. The
// table of nodes has the site's own nodes only. An edge to a node of another site has that site's name in a column;
// where both sites list it, it counts once.
type SiteConfig struct {
	ImportConfig
	Here       string // this site's name; where the nodes' table has a column Site, each of its cells
	SourceSite string // column of Edges with the site of the source: an empty cell is Here; "": all sources are here
	TargetSite string // the same for the target
}

// Survey is what one site tells the others of its table of nodes, so that all encode theirs alike: names, and no
// number.
type Survey struct {
	Encoding        // its columns without Mean and Std; an ignored one has no values
	Sparse   []bool // of each column: every row has a text of its own here, or more than are counted
	Empty    []bool // of each column: no cell here has a value
}

// SiteTables is a site's tables on the way to an encoding that all sites share: what a first pass over the table of
// nodes found.
type SiteTables struct {
	cfg     SiteConfig
	nodes   *table // closed: for its path and columns
	kinds   []Kind
	stats   []*columnStats
	classes map[string]bool

	relations []string // of the table of edges, ascending
}

// OpenSite reads the table of nodes once, and of the table of edges the first line or, where edges have types, the names of
// these: what is wrong with a site's own tables is best found before it meets the others.
func OpenSite(cfg SiteConfig) (*SiteTables, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.ImportConfig = cfg.withDefaults()
	t := &SiteTables{cfg: cfg}
	table, err := openTable(cfg.Nodes)
	if err != nil {
		return nil, err
	}
	defer table.close()
	t.nodes = table
	if t.kinds, err = cfg.kinds(table); err != nil {
		return nil, err
	}
	if t.stats, t.classes, _, err = cfg.survey(table, t.kinds); err != nil || cfg.Edges == "" {
		return t, err
	}
	edges, _, err := cfg.openEdges()
	if err != nil {
		return nil, err
	}
	if err := edges.close(); err != nil {
		return nil, err
	}
	t.relations, err = cfg.ImportConfig.relations()
	return t, err
}

// openEdges opens the table of edges and finds its columns: source, target, their sites, weight, relation; −1: none.
func (c *SiteConfig) openEdges() (t *table, at [6]int, err error) {
	if t, err = openTable(c.Edges); err != nil {
		return nil, at, err
	}
	for k, column := range []struct{ name, role string }{{c.Source, "the edges' sources"}, {c.Target, "the edges' targets"},
		{c.SourceSite, "the sources' sites"}, {c.TargetSite, "the targets' sites"}, {c.Weight, "the edges' weights"}, {c.Relation, "the edges' relations"}} {
		if at[k] = -1; column.name == "" {
			continue
		}
		if at[k], err = t.column(column.name, column.role); err != nil {
			return nil, at, errors.Join(err, t.close())
		}
	}
	return t, at, nil
}

// Site returns the name of the site whose tables they are.
func (t *SiteTables) Site() string { return t.cfg.Here }

// Survey returns what the other sites need to know.
func (t *SiteTables) Survey() (Survey, error) {
	c := t.cfg
	s := Survey{Encoding: Encoding{ID: c.ID, Label: c.Label, Multi: c.Multi, Classes: sortedNames(t.classes), Split: c.Split, Site: c.Site,
		Source: c.Source, Target: c.Target, Weight: c.Weight, Relation: c.Relation, Relations: t.relations}}
	roles := []string{c.ID, c.Label, c.Split, c.Site}
	for k, name := range t.nodes.columns {
		if name == "" || slices.Contains(roles, name) {
			continue
		}
		column, sparse, empty := Column{Name: name, Kind: t.kinds[k]}, false, false
		if stats := t.stats[k]; stats != nil {
			distinct, cells := len(stats.count), stats.texts+stats.numbers
			empty = cells == 0
			sparse = stats.overflow || distinct == cells+min(stats.missing, 1)
			var err error
			if column, err = stats.column(t.nodes, k, t.kinds[k]); err != nil {
				return s, err
			}
			if column.Kind == Ignored { // whether it is, the sites decide together
				column.Kind = Categorical
			}
			column.Mean, column.Std, column.Missing = 0, 0, stats.missing > 0
			if column.Values = nil; column.Kind == Categorical && !stats.overflow {
				column.Values = slices.Sorted(maps.Keys(stats.count))
			}
		}
		s.Columns, s.Sparse, s.Empty = append(s.Columns, column), append(s.Sparse, sparse), append(s.Empty, empty)
	}
	return s, nil
}

// Encode returns the survey as it is sent.
func (s Survey) Encode() ([]byte, error) { return json.Marshal(s) }

// ParseSurvey reads what Encode wrote, and refuses what no site could have found.
func ParseSurvey(text []byte) (s Survey, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("dataset: survey: %w", err)
	}
	if len(s.Sparse) != len(s.Columns) || len(s.Empty) != len(s.Columns) || len(s.Classes) > maxClasses {
		return s, fmt.Errorf("dataset: survey: %d and %d marks for %d columns, %d classes", len(s.Sparse), len(s.Empty), len(s.Columns), len(s.Classes))
	}
	if err := checkRelations(s.Relations); err != nil {
		return s, fmt.Errorf("dataset: survey: %w", err)
	}
	for _, c := range s.Columns {
		if c.Kind != Numeric && c.Kind != Categorical && c.Kind != Ignored || len(c.Values) > maxTracked || !rising(c.Values) {
			return s, fmt.Errorf("dataset: survey: column %.40q is of kind %.20q with %d values, or they are not ascending", c.Name, c.Kind, len(c.Values))
		}
	}
	return s, nil
}

// Agree returns the encoding that the sites' surveys make together, in the first one's order of columns, for Fit to
// complete. An error names the sites that differ.
func Agree(sites []string, surveys []Survey) (*Encoding, error) {
	first := surveys[0]
	e := first.Encoding
	e.Site = "" // each site's own affair
	classes, relations := map[string]bool{}, map[string]bool{}
	for q, s := range surveys {
		for _, role := range [][3]string{{"names of the nodes", first.ID, s.ID}, {"labels", first.Label, s.Label}, {"splits", first.Split, s.Split},
			{"sources", first.Source, s.Source}, {"targets", first.Target, s.Target}, {"weights", first.Weight, s.Weight},
			{"relations", first.Relation, s.Relation}} {
			if role[1] != role[2] {
				return nil, fmt.Errorf("dataset: the column of the %s is %q at %s and %q at %s, want one name", role[0], role[1], sites[0], role[2], sites[q])
			}
		}
		if s.Multi != first.Multi {
			return nil, fmt.Errorf("dataset: nodes have several labels at one of %s and %s, and one at the other", sites[0], sites[q])
		}
		for _, name := range s.Classes {
			classes[name] = true
		}
		for _, name := range s.Relations {
			relations[name] = true
		}
	}
	e.Relations = slices.Sorted(maps.Keys(relations))
	if err := checkRelations(e.Relations); err != nil {
		return nil, fmt.Errorf("dataset: column %s, of all sites together: %w", e.Relation, err)
	}
	if e.Label != "" && len(classes) == 0 || len(classes) > maxClasses {
		return nil, fmt.Errorf("dataset: column %s: %d classes at all sites together, want 1 to %d", e.Label, len(classes), maxClasses)
	}
	e.Classes, e.Columns = sortedNames(classes), nil
	if e.Label == "" {
		e.Classes = nil
	}
	for _, c := range first.Columns {
		column, err := agree(c.Name, sites, surveys)
		if err != nil {
			return nil, err
		}
		e.Columns = append(e.Columns, column)
	}
	for q, s := range surveys {
		for _, c := range s.Columns {
			if first.find(c.Name) < 0 {
				return nil, fmt.Errorf("dataset: %s has a column %.40q, which %s has not: add it there, or ignore it here", sites[q], c.Name, sites[0])
			}
		}
	}
	return &e, nil
}

func (s Survey) find(name string) int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
}

// agree decides what becomes of one column. A site where it is empty has no say; texts that all differ at every site
// are ignored.
func agree(name string, sites []string, surveys []Survey) (Column, error) {
	out, by, values, sparse := Column{Name: name}, -1, map[string]bool{}, true
	for q, s := range surveys {
		at := s.find(name)
		if at < 0 {
			return out, fmt.Errorf("dataset: %s has no column %.40q, which %s has: add it there, or ignore it here", sites[q], name, sites[0])
		}
		c := s.Columns[at]
		out.Missing = out.Missing || c.Missing
		if s.Empty[at] && c.Kind != Ignored {
			continue
		}
		if by >= 0 && c.Kind != out.Kind {
			return out, fmt.Errorf("dataset: column %.40q is %s at %s and %s at %s: correct the one, or say there what it is", name, out.Kind, sites[by], c.Kind, sites[q])
		}
		if by < 0 {
			by, out.Kind = q, c.Kind
		}
		sparse = sparse && s.Sparse[at]
		for _, v := range c.Values {
			values[v] = true
		}
	}
	if by < 0 || out.Kind == Categorical && sparse || out.Kind == Ignored {
		return Column{Name: name, Kind: Ignored}, nil
	}
	if out.Kind == Categorical {
		if out.Missing = false; len(values) > maxTracked {
			return out, fmt.Errorf("dataset: column %.40q has more than %d categories at all sites together: ignore it", name, maxTracked)
		}
		out.Values = slices.Sorted(maps.Keys(values))
	}
	return out, nil
}

// Counts returns what the sites add up first, in the order of e's columns: of a numeric one how many numbers there are
// and their sum, of a categorical one how many nodes have each value.
func (t *SiteTables) Counts(e *Encoding) (out []float32) {
	for _, c := range e.Columns {
		s := t.stats[t.nodes.find(c.Name)]
		switch c.Kind {
		case Numeric:
			out = append(out, float32(s.numbers), float32(s.mean*float64(s.numbers)))
		case Categorical:
			for _, v := range c.Values {
				out = append(out, float32(s.count[v]))
			}
		}
	}
	return out
}

// Squares returns what the sites add up next, once the counts are those of all: of each numeric column the sum of
// squared deviations from its mean over all sites.
func (t *SiteTables) Squares(e *Encoding, counts []float32) (out []float32) {
	at := 0
	for _, c := range e.Columns {
		if c.Kind == Numeric {
			s := t.stats[t.nodes.find(c.Name)]
			d := s.mean - mean(counts[at:])
			out = append(out, float32(s.m2+float64(d*d)*float64(s.numbers)))
		}
		at += c.sums()
	}
	return out
}

// sums returns how many of Counts are the column's.
func (c *Column) sums() int {
	if c.Kind == Numeric {
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

// Fit completes an encoding that Agree returned, from the counts and squares of all sites.
func (e *Encoding) Fit(counts, squares []float32) error {
	for k := range e.Columns {
		c := &e.Columns[k]
		n := c.sums()
		switch c.Kind {
		case Numeric:
			c.Mean, c.Std = mean(counts), 1
			if counts[0] > 0 && squares[0] > 0 {
				c.Std = math.Sqrt(float64(squares[0]) / float64(counts[0]))
			}
			if !(c.Std > 0 && c.Std <= math.MaxFloat64) || math.IsInf(c.Mean, 0) || math.IsNaN(c.Mean) {
				return fmt.Errorf("dataset: column %s: its numbers are too large to be standardised", c.Name)
			}
			squares = squares[1:]
		case Categorical:
			count := map[string]int{}
			for i, v := range c.Values {
				count[v] = int(counts[i])
			}
			c.Values = frequent(count)
		}
		counts = counts[n:]
	}
	return nil
}

// Cross is a site's edges to the nodes of one other site.
type Cross struct {
	Names       []string // the other site's nodes, each once
	Lines       []int    // where each stands first
	Here, There []int32  // ends of each edge: a node, and a place in Names
	Weight      []float32
	Kind        []int32 // relation of each edge as it ends at the node here; nil: edges have no types
}

// SiteEdges is a site's table of edges: those between its own nodes, and those to other sites by their names.
type SiteEdges struct {
	Src, Dst []int32
	Weight   []float32 // nil: all 1
	Kind     []int32   // relation of each from Src to Dst, by its number in Encoding.Relations; nil: edges have no types
	Cross    map[string]*Cross
	fault    func(line int, text string) error
}

// Fault returns an error that names the file and the line of a site's node, by its place in Names.
func (s *SiteEdges) Fault(site string, name int, text string) error {
	return s.fault(s.Cross[site].Lines[name], text)
}

// Read reads the site's tables by an encoding that all sites share. The graph has no edges yet.
func (t *SiteTables) Read(e *Encoding) (*graph.Graph, *SiteEdges, error) {
	c := t.cfg
	here := *e
	here.Site = c.Site
	g, index, err := here.readNodes(c.Nodes)
	if err != nil {
		return nil, nil, err
	}
	for i, s := range g.Site {
		if g.Sites[s] != c.Here {
			return nil, nil, fmt.Errorf("dataset: %s: column %s: node %q is of %q, want %q in this site's table", c.Nodes, c.Site, g.IDs[i], g.Sites[s], c.Here)
		}
	}
	g.Name, g.Site, g.Sites = c.Name, nil, nil
	if c.Split == "" && c.Label != "" {
		c.drawSplit(g)
	}
	if g.Encoding, err = json.Marshal(e); err != nil {
		return nil, nil, err
	}
	edges := &SiteEdges{Cross: map[string]*Cross{}}
	if e.Weight != "" {
		edges.Weight = []float32{}
	}
	if c.Edges != "" {
		err = c.readEdges(e, edges, index)
	}
	return g, edges, err
}

func (c *SiteConfig) readEdges(e *Encoding, out *SiteEdges, index map[string]int32) error {
	t, at, err := c.openEdges()
	if err != nil {
		return err
	}
	defer t.close()
	place := map[[2]string]int32{} // site and name → place in Names
	out.fault = func(line int, text string) error {
		return fmt.Errorf("dataset: %s: %s %d: %s", c.Edges, t.unit, line, text)
	}
	return t.each(func(cells []string, line int) error {
		var end [2]int32
		other, foreign := "", -1
		for k := range end {
			site := c.Here
			if s := at[2+k]; s >= 0 {
				if name := strings.TrimSpace(cells[s]); name != "" {
					site = name
				}
			}
			name := cells[at[k]]
			if site == c.Here {
				var ok bool
				if end[k], ok = index[name]; !ok {
					return t.fault(line, at[k], "unknown node %.40q, want a name in %s, or the name of its site", name, c.Nodes)
				}
				continue
			}
			if other != "" {
				return out.fault(line, fmt.Sprintf("neither end of the edge is at %s", c.Here))
			}
			other = strings.Clone(site)
			x := out.Cross[other]
			if x == nil {
				x = &Cross{}
				out.Cross[other] = x
			}
			i, ok := place[[2]string{other, name}]
			if !ok {
				name = strings.Clone(name)
				i = int32(len(x.Names))
				place[[2]string{other, name}] = i
				x.Names, x.Lines = append(x.Names, name), append(x.Lines, line)
			}
			end[k], foreign = i, k
		}
		if foreign == 0 { // the node here first
			end[0], end[1] = end[1], end[0]
		}
		weight := float32(1)
		if at[4] >= 0 {
			if weight, err = t.weight(cells, line, at[4]); err != nil {
				return err
			}
		}
		typed, kind := at[5] >= 0, int32(0)
		if typed {
			if kind, err = e.relation(t, cells, line, at[5]); err != nil {
				return err
			}
			if foreign == 1 { // it ends there, its reverse here
				kind = e.Reverse(kind)
			}
		}
		if x := out.Cross[other]; x != nil {
			x.Here, x.There, x.Weight = append(x.Here, end[0]), append(x.There, end[1]), append(x.Weight, weight)
			if typed {
				x.Kind = append(x.Kind, kind)
			}
			return nil
		}
		if typed {
			out.Kind = append(out.Kind, kind)
		}
		out.Src, out.Dst = append(out.Src, end[0]), append(out.Dst, end[1])
		if out.Weight != nil {
			out.Weight = append(out.Weight, weight)
		}
		return nil
	})
}

// Validate reports every field that is out of its bounds, or nil.
func (c SiteConfig) Validate() error {
	var faults []error
	if c.Here == "" {
		faults = append(faults, errors.New("dataset: site: Here is empty, want this site's name"))
	}
	if c.SourceSite != "" && c.SourceSite == c.TargetSite {
		faults = append(faults, fmt.Errorf("dataset: site: SourceSite and TargetSite are both column %s", c.SourceSite))
	}
	return errors.Join(append(faults, c.ImportConfig.Validate())...)
}
