package dataset

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// TestMissingTexts: each text that means no value means it in a column of labels as in one of numbers, and the
// manual lists it.
func TestMissingTexts(t *testing.T) {
	manual, err := os.ReadFile("../../docs/reference/graph-formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(manual), "### Missing values")
	list, _, _ = strings.Cut(list, "`--missing TEXT`")
	texts := []string{" ", "unknown"}
	for k, text := range strings.Split(list, "`") {
		if k%2 == 1 {
			texts = append(texts, text, strings.ToUpper(text), " "+strings.ToLower(text)+" ")
		}
	}
	if len(texts) < 60 || !table.Missing("NA") {
		t.Fatalf("the manual lists %q", texts)
	}
	for _, text := range texts {
		for _, multi := range []bool{false, true} {
			nodes := "id,age,class\n"
			for k := range 20 {
				age, class := fmt.Sprint(k), string(rune('a'+k%2))
				if k == 4 {
					age, class = `"`+text+`"`, `"`+text+`"`
				}
				nodes += fmt.Sprintf("n%d,%s,%s\n", k, age, class)
			}
			dir := tables(t, map[string]string{"n.csv": nodes})
			c := ImportConfig{Nodes: dir + "/n.csv", Label: "class", Multi: multi,
				Format: table.Format{Missing: []string{"Unknown"}}}
			g, f, err := c.Read()
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if f.Unlabelled != 1 || !slices.Equal(g.Labels.Names, []string{"a", "b"}) ||
				f.Columns[0].Missing != 1 || f.Columns[0].Kind != "numeric" {
				t.Errorf("%q, multi %v: %d nodes without a label, classes %q, columns %+v", text, multi,
					f.Unlabelled, g.Labels.Names, f.Columns)
			}
			again, _, err := Encode(g.Encoding, []string{c.Nodes}, nil, nil, table.Format{})
			if err != nil || !slices.Equal(again.Labels.Class, g.Labels.Class) ||
				!slices.Equal(again.Labels.Bits, g.Labels.Bits) {
				t.Errorf("%q, multi %v: read again without the flag: %v", text, multi, err)
			}
		}
	}
}

// TestNoneIsAClassByOrder: "none" means no label, with a warning, unless the order of classes names it; a class that
// looks like "unknown" is warned of.
func TestNoneIsAClassByOrder(t *testing.T) {
	nodes := "id,class\n"
	for k := range 40 {
		nodes += fmt.Sprintf("n%d,%s\n", k, []string{"a", "b", "None", "unknown"}[k%4])
	}
	dir := tables(t, map[string]string{"n.csv": nodes})
	g, f, err := ImportConfig{Nodes: dir + "/n.csv", Label: "class"}.Read()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(f.Warnings, "\n")
	if g.Labels.Classes != 3 || !strings.Contains(text,
		`"none" in 10 cells means no label`) ||
		!strings.Contains(text, `option missing "unknown" leaves its 10 nodes`) {
		t.Errorf("%d classes, warnings %s", g.Labels.Classes, text)
	}
	g, f, err = ImportConfig{Nodes: dir + "/n.csv", Label: "class",
		ClassOrder: []string{"a", "b", "None", "unknown"}}.Read()
	if err != nil || g.Labels.Classes != 4 || f.Unlabelled != 0 {
		t.Errorf("%d classes, %d without a label, %v", g.Labels.Classes, f.Unlabelled, err)
	}
}

// TestOneClass: a column of labels with one class is refused.
func TestOneClass(t *testing.T) {
	dir := tables(t, map[string]string{"n.csv": "id,class\na,ill\nb,NA\nc,ill\n"})
	_, _, err := ImportConfig{Nodes: dir + "/n.csv", Label: "class"}.Read()
	graphtest.Refused(t, err, "column class must have at least two classes (got ill only)")
}

// TestThreeDecimals: a number with three digits after its point is one, although it might have thousands separators.
func TestThreeDecimals(t *testing.T) {
	nodes := "id,age,class\n"
	for k := range 20 {
		nodes += fmt.Sprintf("n%d,%d.%03d,%c\n", k, 40+k, 17*k, 'a'+k%2)
	}
	dir := tables(t, map[string]string{"n.csv": nodes})
	_, f, err := ImportConfig{Nodes: dir + "/n.csv", Label: "class"}.Read()
	if err != nil || f.Columns[0].Kind != "numeric" {
		t.Errorf("%+v, %v", f, err)
	}
}
