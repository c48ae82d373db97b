package dataset

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// listedEdge is a row of a table.
type listedEdge struct {
	src, dst, kind int32
	weight, x      float32
}

// TestEdgesBecomeAGraph draws tables with columns, relations, weights, directions and rules for
// repeated edges: every stored edge has the columns that the rule makes of the rows listed for it,
// and the graph survives its file bit for bit.
func TestEdgesBecomeAGraph(t *testing.T) {
	dir := t.TempDir()
	files := 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 7).Draw(t, "nodes")
		e := &Encoding{
			Merge:    rapid.SampledFrom([]string{"", "max", "sum", "count", "mean", "last"}).Draw(t, "merge"),
			Directed: rapid.SampledFrom([]Direction{Undirected, Into, OutOf, BothWays}).Draw(t, "directed"),
			EdgeColumns: []table.Column{{Name: "x", Kind: table.Numeric, Std: 1},
				{Name: "y", Kind: table.Numeric, Std: 1}},
		}
		switch {
		case rapid.Bool().Draw(t, "relations"):
			e.Relation, e.Relations = "kind", []string{"a", "b"}
		case e.Directed == BothWays:
			e.Relations = []string{plain}
		}
		if rapid.Bool().Draw(t, "weights") {
			e.Weight = "w"
		}
		l := e.NewEdges()
		var rows []listedEdge
		for range rapid.IntRange(0, 12).Draw(t, "edges") {
			node := rapid.Int32Range(0, int32(n-1))
			r := listedEdge{src: node.Draw(t, "src"), dst: node.Draw(t, "dst"), weight: 1,
				x: float32(rapid.IntRange(-3, 3).Draw(t, "x"))}
			if e.Relation != "" {
				r.kind = rapid.Int32Range(0, 1).Draw(t, "kind")
			}
			if e.Weight != "" {
				r.weight = float32(rapid.IntRange(1, 4).Draw(t, "weight"))
			}
			rows = append(rows, r)
			l.x = append(l.x, r.x, -r.x)
			l.add([2]int32{r.src, r.dst}, r.kind, r.weight)
		}
		g := &graph.Graph{Name: "drawn", Labels: graph.Labels{Class: make([]int32, n), Classes: 1},
			Split: make([]graph.Split, n)}
		if err := l.Graph(g, n); err != nil {
			t.Fatal(err)
		}
		if err := g.Valid(); err != nil {
			t.Fatal(err)
		}
		checkColumns(t, e, g, rows)
		files++
		path := filepath.Join(dir, fmt.Sprint(files))
		if err := Write(path, g); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest() != g.Digest() {
			t.Fatalf("read %+v\nwritten %+v", got, g)
		}
	})
}

// checkColumns compares the columns of every stored edge with those of the rows that were listed.
func checkColumns(t *rapid.T, e *Encoding, g *graph.Graph, rows []listedEdge) {
	oneWay := e.Directed == Into || e.Directed == OutOf
	matches := func(r listedEdge, src, dst int32) bool {
		if e.Directed == OutOf {
			src, dst = dst, src
		}
		return r.src == src && r.dst == dst || !oneWay && r.src == dst && r.dst == src
	}
	merged := func(of []listedEdge) [2]float32 {
		switch e.Merge {
		case "last":
			x := of[len(of)-1].x
			return [2]float32{x, -x}
		case "", "max":
			low, high := of[0].x, of[0].x
			for _, r := range of {
				low, high = min(low, r.x), max(high, r.x)
			}
			return [2]float32{high, -low}
		}
		sum := 0.0
		for _, r := range of {
			sum += float64(r.x)
		}
		mean := float32(sum / float64(len(of)))
		return [2]float32{mean, -mean}
	}
	near := func(row []float32, want [2]float32) bool {
		return math.Abs(float64(row[0]-want[0])) < 1e-5 && math.Abs(float64(row[1]-want[1])) < 1e-5
	}
	total := 0
	for i := range g.Adj.NumDst {
		col, _ := g.Adj.Row(i)
		for k, row := range g.Adj.EdgeRows(i) {
			total++
			var of []listedEdge
			first := int32(-1) // of several relations, or directions of a relation, the row of the first listed counts
			for _, r := range rows {
				if matches(r, col[k], int32(i)) {
					if len(e.Relations) > 0 && first >= 0 {
						f := of[0]
						if r.kind != f.kind || r.src != f.src || r.dst != f.dst {
							continue
						}
					}
					first, of = 0, append(of, r)
				}
			}
			if len(of) == 0 {
				t.Fatalf("an edge from %d to %d that nobody listed", col[k], i)
			}
			if !near(g.EdgeX.Row(int(row)), merged(of)) {
				t.Fatalf("edge %d to %d has columns %v, must have %v of %v", col[k], i, g.EdgeX.Row(int(row)),
					merged(of), of)
			}
		}
	}
	for _, r := range rows {
		src, dst := r.src, r.dst
		if e.Directed == OutOf {
			src, dst = dst, src
		}
		col, _ := g.Adj.Row(int(dst))
		if _, ok := slices.BinarySearch(col, src); ok != (src != dst) {
			t.Fatalf("edge %d to %d: stored %v", src, dst, ok)
		}
	}
	checkRelations(t, e, g, rows, merged, near)
}

func checkRelations(t *rapid.T, e *Encoding, g *graph.Graph, rows []listedEdge, merged func([]listedEdge) [2]float32,
	near func([]float32, [2]float32) bool) {
	n := g.Adj.NumDst
	names := graph.InverseNames(e.Relations)
	for row := range g.Typed.Adj.NumDst {
		kind, i := slices.Index(names, g.Typed.Names[row/n]), int32(row%n)
		col, _ := g.Typed.Adj.Row(row)
		for k, at := range g.Typed.Adj.EdgeRows(row) {
			src, dst, of := col[k], i, []listedEdge(nil)
			if kind >= len(e.Relations) {
				src, dst = dst, src
			}
			for _, r := range rows {
				if r.kind == int32(kind%len(e.Relations)) && r.src == src && r.dst == dst {
					of = append(of, r)
				}
			}
			if len(of) == 0 {
				t.Fatalf("relation %s has an edge from %d to %d that nobody listed", g.Typed.Names[row/n], src, dst)
			}
			if !near(g.EdgeX.Row(int(at)), merged(of)) {
				t.Fatalf("%s: edge %d to %d has columns %v, must have %v", g.Typed.Names[row/n], src, dst,
					g.EdgeX.Row(int(at)), merged(of))
			}
		}
	}
}

func writeTables(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestEdgeColumns reads columns of a table of edges by what they hold, and other tables alike.
func TestEdgeColumns(t *testing.T) {
	dir := writeTables(t, map[string]string{
		"n.csv": "id,y\na,0\nb,1\nc,0\nd,1\n",
		"e.csv": "source,target,dose,route,day,note\na,b,1,oral,2024-03-01,u\nb,c,3,iv,2024-03-02,v\n" +
			"c,d,,oral,2024-03-03,w\n",
		"f.csv": "source,target,dose,route,day\na,d,5,nasal,2024-03-01\n",
	})
	c := ImportConfig{Nodes: filepath.Join(dir, "n.csv"), Edges: filepath.Join(dir, "e.csv"), Label: "y",
		EdgeColumns: []string{"dose", "route:categorical", "day:date"}, Seed: 1}
	g, f, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	if one := f.EdgeColumns[0]; one.Name != "dose" || one.Missing != 1 || f.EdgeColumns[2].Missing != 0 {
		t.Errorf("missing cells of edge columns: %+v", f.EdgeColumns)
	}
	// dose standardised with its indicator of missing ones, two routes and others, a date.
	if g.EdgeX.Rows != 3 || g.EdgeX.Cols != 2+3+5 {
		t.Fatalf("edge columns of %d×%d", g.EdgeX.Rows, g.EdgeX.Cols)
	}
	for k, want := range [][]float32{{-1, 0, 0, 1, 0}, {1, 0, 1, 0, 0}, {0, 1, 0, 1, 0}} {
		if got := g.EdgeX.Row(k)[:5]; !reflect.DeepEqual(got, want) {
			t.Errorf("row %d is %v, must be %v", k, got, want)
		}
	}
	if want := []int32{0, 0, 1, 1, 2, 2}; !reflect.DeepEqual(g.Adj.Edge, want) {
		t.Errorf("edges have rows %v, must have %v", g.Adj.Edge, want)
	}
	other, _, err := Encode(g.Encoding, []string{c.Nodes}, []string{filepath.Join(dir, "f.csv")}, nil, c.Format)
	if err != nil {
		t.Fatal(err)
	}
	if got := other.EdgeX.Row(0)[:5]; !reflect.DeepEqual(got, []float32{3, 0, 0, 0, 1}) {
		t.Errorf("another table's row is %v", got)
	}
	if none, _, err := Encode(g.Encoding, []string{c.Nodes}, nil, nil, c.Format); err != nil || none.EdgeX.Cols != 10 ||
		none.Valid() != nil {
		t.Errorf("without edges: %v", err)
	}
	c.EdgeColumns = []string{"all"}
	if g, f, err = c.Read(); err != nil || g.EdgeX.Cols == 0 {
		t.Fatalf("all columns: %v", err)
	}
	if one := f.EdgeColumns[3]; one.Name != "note" || one.Kind != table.Dropped ||
		one.Why != "3 of 3 cells have a text that no other has" {
		t.Errorf("what became of all columns: %+v", f.EdgeColumns)
	}
	for column, want := range map[string]string{"none": `no column "none"`,
		"dose:float": "the kind numeric, categorical, date, dmy or mdy",
		"source":     "must have one role (got another, too: edge columns)", "dose:date": "is not a date"} {
		c.EdgeColumns = []string{column}
		_, err := Import(c)
		graphtest.Refused(t, err, want)
	}
}

// TestSplitByTime: before the first time, before the second, and from then on.
func TestSplitByTime(t *testing.T) {
	dir := writeTables(t, map[string]string{
		"n.csv": "id,y,day,year\na,0,31.12.2023,2023\nb,1,01.01.2024,2024\nc,0,31.03.2024,2024\nd,1,01.04.2024,2025\n" +
			"e,,01.01.2020,2020\nf,1,,\n",
		"m.csv": "id,y,day\na,0,2023-12-31\nb,1,soon\n",
	})
	want := []graph.Split{graph.Train, graph.Val, graph.Val, graph.Test, graph.None, graph.None}
	for _, by := range []string{"day:2024-01-01:2024-04-01", "year:2024:2025"} {
		g, err := Import(ImportConfig{Nodes: filepath.Join(dir, "n.csv"), Label: "y", SplitTime: by})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(g.Split, want) {
			t.Errorf("%s: %v, must be %v", by, g.Split, want)
		}
		if !strings.Contains(string(g.Encoding), by) || g.X.Cols() == 0 {
			t.Errorf("%s: the column and the split are not kept", by)
		}
		again, _, err := Encode(g.Encoding, []string{filepath.Join(dir, "n.csv")}, nil, nil, ImportConfig{}.Format)
		if err != nil || !reflect.DeepEqual(again.Split, want) {
			t.Errorf("%s: read again %v, %v", by, again.Split, err)
		}
	}
	for _, c := range []struct{ file, by, want string }{
		{"n.csv", "day:2024-04-01:2024-01-01", "COLUMN:T1:T2"}, {"n.csv", "day:2024-04-01", "COLUMN:T1:T2"},
		{"n.csv", "when:1:2", `no column "when"`}, {"n.csv", "year:1:2", "before the first time"},
		{"m.csv", "day:2024-01-01:2024-02-01",
			`line 3, column day: must be a date, as the times of the split are (got "soon")`},
	} {
		_, err := Import(ImportConfig{Nodes: filepath.Join(dir, c.file), Label: "y", SplitTime: c.by,
			Categorical: []string{"day"}})
		graphtest.Refused(t, err, c.want)
	}
}
