package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLike: other tables become the features of the first ones, whatever is in them, and have a split of their own; labels
// may be absent, columns of features not.
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
	first, err := Import(ImportConfig{Nodes: file("n.csv", nodes), Edges: file("e.csv", "source,target\na,b\nc,d\n"), ID: "name", Label: "sick"})
	if err != nil {
		t.Fatal(err)
	}
	edges := file("later-e.csv", "source,target\ng,h\n")
	later := ImportConfig{Nodes: file("later.csv", "name,sick,kind,age\ng,no,x,35\nh,,z,1000\ni,yes,y,36\nj,no,y,37\n"), Edges: edges, Like: first.Encoding}
	g, err := Import(later)
	if err != nil {
		t.Fatal(err)
	}
	if string(g.Encoding) != string(first.Encoding) || g.X.Cols() != first.X.Cols() || g.Labels.Classes != 2 || g.Labels.Class[1] != -1 || g.Adj.NumEdges() != 2 {
		t.Errorf("%d features of %d, labels %+v, %d edges, encoding %s", g.X.Cols(), first.X.Cols(), g.Labels, g.Adj.NumEdges(), g.Encoding)
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
	later.Nodes = file("short.csv", "name,kind\ng,x\nh,y\n")
	if _, err = Import(later); err == nil || !strings.Contains(err.Error(), "age") {
		t.Errorf("%v; must name the column that is missing", err)
	}
}
