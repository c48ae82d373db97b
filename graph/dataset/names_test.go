package dataset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// TestUsualNames: the columns of names and ends are found as other programs call them, with blanks, or without
// any names.
func TestUsualNames(t *testing.T) {
	nodes, edges := "", ""
	for k := range 20 {
		nodes += fmt.Sprintf("n%d,%d,%c\n", k, k, 'a'+k%2)
		edges += fmt.Sprintf("n%d,n%d,%d\n", k, (k+1)%20, k)
	}
	for _, c := range []struct{ nodes, edges string }{{"id,age,class", "source,target,w"},
		{"Id,age,class", "Source,Target,w"}, {" ID , age,class ", " SOURCE, Target,w"},
		{"id,Id,class", "src,dst,w"}, {"ID,to,class", "From,To,w"}, {"id,target,class", "source,target,to"}, {"", ""}} {
		head := [2]string{c.nodes + "\n", c.edges + "\n"}
		label := "class"
		if c.nodes == "" {
			head, label = [2]string{}, "3"
		}
		dir := tables(t, map[string]string{"n.csv": head[0] + nodes, "e.csv": head[1] + edges})
		config := ImportConfig{Nodes: dir + "/n.csv", Edges: dir + "/e.csv", Label: label, EdgeColumns: []string{"all"},
			Format: table.Format{NoHeader: c.nodes == ""}}
		g, f, err := config.Read()
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if g.X.Cols() != 1 || g.EdgeX.Cols != 1 || g.Adj.NumEdges() != 40 ||
			len(f.Columns) != 1 || !slices.Equal(g.Labels.Names, []string{"a", "b"}) || g.N() != 20 {
			t.Errorf("%+v: %d features %+v, %d of edges, %d edges", c, g.X.Cols(), f.Columns,
				g.EdgeX.Cols, g.Adj.NumEdges())
		}
		again, _, err := Encode(g.Encoding, []string{config.Nodes}, []string{config.Edges}, nil, config.Format)
		if err != nil || again.N() != 20 {
			t.Errorf("%+v: read again: %v", c, err)
		}
	}
	// A name with a colon is not cut if the table has it.
	dir := tables(t, map[string]string{"n.csv": "id,age,class\n" + nodes,
		"e.csv": "source,target,since:date\n" + edges})
	g, _, err := ImportConfig{Nodes: dir + "/n.csv", Edges: dir + "/e.csv", Label: "class",
		EdgeColumns: []string{"since:date"}}.Read()
	if err != nil || g.EdgeX.Cols != 1 {
		t.Errorf("a column since:date: %v", err)
	}
	// A column that is not there, by its flag; "to" is no usual name of a label.
	for _, c := range []struct {
		nodes, edges string
		change       func(c *ImportConfig)
		want         []string
	}{
		{"key,age,class", "source,target,w", nil, []string{`no column "id"`, "option id-column", "key, age, class"}},
		{"id,age,class", "a,b,w", nil, []string{`no column "source"`, "option source-column", "a, b, w"}},
		{"id,age,class", "from,b,w", nil, []string{"option target-column"}},
		{"id,to,class", "source,target,w", func(c *ImportConfig) { c.Label = "target" },
			[]string{"option label-column"}},
		{"id,age,class", "n0,n1,3", nil, []string{"option source-column", "option no-header"}},
		{"0,0,class", "source,target,w", nil, []string{"column 0 occurs twice", "option no-header"}},
	} {
		dir := tables(t, map[string]string{"n.csv": c.nodes + "\n" + nodes, "e.csv": c.edges + "\n" + edges})
		config := ImportConfig{Nodes: dir + "/n.csv", Edges: dir + "/e.csv", Label: "class"}
		if c.change != nil {
			c.change(&config)
		}
		_, _, err := config.Read()
		graphtest.Refused(t, err, c.want...)
		if err != nil && strings.Contains(err.Error(), "%!") {
			t.Error(err)
		}
	}
}
