package typed

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/mat"
)

var prescriptions = map[string]string{
	"patients.csv": "id,age,sex,outcome\n1,30,f,well\n2,50,m,ill\n3,70,f,ill\n4,50,m,\n",
	"drugs.csv":    "id,weight\n1,10\n7,30\n",
	"doctors.csv":  "id\nx\ny\n",
	"takes.csv":    "patient,drug,dose\n1,7,1\n2,1,3\n2,7,1\n2,7,3\n",
	"treats.csv":   "source,target,since\nx,1,2020\ny,2,2022\ny,3,2024\n",
	"refers.csv":   "source,target\n1,2\n2,1\n",
}

func tables(t *testing.T, texts map[string]string) (dir string, c Config) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(text string) string {
		name, file, _ := strings.Cut(text, "=")
		return name + "=" + filepath.Join(dir, file)
	}
	return dir, Config{
		Nodes: []string{at("patient=patients.csv"), at("drug=drugs.csv"), at("doctor=doctors.csv")},
		Edges: []string{at("patient-takes-drug=takes.csv"), at("doctor-treats-patient=treats.csv"),
			at("patient-refers-patient=refers.csv")},
		Tables: dataset.ImportConfig{Label: "outcome", EdgeColumns: []string{"dose", "doctor-treats-patient.since"},
			Train: 1, Seed: 1},
	}
}

// TestTables reads three types and three relations: numbers, names, features, labels, columns of edges
// and relations are where they belong.
func TestTables(t *testing.T) {
	_, c := tables(t, prescriptions)
	g, f, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"doctor/x", "doctor/y", "drug/1", "drug/7", "patient/1", "patient/2", "patient/3",
		"patient/4"}; !slices.Equal(g.IDs, want) {
		t.Fatalf("nodes %v", g.IDs)
	}
	// A doctor has a column that is 1; drugs have a number; patients age and sex with "other".
	types := graph.Types{Names: []string{"doctor", "drug", "patient"}, Of: []uint8{0, 0, 1, 1, 2, 2, 2, 2},
		Ptr: []int64{0, 1, 2, 6}}
	if !reflect.DeepEqual(g.Types, types) {
		t.Fatalf("types %+v", g.Types)
	}
	x := g.X.Sparse.Dense()
	for i, want := range map[int][]float32{0: {1, 0, 0, 0, 0, 0}, 2: {0, -1, 0, 0, 0, 0}, 5: {0, 0, 0, 0, 1, 0}} {
		if got := x.Row(i); !slices.Equal(got, want) {
			t.Errorf("row of %s is %v, must be %v", g.IDs[i], got, want)
		}
	}
	if want := []int32{-1, -1, -1, -1, 1, 0, 0, -1}; !slices.Equal(g.Labels.Class, want) ||
		!slices.Equal(g.Labels.Names, []string{"ill", "well"}) {
		t.Errorf("labels %v of %v", g.Labels.Class, g.Labels.Names)
	}
	if len(g.InSplit(graph.Train)) != 3 || g.Split[0] != graph.None {
		t.Errorf("split %v", g.Split)
	}
	names := graph.InverseNames([]string{"doctor-treats-patient", "patient-refers-patient", "patient-takes-drug"})
	if !slices.Equal(g.Typed.Names, names) {
		t.Fatalf("relations %q", g.Typed.Names)
	}
	// Patient 2 took drug 7 twice: one edge with the largest dose; the columns of other tables are 0.
	takes := g.Typed.Adj.Relation(2, 6)
	col, _ := takes.Row(3)
	if !slices.Equal(col, []int32{4, 5}) || g.EdgeX.Cols != 2 {
		t.Fatalf("drug 7 is taken by %v, of %d edge columns", col, g.EdgeX.Cols)
	}
	back := g.Typed.Adj.Relation(5, 6)
	if row := takes.EdgeRows(3)[1]; g.EdgeX.Row(int(row))[0] != 0 || g.EdgeX.Row(int(row))[1] != 1 ||
		back.EdgeRows(5)[1] != row {
		t.Errorf("the edge has row %d, %v, and %v backwards", row, g.EdgeX.Row(int(row)), back.EdgeRows(5))
	}
	if f.Types[2].Nodes != 4 || f.Types[0].Features != 0 || f.Relations[2].Listed != 4 || f.Relations[2].Kept != 3 ||
		len(f.EdgeColumns) != 2 {
		t.Errorf("facts %+v", f)
	}
	var text strings.Builder
	f.Print(&text)
	for _, line := range []string{"type doctor: 2 nodes, no features", "type patient: 4 nodes, 4 features",
		"relation patient-takes-drug: 4 listed, 3 kept", "column patient.age", "edge column patient-takes-drug.dose"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("%q is not printed in\n%s", line, text.String())
		}
	}
}

// TestTablesRoundTrip: the graph survives its file, and other tables are read as a model's were.
func TestTablesRoundTrip(t *testing.T) {
	dir, c := tables(t, prescriptions)
	for _, way := range []dataset.Direction{"", dataset.Into, dataset.OutOf, dataset.BothWays} {
		c.Tables.Directed = way
		g, _, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "data"+string(way))
		if err := dataset.Write(path, g); err != nil {
			t.Fatal(err)
		}
		got, err := dataset.Read(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !Encodes(got.Encoding) {
			t.Error("the encoding is lost")
		}
		got.Encoding = g.Encoding // other blanks
		if got.Digest() != g.Digest() {
			t.Errorf("directed %q: read\n%+v\nwritten\n%+v", way, got, g)
		}
		like := c
		like.Tables = dataset.ImportConfig{Like: g.Encoding, Train: 1, Seed: 1}
		again, _, err := like.Read()
		if err != nil {
			t.Fatal(err)
		}
		if again.Digest() != g.Digest() {
			t.Errorf("directed %q: read like itself\n%+v\nfirst\n%+v", way, again, g)
		}
	}
}

// TestTablesRefused: what is wrong is named with the table, column or relation.
func TestTablesRefused(t *testing.T) {
	for what, edit := range map[string]func(c *Config){
		"nodes of several types must be given as TYPE=FILE":    func(c *Config) { c.Nodes[0] = "patients.csv" },
		"edges between types must be given as SOURCE-RELATION": func(c *Config) { c.Edges[0] = "takes=" + "takes.csv" },
		`must join types that have a table of nodes (got "pet")`: func(c *Config) {
			c.Edges[0] = "patient-has-pet=takes.csv"
		},
		"each type of nodes must have one table":          func(c *Config) { c.Nodes = append(c.Nodes, c.Nodes[0]) },
		"two of patient-takes-drug":                       func(c *Config) { c.Edges = append(c.Edges, c.Edges[0]) },
		"letters, digits and _":                           func(c *Config) { c.Nodes[0] = "a b=patients.csv" },
		"label column none must be in a table":            func(c *Config) { c.Tables.Label = "none" },
		"column id must be in the table of one type":      func(c *Config) { c.Tables.Label = "id" },
		"label column dose must be in a table of nodes":   func(c *Config) { c.Tables.Label = "dose" },
		"target column age must be in a table of edges":   func(c *Config) { c.Tables.Target = "age" },
		"weight column drug.weight must be in a table of": func(c *Config) { c.Tables.Weight = "drug.weight" },
		"split time column doctor-treats-patient.since:1:2 must be in a table of nodes": func(c *Config) {
			c.Tables.SplitTime = "doctor-treats-patient.since:1:2"
		},
		"by a column of patient, whose nodes have labels (got drug.weight)": func(c *Config) {
			c.Tables.Split = "drug.weight"
		},
		"a column of labels must be named": func(c *Config) { c.Tables.Label, c.Tables.Regression = "", true },
		"column drug.dose":                 func(c *Config) { c.Tables.EdgeColumns = []string{"drug.dose"} },
		"fractions must be 0 or more":      func(c *Config) { c.Tables.Train = 2 },
	} {
		_, c := tables(t, prescriptions)
		edit(&c)
		_, _, err := c.Read()
		graphtest.Refused(t, err, what)
	}
	texts := map[string]string{}
	for name, text := range prescriptions {
		texts[name] = text
	}
	texts["takes.csv"] += "2,x,1\n"
	_, c := tables(t, texts)
	_, _, err := c.Read()
	graphtest.Refused(t, err, "takes.csv: line 6, column drug: node must be a name in", "drugs.csv", `(got "x")`)
	_, c = tables(t, prescriptions)
	g, _, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	edges := len(g.Adj.Col)
	c.Tables.Like = g.Encoding
	more := c
	more.Edges = append(slices.Clone(c.Edges), strings.Replace(c.Edges[0], "-", "-again-", 1))
	_, _, err = more.Read()
	graphtest.Refused(t, err, "the relations must be of the model")
	texts = maps.Clone(prescriptions)
	texts["wards.csv"], texts["lies.csv"] = "id,beds\n", "patient,ward\n"
	dir, empty := tables(t, texts)
	empty.Nodes = append(empty.Nodes, "ward="+filepath.Join(dir, "wards.csv"))
	empty.Edges = append(empty.Edges, "patient-lies-ward="+filepath.Join(dir, "lies.csv"))
	holes, _, err := empty.Read() // a type and a relation without rows
	if err != nil || holes.N() != g.N() || len(holes.Adj.Col) != edges || holes.Types.Count() != 4 ||
		holes.Valid() != nil {
		t.Errorf("with a type without rows: %+v (%v)", holes, err)
	}
	c.Edges = c.Edges[:2] // a relation without a table has no edges
	less, f, err := c.Read()
	if err != nil || len(less.Adj.Col) >= edges || !slices.Equal(less.Typed.Names, g.Typed.Names) ||
		len(f.Relations) != 3 {
		t.Errorf("%d of %d edges, relations %v (%v)", len(less.Adj.Col), edges, f.Relations, err)
	}
	c.Tables.Like = []byte(`{"id":"id"}`)
	_, _, err = c.Read()
	graphtest.Refused(t, err, "trained on one table of nodes")
}

// TestEmbed: the nodes of a type have a column each, which other tables of the same nodes find again.
func TestEmbed(t *testing.T) {
	_, c := tables(t, prescriptions)
	c.Embed = []string{"doctor"}
	g, _, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	if g.Types.Ptr[1] != 3 { // two doctors, and others
		t.Fatalf("columns %v", g.Types.Ptr)
	}
	for i, want := range [][]int32{{0}, {1}} {
		if col, _ := g.X.Sparse.Row(i); !slices.Equal(col, want) {
			t.Errorf("%s has columns %v, must have %v", g.IDs[i], col, want)
		}
	}
	texts := map[string]string{}
	for name, text := range prescriptions {
		texts[name] = text
	}
	texts["doctors.csv"] = "id\ny\nnew\nx\n"
	_, other := tables(t, texts)
	other.Tables.Like = g.Encoding
	again, f, err := other.Read()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]int32{{1}, {2}, {0}} {
		if col, _ := again.X.Sparse.Row(i); !slices.Equal(col, want) {
			t.Errorf("%s has columns %v, must have %v", again.IDs[i], col, want)
		}
	}
	if !slices.ContainsFunc(f.Warnings,
		func(text string) bool { return strings.Contains(text, `doctor.id`) && strings.Contains(text, `"new"`) }) {
		t.Errorf("no warning of a node that the model has not seen: %q", f.Warnings)
	}
	c.Embed = []string{"pet"}
	_, _, err = c.Read()
	graphtest.Refused(t, err, `types with learned rows must be types of nodes (got "pet")`)
}

// TestOwners: a node whose table has no owners is of the site that owns most of its neighbours.
func TestOwners(t *testing.T) {
	texts := map[string]string{
		"patients.csv": "id,outcome,hospital\n1,well,south\n2,ill,north\n3,ill,north\n4,well,south\n",
		"drugs.csv":    "id\na\nb\nc\n", "doctors.csv": "id\nx\ny\n", "refers.csv": "source,target\n",
		"takes.csv": "patient,drug\n1,a\n2,a\n3,a\n1,b\n2,b\n", "treats.csv": "source,target\n",
	}
	_, c := tables(t, texts)
	c.Tables.EdgeColumns, c.Tables.Site = nil, "hospital"
	dir := filepath.Dir(strings.SplitN(c.Nodes[0], "=", 2)[1])
	if err := os.WriteFile(filepath.Join(dir, "sells.csv"), []byte("doctor,drug\nx,a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Edges = []string{c.Edges[0], "doctor-sells-drug=" + filepath.Join(dir, "sells.csv")}
	g, f, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	// x sells a, which north's patients take most; b is of both, c and y are of nobody.
	want := map[string]string{"drug/a": "north", "drug/b": "north", "drug/c": "north", "doctor/x": "north",
		"doctor/y": "north", "patient/1": "south", "patient/3": "north"}
	for i, id := range g.IDs {
		if site := g.Sites[g.Site[i]]; want[id] != "" && site != want[id] {
			t.Errorf("%s is of %s, must be of %s", id, site, want[id])
		}
	}
	if len(f.Sites) != 2 || f.Sites[1].Nodes != 2 || !slices.ContainsFunc(f.Warnings,
		func(text string) bool { return strings.Contains(text, "nodes of type drug have no owner") }) {
		t.Errorf("facts %+v", f)
	}
}

// TestRegression: a numeric label belongs to one type, and nodes of the others have none.
func TestRegression(t *testing.T) {
	_, c := tables(t, prescriptions)
	c.Tables.Label, c.Tables.Regression = "age", true
	g, f, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	if v := g.Labels.Values; len(v) != 8 || v[0] == v[0] || v[4] != 30 || v[6] != 70 || f.Target == nil ||
		f.Target.Mean != 50 {
		t.Errorf("targets %v, facts %+v", v, f.Target)
	}
}

// TestClassOrder: the order of classes is that of the labelled type; tables without labels do not have it.
func TestClassOrder(t *testing.T) {
	_, c := tables(t, prescriptions)
	c.Tables.ClassOrder = []string{"well", "ill"}
	g, _, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{-1, -1, -1, -1, 0, 1, 1, -1}; !slices.Equal(g.Labels.Class, want) ||
		!slices.Equal(g.Labels.Names, []string{"well", "ill"}) {
		t.Errorf("labels %v of %v", g.Labels.Class, g.Labels.Names)
	}
}

// TestNoEdges: types without relations are a graph of isolated nodes.
func TestNoEdges(t *testing.T) {
	_, c := tables(t, prescriptions)
	c.Edges, c.Tables.EdgeColumns = nil, nil
	g, _, err := c.Read()
	if err != nil || g.Valid() != nil || g.Adj.NumEdges() != 0 || !reflect.DeepEqual(g.EdgeX, mat.Dense{}) {
		t.Errorf("%+v, %v", g, err)
	}
}
