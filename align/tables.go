package align

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/edgelist"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// SiteConfig says where one site's tables are, of a graph that several sites hold together without
// pooling it. The table of nodes has the site's own nodes only. An edge to a node of another site
// has that site's name in a column; where both sites list it, it counts once.
type SiteConfig struct {
	dataset.ImportConfig
	Here       string // this site's name; where the nodes' table has a column Site, each of its cells
	SourceSite string // column of Edges with the site of the source: an empty cell is Here; "": all sources are here
	TargetSite string // the same for the target
}

// Validate reports every field that is out of its bounds, or nil.
func (c SiteConfig) Validate() error {
	var faults []error
	if c.Here == "" {
		faults = append(faults, errors.New("align: Here must be this site's name (got nothing)"))
	}
	if c.SourceSite != "" && c.SourceSite == c.TargetSite {
		faults = append(faults, fmt.Errorf("align: SourceSite and TargetSite are both column %s", c.SourceSite))
	}
	if c.Directed != dataset.Undirected || len(c.EdgeColumns) > 0 || c.SplitTime != "" {
		faults = append(faults, errors.New("align: sites have undirected edges without columns, and a split by a column or at random"))
	}
	return errors.Join(append(faults, c.ImportConfig.Validate())...)
}

// Tables is a site's tables on the way to an encoding that all sites share.
type Tables struct {
	cfg     SiteConfig
	profile *dataset.Profile
	like    *dataset.Encoding // of other tables, by which these are read; nil: the sites agree on one
}

// OpenSite reads a site's tables: what is wrong with them is best found before it meets the others.
func OpenSite(cfg SiteConfig) (*Tables, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Format.Faults == nil {
		cfg.Format.Faults = &table.Faults{}
	}
	faults := cfg.Format.Faults
	for {
		known := faults.Count("")
		t, err := cfg.open()
		if err = cmp.Or(faults.Err(), err); err != nil {
			return nil, err
		}
		if faults.Count("") == known {
			return t, nil
		}
		// The statistics of the columns still have the rows that were skipped: again without these.
	}
}

// open finds out what the columns hold, and reads all by it to find faults.
func (c SiteConfig) open() (*Tables, error) {
	if c.Like != nil {
		site := c.Site
		alike, e, err := c.Alike()
		if err != nil {
			return nil, err
		}
		if e.Directed != dataset.Undirected || len(e.EdgeColumns) > 0 {
			return nil, errors.New("align: sites have undirected edges without columns (got a model of directed edges or edge columns): train one on such tables")
		}
		c.ImportConfig, e.Site = alike, ""
		c.Site = site // each site's own affair
		t := &Tables{c, nil, e}
		_, _, _, err = t.read(e)
		return t, err
	}
	profile, err := c.Profile()
	if err != nil {
		return nil, err
	}
	c.ImportConfig = profile.Config
	e := c.Encoding()
	e.Classes, e.Relations = profile.Classes, profile.Relations
	for _, p := range profile.Columns {
		e.Columns = append(e.Columns, p.Column)
	}
	t := &Tables{c, profile, nil}
	_, _, _, err = t.read(&e)
	return t, err
}

func (c *SiteConfig) edgeFormat() table.Format {
	f := c.Format
	f.Edges = true
	return f
}

// openEdges opens the table of edges and finds its columns: source, target, their sites, weight,
// relation; −1: none.
func (c *SiteConfig) openEdges() (t *table.Table, at [6]int, err error) {
	if t, err = table.Open(c.Edges, c.edgeFormat()); err != nil {
		return nil, at, err
	}
	for k, column := range []struct{ name, role string }{{c.Source, "the edges' sources"}, {c.Target, "the edges' targets"},
		{c.SourceSite, "the sources' sites"}, {c.TargetSite, "the targets' sites"}, {c.Weight, "the edges' weights"}, {c.Relation, "the edges' relations"}} {
		if at[k] = -1; column.name == "" {
			continue
		}
		if at[k], err = t.Column(column.name, column.role); err != nil {
			return nil, at, errors.Join(err, t.Close())
		}
	}
	return t, at, nil
}

// crossEdges is a site's edges to the nodes of one other site.
type crossEdges struct {
	names       []string // the other site's nodes, each once
	lines       []int    // where each stands first
	here, there []int32  // ends of each edge: a node, and a place in names
	weight      []float32
	kind        []int32 // relation of each edge as it ends at the node here; nil: edges have no types
}

// siteEdges is a site's table of edges: those between its own nodes, and those to other sites by
// their names.
type siteEdges struct {
	src, dst []int32
	weight   []float32 // nil: all 1
	kind     []int32   // relation of each from Src to Dst, by its number in Encoding.Relations; nil: edges have no types
	cross    map[string]*crossEdges
	at       func(line int, text string) error
}

// fault returns an error that names the file and the line of a site's node, by its place in names.
func (s *siteEdges) fault(site string, name int, text string) error {
	return s.at(s.cross[site].lines[name], text)
}

// read reads the site's tables by an encoding that all sites share. The graph has no edges yet.
func (t *Tables) read(e *dataset.Encoding) (*graph.Graph, *siteEdges, *dataset.Reading, error) {
	c := t.cfg
	here := *e
	here.Site = c.Site
	g, index, r, err := here.ReadNodes(c.Nodes, c.Format)
	if err != nil {
		return nil, nil, nil, err
	}
	for i, s := range g.Site {
		if g.Sites[s] != c.Here {
			return nil, nil, nil, fmt.Errorf("align: %s: column %s: node %q must be of %q, whose table it is (got %q)", c.Nodes, c.Site, g.IDs[i], c.Here, g.Sites[s])
		}
	}
	g.Name, g.Site, g.Sites = c.Name, nil, nil
	if c.Split == "" && c.SplitTime == "" && c.Label != "" {
		c.DrawSplit(g)
	}
	if g.Encoding, err = json.Marshal(e); err != nil {
		return nil, nil, nil, err
	}
	edges := &siteEdges{cross: map[string]*crossEdges{}}
	if e.Weight != "" {
		edges.weight = []float32{}
	}
	if c.Edges != "" {
		err = c.readEdges(e, edges, index, r)
	}
	r.Source, r.Target = edges.src, edges.dst
	edges.merge(e)
	return g, edges, r, err
}

// merge merges edges that are listed more than once. An edge to another site that both list counts once,
// with the larger of their weights.
func (s *siteEdges) merge(e *dataset.Encoding) {
	if e.Merge == "" || e.Merge == "max" {
		return
	}
	s.src, s.dst, s.kind, s.weight, _ = edgelist.Merge(e.Merge, s.src, s.dst, s.kind, s.weight)
	for _, x := range s.cross {
		// The two ends are numbered apart, so that an edge and its reverse are one only where they are.
		n := int32(0)
		for _, i := range x.here {
			n = max(n, i+1)
		}
		for k := range x.there {
			x.there[k] += n
		}
		x.here, x.there, x.kind, x.weight, _ = edgelist.Merge(e.Merge, x.here, x.there, x.kind, x.weight)
		for k := range x.there {
			x.there[k] -= n
		}
	}
}

// name returns the place of another site's node among the names of that site, and adds it where it
// is new; place has those that are known.
func (s *siteEdges) name(place map[[2]string]int32, site, name string, line int) int32 {
	x := s.cross[site]
	if x == nil {
		x = &crossEdges{}
		s.cross[site] = x
	}
	i, ok := place[[2]string{site, name}]
	if !ok {
		name = strings.Clone(name)
		i = int32(len(x.names))
		place[[2]string{site, name}] = i
		x.names, x.lines = append(x.names, name), append(x.lines, line)
	}
	return i
}

func (c *SiteConfig) readEdges(e *dataset.Encoding, out *siteEdges, index map[string]int32, r *dataset.Reading) error {
	t, at, err := c.openEdges()
	if err != nil {
		return err
	}
	defer t.Close()
	place := map[[2]string]int32{} // site and name → place in names
	out.at = func(line int, text string) error {
		return fmt.Errorf("align: %s: %s %d: %s", c.Edges, t.Unit, line, text)
	}
	rows := 0
	lost := c.Format.Faults.Told(c.Nodes) // then an unknown node may be one of those at fault
	err = t.Each(func(cells []string, line int) error {
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
				i, ok := index[name]
				switch {
				case !ok && lost:
					return nil
				case !ok:
					return t.Fault(line, at[k], "node must be a name in %s, or the name of its site (got %.40q)", c.Nodes, name)
				}
				end[k] = i
				continue
			}
			if other != "" {
				return t.Fault(line, at[k], "one end of the edge must be at %s", c.Here)
			}
			other, foreign = strings.Clone(site), k
		}
		weight := float32(1)
		if at[4] >= 0 {
			if weight, err = t.Weight(cells, line, at[4]); err != nil {
				return err
			}
		}
		typed, kind := at[5] >= 0, int32(0)
		if typed {
			if kind, err = e.RelationAt(t, cells, line, at[5]); err != nil {
				return err
			}
			if foreign == 1 { // it ends there, its reverse here
				kind = e.Reverse(kind)
			}
		}
		rows++
		if foreign >= 0 {
			end[foreign] = out.name(place, other, cells[at[foreign]], line)
		}
		if foreign == 0 { // the node here first
			end[0], end[1] = end[1], end[0]
		}
		if x := out.cross[other]; x != nil {
			x.here, x.there, x.weight = append(x.here, end[0]), append(x.there, end[1]), append(x.weight, weight)
			if typed {
				x.kind = append(x.kind, kind)
			}
			return nil
		}
		if typed {
			out.kind = append(out.kind, kind)
		}
		out.src, out.dst = append(out.src, end[0]), append(out.dst, end[1])
		if out.weight != nil {
			out.weight = append(out.weight, weight)
		}
		return nil
	})
	r.Tables = append(r.Tables, dataset.TableFacts(t, rows, c.Format))
	return err
}
