package dataset

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

const visits = "source,target,kind,hours\np1,p2,refers,2\np2,p1,refers,3\np1,p2,knows,1\np1,p2,knows,4\n" +
	"p3,p2,refers,0.5\np4,p4,never used,1\n"

func visitConfig(dir string) ImportConfig {
	c := patientConfig(dir)
	c.Relation = "kind"
	return c
}

// TestImportRelations: each relation has its edges in their direction, the reverse of each is one
// more, and an edge of any relation is an edge. The same tables give the same graph again, from the
// file or by the encoding.
func TestImportRelations(t *testing.T) {
	dir := tables(t, map[string]string{"nodes.csv": patients, "edges.csv": visits})
	g, err := Import(visitConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	if err := g.Typed.Valid(&g.Adj); err != nil {
		t.Fatal(err)
	}
	names := []string{"knows", "never used", "refers", "knows (inverse)", "never used (inverse)", "refers (inverse)"}
	if !slices.Equal(g.Typed.Names, names) {
		t.Errorf("relations %q, want %q", g.Typed.Names, names)
	}
	var got []string
	for row := range g.Typed.Adj.NumDst {
		col, weight := g.Typed.Adj.Row(row)
		for k, j := range col {
			got = append(got, fmt.Sprintf("%s: %s→%s %v", names[row/4], g.IDs[j], g.IDs[row%4], weight[k]))
		}
	}
	want := []string{"knows: p1→p2 4", "refers: p2→p1 3", "refers: p1→p2 2", "refers: p3→p2 0.5",
		"knows (inverse): p2→p1 4", "refers (inverse): p2→p1 2", "refers (inverse): p1→p2 3",
		"refers (inverse): p2→p3 0.5"}
	if !slices.Equal(got, want) {
		t.Errorf("typed edges %q\nwant        %q", got, want)
	}
	if all := (graph.CSR{NumDst: 4, NumSrc: 4, RowPtr: []int64{0, 1, 3, 4, 4}, Col: []int32{1, 0, 2, 1},
		Weight: []float32{4, 4, 0.5, 0.5}}); !reflect.DeepEqual(g.Adj, all) {
		t.Errorf("edges %v, want %v", g.Adj, all)
	}
	out := filepath.Join(dir, "out")
	if err := Write(out, g); err != nil {
		t.Fatal(err)
	}
	if back, err := Read(out, 0); err != nil || !reflect.DeepEqual(back.Typed, g.Typed) {
		t.Errorf("written and read: %+v (%v)", back, err)
	}
	if again, _, err := Encode(g.Encoding, []string{visitConfig(dir).Nodes}, []string{visitConfig(dir).Edges}, nil,
		table.Format{}); err != nil || !reflect.DeepEqual(again, g) {
		t.Errorf("encoded again: %+v (%v)", again, err)
	}
	// A model of six relations is asked about nodes that nobody joins.
	if alone, _, err := Encode(g.Encoding, []string{visitConfig(dir).Nodes}, nil, nil, table.Format{}); err != nil ||
		!slices.Equal(alone.Typed.Names, names) || alone.Typed.Adj.NumEdges() != 0 {
		t.Errorf("without edges: %+v (%v)", alone, err)
	}
}

func TestRelationFaults(t *testing.T) {
	for _, test := range []struct{ edges, want string }{
		{"source,target,hours\np1,p2,1\n",
			`edges.csv: no column "kind" (the edges' relations, option relation-column)`},
		{"source,target,kind,hours\np1,p2,refers,1\np1,p2, ,1\n",
			"edges.csv: line 3, column kind: must be the name of the edge's relation (got nothing)"},
		{"source,target,kind,hours\np1,p2,a,1\np1,p2,a (inverse),1\n",
			`edges.csv: column kind: a relation is called "a (inverse)"`},
	} {
		dir := tables(t, map[string]string{"nodes.csv": patients, "edges.csv": test.edges})
		if _, err := Import(visitConfig(dir)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %s", test.edges, err, test.want)
		}
	}
	dir := tables(t, map[string]string{"nodes.csv": patients, "edges.csv": visits,
		"other.csv": "source,target,kind,hours\np1,p2,treats,1\n", "list.el": "1 2\n", "list.npz": ""})
	c := visitConfig(dir)
	g, err := Import(c)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"other.csv": `other.csv: line 2, column kind: relation must be one of knows, never used, refers (got "treats")`,
		"list.el":   `no column "hours"`, "list.npz": "relations need a table with a column kind"} {
		if _, _, err := Encode(g.Encoding, []string{c.Nodes}, []string{filepath.Join(dir, file)}, nil,
			table.Format{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
	if c.Relation = "target"; c.Validate() == nil {
		t.Error("one column for relations and targets is taken")
	}
	for _, names := range []string{`["b","a"]`, `["a","a (inverse)"]`} {
		text := strings.Replace(string(g.Encoding), `["knows","never used","refers"]`, names, 1)
		if _, err := ParseEncoding([]byte(text)); err == nil || !strings.Contains(err.Error(), "relation") ||
			text == string(g.Encoding) {
			t.Errorf("%s: %v", names, err)
		}
	}
}
