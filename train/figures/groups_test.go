package figures

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// columns is the encoding of a table with a column of wards and one of ages, in years.
const columns = `{"id":"id","source":"a","target":"b","columns":[{"name":"ward","kind":"categorical",
"values":["east","north","west"]},{"name":"age","kind":"numeric","mean":50.3,"std":7.7,"missing":true}]}`

// withColumns gives each node of g a ward and an age; ward returns −1 for another one, age below 0 for none.
func withColumns(g *graph.Graph, ward func(i int) int, age func(i int) float64) {
	x := mat.New(len(g.Split), 6)
	for i := range g.Split {
		at := ward(i)
		if at < 0 {
			at = 3
		}
		x.Set(i, at, 1)
		if years := age(i); years < 0 {
			x.Set(i, 5, 1)
		} else {
			x.Set(i, 4, float32((years-50.3)/7.7))
		}
	}
	g.X, g.Encoding = graph.Features{Dense: x}, []byte(columns)
}

// TestGroupsOf: a category has its nodes, a number at a cut is not below it, and other columns are refused.
func TestGroupsOf(t *testing.T) {
	g, _ := example(t, 200, 2, false, true)
	withColumns(g, func(i int) int { return i%4 - 1 }, func(i int) float64 { return float64(i % 100) })
	dense := shard.Whole(g)
	sparse := *dense
	sparse.X = graph.Features{Sparse: &mat.Sparse{Rows: 200, Cols: 6, RowPtr: []int64{0}}}
	for i := range 200 {
		for j, v := range dense.X.Dense.Row(i) {
			if x := sparse.X.Sparse; v != 0 {
				x.Col, x.Val = append(x.Col, int32(j)), append(x.Val, v)
			}
		}
		sparse.X.Sparse.RowPtr = append(sparse.X.Sparse.RowPtr, int64(len(sparse.X.Sparse.Col)))
	}
	for _, s := range []*shard.Shard{dense, &sparse} {
		wards, err := GroupsOf("ward", s)
		if err != nil {
			t.Fatal(err)
		}
		ages, err := GroupsOf("age:40,65", s)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			if want := []string{"none or another", "east", "north", "west"}[i%4]; wards.names[wards.of[i]] != want {
				t.Fatalf("ward of node %d is %s, must be %s", i, wards.names[wards.of[i]], want)
			}
			want := "under 40"
			if i%100 >= 65 {
				want = "65 or more"
			} else if i%100 >= 40 {
				want = "40 to under 65"
			}
			if ages.names[ages.of[i]] != want {
				t.Fatalf("a node of %d years is in %s, must be in %s", i%100, ages.names[ages.of[i]], want)
			}
		}
	}
	for by, want := range map[string]string{"beds": "no column beds", "ward:3": "is categorical",
		"age:65,40": "ascending", "age:x": "ascending", "age": "have cuts"} {
		if _, err := GroupsOf(by, dense); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error must have %q: %v", by, want, err)
		}
	}
}

// TestGroupSums: all sites get the same counts, which are those of the predictions; no value of few nodes or sites has
// any, and what a site adds to a value is of ten nodes or none.
func TestGroupSums(t *testing.T) {
	g, logits := example(t, 2000, 2, false, true)
	shards := parts(t, g, 4)
	site := map[int]int{}
	for _, s := range shards {
		for _, i := range s.Global[:s.Owned] {
			site[int(i)] = s.Rank
		}
	}
	ward := func(i int) int { // only site 0 has an east, so that its pool takes the north of three
		switch {
		case site[i] == 0 && i%5 == 0:
			return 0
		case site[i] < 3 && i%3 == 0:
			return 1
		}
		return 2 - 3*(i/4%2)
	}
	none := func(int) float64 { return -1 }
	withColumns(g, ward, none)
	all := byWard(t, parts(t, g, 4))
	together(t, all, logits, -1)
	f := read(t, all[0])
	names, rows := "", int64(0)
	for _, one := range f.Groups {
		names, rows = names+one.Name+"; ", rows+one.Rows
		want := Group{Name: one.Name}
		for i, split := range g.Split {
			k, named := 0, logits.At(i, 1) > logits.At(i, 0)
			for g.X.Dense.At(i, k) == 0 {
				k++
			}
			name := []string{"east", "north", "west", "none or another"}[k]
			if split != graph.Test || name != one.Name && (one.Name != "values of few nodes or sites" || k > 1) {
				continue
			}
			class := g.Labels.Class[i] == 1
			for _, of := range []struct {
				is bool
				n  *int64
			}{{true, &want.Rows}, {named == class, &want.Right}, {class, &want.Positives}, {named, &want.Alarms},
				{named && class, &want.Found}} {
				if of.is {
					*of.n++
				}
			}
		}
		if f.Positive != 1 {
			t.Fatalf("the positive class must be 1 (got %d)", f.Positive)
		}
		if one != want {
			t.Errorf("%s: %+v, must be %+v", one.Name, one, want)
		}
	}
	if want := "west; none or another; values of few nodes or sites; "; names != want || rows != f.Test.Rows {
		t.Errorf("figures of %d test nodes are by %s; must be %d and %s", rows, names, f.Test.Rows, want)
	}
	for _, e := range all {
		if got := read(t, e); fmt.Sprint(got.Groups) != fmt.Sprint(f.Groups) || got.By != "ward" {
			t.Errorf("site %d has other figures: %v", e.Shard.Rank, got.Groups)
		}
	}
	// Sites that come back have the sums from those that kept them.
	all[2].sums = nil
	together(t, all, logits, -1)
	if got := read(t, all[2]); fmt.Sprint(got.Groups) != fmt.Sprint(f.Groups) {
		t.Errorf("after a failure the figures are %v, must be %v", got.Groups, f.Groups)
	}
	for k := range cells * 2 {
		lie := *all[0].sums
		lie.Groups = slices.Clone(lie.Groups)
		lie.Groups[cells*2+k] += 1 << 20
		if _, err := all[0].figures(&lie); err == nil {
			t.Errorf("number %d of the figures by a column is a lie, and nobody refuses it", k)
		}
	}
}

// byWard returns exchanges that also measure by ward.
func byWard(t *testing.T, shards []*shard.Shard) []*Exchange {
	t.Helper()
	all := exchanges(shards, "accuracy", eval.Goal{})
	for _, e := range all {
		by, err := GroupsOf("ward", e.Shard)
		if err != nil {
			t.Fatal(err)
		}
		e.By = by
	}
	return all
}

// TestFewOfAValue: if some test nodes of a site have a rare ward, or a ward that only this site has, no sum shows them,
// nor does a difference of sums.
func TestFewOfAValue(t *testing.T) {
	for rare := range 24 {
		g, logits := example(t, 1200, 2, false, true)
		withColumns(g, func(i int) int {
			if i%4 == 2 && i/4 < rare {
				return 0
			}
			return 1 + i/4%2
		}, func(int) float64 { return -1 })
		all := byWard(t, parts(t, g, 3))
		together(t, all, logits, -1)
		for _, e := range all {
			own, _ := e.split(e.sums)
			f := read(t, e)
			counts, err := e.ownGroups(own, f)
			if err != nil {
				t.Fatal(err)
			}
			mine, err := e.groups(counts, int64(len(own.NodesIn(graph.Test))))
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for _, one := range mine {
				if rows += int(one.Rows); one.Rows > 0 && one.Rows < fewNodes {
					t.Errorf("%d rare nodes: site %d adds %d nodes to %s", rare, e.Shard.Rank, one.Rows, one.Name)
				}
			}
			if rows != len(own.NodesIn(graph.Test)) {
				t.Errorf("%d rare nodes: site %d counts %d nodes of %d", rare, e.Shard.Rank, rows,
					len(own.NodesIn(graph.Test)))
			}
			for _, one := range f.Groups {
				if one.Name == "east" {
					t.Errorf("%d rare nodes have figures: %+v", rare, one)
				}
			}
		}
	}
}

// TestColumnsAsTables: columns of features are counted as package table counts them.
func TestColumnsAsTables(t *testing.T) {
	for _, c := range []table.Column{{Kind: table.Numeric}, {Kind: table.Numeric, Missing: true}, {Kind: table.Date},
		{Kind: table.Date, Clock: true, Missing: true}, {Kind: table.Age, Missing: true}, {Kind: table.Ignored},
		{Kind: table.Categorical, Values: []string{"a", "b"}}, {Kind: table.Text, Width: 9}} {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var here column
		if err := json.Unmarshal(text, &here); err != nil || here.features() != c.Features() {
			t.Errorf("%s: %d columns, must be %d (%v)", text, here.features(), c.Features(), err)
		}
	}
}
