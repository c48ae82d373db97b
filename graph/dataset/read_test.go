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
	"github.com/heddle-gnn/heddle/internal/graph/dataset/edgelist"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// account writes the row of one account of a bank: every second one is late, and code says so.
func account(k int) string {
	return fmt.Sprintf("a%d;%02d.%02d.2024;%d,%02d;b%d;wire no %d to someone;c%d;%s\n", k, 1+k%28, 1+k%12, k*37%1000,
		k%100, k%3, k, k%2, []string{"no", "yes"}[k%2])
}

const accountHead = "id;opened;balance;branch;note;code;late\n"

func accounts(n int, spoil map[int]string) string {
	text := accountHead
	for k := range n {
		if bad, ok := spoil[k]; ok {
			text += bad
			continue
		}
		text += account(k)
	}
	return text
}

func accountConfig(dir string) ImportConfig {
	return ImportConfig{Nodes: filepath.Join(dir, "n.csv"), Edges: filepath.Join(dir, "e.csv"), Label: "late",
		Text: []string{"note:8"}, Weight: "sum", Seed: 3, Format: table.Format{DecimalComma: true}}
}

// What a table becomes is told, column by column.
func TestFacts(t *testing.T) {
	dir := tables(t, map[string]string{"n.csv": accounts(60, nil), "e.csv": "source,target,sum\na0,a1,2\na1,a0,3\n" +
		"a0,a1,4\na2,a2,1\na4,a6,1\n"})
	g, f, err := accountConfig(dir).Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	h, chance := 0.5, 0.625 // three of four ends are of one class
	want := &table.Facts{
		Tables: []table.TableFacts{{File: "n.csv", Rows: 60, Encoding: "utf-8", Delimiter: ";"},
			{File: "e.csv", Rows: 5, Encoding: "utf-8", Delimiter: ","}},
		Columns: []table.ColumnFacts{{Name: "opened", Kind: "date", Features: 5, Why: "time, year and week"},
			{Name: "balance", Kind: "numeric", Features: 1}, {Name: "branch", Kind: "categorical", Features: 4,
				Values: 3}, {Name: "note", Kind: "text", Features: 8, Why: "words hashed by FNV-1a with seed 3"},
			{Name: "code", Kind: "categorical", Features: 3, Values: 2}},
		Nodes: 60, Label: "late", Classes: []table.NodeCount{{Name: "no", Nodes: 30}, {Name: "yes", Nodes: 30}},
		Edges:    table.EdgeFacts{Listed: 5, Loops: 1, Repeated: 1, Mutual: 1, Kept: 2},
		Isolated: 56, Homophily: &h, Chance: &chance,
		Warnings: []string{"1 edge listed again: each edge counts once, with its largest weight " +
			"(option merge changes this)",
			"column code alone predicts late for 100.0 % of the nodes: it may be the label in disguise " +
				"(option ignore code)"},
	}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("facts %+v\nwant %+v", f, want)
	}
	if err := f.Write(dir); err != nil {
		t.Fatal(err)
	}
	if back, err := table.ReadFacts(dir); err != nil || !reflect.DeepEqual(back, f) {
		t.Errorf("written and read: %+v, %v", back, err)
	}
	if none, err := table.ReadFacts(t.TempDir()); none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
}

// Tables with rows at fault, skipped, give what the tables without these rows give; without skip all
// faults are named at once.
func TestSkip(t *testing.T) {
	bad := map[int]string{7: account(6), 11: strings.Replace(account(11), ",11;", ",x1;", 1), 20: "a20;short\n",
		33: strings.Replace(account(33), "a33", "", 1), 41: strings.Replace(account(41), ".2024", ".24", 1)}
	edges := "source,target,sum\na0,a1,2\na1,a7,1\na0,a2,none\na3,nobody,1\na5,a6,2\n"
	dirty := tables(t, map[string]string{"n.csv": accounts(60, bad), "e.csv": edges})
	none := map[int]string{7: "", 11: "", 20: "", 33: "", 41: ""}
	clean := tables(t, map[string]string{"n.csv": accounts(60, none), "e.csv": "source,target,sum\na0,a1,2\na5,a6,2\n"})
	want, wantFacts, err := accountConfig(clean).Read()
	if err != nil {
		t.Fatal(err)
	}
	c := accountConfig(dirty)
	c.Format.Faults = &table.Faults{Skip: true}
	got, f, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if !reflect.DeepEqual(f.Columns, wantFacts.Columns) || f.Tables[0].Skipped != 5 || f.Tables[1].Skipped != 3 ||
		f.Tables[0].Rows != 55 || f.Tables[1].Rows != 2 {
		t.Errorf("facts %+v", f)
	}
	_, _, err = accountConfig(dirty).Read()
	graphtest.Refused(t, err, "n.csv: line 9, column id", "line 13, column balance", "line 22",
		"there must be 7 cells, as many as names of columns (got ", "line 35, column id", "line 43, column opened",
		"e.csv: line 4, column sum")
	if strings.Contains(err.Error(), "nobody") { // it may be one of the nodes at fault
		t.Errorf("%v", err)
	}
}

func TestMerge(t *testing.T) {
	src, dst, weight := []int32{0, 1, 0, 2, 0}, []int32{1, 0, 1, 2, 2}, []float32{2, 3, 7, 1, 5}
	for how, want := range map[string]float32{"sum": 12, "count": 3, "mean": 4, "last": 7} {
		s, d, _, w, _ := edgelist.Merge(how, src, dst, nil, weight)
		if !slices.Equal(s, []int32{0, 0, 2}) || !slices.Equal(d, []int32{1, 2, 2}) || w[0] != want {
			t.Errorf("%s: %v → %v, %v, want %v", how, s, d, w, want)
		}
	}
	if _, _, _, w, _ := edgelist.Merge("sum", src, dst, nil, nil); !slices.Equal(w, []float32{3, 1, 1}) {
		t.Errorf("without weights: %v", w)
	}
	s, _, kind, w, _ := edgelist.Merge("sum", src, dst, []int32{1, 1, 1, 0, 0}, weight)
	if len(s) != 4 || !slices.Equal(w, []float32{9, 5, 3, 1}) || !slices.Equal(kind, []int32{1, 0, 1, 0}) {
		t.Errorf("with types: %v, %v, %v", s, kind, w)
	}
	dir := tables(t, map[string]string{"n.csv": accounts(4, nil), "e.csv": "source,target,sum\na0,a1,2\na1,a0,3\n" +
		"a0,a1,7\na2,a3,1\n"})
	c := accountConfig(dir)
	for how, want := range map[string]float32{"": 7, "max": 7, "sum": 12} {
		c.Merge = how
		g, f, err := c.Read()
		if err != nil || g.Adj.Weight[0] != want || f.Edges.Merge != how || f.Edges.Kept != 2 {
			t.Fatalf("%q: %v, %v, %+v", how, g, err, f)
		}
		if again, _, err := Encode(g.Encoding, []string{c.Nodes}, []string{c.Edges}, nil, c.Format); err != nil ||
			again.Adj.Weight[0] != want {
			t.Errorf("%q: encoded again: %v", how, err)
		}
	}
	list := filepath.Join(tables(t, map[string]string{"a.wel": "0 1 2\n1 0 3\n0 1 4\n2 1 1\n"}), "a.wel")
	if g, listed, err := edgelist.Read(edgelist.Config{Path: list, Weight: "3", Merge: "sum"}); err != nil ||
		g.Adj.Weight[0] != 9 || len(listed.Source) != 4 {
		t.Errorf("%+v, %v", g, err)
	}
	c.Merge = "product"
	_, err := Import(c)
	graphtest.Refused(t, err, `merge must be sum, count, max, mean or last (got "product")`)
}

// Dates are the same from CSV, in other forms, and Latin-1 is not spoilt.
func TestSameFromAnyFile(t *testing.T) {
	text := "id,opened,city,class\n"
	for k := range 20 {
		text += fmt.Sprintf("n%d,2024-%02d-%02d,%s,%d\n", k, 1+k%12, 1+k, []string{"Köln", "Zürich"}[k%2], k%2)
	}
	latin := strings.NewReplacer("ö", "\xf6", "ü", "\xfc").Replace(text)
	dir := tables(t, map[string]string{"a.csv": text, "b.csv": latin, "c.csv": strings.ReplaceAll(latin, ",", ";")})
	want, err := Import(ImportConfig{Name: "a", Nodes: filepath.Join(dir, "a.csv"), Label: "class"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b.csv", "c.csv"} {
		if got, err := Import(ImportConfig{Name: "a", Nodes: filepath.Join(dir, name), Label: "class"}); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e, err := ParseEncoding(want.Encoding)
	if err != nil || e.Columns[0].Kind != table.Date || !slices.Equal(e.Columns[1].Values, []string{"Köln", "Zürich"}) {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestAskedColumns(t *testing.T) {
	dir := tables(t, map[string]string{"n.csv": accounts(60, nil)})
	for want, edit := range map[string]func(c *ImportConfig){
		`text must be COLUMN:WIDTH, the width 1 to 65536 (got "note")`: func(c *ImportConfig) {
			c.Text = []string{"note"}
		},
		`text must be COLUMN:WIDTH, the width 1 to 65536 (got "note:0")`: func(c *ImportConfig) {
			c.Text = []string{"note:0"}
		},
		`age must be COLUMN:DATE, the date year-month-day (got "opened`: func(c *ImportConfig) {
			c.Age = []string{"opened"}
		},
		`no column "gone" (date columns, option date)`: func(c *ImportConfig) {
			c.Date = []string{"gone:mdy"}
		},
		"column note must have one role (got another, too: date columns, option date)": func(c *ImportConfig) {
			c.Date = []string{"note"}
		},
		`"13.01.2024" is not a date like 2024-03-31, 03/31/2024`: func(c *ImportConfig) {
			c.Date = []string{"opened:mdy"}
		},
	} {
		c := accountConfig(dir)
		c.Edges, c.Weight = "", ""
		edit(&c)
		_, err := Import(c)
		graphtest.Refused(t, err, want)
	}
}

// What could be done about a column that is dropped is said with it.
func TestHints(t *testing.T) {
	text := "id;comma;point;note;name;class\n"
	for k := range 60 {
		text += fmt.Sprintf("n%d;%d,5;%d.5;a note no %d;Mr%d;%d\n", k, k, k, k, k, k%2)
	}
	dir := tables(t, map[string]string{"n.csv": text})
	for _, comma := range []bool{false, true} {
		_, f, err := ImportConfig{Nodes: filepath.Join(dir, "n.csv"), Label: "class",
			Format: table.Format{DecimalComma: comma}}.Read()
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"decimal comma (option decimal-comma)", "", "option text note:256", "option categorical name"}
		if comma {
			want[0], want[1] = "", "decimal point (omit option decimal-comma)"
		}
		for k, hint := range want {
			if c := f.Columns[k]; !strings.Contains(c.Hint, hint) || (c.Kind == table.Dropped) != (hint != "") {
				t.Errorf("decimal comma %v: %+v, want %q", comma, c, hint)
			}
		}
	}
}

// Encoding takes steps in proportion to the columns.
func TestManyColumns(t *testing.T) {
	const n = 100_000
	var head, row strings.Builder
	for k := range n {
		fmt.Fprintf(&head, ",c%d", k)
		fmt.Fprintf(&row, ",%d", k%7)
	}
	text := "id" + head.String() + "\n"
	for k := range 3 {
		text += fmt.Sprintf("n%d%s\n", k, row.String())
	}
	dir := tables(t, map[string]string{"n.csv": text})
	g, f, err := ImportConfig{Nodes: filepath.Join(dir, "n.csv")}.Read()
	if err != nil || g.X.Cols() != n || len(f.Columns) != n {
		t.Fatalf("%v", err)
	}
}

// A graph of networkx: a list or table of names beside a table that pandas wrote.
func TestNetworkx(t *testing.T) {
	dir := tables(t, map[string]string{"n.csv": ",age,class\nann,1,x\nbob,2,y\ncyd,3,x\n", "e.edgelist": "ann bob 2\n" +
		"cyd bob 3\n", "e.csv": "source,target,weight\nann,bob,2\ncyd,bob,3\n"})
	of := func(edges, weight string) *graph.Graph {
		g, err := Import(ImportConfig{Name: "g", Nodes: filepath.Join(dir, "n.csv"), Edges: filepath.Join(dir, edges),
			Label: "class", Weight: weight})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	want, got := of("e.csv", "weight"), of("e.edgelist", "3")
	if want.N() != 3 || want.Adj.NumEdges() != 4 || !slices.Equal(want.IDs, []string{"ann", "bob", "cyd"}) {
		t.Errorf("%+v", want)
	}
	if got.Encoding = want.Encoding; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// edge_index of PyTorch Geometric, alone and beside a table.
func TestEdgeIndex(t *testing.T) {
	dir := tables(t, map[string]string{"n.csv": "id,class\n0,x\n1,y\n2,x\n3,y\n",
		"e.npz": string(pack(t, map[string]arr{"edge_index": {[]int{2, 3}, []int64{0, 1, 2, 1, 0, 2}},
			"edge_attr": {[]int{3, 1}, []float32{2, 2, 1}}}))})
	file := filepath.Join(dir, "e.npz")
	g, _, err := edgelist.Read(edgelist.Config{Path: file, Weight: "edge_attr", Nodes: 5})
	if err != nil || g.N() != 5 || g.Adj.NumEdges() != 2 || g.Adj.Weight[0] != 2 {
		t.Errorf("%+v, %v", g, err)
	}
	g, err = Import(ImportConfig{Nodes: filepath.Join(dir, "n.csv"), Edges: file, Label: "class", Weight: "edge_attr"})
	if err != nil || g.N() != 4 || g.Adj.NumEdges() != 2 {
		t.Errorf("%+v, %v", g, err)
	}
	for want, c := range map[string]edgelist.Config{"array weight: missing": {Weight: "weight"},
		"no column of sources": {Source: "from"}, "node must be 0 to 0 (got 1)": {Nodes: 1}} {
		c.Path = file
		_, _, err := edgelist.Read(c)
		graphtest.Refused(t, err, "e.npz", want)
	}
}
