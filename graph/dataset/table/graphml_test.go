package table

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/graphtest"
)

// people is what networkx.write_graphml writes of a small graph, with a default, a nested graph as yEd
// has it, and an attribute that is called like a column of ours.
const people = `<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d2" for="edge" attr.name="weight" attr.type="double" />
  <key id="d1" for="node" attr.name="city" attr.type="string"><default> Köln </default></key>
  <key id="d0" for="node" attr.name="age" attr.type="long" />
  <key id="d3" for="node" attr.name="id" attr.type="string" />
  <graph edgedefault="directed">
    <desc>people</desc>
    <node id="ann"><data key="d0">40</data><data key="d1">Zürich &amp; more</data></node>
    <node id="bob">
      <data key="d0">50</data><data key="d3">B</data>
      <graph id="inner" edgedefault="undirected"><node id="cyd"/></graph>
    </node>
    <edge source="ann" target="bob"><data key="d2">2.5</data></edge>
    <edge source="bob" target="cyd" />
  </graph>
</graphml>
`

func TestGraphML(t *testing.T) {
	latin := strings.NewReplacer("utf-8", "ISO-8859-1", "ö", "\xf6", "ü", "\xfc").Replace(people)
	for _, text := range []string{people, latin} {
		path := written(t, "a.graphml", []byte(text))
		if _, rows := read(t, path, Format{}); !reflect.DeepEqual(rows, [][]string{{"id", "city", "age", "attribute.id"}, {"ann", "Zürich & more", "40", ""}, {"bob", "Köln", "50", "B"}, {"cyd", "Köln", "", ""}}) {
			t.Errorf("nodes %q", rows)
		}
		if _, rows := read(t, path, Format{Edges: true}); !reflect.DeepEqual(rows, [][]string{{"source", "target", "weight"}, {"ann", "bob", "2.5"}, {"bob", "cyd", ""}}) {
			t.Errorf("edges %q", rows)
		}
	}
	for text, want := range map[string]string{
		"":                      "the file has no <graph>",
		"<graphml></graphml>":   "the file has no <graph>",
		people[:len(people)-60]: "line 1",
		strings.Replace(people, "<edge ", "<hyperedge ", 1):                   "must join two nodes",
		strings.Replace(people, "attr.name=\"age\"", "attr.name=\"city\"", 1): "column city occurs twice",
		strings.Replace(people, "utf-8", "ebcdic", 1):                         "encoding must be utf-8",
	} {
		path := filepath.Join(t.TempDir(), "b.graphml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		for _, edges := range []bool{false, true} {
			table, opened := Open(path, Format{Edges: edges})
			if err = opened; err == nil {
				err = table.Each(func([]string, int) error { return nil })
				table.Close()
			}
			if err != nil {
				break
			}
		}
		graphtest.Refused(t, err, "b.graphml", want)
	}
}

// Lists of edges as networkx writes them: names, comments, and a dictionary of attributes.
func TestList(t *testing.T) {
	for text, want := range map[string][][]string{
		"# a comment\nann bob {'weight': 2}\n\nbob cyd {}\n": {{"1", "2", "3", "4"}, {"ann", "bob", "{'weight':", "2}"}, {"bob", "cyd", "{}", ""}},
		"Ann Lee\tBob\t2.5\nBob\tCyd\t1\n":                   {{"1", "2", "3"}, {"Ann Lee", "Bob", "2.5"}, {"Bob", "Cyd", "1"}},
		"ann,bob\nbob,cyd":                                   {{"1", "2"}, {"ann", "bob"}, {"bob", "cyd"}},
		"":                                                   {{"1", "2"}},
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
	graphtest.Refused(t, table.Each(func([]string, int) error { return nil }), "a.edgelist: line 2: an edge must have two ends")
	if _, err := Open(path, Format{}); err == nil {
		t.Error("a list of edges is opened as a table of nodes")
	}
}

func FuzzGraphML(f *testing.F) {
	f.Add(people, true)
	f.Add(people, false)
	f.Fuzz(func(t *testing.T, text string, edges bool) {
		path := filepath.Join(t.TempDir(), "a.graphml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := Open(path, Format{Edges: edges})
		if err != nil {
			return
		}
		defer table.Close()
		_ = table.Each(func(cells []string, _ int) error {
			if len(cells) != len(table.Columns) {
				t.Errorf("%d cells of %d columns", len(cells), len(table.Columns))
			}
			return nil
		})
	})
}
