package dataset

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// TestSkippedReasons: skipped rows are counted by reason, and a table that loses nearly all of them is refused.
func TestSkippedReasons(t *testing.T) {
	nodes := "id,class\n"
	for k := range 20 {
		nodes += fmt.Sprintf("n%d,%d\n", k, k%2)
	}
	nodes += "n3,1\nn4,1\n,1\n"
	read := func(good, bad int) ([]string, []string, error) {
		edges := "source,target,w\nn1,n2,none\n"
		for k := range good {
			edges += fmt.Sprintf("n%d,n%d,1\n", k, k+1)
		}
		for k := range bad {
			edges += fmt.Sprintf("N%d,n%d,1\n", k, k)
		}
		dir := tables(t, map[string]string{"n.csv": nodes, "e.csv": edges})
		_, f, err := ImportConfig{Nodes: dir + "/n.csv", Edges: dir + "/e.csv", Label: "class", Weight: "w",
			Format: table.Format{Faults: &table.Faults{Skip: true}}}.Read()
		if err != nil {
			return nil, nil, err
		}
		return f.Tables[0].Reasons, f.Tables[1].Reasons, nil
	}
	of, edges, err := read(10, 15)
	if err != nil || !slices.Equal(of, []string{
		"2 × column id: node … occurs on … already",
		"1 × column id: the node's name must be given"}) || len(edges) != 2 {
		t.Errorf("reasons are %q and %q, %v", of, edges, err)
	}
	_, _, err = read(2, 18)
	graphtest.Refused(t, err, "e.csv",
		"must be under 90 % to be skipped (got 19 of 21: 18 × column source: node must be a name in")
	_, _, err = read(0, 18)
	graphtest.Refused(t, err, "e.csv", "got 19 of 19")
}

// TestManyGraphs: a table of many graphs, whose names repeat, is refused with a count, also if rows at fault are
// skipped.
func TestManyGraphs(t *testing.T) {
	text := "id,class\n"
	for k := range 60 {
		text += fmt.Sprintf("n%d,%d\n", k%30, k%2)
	}
	for _, faults := range []*table.Faults{nil, {}, {Skip: true}} {
		_, _, err := ImportConfig{Nodes: tables(t, map[string]string{"n.csv": text}) + "/n.csv", Label: "class",
			Format: table.Format{Faults: faults}}.Read()
		graphtest.Refused(t, err, "n.csv: column id: names of nodes must be unique (got 30 of 60 that occur again): "+
			"if the table has many graphs")
	}
}
