package dataset

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

const (
	patients = "id,hospital,age,smoker,score,name,stage,use\n" +
		"p1,north,40,yes,1,Ann,early,train\n" +
		"p2,north,60,no,,Bob,late,val\n" +
		"p3,south,NA,yes,3,Cyd,early,test\n" +
		"p4,south,50,,5,Dan,,train\n"
	contacts = "source,target,hours\np1,p2,2\np2,p1,3\np3,p2,0.5\np4,p4,1\n"
)

// tables writes files and returns their directory.
func tables(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func patientConfig(dir string) ImportConfig {
	return ImportConfig{Nodes: filepath.Join(dir, "nodes.csv"), Edges: filepath.Join(dir, "edges.csv"),
		Label: "stage", Split: "use", Site: "hospital", Weight: "hours"}
}

func TestImport(t *testing.T) {
	dir := tables(t, map[string]string{"nodes.csv": "\ufeff" + patients, "edges.csv": contacts})
	g, err := Import(patientConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	age, score := math.Sqrt(200.0/3), math.Sqrt(8.0/3)
	a, s := float32(10/age), float32(2/score)
	wantX := []float32{ // age, age missing, smoker "", no, yes, other, score, score missing
		-a, 0, 0, 0, 1, 0, -s, 0,
		a, 0, 0, 1, 0, 0, 0, 1,
		0, 1, 0, 0, 1, 0, 0, 0,
		0, 0, 1, 0, 0, 0, s, 0,
	}
	if x := rows(g); !reflect.DeepEqual(x, wantX) {
		t.Errorf("features %v\nwant %v", x, wantX)
	}
	want := &graph.Graph{
		Name: "nodes",
		Adj: graph.CSR{NumDst: 4, NumSrc: 4, RowPtr: []int64{0, 1, 3, 4, 4}, Col: []int32{1, 0, 2, 1},
			Weight: []float32{3, 3, 0.5, 0.5}},
		X:      g.X,
		Labels: graph.Labels{Classes: 2, Class: []int32{0, 1, 0, -1}, Names: []string{"early", "late"}},
		Split:  []graph.Split{graph.Train, graph.Val, graph.Test, graph.None},
		Site:   []int32{0, 0, 1, 1}, Sites: []string{"north", "south"},
		IDs:      []string{"p1", "p2", "p3", "p4"},
		Encoding: g.Encoding,
	}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("read %+v\nwant %+v", g, want)
	}
	e, err := ParseEncoding(g.Encoding)
	if err != nil {
		t.Fatal(err)
	}
	if k := e.Columns[3]; k.Name != "name" || k.Kind != table.Ignored {
		t.Errorf("a text of its own in every row is %+v", k)
	}
	if again, _ := json.Marshal(e); string(again) != string(g.Encoding) {
		t.Errorf("encoding is written again as %s, was %s", again, g.Encoding)
	}
	out := filepath.Join(dir, "out")
	if err := Write(out, g); err != nil {
		t.Fatal(err)
	}
	if back, err := Read(out, 0); err != nil || !reflect.DeepEqual(back, g) {
		t.Errorf("written and read: %+v (%v)", back, err)
	}
	again, _, err := Encode(g.Encoding, []string{patientConfig(dir).Nodes}, []string{patientConfig(dir).Edges}, nil,
		table.Format{})
	if err != nil || !reflect.DeepEqual(again, g) {
		t.Errorf("encoded again: %+v (%v)", again, err)
	}
}

// rows returns the features row by row.
func rows(g *graph.Graph) []float32 {
	if g.X.Sparse != nil {
		return g.X.Sparse.Dense().Data
	}
	return g.X.Dense.Data
}

// TestEncodeNew reads a table that Import never saw: columns in another order, one more, no label,
// an unseen category.
// TestClassOrder: classes have the order that is given, also one that no row has, and new tables are read by it; an
// order without a class of the table is refused.
func TestClassOrder(t *testing.T) {
	dir := tables(t, map[string]string{"nodes.csv": patients, "edges.csv": contacts})
	c := patientConfig(dir)
	c.ClassOrder = []string{"none", "late", "early"}
	g, err := Import(c)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{2, 1, 2, -1}; g.Labels.Classes != 3 || !slices.Equal(g.Labels.Names, c.ClassOrder) ||
		!slices.Equal(g.Labels.Class, want) {
		t.Errorf("classes are %v of %q, must be %v of %q", g.Labels.Class, g.Labels.Names, want, c.ClassOrder)
	}
	again, err := ParseEncoding(g.Encoding)
	if err != nil || !slices.Equal(again.ClassOrder, c.ClassOrder) {
		t.Errorf("the encoding has the order %q (%v), must have %q", again.ClassOrder, err, c.ClassOrder)
	}
	c.ClassOrder = []string{"late", "none"}
	_, err = Import(c)
	graphtest.Refused(t, err, "column stage", `must name all of them (got no "early")`)
	c.ClassOrder = []string{"late", "early", "late"}
	_, err = Import(c)
	graphtest.Refused(t, err, "must name each class of a label column once")
}

func TestEncodeNew(t *testing.T) {
	dir := tables(t, map[string]string{"nodes.csv": patients, "edges.csv": contacts,
		"new.csv": "score,smoker,extra,age,id\n3,never,x,70,q1\nnull,no,y,50,q2\n", "bad.csv": "id,age,score\nq,1,2\n",
		"other.csv": "id,age,score,smoker,stage\nq,1,2,yes,final\n"})
	g, err := Import(patientConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	n, f, err := Encode(g.Encoding, []string{filepath.Join(dir, "new.csv")}, nil, nil, table.Format{})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Valid(); err != nil {
		t.Error(err)
	}
	if c := f.Columns[1]; c.Name != "smoker" || c.Unknown != 1 || c.Example != "never" {
		t.Errorf("unknown categories: %+v", f.Columns)
	}
	z := float32(20 / math.Sqrt(200.0/3))
	want := []float32{z, 0, 0, 0, 0, 1, 0, 0 /**/, 0, 0, 0, 1, 0, 0, 0, 1}
	if x := rows(n); !reflect.DeepEqual(x, want) {
		t.Errorf("features %v\nwant %v", x, want)
	}
	if n.Labels.Classes != 2 || n.Labels.Class[0] != -1 || n.Split[0] != graph.None || n.Adj.NumEdges() != 0 {
		t.Errorf("labels, split or edges of %+v", n)
	}
	_, _, err = Encode(g.Encoding, []string{filepath.Join(dir, "bad.csv")}, nil, nil, table.Format{})
	graphtest.Refused(t, err, "bad.csv", `no column "smoker"`, "its columns are id, age, score")
	n, f, err = Encode(g.Encoding, []string{filepath.Join(dir, "other.csv")}, nil, nil, table.Format{})
	if err != nil || n.Labels.Class[0] != -1 || n.Split[0] != graph.None ||
		!strings.Contains(strings.Join(f.Warnings, "\n"), `a class that the model does not know in 1 cells, `+
			`such as "final"`) {
		t.Errorf("labels %v, warnings %q (%v), want a node without a label", n.Labels.Class, f.Warnings, err)
	}
	for text, want := range map[string]string{
		"{": "encoding", `{"id":"a"}`: "must name columns",
		`{"id":"a","source":"b","target":"c","x":1}`: "unknown field",
		`{"id":"a","source":"b","target":"c","columns":[{"name":"n","kind":"numeric"}]}`: "column n must have a " +
			"finite mean and a finite standard deviation above 0 (got 0 and 0)",
		`{"id":"a","source":"b","target":"c","columns":[{"name":"n","kind":"tekst"}]}`: `kind of column n must be numeric, categorical, date, age, text or ignored (got "tekst")`, `{"id":"a","source":"b","target":"c","columns":[{"name":"n","kind":"categorical","values":["b","a"]}]}`: "not ascending",
		`{"id":"a","source":"b","target":"c","columns":[{"name":"n","kind":"ignored"},{"name":"n","kind":"ignored"}]}`: "twice",
		`{"id":"a","source":"b","target":"c","multi":true}`:                                                            "number of classes must be 1 to 1048576 (got 0)",
		`{"id":"a","source":"b","target":"c"} {}`:                                                                      "after its end",
	} {
		_, err := ParseEncoding([]byte(text))
		graphtest.Refused(t, err, want)
	}
}

func TestImportKinds(t *testing.T) {
	nodes := "code,zip,colour,constant,void,n,,id,tags\n" +
		"1,0812,red,7,,1e18,9,a,x;y\n2,0813,red,7,,-1e18,9,b, y ;\n3,0812,blue,7,,0,9,c,\n4,0812,blue,7,,0,9,d,z;x;x\n"
	dir := tables(t, map[string]string{"n.csv": nodes})
	g, err := Import(ImportConfig{Name: "kinds", Nodes: filepath.Join(dir, "n.csv"), Categorical: []string{"zip"},
		Ignore: []string{"code"}, Label: "tags", Multi: true, Train: 0.5, Val: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Valid(); err != nil {
		t.Error(err)
	}
	e, err := ParseEncoding(g.Encoding)
	if err != nil {
		t.Fatal(err)
	}
	want := []table.Column{
		{Name: "code", Kind: table.Ignored},
		{Name: "zip", Kind: table.Categorical, Values: []string{"0812", "0813"}},
		{Name: "colour", Kind: table.Categorical, Values: []string{"blue", "red"}},
		{Name: "constant", Kind: table.Numeric, Mean: 7, Std: 1},
		{Name: "void", Kind: table.Ignored},
	}
	if !reflect.DeepEqual(e.Columns[:5], want) {
		t.Errorf("columns %+v\nwant %+v", e.Columns, want)
	}
	if want := []uint8{1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1}; !reflect.DeepEqual(g.Labels.Bits, want) ||
		g.Labels.Class != nil {
		t.Errorf("labels %+v, want %v", g.Labels, want)
	}
	if !reflect.DeepEqual(g.Labels.Names, []string{"x", "y", "z"}) || g.Split[2] != graph.None {
		t.Errorf("classes %v, split %v", g.Labels.Names, g.Split)
	}
}

// TestImportWide checks that many categories give sparse features, and that rare ones share
// "other".
func TestImportWide(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,city,class\n")
	for i := range 2000 {
		city := i % 250
		if i >= 1900 {
			city = i // once each
		}
		b.WriteString(strings.Join([]string{"n" + strconv.Itoa(i), "c" + strconv.Itoa(city), strconv.Itoa(i % 12)},
			",") + "\n")
	}
	dir := tables(t, map[string]string{"n.csv": b.String()})
	g, err := Import(ImportConfig{Nodes: filepath.Join(dir, "n.csv"), Label: "class", Categorical: []string{"city"},
		Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	if g.X.Sparse == nil || g.X.Cols() != 256+1 || g.X.Sparse.NNZ() != 2000 {
		t.Fatalf("features are %d×%d, sparse %v", g.X.Rows(), g.X.Cols(), g.X.Sparse != nil)
	}
	other := 0
	for _, j := range g.X.Sparse.Col {
		if j == 256 {
			other++
		}
	}
	if other != 100-6 { // 250 frequent values and 6 of the rare ones have a column
		t.Errorf("%d rows of \"other\"", other)
	}
	if g.Labels.Names[2] != "2" || g.Labels.Names[10] != "10" {
		t.Errorf("classes %v, want them in the order of numbers", g.Labels.Names)
	}
	count := make([][4]int, 12)
	for i, s := range g.Split {
		count[g.Labels.Class[i]][s]++
	}
	for c, n := range count {
		if total := n[1] + n[2] + n[3]; n[0] != 0 || n[1] != int(math.Round(0.6*float64(total))) || n[2] < 32 ||
			n[3] < 32 {
			t.Errorf("class %d has none, train, val, test %v", c, n)
		}
	}
	same, err := Import(ImportConfig{Nodes: filepath.Join(dir, "n.csv"), Label: "class", Categorical: []string{"city"},
		Seed: 5})
	if err != nil || !reflect.DeepEqual(same, g) {
		t.Errorf("the same seed gave another data set (%v)", err)
	}
	next, err := Import(ImportConfig{Nodes: filepath.Join(dir, "n.csv"), Label: "class", Categorical: []string{"city"},
		Seed: 6})
	if err != nil || reflect.DeepEqual(next.Split, g.Split) {
		t.Errorf("another seed gave the same split (%v)", err)
	}
}

// TestImportFormats reads one table as CSV, tab-separated, packed, and Parquet.
func TestImportFormats(t *testing.T) {
	dir := tables(t, map[string]string{"nodes.csv": patients, "edges.csv": contacts,
		"nodes.tsv": strings.ReplaceAll(patients, ",", "\t")})
	want, err := Import(patientConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := os.Create(filepath.Join(dir, "nodes.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(packed)
	if _, err := z.Write([]byte(patients)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	packed.Close()
	type patient struct {
		ID       string   `parquet:"id"`
		Hospital string   `parquet:"hospital,dict"`
		Age      *float32 `parquet:"age,optional"`
		Smoker   *string  `parquet:"smoker,optional"`
		Score    *int32   `parquet:"score,optional"`
		Name     string   `parquet:"name"`
		Stage    string   `parquet:"stage"`
		Use      string   `parquet:"use"`
	}
	age := func(v float32) *float32 { return &v }
	score := func(v int32) *int32 { return &v }
	text := func(v string) *string { return &v }
	if err := parquet.WriteFile(filepath.Join(dir, "nodes.parquet"), []patient{
		{"p1", "north", age(40), text("yes"), score(1), "Ann", "early", "train"},
		{"p2", "north", age(60), text("no"), nil, "Bob", "late", "val"},
		{"p3", "south", age(float32(math.NaN())), text("yes"), score(3), "Cyd", "early", "test"},
		{"p4", "south", age(50), nil, score(5), "Dan", "", "train"},
	}); err != nil {
		t.Fatal(err)
	}
	type contact struct {
		Source string  `parquet:"source"`
		Target string  `parquet:"target"`
		Hours  float64 `parquet:"hours"`
	}
	if err := parquet.WriteFile(filepath.Join(dir, "edges.parquet"),
		[]contact{{"p1", "p2", 2}, {"p2", "p1", 3}, {"p3", "p2", 0.5}, {"p4", "p4", 1}}); err != nil {
		t.Fatal(err)
	}
	for _, files := range [][2]string{{"nodes.tsv", "edges.csv"}, {"nodes.csv.gz", "edges.csv"},
		{"nodes.parquet", "edges.parquet"}} {
		c := patientConfig(dir)
		c.Nodes, c.Edges = filepath.Join(dir, files[0]), filepath.Join(dir, files[1])
		if got, err := Import(c); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: read %+v (%v)\nwant %+v", files, got, err, want)
		}
	}
	// Damage to a Parquet file is an error or harmless, never a panic.
	data, err := os.ReadFile(filepath.Join(dir, "nodes.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.parquet")
	c := patientConfig(dir)
	c.Nodes = bad
	for n := 0; n < len(data); n += 7 {
		data[n] ^= 0x55
		if err := os.WriteFile(bad, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Import(c); err != nil && !strings.Contains(err.Error(), "bad.parquet") &&
			!strings.Contains(err.Error(), "edges.csv") {
			t.Errorf("byte %d damaged: %v does not name the file", n, err)
		}
		data[n] ^= 0x55
	}
	if err := os.WriteFile(bad, data[:len(data)-9], 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Import(c)
	graphtest.Refused(t, err, "bad.parquet", "not a Parquet file")
	copy(data[len(data)-8:], "\xff\xff\xff\x7f")
	if err := os.WriteFile(bad, data, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Import(c)
	graphtest.Refused(t, err, "bad.parquet", "footer of 2147483647 bytes")
}

func TestImportFaults(t *testing.T) {
	swap := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in the table", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for _, c := range []struct {
		name         string
		nodes, edges string
		edit         func(c *ImportConfig)
		want         []string
	}{
		{"no file", patients, contacts, func(c *ImportConfig) { c.Nodes += "x.csv" },
			[]string{"nodes.csvx.csv", "no such file"}},
		{"no edges file", patients, contacts, func(c *ImportConfig) { c.Edges = "nowhere.csv" },
			[]string{"nowhere.csv", "no such file"}},
		{"suffix", patients, contacts, func(c *ImportConfig) { c.Edges = c.Edges[:len(c.Edges)-4] }, []string{"edges"}},
		{"no id column", patients, contacts, func(c *ImportConfig) { c.ID = "key" },
			[]string{"nodes.csv", `no column "key" (the nodes' names, option id-column)`,
				"its columns are id, hospital"}},
		{"no label column", patients, contacts, func(c *ImportConfig) { c.Label = "disease" },
			[]string{"nodes.csv", `no column "disease" (the labels, option label-column)`}},
		{"no site column", patients, contacts, func(c *ImportConfig) { c.Site = "clinic" },
			[]string{`no column "clinic" (the nodes' owners, option site-column)`}},
		{"no source column", patients, contacts, func(c *ImportConfig) { c.Source = "from" },
			[]string{"edges.csv", `no column "from"`}},
		{"no weight column", patients, contacts, func(c *ImportConfig) { c.Weight = "km" },
			[]string{"edges.csv", `no column "km"`}},
		{"two roles", patients, contacts, func(c *ImportConfig) { c.Numeric = []string{"stage"} },
			[]string{"column stage must have one role (got another, too: numeric columns, option numeric)"}},
		{"column twice", swap(patients, "score", "age"), contacts, nil,
			[]string{"nodes.csv", "column age occurs twice"}},
		{"duplicate id", swap(patients, "p3,", "p1,"), contacts, nil,
			[]string{"nodes.csv", "line 4, column id", `node "p1" occurs on line 2`}},
		{"empty id", swap(patients, "p3,", ","), contacts, nil,
			[]string{"nodes.csv", "line 4, column id: the node's name must be given"}},
		{"empty site", swap(patients, "p3,south", "p3,"), contacts, nil,
			[]string{"nodes.csv", "line 4, column hospital: the node's owner must be given"}},
		{"number", patients, contacts, func(c *ImportConfig) { c.Numeric = []string{"smoker"} },
			[]string{"nodes.csv", "line 2, column smoker", `must be a number (got "yes")`}},
		{"infinity", swap(patients, "40", "inf"), contacts, func(c *ImportConfig) { c.Numeric = []string{"age"} },
			[]string{"line 2, column age", `must be a number of at most 1e+140 in size (got "inf")`}},
		{"a number with a comma", swap(patients, ",40,", `,"4,5",`), contacts,
			func(c *ImportConfig) { c.Numeric = []string{"age"} },
			[]string{"line 2, column age", `must be a number (got "4,5"); a decimal comma needs option decimal-comma`}},
		{"a number beyond floats", swap(patients, "40", strings.Repeat("9", 400)), contacts,
			func(c *ImportConfig) { c.Numeric = []string{"age"} },
			[]string{"line 2, column age", `must be a number of at most 1e+140 in size (got "9999`}},
		{"a number whose square is", swap(patients, "40", strings.Repeat("9", 300)), contacts, nil,
			[]string{"nodes.csv", "line 2, column age", `must be a number of at most 1e+140 in size (got "9999`}},
		{"a target beyond floats", swap(patients, "early", strings.Repeat("9", 300)), contacts,
			func(c *ImportConfig) { c.Label, c.Regression, c.Split = "stage", true, "" }, []string{"nodes.csv",
				"line 2, column stage", `target must be a number of at most 3.4e+38 in size (got "9999`}},
		{"a weight beyond floats", patients, swap(contacts, "0.5", "1e39"), nil,
			[]string{"edges.csv", "line 4, column hours", `at most 3.4e+38 (got "1e39")`}},
		{"an infinite edge column", patients, swap(contacts, "0.5", "inf"),
			func(c *ImportConfig) { c.Weight, c.EdgeColumns = "", []string{"hours"} }, []string{"edges.csv",
				"line 4, column hours", `must be a number of at most 1e+140 in size (got "inf")`}},
		{"split", swap(patients, ",test", ",tset"), contacts, nil,
			[]string{"nodes.csv", "line 4, column use", `split must be train, val, test or none (got "tset")`}},
		{"nothing to train on", swap(patients, "early,train", "early,test"), contacts, nil, []string{"nodes.csv",
			"column use", `column use must have at least one cell "train" at a node with a label`}},
		{"no labels", "id,stage\na,\nb,\n", "source,target,hours\n", func(c *ImportConfig) { c.Split, c.Site = "", "" },
			[]string{"column stage: no node has a label"}},
		{"labels all unlike", patients, contacts,
			func(c *ImportConfig) { c.Label, c.Ignore = "name", nil; c.Split = "" },
			[]string{"column name", "column name must hold classes (got 4 labels, each once)"}},
		{"short row", swap(patients, ",late,val", ",late"), contacts, nil,
			[]string{"nodes.csv", "line 3", "there must be 8 cells, as many as names of columns (got 7)"}},
		{"quote", swap(patients, "Bob", `"Bo"b`), contacts, nil, []string{"nodes.csv", "line 3"}},
		{"Latin-1", swap(patients, "Bob", "B\xf8b"), contacts, func(c *ImportConfig) { c.Format.Charset = "utf-8" },
			[]string{"nodes.csv", "line 3, column name", `must be UTF-8 (got "B\xf8b")`}},
		{"Latin-1 names of columns", swap(patients, "age", "\xe5ge"), contacts,
			func(c *ImportConfig) { c.Format.Charset = "utf-8" },
			[]string{"nodes.csv", `must be UTF-8 (got "\xe5ge")`}},
		{"the file is empty", "", contacts, nil, []string{"nodes.csv", "the file is empty"}},
		{"no rows", "id,hospital,stage,use\n", contacts, func(c *ImportConfig) { c.Label, c.Split = "", "" },
			[]string{"nodes.csv", "no rows"}},
		{"unknown node", patients, swap(contacts, "p3,p2", "p3,p9"), nil,
			[]string{"edges.csv", "line 4, column target", "node must be a name in", "nodes.csv"}},
		{"weight with a comma", patients, swap(contacts, "0.5", `"0,5"`), nil,
			[]string{`(got "0,5"); a decimal comma needs option decimal-comma`}},
		{"weight", patients, swap(contacts, "0.5", "-1"), nil, []string{"edges.csv", "line 4, column hours",
			`line 4, column hours: weight must be a number above 0, at most 3.4e+38 (got "-1")`}},
		{"weight missing", patients, swap(contacts, "0.5", ""), nil, []string{"edges.csv", "line 4, column hours"}},
		{"shares", patients, contacts, func(c *ImportConfig) { c.Train, c.Val = 0.9, 0.3; c.Nodes = "" },
			[]string{"there must be a table of nodes (got none)", "train 0.9"}},
		{"no share for training", patients, contacts, func(c *ImportConfig) { c.Test = 1 },
			[]string{"that for training above 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tables(t, map[string]string{"nodes.csv": c.nodes, "edges.csv": c.edges})
			cfg := patientConfig(dir)
			if c.edit != nil {
				c.edit(&cfg)
			}
			_, err := Import(cfg)
			graphtest.Refused(t, err, c.want...)
		})
	}
	// A single wrong cell among numbers is a mistake, not a category.
	nodes := "id,v\n"
	for i := range 30 {
		nodes += "n" + strconv.Itoa(i) + "," + strconv.Itoa(i) + "\n"
	}
	dir := tables(t, map[string]string{"nodes.csv": nodes + "x,l2\n"})
	_, err := Import(ImportConfig{Nodes: filepath.Join(dir, "nodes.csv")})
	graphtest.Refused(t, err, "line 32, column v", `must be a number (got "l2")`)
}

func FuzzImport(f *testing.F) {
	f.Add(patients, contacts)
	f.Add(strings.Replace(patients, "age", "\xf8", 1), contacts) // Latin-1
	f.Add("id,hospital,stage,use,a\nx,s,1,train,1e308\ny,s,2,val,-1e308\n", "source,target,hours\nx,y,1\n")
	f.Fuzz(func(t *testing.T, nodes, edges string) {
		dir := tables(t, map[string]string{"nodes.csv": nodes, "edges.csv": edges})
		c := patientConfig(dir)
		g, err := Import(c)
		if err != nil {
			return
		}
		if err := g.Valid(); err != nil {
			t.Fatal(err)
		}
		again, _, err := Encode(g.Encoding, []string{c.Nodes}, []string{c.Edges}, nil, table.Format{})
		if err != nil || !reflect.DeepEqual(again, g) {
			t.Fatalf("encoded again: %+v (%v), was %+v", again, err, g)
		}
	})
}
