package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/disk"
)

// factsFile is the name of the facts in the directory of a data set or a part.
const factsFile = "import.json"

// Facts are what was found while tables were read.
type Facts struct {
	Tables      []TableFacts    `json:"tables"`
	Columns     []ColumnFacts   `json:"columns"`         // in the order of the table of nodes
	Types       []TypeFacts     `json:"types,omitempty"` // by type of nodes, if there are several tables
	Nodes       int             `json:"nodes"`
	Label       string          `json:"label,omitempty"`   // column
	Classes     []NodeCount     `json:"classes,omitempty"` // nodes of each class
	Target      *NumberFacts    `json:"target,omitempty"`  // facts of a numeric label (nil = labels are classes)
	Unlabelled  int             `json:"unlabelled"`
	Sites       []NodeCount     `json:"sites,omitempty"` // nodes of each site
	Edges       EdgeFacts       `json:"edges"`
	Relations   []RelationFacts `json:"relations,omitempty"` // by relation, if there are several tables of edges
	EdgeColumns []ColumnFacts   `json:"edge_columns,omitempty"`
	Isolated    int             `json:"isolated"` // nodes without an edge
	// fraction of the edges between labelled nodes that join one class (nil = none)
	Homophily *float64 `json:"homophily,omitempty"`
	Chance    *float64 `json:"homophily_by_chance,omitempty"` // the same if edges joined their ends at random
	Warnings  []string `json:"warnings,omitempty"`

	spelled []string // warnings of values that are written in several ways
}

// TableFacts describes a file that was read.
type TableFacts struct {
	File      string   `json:"file"` // without its directory
	Rows      int      `json:"rows"` // without skipped rows
	Skipped   int      `json:"skipped"`
	Reasons   []string `json:"reasons,omitempty"`   // reasons of the skipped rows, with counts
	Encoding  string   `json:"encoding,omitempty"`  // character set of a text
	Delimiter string   `json:"delimiter,omitempty"` // of a text file
}

// ColumnFacts is what a column became.
type ColumnFacts struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`              // kind in the encoding; "dropped" means no feature
	Features int    `json:"features"`          // number of feature columns
	Values   int    `json:"values,omitempty"`  // category: number of values with a feature each
	Missing  int    `json:"missing"`           // number of missing cells
	Why      string `json:"why,omitempty"`     // why it is dropped, or how it was read
	Hint     string `json:"hint,omitempty"`    // what the user could do about it
	Unknown  int    `json:"unknown,omitempty"` // number of cells with a category without a feature
	Example  string `json:"example,omitempty"` // one of these cells
}

// NumberFacts describe a numeric label.
type NumberFacts struct {
	Nodes     int     `json:"nodes"` // number of nodes with a number
	Least     float64 `json:"least"`
	Most      float64 `json:"most"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"` // deviation of the nodes, not estimated from a sample
}

// Dropped is the kind of a column without features.
const Dropped = "dropped"

// TypeFacts is what the table of one type of nodes became.
type TypeFacts struct {
	Name     string `json:"name"`
	Nodes    int    `json:"nodes"`
	Features int    `json:"features"` // 0 = the type has one column, which is 1
}

// RelationFacts is what the table of one relation became.
type RelationFacts struct {
	Name   string `json:"name"`
	Listed int    `json:"listed"`
	Kept   int    `json:"kept"`
}

// NodeCount is how many nodes a class or a site has.
type NodeCount struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
}

// EdgeFacts describes what the listed edges became.
type EdgeFacts struct {
	Listed   int    `json:"listed"`
	Loops    int    `json:"loops"`              // from a node to itself, which are dropped
	Repeated int    `json:"repeated"`           // listed again in the same direction
	Mutual   int    `json:"mutual"`             // pairs of nodes with edges in both directions
	Merge    string `json:"merge"`              // weight of repeated edges: sum, count, max, mean or last
	Kept     int    `json:"kept"`               // undirected, unless messages go one way
	Directed string `json:"directed,omitempty"` // way of the messages: in, out or both
	Cross    int    `json:"cross"`              // edges to nodes of other sites
	Relation string `json:"relation,omitempty"`
}

// AddNodes counts the nodes of a graph, by class and site.
func (f *Facts) AddNodes(g *graph.Graph) {
	f.Nodes = len(g.Split)
	f.addLabels(g.Labels)
	owned := make([]int, len(g.Sites))
	for _, of := range g.Site {
		owned[of]++
	}
	for k, name := range g.Sites {
		f.Sites = append(f.Sites, NodeCount{name, owned[k]})
	}
}

// AddGraph counts what a graph has: nodes, classes, sites, neighbours. src and dst are the edges
// between its own nodes as they were listed.
func (f *Facts) AddGraph(g *graph.Graph, src, dst []int32) error {
	f.AddNodes(g)
	for k := range src {
		if src[k] == dst[k] {
			f.Edges.Loops++
		}
	}
	n := g.Adj.NumDst
	oneWay, err := graph.FromEdges(n, src, dst, nil, graph.Build{Directed: true})
	if err != nil {
		return err
	}
	f.Edges.Listed, f.Edges.Kept = len(src), g.Adj.NumEdges()/2
	if g.Adj.NumSrc > n { // with nodes of other sites
		bothWays, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
		if err != nil {
			return err
		}
		f.Edges.Kept = bothWays.NumEdges() / 2
	}
	f.Edges.Repeated = len(src) - f.Edges.Loops - oneWay.NumEdges()
	if f.Edges.Directed == "in" || f.Edges.Directed == "out" {
		f.Edges.Kept = oneWay.NumEdges()
	} else {
		f.Edges.Mutual = oneWay.NumEdges() - f.Edges.Kept
	}
	f.addNeighbours(g)
	return nil
}

// addLabels counts the nodes of each class, or describes numeric labels.
func (f *Facts) addLabels(l graph.Labels) {
	if l.Classes == 0 {
		return
	}
	if l.Kind() == graph.Numbers {
		f.addNumbers(l)
		return
	}
	for c, n := range l.Count() {
		f.Classes = append(f.Classes, NodeCount{l.Name(c), int(n)})
	}
	for i := range f.Nodes {
		if !labelled(l, i) {
			f.Unlabelled++
		}
	}
}

// addNumbers describes a numeric label, the first column if there are several.
func (f *Facts) addNumbers(l graph.Labels) {
	n := &NumberFacts{Least: math.Inf(1), Most: math.Inf(-1)}
	sum, squares := 0.0, 0.0
	for i := range f.Nodes {
		if !l.Has(i) {
			f.Unlabelled++
			continue
		}
		v := float64(l.Values[i*l.Classes])
		n.Nodes++
		n.Least, n.Most = min(n.Least, v), max(n.Most, v)
		before := sum / max(float64(n.Nodes-1), 1)
		sum += v
		squares += (v - before) * (v - sum/float64(n.Nodes))
	}
	if n.Nodes == 0 {
		return
	}
	n.Mean, n.Deviation = sum/float64(n.Nodes), math.Sqrt(squares/float64(n.Nodes))
	f.Target = n
}

// labelled reports whether node i has a label; with several classes it has one if any class is set.
func labelled(l graph.Labels, i int) bool {
	if !l.Multi() {
		return l.Has(i)
	}
	for _, b := range l.Bits[i*l.Classes : (i+1)*l.Classes] {
		if b != 0 {
			return true
		}
	}
	return false
}

// addNeighbours counts nodes without edges, and edges between nodes of one class.
func (f *Facts) addNeighbours(g *graph.Graph) {
	same, all := 0, 0
	from, to := make([]float64, g.Labels.Classes), make([]float64, g.Labels.Classes) // of these edges, of each class
	for i := range g.Adj.NumDst {
		col, _ := g.Adj.Row(i)
		if len(col) == 0 {
			f.Isolated++
		}
		for _, j := range col {
			if int(j) >= g.Adj.NumDst {
				f.Edges.Cross++
			}
		}
		if g.Labels.Class == nil || g.Labels.Class[i] < 0 {
			continue
		}
		for _, j := range col {
			if int(j) < len(g.Labels.Class) && g.Labels.Class[j] >= 0 {
				all++
				from[g.Labels.Class[j]]++
				to[g.Labels.Class[i]]++
				if g.Labels.Class[j] == g.Labels.Class[i] {
					same++
				}
			}
		}
	}
	if all > 0 {
		h, chance := float64(same)/float64(all), 0.0
		for c, n := range from {
			chance += float64(n / float64(all) * (to[c] / float64(all)))
		}
		f.Homophily, f.Chance = &h, &chance
	}
}

// Encode returns the facts as the text of a file, which ParseFacts reads.
func (f *Facts) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(f, "", " ")
	return append(text, '\n'), err
}

// ParseFacts reads the text of a file.
func ParseFacts(text []byte) (*Facts, error) {
	f := &Facts{}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("facts of an import: %w", err)
	}
	return f, nil
}

// Write writes the facts into dir.
func (f *Facts) Write(dir string) error {
	text, err := f.Encode()
	if err != nil {
		return err
	}
	return disk.WriteFile(disk.OS{}, filepath.Join(dir, factsFile), 0o600, text)
}

// ReadFacts reads the facts in dir; nil if there are none.
func ReadFacts(dir string) (*Facts, error) {
	text, err := os.ReadFile(filepath.Join(dir, factsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := ParseFacts(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, factsFile), err)
	}
	return f, nil
}
