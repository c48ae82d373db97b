package table

import (
	"reflect"
	"testing"

	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// Lists of edges as networkx writes them: names, comments, and a dictionary of attributes.
func TestList(t *testing.T) {
	for text, want := range map[string][][]string{
		"# a comment\nann bob {'weight': 2}\n\nbob cyd {}\n": {{"1", "2", "3", "4"}, {"ann", "bob", "{'weight':", "2}"},
			{"bob", "cyd", "{}", ""}},
		"Ann Lee\tBob\t2.5\nBob\tCyd\t1\n": {{"1", "2", "3"}, {"Ann Lee", "Bob", "2.5"}, {"Bob", "Cyd", "1"}},
		"ann,bob\nbob,cyd":                 {{"1", "2"}, {"ann", "bob"}, {"bob", "cyd"}},
		"":                                 {{"1", "2"}},
	} {
		table, rows := read(t, written(t, "a.edgelist", []byte(text)), Format{Edges: true})
		if !reflect.DeepEqual(rows, want) || table.Find("source") != 0 || table.Find("2") != 1 {
			t.Errorf("%q: %q", text, rows)
		}
	}
	path := written(t, "a.edgelist", []byte("ann bob\ncyd\n"))
	table, err := Open(path, Format{Edges: true})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	graphtest.Refused(t, table.Each(func([]string, int) error { return nil }),
		"a.edgelist: line 2: an edge must have two ends")
	if _, err := Open(path, Format{}); err == nil {
		t.Error("a list of edges is opened as a table of nodes")
	}
}
