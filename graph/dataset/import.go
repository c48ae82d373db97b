package dataset

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/edgelist"
	"github.com/heddle-gnn/heddle/rng"
)

// ImportConfig lists a user's tables and the roles of their columns. A table's kind follows from its suffix: .csv or
// .tsv, followed by .gz or .zst if compressed, or .parquet. The zero value of an optional column means none.
type ImportConfig struct {
	Name  string // of the data set; "": from the file of nodes
	Nodes string // table of the nodes; required
	// table of the edges, each undirected, or a list of numbers that edgelist.Config opens by its suffix; "": no edges
	Edges string

	// Format is how the tables write their cells. Its Faults collect rows at fault, which may be skipped (nil = the
	// error names the first 20).
	Format table.Format

	// Like is the encoding of other tables (graph.Graph.Encoding). It gives the roles of columns and kinds of features
	// (nil = these fields and the tables decide).
	Like []byte

	ID         string   // column of Nodes with their names, each once; "": id, or else the index that pandas writes
	Label      string   // class of a node; a missing one (table.Missing): no label
	Multi      bool     // a cell of Label may have several classes, separated by ";"
	ClassOrder []string // names of all classes in their order (nil = as numbers if all are, else as text)
	// Regression: a cell of Label is a number, which a model predicts as such.
	Regression bool
	Split      string // train, val, test or none (an empty cell); "": by Train, Val and Test
	Site       string // the node's owner, such as a hospital

	// Features: every other column, by its name here or by its cells. A column of numbers is
	// numeric, one of dates becomes numbers (table.Date); texts are categories, and are ignored
	// if most rows have different texts or there are more than 50.
	Numeric, Categorical, Ignore []string
	Text                         []string // COLUMN:WIDTH, texts as WIDTH columns of hashed words
	// dates; COLUMN:mdy and COLUMN:dmy decide what 03/04/2024 is if the column does not
	Date []string
	Age  []string // COLUMN:DATE, dates as years until that one

	Source, Target string // columns of Edges, names of nodes; "": source, target
	Weight         string // weight of an edge, above 0; "": all 1
	// weight of an edge that is listed more than once, in either direction: sum, count, max, mean or last of theirs;
	// "": max
	Merge string
	// column of Edges with the relation that goes from source to target, of at most 4096; "": edges have no types
	Relation string
	// columns of Edges that are features of the edges, each COLUMN or COLUMN:KIND, the kind numeric, categorical, date,
	// dmy or mdy; all: every column without a role
	EdgeColumns []string
	Directed    Direction // which way messages go along an edge
	// COLUMN:T1:T2, a date or number of each node: train before T1, val before T2, test from then on; "": no split by
	// time
	SplitTime string
	Train     float64 // share of each class's labelled nodes, at least one of them; all three 0: 0.6
	Val       float64 // the same for validation; all three 0: 0.2
	Test      float64 // the same for testing; all three 0: 0.2; the sum is at most 1, the rest is in no split
	Seed      uint64  // of the split by shares, and of the hash of words
}

func (c ImportConfig) withDefaults() ImportConfig {
	c.Source, c.Target = cmp.Or(c.Source, "source"), cmp.Or(c.Target, "target")
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
	_, wrong := c.asked()
	_, noTimes := parseTimeSplit(c.SplitTime)
	faults := []error{wrong, noTimes, edgelist.CheckMerge(c.Merge), c.Directed.Valid(), c.Format.Validate()}
	must := func(ok bool, format string, got ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, got...))
		}
	}
	must(c.Nodes != "", "there must be a table of nodes (got none)")
	must(c.Source != c.Target, "sources and targets of edges must be in two columns (got both in %s)", c.Source)
	must(c.Relation == "" || c.Relation != c.Source && c.Relation != c.Target && c.Relation != c.Weight,
		"relations must be in another column (got %s, which has sources, targets or weights)", c.Relation)
	must(!c.Multi || c.Label != "", "several labels in a cell must have a label column (got none)")
	must(!c.Regression || c.Label != "" && !c.Multi, "regression must have a label column with one number in a cell "+
		"(got none, or several labels in a cell)")
	n := len(slices.Compact(slices.Sorted(slices.Values(c.ClassOrder))))
	must(n == len(c.ClassOrder) && (n == 0 || c.Label != "" && !c.Regression), "the order of classes must name each "+
		"class of a label column once (got one twice, no label column, or regression)")
	must(c.SplitTime == "" || c.Split == "" && c.Label != "",
		"a split by time must have a label column, and no column of splits")
	const rounding = 1e-9
	must(c.Train > 0 && c.Val >= 0 && c.Test >= 0 && c.Train+c.Val+c.Test <= 1+rounding,
		"fractions must be 0 or more, that for training above 0, their sum at most 1 (got train %v, val %v, test %v)",
		c.Train, c.Val, c.Test)
	return errors.Join(faults...)
}

// Import reads a user's tables. The rows of X follow the table of nodes. Its statistics (means, deviations, values of
// categories) are taken over all rows, in every split: they use no label, and in transductive training the features of
// all nodes are inputs anyway. For a strict test on unseen nodes import the others only, and read the unseen ones with
// Encode. The encoding is in the graph's Encoding.
//
// A node without a label is in no split. Edges are undirected; repeated ones count once (Merge), and self-loops are
// dropped. With a column Relation they also have types: Graph.Typed has the relations in ascending order of their
// names, then the reverse of each, whether or not it is one of the relations.
//
// An error names the file, line (row in Parquet) and column, and what was expected.
func Import(cfg ImportConfig) (*graph.Graph, error) {
	g, _, err := cfg.Read()
	return g, err
}

// Read is Import; it also returns what the tables became.
func (c ImportConfig) Read() (g *graph.Graph, f *table.Facts, err error) {
	if err := c.Format.Again(func() (err error) { g, f, err = c.readOnce(); return err }); err != nil {
		return nil, nil, err
	}
	return g, f, nil
}

// readOnce reads the tables without the rows that are known to be at fault.
func (c ImportConfig) readOnce() (*graph.Graph, *table.Facts, error) {
	p, e, err := (*Profile)(nil), (*Encoding)(nil), error(nil)
	if c = c.withDefaults(); c.Like != nil {
		e, err = ParseEncoding(c.Like)
	} else if p, err = c.Profile(); err == nil {
		c = p.Config
		e, err = p.Local()
	}
	if err != nil {
		return nil, nil, err
	}
	here, err := e.Dated(c.Date)
	if err != nil {
		return nil, nil, err
	}
	g, r, err := here.read([]string{c.Nodes}, []string{c.Edges}, c.Format)
	if err != nil {
		return nil, nil, err
	}
	if err := c.finish(g, e); err != nil {
		return nil, nil, err
	}
	f, err := p.facts(e, g, r)
	return g, f, err
}

// finish sets the name, encoding and split of a graph that e has read. Tables that are read like others may lack
// labels.
func (c *ImportConfig) finish(g *graph.Graph, e *Encoding) (err error) {
	g.Name = c.Name
	c.SplitRandomly(e, g)
	if c.Label != "" && c.Like == nil {
		train := 0
		for _, s := range g.Split {
			if s == graph.Train {
				train++
			}
		}
		if train == 0 {
			if c.SplitTime != "" {
				return fmt.Errorf("%s: there must be a node with a label before the first time of the split "+
					"(got none with %s)", c.Nodes, c.SplitTime)
			}
			return fmt.Errorf("%s: column %s must have at least one cell \"train\" at a node with a label",
				c.Nodes, c.Split)
		}
	}
	g.Encoding, err = json.Marshal(e)
	return err
}

// Encode reads other tables for prediction, in the way in which Import read the tables of encoding
// (graph.Graph.Encoding). Nodes are read from one table after another. The label, split and site columns may be absent;
// columns of features may not. Without a split column every labelled node is in Test. Dates are as in ImportConfig. The
// facts have the tables, cells with unknown categories, and columns without values.
func Encode(
	encoding []byte, nodes, edges, dates []string, format table.Format,
) (*graph.Graph, *table.Facts, error) {
	e, err := ParseEncoding(encoding)
	if err == nil {
		e, err = e.Dated(dates)
	}
	if err != nil {
		return nil, nil, err
	}
	var g *graph.Graph
	var r *Reading
	if err := format.Again(func() (err error) { g, r, err = e.read(nodes, edges, format); return err }); err != nil {
		return nil, nil, err
	}
	g.Name, _, _ = strings.Cut(filepath.Base(nodes[0]), ".")
	g.Encoding = encoding
	f := &table.Facts{Tables: r.Tables}
	r.addUnknown(f, e)
	return g, f, nil
}

// SplitRandomly assigns each class's labelled nodes to the splits by the seed, unless e has a column for it. Nodes with
// several labels, or with numbers, are one group.
func (c ImportConfig) SplitRandomly(e *Encoding, g *graph.Graph) {
	if e.Label == "" || e.Split != "" || e.SplitTime != "" {
		return
	}
	c = c.withDefaults()
	for _, nodes := range shuffled(g, c.Seed) {
		n := float64(len(nodes))
		train := max(1, int(math.Round(c.Train*n)))
		val := int(math.Round((c.Train + c.Val) * n))
		test := int(math.Round((c.Train + c.Val + c.Test) * n))
		for k, i := range nodes {
			split := graph.None
			switch {
			case k < train:
				split = graph.Train
			case k < val:
				split = graph.Val
			case k < test:
				split = graph.Test
			}
			g.Split[i] = split
		}
	}
}

// shuffled returns the labelled nodes of each class in random order by seed. A node has a label if it is in a split, as
// read sets it.
func shuffled(g *graph.Graph, seed uint64) [][]int32 {
	groups := make([][]int32, max(1, g.Labels.Classes))
	for i, s := range g.Split {
		if s == graph.None { // read has marked it: no label
			continue
		}
		group := 0
		if g.Labels.Kind() == graph.Single {
			group = int(g.Labels.Class[i])
		}
		groups[group] = append(groups[group], int32(i))
	}
	for class, nodes := range groups {
		in := slices.Clone(nodes)
		for k, p := range rng.New(seed).FoldString("split").Fold(uint64(class)).Perm(len(nodes)) {
			nodes[k] = in[p]
		}
	}
	return groups
}
