package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

func hasWarning(f *Facts, part string) bool {
	return slices.ContainsFunc(f.Warnings, func(w string) bool { return strings.Contains(w, part) })
}

// Columns that are the label in disguise are found, dense or sparse, and others are not.
func TestDisguise(t *testing.T) {
	const n = 400
	r := rng.New(1)
	class := make([]int32, n)
	x := mat.New(n, 6)
	for i := range n {
		class[i] = int32(map[bool]int{true: 1}[i%20 == 0]) // 5 % of the nodes
		noise := float32(r.Float64(uint64(i)))
		x.Set(i, 0, noise)
		x.Set(i, 1, float32(class[i])*3+noise) // a threshold tells it
		x.Set(i, 2, map[bool]float32{true: 1}[class[i] == 1 && i%40 == 0])
		x.Set(i, 3+i%3, 1) // a category that says nothing
	}
	l := graph.Labels{Classes: 2, Class: class}
	sparse := sparsed(x)
	for _, features := range []graph.Features{{Dense: x}, {Sparse: sparse}} {
		f := &Facts{Label: "fraud", Columns: []ColumnFacts{{Name: "noise", Kind: "numeric", Features: 1},
			{Name: "chargeback", Kind: "numeric", Features: 1}, {Name: "half", Kind: "numeric", Features: 1},
			{Name: "branch", Kind: "categorical", Features: 3, Values: 3}}}
		f.CheckDisguise(features, l)
		if len(f.Warnings) != 1 || !hasWarning(f, "column chargeback alone predicts fraud for 100.0 % of the nodes") {
			t.Errorf("warnings %q", f.Warnings)
		}
	}
	// A category that only nodes without a label have says nothing, as that of another type of nodes.
	z, half := mat.New(n, 2), slices.Clone(class)
	for i := range n {
		if i%2 == 1 {
			half[i] = -1
			z.Set(i, i/2%2, 1)
		}
	}
	other := &Facts{Label: "y", Columns: []ColumnFacts{{Name: "family", Kind: "categorical", Features: 2, Values: 2}}}
	if other.CheckDisguise(graph.Features{Dense: z}, graph.Labels{Classes: 2, Class: half}); len(other.Warnings) > 0 {
		t.Errorf("warnings %q", other.Warnings)
	}
	// Three classes by bins, and by categories; nodes without a label have no say.
	y := mat.New(n, 4)
	for i := range n {
		class[i] = int32(i % 3)
		y.Set(i, 0, []float32{5, 1, 3}[i%3])
		y.Set(i, 1+i%3, 1)
		if i%10 == 0 {
			class[i] = -1
			y.Set(i, 0, 1)
		}
	}
	f := &Facts{Label: "y", Columns: []ColumnFacts{{Name: "a", Kind: "numeric", Features: 1},
		{Name: "b", Kind: "categorical", Features: 3, Values: 3}}}
	f.CheckDisguise(graph.Features{Dense: y}, graph.Labels{Classes: 3, Class: class})
	if !hasWarning(f, "column a alone") || !hasWarning(f, "column b alone") {
		t.Errorf("warnings %q", f.Warnings)
	}
}

func sparsed(x mat.Dense) *mat.Sparse {
	s := &mat.Sparse{Rows: x.Rows, Cols: x.Cols, RowPtr: []int64{0}}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v != 0 {
				s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
			}
		}
		s.RowPtr = append(s.RowPtr, int64(len(s.Col)))
	}
	return s
}

func TestWarn(t *testing.T) {
	f := &Facts{Label: "risk"}
	for k := range 30 {
		f.Classes = append(f.Classes, NodeCount{Name: fmt.Sprint(k), Nodes: 5})
	}
	f.Warn()
	if len(f.Warnings) != 1 || !hasWarning(f, "column risk has 30 classes for 150 nodes: it looks like a regression "+
		"target (option regression predicts it as a number)") {
		t.Errorf("%q", f.Warnings)
	}
	f = &Facts{Label: "y", Classes: []NodeCount{{"a", 500}, {"b", 9}, {"c", 10}}, Edges: EdgeFacts{Repeated: 3},
		Columns: []ColumnFacts{{Name: "name", Kind: Dropped, Why: "because"}, {Name: "asked", Kind: Dropped},
			{Name: "ward", Kind: "categorical", Unknown: 4, Example: "x"}},
		Tables: []TableFacts{{File: "a.csv", Encoding: "latin1"}, {File: "b.csv", Rows: 2, Skipped: 3},
			{File: "c.csv", Rows: 3, Skipped: 3}}}
	f.Warn()
	for _, want := range []string{"class b has 9 nodes", "column name is dropped: because",
		`column ward: a category without its own feature in 4 cells, such as "x"`, "3 edges listed again",
		"a.csv is not UTF-8", "3 rows of 5 in b.csv skipped"} {
		if !hasWarning(f, want) {
			t.Errorf("no warning %q in %q", want, f.Warnings)
		}
	}
	if len(f.Warnings) != 6 {
		t.Errorf("%q", f.Warnings)
	}
	elsewhere := &Facts{Label: "y", Classes: []NodeCount{{"a", 0}, {"b", 0}}, Unlabelled: 8}
	if elsewhere.Warn(); len(elsewhere.Warnings) > 0 {
		t.Errorf("no node here has a label: %q", elsewhere.Warnings)
	}
	var text strings.Builder
	for k := range 50 {
		f.Columns = append(f.Columns, ColumnFacts{Name: fmt.Sprint("c", k), Kind: "numeric", Features: 1})
	}
	f.Print(&text)
	if !strings.Contains(text.String(), "and 13 more columns") ||
		!strings.Contains(text.String(), "nodes of each class: a 500, b 9, c 10") {
		t.Errorf("%s", text.String())
	}
}

// TestArrays: what arrays without tables show is warned of.
func TestArrays(t *testing.T) {
	n := 60
	of := func(names []string) graph.Labels {
		l := graph.Labels{Classes: 3, Names: names, Class: make([]int32, n)}
		for i := range l.Class {
			l.Class[i] = int32(i % 3)
		}
		return l
	}
	floats, oneHot := graph.Labels{Classes: 1, Values: make([]float32, n)},
		graph.Labels{Classes: 3, Bits: make([]uint8, 3*n)}
	copied, many := mat.New(n, 2), graph.Labels{Classes: 30, Class: make([]int32, n)}
	for i := range n {
		floats.Values[i], oneHot.Bits[3*i+i%3] = float32(i%3), 1
		copied.Data[2*i], copied.Data[2*i+1], many.Class[i] = float32(i*7%11), float32(i%3), int32(i%30)
	}
	for _, c := range []struct {
		l          graph.Labels
		x          mat.Dense
		task, want string
	}{
		{of(nil), mat.Dense{}, "auto", ""},
		{of([]string{"a", "b", "c"}), mat.Dense{}, "auto", ""},
		{of([]string{"1", "2", "3"}), mat.Dense{}, "auto", ""},
		{of([]string{"10", "12", "30"}), mat.Dense{}, "auto",
			"y has gaps in its class numbers, no node has 11, 13 to 29: its 3 classes are 10, 12, 30"},
		{of([]string{"-1", "0", "1"}), mat.Dense{}, "auto",
			"y has -1, which is a class here: an empty text, or NaN with task classification, is no label"},
		{of(nil), copied, "auto", "column 1 of x alone predicts y for 100.0 % of the nodes: it may be the label in " +
			"disguise: leave it out"},
		{floats, mat.Dense{}, "auto",
			"y has floats, which make a regression, but only 3 whole numbers: task classification makes them classes"},
		{floats, mat.Dense{}, "regression", ""},
		{oneHot, mat.Dense{}, "auto", "y has 3 columns for any number of classes a node, but each node has one " +
			"class: give y.argmax(axis=1)"},
		{many, mat.Dense{}, "auto", "y has 30 classes for 60 nodes: it looks like a regression target (task " +
			"regression predicts it as a number)"},
	} {
		got, err := Warnings(t.TempDir(), &graph.Graph{Labels: c.l, X: graph.Features{Dense: c.x},
			Split: make([]graph.Split, n)}, c.task)
		if err != nil || strings.Join(got, "\n") != c.want {
			t.Errorf("%q, %v, want %q", got, err, c.want)
		}
	}
	f := &Facts{Warnings: []string{"one"}}
	dir := t.TempDir()
	if err := f.Write(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := Warnings(dir, nil, ""); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
}
