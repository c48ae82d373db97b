package graphs

import (
	"os"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/typed"
)

// listing has the tables as they are given: one of nodes and one of edges, or TYPE=FILE and
// SOURCE-RELATION-TARGET=FILE.
type listing struct{ nodes, edges []string }

// several reports whether the tables are of several types: each is given with its type then.
func (l *listing) several() (bool, error) {
	types, all := 0, slices.Concat(l.nodes, l.edges)
	for _, text := range all {
		if named(text) {
			types++
		}
	}
	switch {
	case types == 0 && len(l.nodes) <= 1 && len(l.edges) <= 1:
		return false, nil
	case types < len(all):
		return false, cli.Invalidf("of several tables each must have its type: --nodes TYPE=FILE, --edges " +
			"SOURCE-RELATION-TARGET=FILE")
	case len(l.nodes) == 0:
		return false, cli.Invalidf("edges between types require --nodes TYPE=FILE for each type")
	}
	return true, nil
}

// named reports whether text is NAME=FILE, and not a file of such a name.
func named(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	if _, err := os.Stat(text); err == nil {
		return false
	}
	return ok && !strings.ContainsAny(name, `/\\`)
}

// checkLike refuses a model that reads other tables than those given.
func checkLike(file string, like []byte, several bool) error {
	if file == "" || several == typed.Encodes(like) {
		return nil
	}
	if several {
		return cli.Invalidf("%s reads one table of nodes: give --nodes FILE", file)
	}
	return cli.Invalidf("%s reads tables of several types: give --nodes TYPE=FILE for each", file)
}

// files returns the tables without their types.
func (l *listing) files() (files []string) {
	for _, text := range slices.Concat(l.nodes, l.edges) {
		if named(text) {
			_, text, _ = strings.Cut(text, "=")
		}
		files = append(files, text)
	}
	return files
}

// check refuses what the input or output at hand cannot take.
func (m *importing) check(several bool) error {
	c, stored := &m.tables, strings.HasSuffix(m.out, storedSuffix)
	tables := several || c.Nodes != ""
	if m.like != "" && (!tables || stored) {
		return cli.Invalidf("--like requires --nodes, and a data set to write")
	}
	if err := checkLike(m.like, c.Like, several); err != nil {
		return err
	}
	for _, f := range []struct {
		set       bool
		flag, why string
	}{
		{c.Relation != "", "--relation-column", "stored graphs have no relations"},
		{len(c.EdgeColumns) > 0 && m.dgl == "", "--edge-columns", "stored graphs have no columns of edges"},
		{c.Directed != "" && m.dgl == "", "--directed", "stored graphs are undirected"},
		{c.SplitTime != "", "--split-time", "stored graphs are split by a column or at random"},
		{c.Format.Faults.Skip, "--on-error skip", "rows of a stored graph cannot be skipped"},
	} {
		if f.set && (!tables || stored && (!several || c.Format.Faults.Skip)) {
			return cli.Invalidf("%s requires --nodes, and %s", f.flag, f.why)
		}
	}
	switch {
	case m.dgl == "" && (m.keepLoop || m.features != ""):
		return cli.Invalidf("--keep-loops and --feature-column must be given with --dgl")
	case m.ogb == "" && m.split != "":
		return cli.Invalidf("--ogb-split must be given with --ogb (got %s)", m.split)
	case c.Label != "" && !tables && m.dgl == "":
		return cli.Invalidf("--label-column must be given with --nodes or --dgl (got %s): a list of edges and a set "+
			"of --ogb have no such column", c.Label)
	case len(m.embed) > 0 && !several:
		return cli.Invalidf("--embed names types of nodes: give --nodes TYPE=FILE for each")
	case several && c.Relation != "":
		return cli.Invalidf("--relation-column belongs to one table of edges: here each table is a relation")
	case m.dgl != "" && c.Directed != "" && c.Directed != dataset.Into:
		return cli.Invalidf("--directed must be in with --dgl: edges as they are (got %s)", c.Directed)
	}
	return nil
}
