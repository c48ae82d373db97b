package dataset

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

var nan = float32(math.NaN())

const twoTypesMeta = `{"node_type_names": ["author", "paper"],
	"relation_names": ["author-writes-paper", "paper-cites-paper"]}`

// twoTypes are two authors without features and labels, and three papers.
func twoTypes() map[string]arr {
	return map[string]arr{
		"nodes/0/y":           {[]int{2}, []float32{nan, nan}},
		"nodes/1/y":           {[]int{3}, []int64{0, 1, 0}},
		"nodes/1/x":           {[]int{3, 2}, []float32{1, 2, 0, 4, 5, 6}},
		"nodes/1/train_mask":  {[]int{3}, []bool{true, true, false}},
		"nodes/1/val_mask":    {[]int{3}, []bool{false, false, true}},
		"edges/0/types":       {[]int{2}, []int64{0, 1}},
		"edges/0/edge_index":  {[]int{2, 2}, []int32{0, 1 /**/, 2, 0}},
		"edges/0/edge_weight": {[]int{2}, []float32{2, 3}},
		"edges/1/types":       {[]int{2}, []int64{1, 1}},
		"edges/1/edge_index":  {[]int{2, 1}, []int32{0, 1}},
		"edges/1/edge_attr":   {[]int{1, 2}, []float32{7, 8}},
	}
}

// TestTwoTypes: nodes of two types are one graph, each with its own columns; edges keep relation, weight and columns.
func TestTwoTypes(t *testing.T) {
	g, err := Read(folder(t, pack(t, twoTypes()), twoTypesMeta), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"author/0", "author/1", "paper/0", "paper/1", "paper/2"}; !slices.Equal(g.IDs, want) {
		t.Errorf("nodes are called %v, want %v", g.IDs, want)
	}
	x := g.X.Sparse.Dense().Data
	if want := []float32{1, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0, 4, 0, 5, 6}; !slices.Equal(x, want) {
		t.Errorf("features are %v, want %v", x, want)
	}
	if want := []int32{-1, -1, 0, 1, 0}; !slices.Equal(g.Labels.Class, want) {
		t.Errorf("labels are %v, want %v", g.Labels.Class, want)
	}
	want := []graph.Split{graph.None, graph.None, graph.Train, graph.Train, graph.Val}
	if !slices.Equal(g.Split, want) {
		t.Errorf("splits are %v, want %v", g.Split, want)
	}
	col, weight := g.Adj.Row(2) // paper 0: author 1, and paper 1
	if !slices.Equal(col, []int32{1, 3}) || !slices.Equal(weight, []float32{3, 1}) {
		t.Errorf("paper/0 has edges from %v of weights %v", col, weight)
	}
	if rows := g.Adj.EdgeRows(2); rows[0] != -1 || !reflect.DeepEqual(g.EdgeX.Row(int(rows[1])), []float32{7, 8}) {
		t.Errorf("the edges of paper/0 have the rows %v of %v", rows, g.EdgeX)
	}
	if n := g.Typed.Count(); n != 4 || g.Typed.Names[0] != "author-writes-paper" {
		t.Errorf("relations are %v", g.Typed.Names)
	}
}

func TestTwoTypesRefused(t *testing.T) {
	for want, change := range map[string]func(map[string]arr){
		"one type of nodes must have labels (got none)": func(m map[string]arr) {
			m["nodes/1/y"] = arr{[]int{3}, []float32{nan, nan, nan}}
			maps.DeleteFunc(m, func(name string, _ arr) bool { return strings.HasSuffix(name, "_mask") })
		},
		"one type of nodes must have labels (got author and paper)": func(m map[string]arr) {
			m["nodes/0/y"] = arr{[]int{2}, []int64{0, 1}}
		},
		"array x of paper: shape must be [3, any] (got [2, 3])": func(m map[string]arr) {
			m["nodes/1/x"] = arr{[]int{2, 3}, []float32{1, 2, 3, 4, 5, 6}}
		},
		"edge_index of author-writes-paper: entry [0, 1] must be a node, 0 to 1 (got 2)": func(m map[string]arr) {
			m["edges/0/edge_index"] = arr{[]int{2, 2}, []int32{0, 2, 2, 0}}
		},
		"types of paper-cites-paper: entry 1 must be a type, 0 to 1 (got 2)": func(m map[string]arr) {
			m["edges/1/types"] = arr{[]int{2}, []int64{1, 2}}
		},
		"edge_attr of paper-cites-paper: must have a row for each of 1 edges": func(m map[string]arr) {
			m["edges/1/edge_attr"] = arr{[]int{2, 1}, []float32{7, 8}}
		},
		"masks must mark the nodes that have labels": func(m map[string]arr) {
			m["nodes/1/y"] = arr{[]int{3, 2}, []uint8{0, 1, 1, 0, 1, 1}}
			maps.DeleteFunc(m, func(name string, _ arr) bool { return strings.HasSuffix(name, "_mask") })
		},
	} {
		m := twoTypes()
		change(m)
		_, err := Read(folder(t, pack(t, m), twoTypesMeta), 0)
		graphtest.Refused(t, err, want)
	}
}
