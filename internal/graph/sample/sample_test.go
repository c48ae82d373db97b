package sample

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// star returns n in-edges of vertex 0, weighted or not, from vertices 1 to n.
func star(n int, weight func(k int) float32) *graph.CSR {
	g := &graph.CSR{NumDst: n + 1, NumSrc: n + 1, RowPtr: make([]int64, n+2)}
	for k := range n {
		g.Col = append(g.Col, int32(k+1))
		if weight != nil {
			g.Weight = append(g.Weight, weight(k))
		}
	}
	for i := 1; i < len(g.RowPtr); i++ {
		g.RowPtr[i] = int64(n)
	}
	return g
}

func ramp(k int) float32 { return float32(1 + k%7) }

// chiSquare returns Pearson's statistic of counts whose expectations are given.
func chiSquare(counts []int, expected func(i int) float64) (x float64) {
	for i, n := range counts {
		d := float64(n) - expected(i)
		x += d * d / expected(i)
	}
	return x
}

// TestSubsetsAreAlike: each subset of k of n edges is sampled as often as any other, whether taken or left-out edges
// are drawn, and with one word of random bits or more. Limits are the 99.9 % quantiles of chi-square.
func TestSubsetsAreAlike(t *testing.T) {
	for _, c := range []struct {
		n, k, subsets int
		limit         float64
	}{{6, 3, 20, 43.8}, {7, 5, 21, 45.3}, {11, 5, 462, 562}, {70, 1, 70, 111}, {64, 63, 64, 104}} {
		s := New(Config{Kind: "neighbour", Fanouts: []int{c.k}}, NewEdges(star(c.n, nil), nil, false, true))
		of, counts := map[string]int{}, []int{}
		draws := 200 * c.subsets
		var d Drawn
		for i := range draws {
			d.Reset()
			s.Draw(rng.New(1).Fold(uint64(i)), 0, []int32{0}, &d)
			slices.Sort(d.Src)
			name := fmt.Sprint(d.Src)
			if _, ok := of[name]; !ok {
				of[name] = len(counts)
				counts = append(counts, 0)
			}
			counts[of[name]]++
		}
		if x := chiSquare(counts, func(int) float64 { return 200 }); len(counts) != c.subsets || x > c.limit {
			t.Errorf("%d of %d: %d subsets, chi-square %g: must be %d and at most %g", c.k, c.n, len(counts), x,
				c.subsets, c.limit)
		}
	}
}

// TestBatchesFollowEachOther: a builder that has made batches, also one whose numbers are used up, makes the same as a
// new one.
func TestBatchesFollowEachOther(t *testing.T) {
	g := uniformSquared(300, 4000)
	e := NewEdges(g, nil, false, false)
	s := New(Config{Kind: "neighbour", Fanouts: []int{3, 4}}, e)
	used := NewBuilder(g.NumSrc, e)
	for step, seeds := range [][]int32{{1, 2, 3}, {299, 4}, {1}, {7, 2, 1}} {
		if step == 2 {
			used.base = math.MaxUint32 - 5
		}
		key := rng.New(4).Fold(uint64(step))
		one, other := s.Batch(key, seeds, used), s.Batch(key, seeds, NewBuilder(g.NumSrc, e))
		if !reflect.DeepEqual(one, other) {
			t.Errorf("step %d: batch of %d nodes, must be that of a new builder, %d nodes", step, len(one.Nodes),
				len(other.Nodes))
		}
	}
}

// TestSumsAreUnbiased: the mean over many samples of a weighted sum over the sample equals the sum over all edges,
// within five standard errors, for every sampler.
func TestSumsAreUnbiased(t *testing.T) {
	for _, c := range []Config{{Kind: "neighbour"}, {Kind: "labor"}} {
		for _, n := range []int{9, 150} {
			for _, k := range []int{1, 4, 8} {
				g := star(n, ramp)
				c.Fanouts = []int{k}
				s := New(c, NewEdges(g, nil, false, true))
				value := func(v int32) float64 { return float64(v%5) - 1 }
				exact := 0.0
				for e, v := range g.Col {
					exact += float64(g.Weight[e]) * value(v)
				}
				const draws = 4000
				sum, squares := 0.0, 0.0
				for i := range draws {
					var d Drawn
					s.Draw(rng.New(3).Fold(uint64(i)), 0, []int32{0}, &d)
					x := 0.0
					for e, v := range d.Src {
						x += float64(d.Weight[e]) * value(v)
					}
					sum, squares = sum+x, squares+x*x
					if c.Kind == "neighbour" && len(d.Src) != k {
						t.Fatalf("%+v of %d edges: %d drawn", c, n, len(d.Src))
					}
				}
				mean := sum / draws
				deviation := math.Sqrt((squares/draws-mean*mean)/draws) + 1e-6
				if math.Abs(mean-exact) > 5*deviation {
					t.Errorf("%+v of %d edges: mean %g with standard error %g, must be %g", c, n, mean, deviation,
						exact)
				}
			}
		}
	}
}

// TestSamplesDoNotDependOnNumbers: vertices with other numbers and the same IDs, sampled one by one and in another
// order, have the same samples.
func TestSamplesDoNotDependOnNumbers(t *testing.T) {
	g := uniformSquared(400, 6000)
	for j := range g.Col {
		g.Weight = append(g.Weight, ramp(j))
	}
	old := rng.New(9).Perm(g.NumDst) // old number of each new one
	to := make([]int32, len(old))
	for i, v := range old {
		to[v] = int32(i)
	}
	other := g.Relabel(old, to, g.NumSrc)
	id := make([]int64, len(old))
	for i, v := range old {
		id[i] = int64(v)
	}
	for _, c := range []Config{{Kind: "neighbour"}, {Kind: "labor"}} {
		c.Fanouts = []int{3, 5}
		a, b := New(c, NewEdges(g, nil, false, true)), New(c, NewEdges(other, id, false, true))
		key := rng.New(4)
		var all Drawn
		vertices := make([]int32, g.NumDst)
		for v := range vertices {
			vertices[v] = int32(v)
		}
		a.Draw(key, 1, vertices, &all)
		for v := g.NumDst - 1; v >= 0; v-- {
			var one Drawn
			b.Draw(key, 1, []int32{to[v]}, &one)
			lo := int32(0)
			if v > 0 {
				lo = all.End[v-1]
			}
			src := []int32{}
			for _, j := range one.Src {
				src = append(src, old[j])
			}
			if !slices.Equal(src, all.Src[lo:all.End[v]]) || !slices.Equal(one.Weight, all.Weight[lo:all.End[v]]) {
				t.Fatalf("%+v, vertex %d: %v %v, must be %v %v", c, v, src, one.Weight, all.Src[lo:all.End[v]],
					all.Weight[lo:all.End[v]])
			}
		}
	}
}

// TestBlocks: blocks are valid, their destinations are their first sources, a hop's destinations are the sources of the
// hop before, and every edge is in the graph.
func TestBlocks(t *testing.T) {
	g := uniformSquared(500, 4000)
	normed := map[bool]*graph.CSR{false: graph.Normalise(g, g.Degrees(), graph.Mean),
		true: graph.Normalise(g, g.Degrees(), graph.GCN)}
	for _, loops := range []bool{false, true} {
		for _, fanouts := range [][]int{{2, 3}, {3, -1}, {-1, 100, 4}} {
			s := New(Config{Kind: "neighbour", Fanouts: fanouts}, NewEdges(normed[loops], nil, loops, true))
			seeds := rng.New(5).Perm(g.NumDst)[:20]
			batch := s.Batch(rng.New(6), seeds, NewBuilder(g.NumSrc, s.edges))
			if last := batch.Blocks[len(fanouts)-1]; last.NumDst != len(seeds) ||
				!slices.Equal(batch.Nodes[:len(seeds)], seeds) {
				t.Fatalf("the last block computes %d rows, must be the %d seeds", last.NumDst, len(seeds))
			}
			for l, b := range batch.Blocks {
				k := fanouts[len(fanouts)-1-l]
				if err := b.Valid(); err != nil {
					t.Fatal(err)
				}
				if l == 0 && b.NumSrc != len(batch.Nodes) || l > 0 && b.NumSrc != batch.Blocks[l-1].NumDst {
					t.Fatalf("block %d has %d sources", l, b.NumSrc)
				}
				for i := range b.NumDst {
					col, weight := b.Row(i)
					all, exact := normed[loops].Row(int(batch.Nodes[i]))
					most := len(all)
					if k >= 0 {
						most = min(most, k+len(all)-degree(g, batch.Nodes[i]))
					}
					if len(col) != most {
						t.Fatalf("row %d of block %d has %d edges, must have %d", i, l, len(col), most)
					}
					for e, j := range col {
						at := slices.Index(all, batch.Nodes[j])
						if at < 0 {
							t.Fatalf("block %d has an edge that the graph has not", l)
						}
						if (k < 0 || len(all) <= k || int(j) == i && loops) && weight[e] != exact[at] {
							t.Fatalf("weight %g of an edge that is in every sample, must be %g", weight[e], exact[at])
						}
					}
				}
			}
		}
	}
}

// degree counts in-edges from other vertices, and loops if they are edges like others.
func degree(g *graph.CSR, v int32) int {
	col, _ := g.Row(int(v))
	n := len(col)
	if slices.Contains(col, v) {
		n--
	}
	return n
}

// TestAllEdges: fan-out −1 gives the blocks of graph.Block.
func TestAllEdges(t *testing.T) {
	g := uniformSquared(200, 1500)
	s := New(Config{Kind: "labor", Fanouts: []int{-1}}, NewEdges(g, nil, false, false))
	seeds := rng.New(5).Perm(g.NumDst)[:10]
	batch := s.Batch(rng.New(6), seeds, NewBuilder(g.NumSrc, s.edges))
	want, sources := graph.Block(g, seeds)
	if b := batch.Blocks[0]; b.NumEdges() != want.NumEdges() || len(sources) != len(batch.Nodes) || b.Weight != nil {
		t.Errorf("%d edges from %d sources, must be %d from %d", b.NumEdges(), len(batch.Nodes), want.NumEdges(),
			len(sources))
	}
}

// TestHub: a row longer than what insertion sort is for is in order, with its weights.
func TestHub(t *testing.T) {
	g := star(5000, ramp)
	e := NewEdges(g, rng64(5001), false, true)
	batch := New(Config{Kind: "neighbour", Fanouts: []int{-1}}, e).Batch(rng.New(1), []int32{7, 0}, NewBuilder(5001, e))
	if err := batch.Blocks[0].Valid(); err != nil {
		t.Fatal(err)
	}
	col, weight := batch.Blocks[0].Row(1)
	for k, j := range col {
		if want := ramp(int(batch.Nodes[j]) - 1); weight[k] != want {
			t.Fatalf("edge from %d weighs %g, must be %g", batch.Nodes[j], weight[k], want)
		}
	}
}

// rng64 returns n distinct IDs in no order.
func rng64(n int) []int64 {
	id := make([]int64, n)
	for i, v := range rng.New(11).Perm(n) {
		id[i] = 10 * int64(v)
	}
	return id
}

// TestLABORFindsFewerSources: vertices with common neighbours sample the same ones.
func TestLABORFindsFewerSources(t *testing.T) {
	var src, dst []int32
	for i := range 100 {
		for j := range 60 {
			src, dst = append(src, int32(100+j)), append(dst, int32(i))
		}
	}
	g, err := graph.FromEdges(160, src, dst, nil, graph.Build{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	seeds := make([]int32, 100)
	for i := range seeds {
		seeds[i] = int32(i)
	}
	found := map[string]int{}
	for _, kind := range []string{"neighbour", "labor"} {
		s := New(Config{Kind: kind, Fanouts: []int{6}}, NewEdges(&g, nil, false, true))
		found[kind] = len(s.Batch(rng.New(2), seeds, NewBuilder(160, s.edges)).Nodes) - len(seeds)
	}
	if found["neighbour"] != 60 || found["labor"] > 14 || found["labor"] < 1 {
		t.Errorf("%v sources, must be all 60 and about 6", found)
	}
}

func TestValidate(t *testing.T) {
	if err := (Config{Kind: "labor", Fanouts: []int{5, -1}}).Validate(); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]Config{
		"sampler must be": {Kind: "saint", Fanouts: []int{1}},
		"got none":        {Kind: "neighbour"},
		"(got 0)":         {Kind: "neighbour", Fanouts: []int{0}},
		"(got -2)":        {Kind: "neighbour", Fanouts: []int{3, -2}},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, must contain %q", c, err, want)
		}
	}
}

// TestFanoutsAreOfRelations: in each relation a vertex has as many edges as the fan-out allows, sampled separately,
// each with its columns, and a block has them relation by relation.
func TestFanoutsAreOfRelations(t *testing.T) {
	few := star(9, nil)
	few.Col = few.Col[:2]
	for i := 1; i < len(few.RowPtr); i++ {
		few.RowPtr[i] = 2
	}
	g := graph.Stack([]*graph.CSR{star(9, nil), few, star(9, nil)})
	e := NewEdges(&g, nil, false, false)
	e.Relations, e.EdgeX = 3, mat.New(len(g.Col), 2)
	for k := range e.Col {
		e.Edge = append(e.Edge, int32(k))
		e.EdgeX.Set(k, 1, float32(e.Col[k]))
	}
	s := New(Config{Kind: "neighbour", Fanouts: []int{4}}, e)
	same := true
	for i := range 20 {
		b := s.Batch(rng.New(3).Fold(uint64(i)), []int32{5, 0}, NewBuilder(10, e))
		block := b.Blocks[0]
		if err := block.Valid(); err != nil {
			t.Fatal(err)
		}
		for row, n := range []int{0, 4, 0, 2, 0, 4} { // of each relation: vertex 5, which has no edges, and 0
			col, _ := block.Row(row)
			if len(col) != n {
				t.Fatalf("row %d has %d edges, must have %d", row, len(col), n)
			}
			for k, j := range col {
				at := b.EdgeX[0].Row(int(block.EdgeRows(row)[k]))[1]
				if int32(at) != b.Nodes[j] {
					t.Errorf("relation %d: the edge from %d has the column %g of another", row/2, b.Nodes[j], at)
				}
			}
		}
		first, _ := block.Row(1)
		last, _ := block.Row(5)
		same = same && slices.Equal(first, last)
	}
	if same {
		t.Error("two relations have the same samples in 20 batches")
	}
}

// TestReachedRelations: a sample lists which relations reach a vertex, even if it has none of their edges.
func TestReachedRelations(t *testing.T) {
	g := graph.Stack([]*graph.CSR{star(9, nil), star(9, nil), star(9, nil)})
	e := NewEdges(&g, nil, false, true)
	e.Relations, e.Reached = 3, true
	s := New(Config{Kind: "labor", Fanouts: []int{1}}, e)
	empty := 0
	for i := range 20 {
		b := s.Batch(rng.New(3).Fold(uint64(i)), []int32{5, 0}, NewBuilder(10, e))
		if !slices.Equal(b.Reached[0], []bool{false, true, false, true, false, true}) {
			t.Fatalf("%v says which relations reach the vertices, must be those of vertex 0", b.Reached[0])
		}
		for row := 1; row < 6; row += 2 {
			if col, _ := b.Blocks[0].Row(row); len(col) == 0 {
				empty++
			}
		}
		own := b.Blocks[0].WithReached(2, b.Reached[0])
		if n := own.NumEdges() - b.Blocks[0].NumEdges(); n != 3 {
			t.Errorf("%d relations reach a vertex, must be 3", n)
		}
	}
	if empty == 0 {
		t.Error("no sample of labor is without an edge of a relation")
	}
}
