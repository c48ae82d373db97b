package links

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// bipartite returns 60 nodes of type 0 and 20 of type 1, with two relations from the first to the second and their
// reverses.
func bipartite(t *testing.T) *graph.Graph {
	t.Helper()
	var list [2][2][]int32
	for i := range uint64(60) {
		for k := range uint64(8) {
			u := rng.New(4).Fold(i).Uint64(k)
			list[k%2][0], list[k%2][1] = append(list[k%2][0], int32(i)), append(list[k%2][1], 60+int32(u%20))
		}
	}
	var both [2]*graph.CSR
	var src, dst []int32
	for r, l := range list {
		g, err := graph.FromEdges(80, l[0], l[1], nil, graph.Build{Directed: true})
		if err != nil {
			t.Fatal(err)
		}
		both[r] = &g
		src, dst = append(src, l[0]...), append(dst, l[1]...)
	}
	adj, err := graph.FromEdges(80, src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	g := &graph.Graph{Name: "shops", Adj: adj, Typed: graph.WithInverses([]string{"buys", "sees"}, both[:]),
		Split: make([]graph.Split, 80)}
	g.X.Dense = mat.New(80, 1)
	g.Types = graph.Types{Names: []string{"person", "thing"}, Of: make([]uint8, 80)}
	g.Labels = graph.Labels{Classes: 1}.None(0, 80)
	for i := 60; i < 80; i++ {
		g.Types.Of[i] = 1
	}
	return g
}

// parts cuts g into several shards, by the remainder of a node's number.
func parts(t *testing.T, g *graph.Graph, n int) []*shard.Shard {
	t.Helper()
	if n == 1 {
		return []*shard.Shard{shard.Whole(g)}
	}
	owner := make([]int32, g.N())
	for i := range owner {
		owner[i] = int32(i*i%7) % int32(n)
	}
	all, err := shard.Cut(g, owner, n)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// fact is a link by global IDs.
type fact struct {
	relation, at, other int64
	split               graph.Split
}

// TestCut: every peer of any number holds out the same links; no message runs along one, in either direction, and along
// all others one does; sampled pairs are the same and not linked.
func TestCut(t *testing.T) {
	for _, k := range []struct {
		g         *graph.Graph
		relations []string
		links     int
	}{
		{graphtest.Communities(200, 4, 900, 0.8, rng.New(1)), nil, 0},
		{bipartite(t), nil, 2}, {bipartite(t), []string{"buys"}, 1},
	} {
		rule := Rule{Seed: 5, Val: 0.1, Test: 0.2, Relations: k.relations}
		var facts [][]fact
		var drawn []map[string][]int64
		for _, n := range []int{1, 3} {
			var all []fact
			draws := map[string][]int64{}
			for _, s := range parts(t, k.g, n) {
				c, err := rule.Cut(s)
				if err != nil {
					t.Fatal(err)
				}
				if k.links > 0 && len(c.Relations) != k.links {
					t.Fatalf("relations are %q, must be %d", c.Relations, k.links)
				}
				pool := NewPool(kinds(k.g), k.g.Types.Count(), func(int64) bool { return true })
				d := NewDrawer(pool, c, s)
				for _, l := range c.Links {
					u, v := s.Global[l.At], s.Global[l.Other]
					all = append(all, fact{int64(l.Relation), u, v, l.Split})
					if is := carries(s, c, l); is != (l.Split == graph.Train) {
						t.Fatalf("%d peers: a message runs along link %d–%d of split %d: %t", n, u, v, l.Split, is)
					}
					draws[fmt.Sprint(l.Relation, u, v)] = append(d.Draw(nil, rng.New(9), l, 5),
						d.Rivals(nil, rng.New(8), l, 30)...)
				}
			}
			slices.SortFunc(all, func(a, b fact) int {
				return slices.Compare([]int64{a.relation, a.at, a.other}, []int64{b.relation, b.at, b.other})
			})
			facts, drawn = append(facts, all), append(drawn, draws)
		}
		if !slices.Equal(facts[0], facts[1]) {
			t.Error("links differ between 1 and 3 peers, must be the same")
		}
		check(t, k.g, facts[0], drawn[0])
		for of, list := range drawn[0] {
			if !slices.Equal(list, drawn[1][of]) {
				t.Fatalf("what is drawn for %s is %v for 3 peers, must be %v", of, drawn[1][of], list)
			}
		}
	}
}

func kinds(g *graph.Graph) []uint8 {
	if g.Types.Count() > 0 {
		return g.Types.Of
	}
	return make([]uint8, g.N())
}

// carries reports whether a message runs along l, or against it, in what is left.
func carries(s *shard.Shard, c *Cut, l Link) bool {
	has := func(g *graph.CSR, row int) bool {
		col, _ := g.Row(row)
		_, ok := slices.BinarySearch(col, l.Other)
		return ok
	}
	if s.Typed.Count() == 0 {
		return has(&c.Messages.Adj, int(l.At))
	}
	at := slices.Index(s.Typed.Names, c.Relations[l.Relation])
	reverse := slices.Index(s.Typed.Names, c.Relations[l.Relation]+inverse)
	one := has(&c.Messages.Typed.Adj, at*s.Owned+int(l.At)) || has(&c.Messages.Typed.Adj, reverse*s.Owned+int(l.At))
	if one && !has(&c.Messages.Adj, int(l.At)) {
		return false // the adjacency of all relations must have what one of them has
	}
	return one
}

// check compares fractions with the rule's, and makes sure that both ends decide alike and no linked pair is sampled.
func check(t *testing.T, g *graph.Graph, all []fact, drawn map[string][]int64) {
	t.Helper()
	split, n := map[[3]int64]graph.Split{}, map[graph.Split]float64{}
	for _, f := range all {
		split[[3]int64{f.relation, f.at, f.other}] = f.split
		n[f.split]++
	}
	total := float64(len(all))
	if math.Abs(n[graph.Val]/total-0.1) > 0.05 || math.Abs(n[graph.Test]/total-0.2) > 0.06 {
		t.Errorf("%v of %v links validate and %v test, must be 0.1 and 0.2 of them", n[graph.Val], total, n[graph.Test])
	}
	for _, f := range all {
		if other := split[[3]int64{f.relation, f.other, f.at}]; other != f.split {
			t.Fatalf("link %d–%d is of split %d from one end and %d from the other, must be the same", f.at, f.other,
				f.split, other)
		}
		for _, id := range drawn[fmt.Sprint(f.relation, f.at, f.other)] {
			s, linked := split[[3]int64{f.relation, f.at, id}]
			if id == f.at || linked && (f.split != graph.Train || s == graph.Train) ||
				kinds(g)[id] != kinds(g)[f.other] {
				t.Fatalf("%d is drawn for link %d–%d of split %d: it is linked (%t, split %d) or of another type", id,
					f.at, f.other, f.split, linked, s)
			}
		}
	}
}

// TestTime: a column of the edges decides, alike for both directions; it is found by its name, and times are as the
// import stored them. No message runs along an edge of a later time.
func TestTime(t *testing.T) {
	g := graphtest.Path(5)
	g.EdgeX = mat.View(2, 1, []float32{1, 2})
	g.Adj.Edge = []int32{0, 0, 1, 1, 0, 0, -1, -1} // 0–1 at 1, 1–2 at 2, 2–3 at 1, 3–4 without
	named := *g
	// A category of two values and "other", then the numbers, of mean 10 and deviation 5, then whether they are
	// missing.
	named.EdgeX = mat.View(3, 5, []float32{1, 0, 0, -1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1})
	named.Encoding =
		[]byte(
			`{"edge_columns":[{"name":"kind","kind":"categorical","values":["a","b"]},{"name":"at","kind":"numeric","mean":10,"std":5,"missing":true}]}`)
	lost := named
	lost.Adj.Edge = []int32{0, 0, 1, 1, 2, 2, -1, -1}
	const train, val, test = graph.Train, graph.Val, graph.Test
	for _, k := range []struct {
		g    *graph.Graph
		time string
		must []graph.Split // of 0–1, 1–2, 2–3, 3–4 (nil = refused)
	}{
		{g, "0:1.5:3", []graph.Split{train, val, train, train}},
		{g, "0:0.5:1.5", []graph.Split{val, test, val, train}},
		{&named, "at:6:15", []graph.Split{train, test, train, train}},
		{&named, "at:5:16", []graph.Split{val, val, val, train}},
		{&lost, "at:-10:0", []graph.Split{test, test, train, train}},
		{g, "1:1.5:3", nil}, {g, "at:1:3", nil}, {&named, "kind:1:3", nil}, {&named, "0:1:3", nil},
		{&named, "at:2020-01-01:2021-01-01", nil},
	} {
		at, err := ParseTime(k.time)
		if err != nil {
			t.Fatal(err)
		}
		s := shard.Whole(k.g)
		c, err := Rule{Time: at}.Cut(s)
		if k.must == nil {
			if err == nil {
				t.Errorf("time %s is accepted, must be refused", k.time)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range c.Links {
			if must := k.must[min(l.At, l.Other)]; l.Split != must || carries(s, c, l) != (must == train) {
				t.Errorf("link %d–%d is of split %d at %s, must be %d, and messages run along those that train", l.At,
					l.Other, l.Split, k.time, must)
			}
		}
	}
	for _, bad := range []string{"at", "at:1", "at:2:1", ":1:2", "at:x:2", "at:2020-01-01:5"} {
		if at, err := ParseTime(bad); err == nil {
			t.Errorf("time %q is read as %+v, must be refused", bad, at)
		}
	}
}

// TestNames: a relation whose reverse is not known is refused: messages along the reverse would reveal what is held
// out.
func TestNames(t *testing.T) {
	graphs := []string{"cites", "cited by", "knows", "knows (inverse)"}
	for _, k := range []struct {
		given, must []string
		relations   []string
	}{
		{nil, []string{""}, nil}, {[]string{"cites"}, nil, nil}, {nil, nil, graphs}, {[]string{"cites"}, nil, graphs},
		{[]string{"likes"}, nil, graphs}, {[]string{"cites=cited by", "knows"}, []string{"cites", "knows"}, graphs},
		{[]string{"cites=quotes"}, nil, graphs},
	} {
		is, err := Names(k.given, k.relations)
		if (err == nil) != (k.must != nil) || err == nil && !slices.Equal(is, k.must) {
			t.Errorf("relations of %q among %q are %q (%v), must be %q", k.given, k.relations, is, err, k.must)
		}
	}
}
