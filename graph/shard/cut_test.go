package shard

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/mat"
	"pgregory.net/rapid"
)

func drawCut(t *rapid.T) (g *graph.Graph, owner []int32, shards []*Shard) {
	g = graphtest.DrawTyped(t)
	parts := rapid.IntRange(1, min(5, g.N())).Draw(t, "parts")
	owner = rapid.SliceOfN(rapid.Int32Range(0, int32(parts-1)), g.N(), g.N()).Draw(t, "owner")
	shards, err := Cut(g, owner, parts)
	if err != nil {
		t.Fatal(err)
	}
	return g, owner, shards
}

// together puts the shards' graph back together, by the dumbest way.
func together(t *rapid.T, shards []*Shard) *graph.Graph {
	n := int(shards[0].Nodes)
	g := &graph.Graph{Name: shards[0].Name, Encoding: shards[0].Encoding, Split: make([]graph.Split, n)}
	seen := make([]bool, n)
	var src, dst []int32
	weight := []float32{}
	weighted := false
	g.Labels = graph.Labels{Classes: shards[0].Labels.Classes, Names: shards[0].Labels.Names}
	rows := make([]int32, n) // of the shards' rows one after another, by global ID
	var dense []mat.Dense
	var bits []uint8
	var values []float32
	var class []int32
	var ids []string
	at := int32(0)
	for _, s := range shards {
		for i := range s.Owned {
			u := s.Global[i]
			if seen[u] {
				t.Fatalf("node %d is owned twice", u)
			}
			seen[u], rows[u] = true, at
			at++
			g.Split[u] = s.Split[i]
			col, w := s.Adj.Row(i)
			for k, j := range col {
				src, dst = append(src, int32(s.Global[j])), append(dst, int32(u))
				if w != nil {
					weighted, weight = true, append(weight, w[k])
				}
			}
		}
		x := s.X.Dense
		if s.X.Sparse != nil {
			x = s.X.Sparse.Dense()
		}
		dense = append(dense, x)
		values = append(values, s.Labels.Values...)
		bits, class, ids = append(bits, s.Labels.Bits...), append(class, s.Labels.Class...), append(ids, s.IDs...)
	}
	if slices.Contains(seen, false) {
		t.Fatalf("owned: %v", seen)
	}
	if !weighted {
		weight = nil
	}
	var err error
	b := graph.Build{Directed: true}
	if b.Edge = edgesTogether(g, shards); g.EdgeX.Cols == 0 {
		b.Edge = nil
	}
	if g.Adj, err = graph.FromEdges(n, src, dst, weight, b); err != nil {
		t.Fatal(err)
	}
	relationsTogether(t, g, shards)
	if cols := dense[0].Cols; cols > 0 {
		all := mat.Dense{Cols: cols, Stride: cols}
		for _, d := range dense {
			all.Rows, all.Data = all.Rows+d.Rows, append(all.Data, d.Data...)
		}
		g.X.Dense = all.Select(rows)
	}
	if ids != nil {
		for _, r := range rows {
			g.IDs = append(g.IDs, ids[r])
		}
	}
	if first := shards[0].Types; first.Count() > 0 {
		all := graph.Types{Names: first.Names, Ptr: first.Ptr}
		for _, s := range shards {
			all.Of = append(all.Of, s.Types.Of...)
		}
		g.Types = all.Select(rows)
	}
	l := graph.Labels{Classes: g.Labels.Classes, Names: g.Labels.Names, Class: class, Bits: bits, Values: values}
	g.Labels = l.Select(rows)
	return g
}

// edgesTogether puts the rows of the shards' edge columns where they are in the whole graph's, and
// returns the row of each edge of Adj, shard by shard.
func edgesTogether(g *graph.Graph, shards []*Shard) []int32 {
	rows := []int32{}
	for _, s := range shards {
		for k, e := range s.EdgeGlobal {
			for int64(g.EdgeX.Rows) <= e {
				g.EdgeX = mat.View(g.EdgeX.Rows+1, s.EdgeX.Cols, append(g.EdgeX.Data, make([]float32, s.EdgeX.Cols)...))
			}
			copy(g.EdgeX.Row(int(e)), s.EdgeX.Row(k))
		}
		if s.EdgeX.Cols > 0 {
			g.EdgeX.Cols, g.EdgeX.Stride = s.EdgeX.Cols, s.EdgeX.Cols
		}
		rows = append(rows, global(s, s.Adj.Edge)...)
	}
	return rows
}

func global(s *Shard, edge []int32) []int32 {
	rows := make([]int32, len(edge))
	for k, e := range edge {
		if rows[k] = e; e >= 0 {
			rows[k] = int32(s.EdgeGlobal[e])
		}
	}
	return rows
}

func relationsTogether(t *rapid.T, g *graph.Graph, shards []*Shard) {
	var kind, src, dst, edge []int32
	weight := []float32{}
	names := shards[0].Typed.Names
	for _, s := range shards {
		for row := range s.Typed.Adj.NumDst {
			col, w := s.Typed.Adj.Row(row)
			for _, j := range col {
				kind, src, dst = append(kind, int32(row/s.Owned)), append(src, int32(s.Global[j])),
					append(dst, int32(s.Global[row%s.Owned]))
			}
			weight = append(weight, w...)
		}
		edge = append(edge, global(s, s.Typed.Adj.Edge)...)
	}
	if len(names) == 0 {
		return
	}
	if len(weight) < len(kind) || g.Adj.Weight == nil {
		weight = nil
	}
	if g.EdgeX.Cols == 0 {
		edge = nil
	} else if edge == nil {
		edge = []int32{}
	}
	list, err := graph.Deal(int(shards[0].Nodes), len(names), kind, src, dst, weight, graph.Build{Edge: edge})
	if err != nil {
		t.Fatal(err)
	}
	g.Typed = graph.Relations{Names: names, Adj: graph.Stack(list)}
}

func TestShardsTogetherAreTheGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, _, shards := drawCut(t)
		got := together(t, shards)
		if g.X.Sparse != nil {
			g.X = graph.Features{Dense: g.X.Sparse.Dense()}
		}
		if len(g.Adj.Col) == 0 {
			g.Adj.Weight, g.Typed.Adj.Weight = nil, nil // of no edges there is no telling
		}
		if got.Digest() != g.Digest() {
			t.Fatalf("together the shards are\n%+v, want\n%+v", got, g)
		}
	})
}

func TestShardLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, owner, shards := drawCut(t)
		degree := g.Adj.Degrees()
		for p, s := range shards {
			if err := s.Valid(); err != nil {
				t.Fatal(err)
			}
			if s.Rank != p || s.Parts != len(shards) || s.Nodes != int64(g.N()) ||
				s.Fingerprint != shards[0].Fingerprint {
				t.Fatalf("part %d: %+v", p, s)
			}
			need := map[int64]bool{}
			edges := int64(0)
			for i := range s.Owned {
				col, _ := g.Adj.Row(int(s.Global[i]))
				edges += int64(len(col))
				for _, j := range col {
					if owner[j] != int32(p) {
						need[int64(j)] = true
					}
				}
			}
			if s.Halo() != len(need) || s.Adj.NumEdges() != int(edges) {
				t.Fatalf("part %d: %d halo rows and %d edges, must be %d and %d", p, s.Halo(), s.Adj.NumEdges(),
					len(need), edges)
			}
			for k, d := range s.Adj.Degrees() {
				if u := s.Global[k]; d != degree[u] {
					t.Fatalf("part %d: degree of %d is %v, must be %v", p, u, d, degree[u])
				}
			}
			for q, of := range shards {
				halo := s.Global[s.HaloPtr[q]:s.HaloPtr[q+1]]
				var sent []int64
				for _, i := range of.Boundary[p] {
					sent = append(sent, of.Global[i])
				}
				if !slices.Equal(halo, sent) || !slices.IsSorted(halo) {
					t.Fatalf("part %d holds %v of part %d, which sends %v", p, halo, q, sent)
				}
				for _, u := range halo {
					if owner[u] != int32(q) {
						t.Fatalf("halo node %d is said to be of part %d, it is of %d", u, q, owner[u])
					}
				}
			}
		}
		if err := Consistent(shards); err != nil {
			t.Fatal(err)
		}
	})
}

func TestConsistentRefuses(t *testing.T) {
	for _, c := range []struct {
		edit func([]*Shard) []*Shard
		want string
	}{
		{func(s []*Shard) []*Shard { return nil }, "0 parts own 0 nodes"},
		{func(s []*Shard) []*Shard { return s[:2] }, "part 0 of 3"},
		{func(s []*Shard) []*Shard { s[0], s[1] = s[1], s[0]; return s }, "is not part 0 of 3"},
		{func(s []*Shard) []*Shard { s[2].Fingerprint[0]++; return s }, "part 2 of 3"},
		{func(s []*Shard) []*Shard { s[1].Nodes, s[0].Nodes, s[2].Nodes = 9, 9, 9; return s }, "own 10 nodes"},
		{func(s []*Shard) []*Shard { s[2].Global[2] = 0; return s }, "node 0 of part 2 has another owner"},
		{func(s []*Shard) []*Shard { s[0].Boundary[1][0]--; return s }, "part 1 that part 0 owns are not"},
		{func(s []*Shard) []*Shard { s[0].Boundary[1] = nil; return s }, "part 1 that part 0 owns are not"},
	} {
		if err := Consistent(c.edit(cutPath(t, 10, 3))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, must be %q", err, c.want)
		}
	}
}

func TestWholeIsCutInOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphtest.DrawTyped(t)
		want, err := Cut(g, make([]int32, g.N()), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := Whole(g); !reflect.DeepEqual(got, want[0]) {
			t.Fatalf("got %+v\nwant %+v", got, want[0])
		}
	})
}

func TestFingerprintTellsPartitionsApart(t *testing.T) {
	g := graphtest.Path(6)
	print := func(g *graph.Graph, owner []int32, parts int) [32]byte {
		s, err := Cut(g, owner, parts)
		if err != nil {
			t.Fatal(err)
		}
		return s[0].Fingerprint
	}
	base := print(g, []int32{0, 0, 0, 1, 1, 1}, 2)
	if again := print(graphtest.Path(6), []int32{0, 0, 0, 1, 1, 1}, 2); again != base {
		t.Error("the same partition has another fingerprint")
	}
	other := graphtest.Path(6)
	other.X.Dense.Set(5, 0, 9)
	for i, f := range [][32]byte{print(g, []int32{0, 0, 1, 1, 1, 1}, 2), print(g, []int32{0, 0, 0, 1, 1, 1}, 3),
		print(other, []int32{0, 0, 0, 1, 1, 1}, 2)} {
		if f == base {
			t.Errorf("partition %d has the fingerprint of another", i)
		}
	}
}

func TestCutRefuses(t *testing.T) {
	g, bad := graphtest.Path(4), graphtest.Path(4)
	bad.Adj.Col[0] = 77
	for _, c := range []struct {
		g     *graph.Graph
		owner []int32
		parts int
		want  string
	}{
		{g, make([]int32, 4), 0, "parts must be 1 to 4, as many as nodes (got 0)"},
		{g, make([]int32, 4), 5, "(got 5)"},
		{g, make([]int32, 3), 2, "3 owners for 4 nodes"},
		{g, []int32{0, 1, 2, 0}, 2, "owner of node 2 is 2"},
		{g, []int32{0, -1, 1, 0}, 2, "owner of node 1 is -1"},
		{bad, make([]int32, 4), 2, "source 77"},
		{&graph.Graph{Adj: graph.CSR{RowPtr: []int64{0}}}, nil, 1, "parts must be 1 to 0, as many as nodes (got 1)"},
	} {
		if _, err := Cut(c.g, c.owner, c.parts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, must be %q", err, c.want)
		}
	}
	if shards, err := Cut(g, []int32{2, 2, 0, 0}, 3); err != nil || shards[1].Owned != 0 || shards[1].Halo() != 0 {
		t.Errorf("an empty part: %v", err)
	}
}
