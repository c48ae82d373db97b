package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// ImportConfig says where a user's tables are and what their columns mean. A table's kind follows
// from its suffix: .csv or .tsv, with .gz or .zst after it where it is packed, or .parquet. The
// zero value of a column that is not required means: none.
type ImportConfig struct {
	Name  string // of the data set; "": from the file of nodes
	Nodes string // table of the nodes; required
	Edges string // table of the edges, each undirected, or a list of numbers that edgelist.Config opens by its suffix; "": no edges

	ID    string // column of Nodes with their names, each once; "": id
	Label string // class of a node; an empty cell or NaN: no label
	Multi bool   // a cell of Label holds any number of classes, separated by ";"
	Split string // train, val, test or none (an empty cell); "": by Train, Val and Test
	Site  string // the node's owner, such as a hospital

	// Features: every other column, by its name here or by what it holds. A column of numbers is
	// numeric; texts are categories, and are ignored where each row has a text of its own.
	Numeric, Categorical, Ignore []string

	Source, Target string  // columns of Edges, names of nodes; "": source, target
	Weight         string  // weight of an edge, above 0; "": all 1
	Relation       string  // column of Edges with the relation that goes from source to target, of at most 4096; "": edges have no types
	Train          float64 // share of each class's labelled nodes, at least one of them; all three 0: 0.6
	Val            float64 // the same for validation; all three 0: 0.2
	Test           float64 // the same for testing; all three 0: 0.2; the sum is at most 1, the rest is in no split
	Seed           uint64  // of the split by shares
}

func (c ImportConfig) withDefaults() ImportConfig {
	c.ID = or(c.ID, "id")
	c.Source, c.Target = or(c.Source, "source"), or(c.Target, "target")
	if c.Train == 0 && c.Val == 0 && c.Test == 0 {
		c.Train, c.Val, c.Test = 0.6, 0.2, 0.2
	}
	if c.Name == "" {
		c.Name, _, _ = strings.Cut(filepath.Base(c.Nodes), ".")
	}
	return c
}

// Validate reports every field that is out of its bounds, or nil; the columns' names are compared
// with the tables later.
func (c ImportConfig) Validate() error {
	c = c.withDefaults()
	var faults []error
	if c.Nodes == "" {
		faults = append(faults, errors.New("dataset: import: Nodes must be the file of the nodes' table (got nothing)"))
	}
	if c.Source == c.Target {
		faults = append(faults, fmt.Errorf("dataset: import: Source and Target are both column %s", c.Source))
	}
	if c.Relation != "" && (c.Relation == c.Source || c.Relation == c.Target || c.Relation == c.Weight) {
		faults = append(faults, fmt.Errorf("dataset: import: Relation and another of Source, Target and Weight are both column %s", c.Relation))
	}
	if c.Multi && c.Label == "" {
		faults = append(faults, errors.New("dataset: import: Multi without Label"))
	}
	const rounding = 1e-9
	if !(c.Train > 0 && c.Val >= 0 && c.Test >= 0 && c.Train+c.Val+c.Test <= 1+rounding) {
		faults = append(faults, fmt.Errorf("dataset: import: fractions must be 0 or more, Train above 0, their sum at most 1 (got Train %v, Val %v, Test %v)", c.Train, c.Val, c.Test))
	}
	return errors.Join(faults...)
}

// Import reads a user's tables. The rows of X follow the table of nodes; its statistics (means,
// deviations, values of categories) are taken over all its rows, whatever their split: they use no
// label, and in transductive training the features of all nodes are inputs anyway. For a strict
// test on unseen nodes import the others only, and read the unseen ones with Encode. The encoding
// is in the graph's Encoding.
//
// A node without a label is in no split. Edges are undirected; repeated ones count once, with the
// largest weight, and self-loops are dropped. With a column Relation they have types, too:
// Graph.Typed has the relations in ascending order of their names, then the reverse of each,
// whether or not it is one of the relations.
//
// An error names the file, line (row in Parquet) and column, and what was expected.
func Import(cfg ImportConfig) (*graph.Graph, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := cfg.withDefaults()
	e, err := c.fit()
	if err != nil {
		return nil, err
	}
	g, err := e.read(c.Nodes, c.Edges)
	if err != nil {
		return nil, err
	}
	return g, c.finish(g, e)
}

// finish gives a graph that was read by e its name, encoding and split.
func (c *ImportConfig) finish(g *graph.Graph, e *Encoding) (err error) {
	g.Name = c.Name
	if c.Split == "" && c.Label != "" {
		c.DrawSplit(g)
	}
	if c.Label != "" {
		train := 0
		for _, s := range g.Split {
			if s == graph.Train {
				train++
			}
		}
		if train == 0 {
			return fmt.Errorf("dataset: %s: column %s must have at least one cell \"train\" at a node with a label", c.Nodes, c.Split)
		}
	}
	g.Encoding, err = json.Marshal(e)
	return err
}

// Encode reads other tables exactly as those were read that Import made encoding
// (graph.Graph.Encoding) of, for prediction: edges may be "" for none; the label, split and site
// columns may be absent from nodes. A column of features may not. Without a split column every
// labelled node is in Test.
func Encode(encoding []byte, nodes, edges string) (*graph.Graph, error) {
	e, err := parseEncoding(encoding)
	if err != nil {
		return nil, err
	}
	g, err := e.read(nodes, edges)
	if err != nil {
		return nil, err
	}
	g.Name, _, _ = strings.Cut(filepath.Base(nodes), ".")
	g.Encoding = encoding
	return g, nil
}

// DrawSplit gives each class's labelled nodes their shares, drawn by the seed; nodes with several
// labels are drawn together.
func (c ImportConfig) DrawSplit(g *graph.Graph) {
	groups := make([][]int32, max(1, g.Labels.Classes))
	for i, s := range g.Split {
		if s == graph.None { // marked by read: no label
			continue
		}
		group := 0
		if !g.Labels.Multi() {
			group = int(g.Labels.Class[i])
		}
		groups[group] = append(groups[group], int32(i))
	}
	for class, nodes := range groups {
		if len(nodes) == 0 {
			continue
		}
		n := float64(len(nodes))
		train := max(1, int(math.Round(c.Train*n)))
		val := int(math.Round((c.Train + c.Val) * n))
		test := int(math.Round((c.Train + c.Val + c.Test) * n))
		for k, p := range rng.New(c.Seed).FoldString("split").Fold(uint64(class)).Perm(len(nodes)) {
			split := graph.None
			switch {
			case k < train:
				split = graph.Train
			case k < val:
				split = graph.Val
			case k < test:
				split = graph.Test
			}
			g.Split[nodes[p]] = split
		}
	}
}
