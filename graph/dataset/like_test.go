package dataset

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// TestLike: other tables become the features of the first ones, whatever is in them, and have a split of their own;
// labels may be absent, columns of features not.
func TestLike(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nodes := "name,age,kind,sick\na,10,x,yes\nb,20,y,no\nc,30,x,yes\nd,40,y,no\ne,50,x,yes\nf,60,y,no\n"
	first, err := Import(ImportConfig{Nodes: file("n.csv", nodes), Edges: file("e.csv", "source,target\na,b\nc,d\n"),
		ID: "name", Label: "sick"})
	if err != nil {
		t.Fatal(err)
	}
	edges := file("later-e.csv", "source,target\ng,h\n")
	later := ImportConfig{Nodes: file("later.csv", "name,sick,kind,age\ng,no,x,35\nh,,z,1000\ni,yes,y,36\nj,no,y,37\n"),
		Edges: edges, Like: first.Encoding}
	g, err := Import(later)
	if err != nil {
		t.Fatal(err)
	}
	if string(g.Encoding) != string(first.Encoding) || g.X.Cols() != first.X.Cols() || g.Labels.Classes != 2 ||
		g.Labels.Class[1] != -1 || g.Adj.NumEdges() != 2 {
		t.Errorf("%d features of %d, labels %+v, %d edges, encoding %s", g.X.Cols(), first.X.Cols(), g.Labels,
			g.Adj.NumEdges(), g.Encoding)
	}
	row := g.X.Dense.Row(0) // age is the mean, kind x
	if row[0] != 0 || row[1] != 1 {
		t.Errorf("the row of g is %v", row)
	}
	train := 0
	for _, s := range g.Split {
		if s == g.Split[0] {
			train++
		}
	}
	if g.Split[1] == g.Split[0] || train == 0 {
		t.Errorf("split %v", g.Split)
	}
	later.Nodes = file("bare.csv", "name,kind,age\ng,x,35\nh,y,36\n")
	if g, err = Import(later); err != nil || g.N() != 2 || g.Labels.Labelled() != 0 {
		t.Errorf("without labels: %v", err)
	}
	later.Nodes = file("empty.csv", "name,kind,age\ng,x,\nh,y,NA\n")
	if _, f, err := later.Read(); err != nil || !strings.Contains(strings.Join(f.Warnings, "\n"),
		"no node has a value of column age") {
		t.Errorf("%v: warnings must name the empty column (got %+v)", err, f)
	}
	later.Nodes = file("short.csv", "name,kind\ng,x\nh,y\n")
	if _, err = Import(later); err == nil || !strings.Contains(err.Error(), "age") {
		t.Errorf("%v; must name the column that is missing", err)
	}
}

// TestLikeDates: a table that is read as a model's may have its dates in another order, by the rule of import, and its
// data set has the columns of the model.
func TestLikeDates(t *testing.T) {
	dir := tables(t, map[string]string{"e.csv": "source,target\na,b\n",
		"n.csv":  "id,y,seen\na,1,31.01.2024\nb,0,15.02.2024\nc,1,02.03.2024\nd,0,01.04.2024\n",
		"us.csv": "id,y,seen\na,1,01/31/2024\nb,0,02/15/2024\nc,1,03/02/2024\nd,0,04/01/2024\n"})
	in := func(name string) string { return filepath.Join(dir, name) }
	first, err := Import(ImportConfig{Nodes: in("n.csv"), Edges: in("e.csv"), Label: "y"})
	if err != nil {
		t.Fatal(err)
	}
	like := ImportConfig{Nodes: in("us.csv"), Edges: in("e.csv"), Like: first.Encoding}
	_, err = Import(like)
	graphtest.Refused(t, err, `line 2, column seen: "01/31/2024" is not a date`, "option date seen:mdy reads it")
	for _, order := range []string{"seen:mdy", "y:mdy", "seen"} {
		like.Date = []string{order}
		read, err := Import(like)
		again, _, fault := Encode(first.Encoding, []string{in("us.csv")}, []string{in("e.csv")}, like.Date,
			table.Format{})
		switch order {
		case "seen:mdy":
			if err != nil || fault != nil || string(read.Encoding) != string(first.Encoding) ||
				!slices.Equal(rows(read), rows(first)) || !slices.Equal(rows(again), rows(first)) {
				t.Errorf("must be read as the first table (got %v, %v)", err, fault)
			}
		case "seen":
			graphtest.Refused(t, cmp.Or(err, fault), "is not a date")
		default:
			graphtest.Refused(t, err, `date must be a column of dates of the model (got "y")`)
			graphtest.Refused(t, fault, `date must be a column of dates of the model (got "y")`)
		}
	}
}
