package graph

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// dense is the dumb twin of a CSR: a map from (destination, source) to weight.
type dense map[[2]int32]float32

func (g *CSR) dense() dense {
	d := dense{}
	for i := range g.NumDst {
		col, weight := g.Row(i)
		for k, j := range col {
			d[[2]int32{int32(i), j}] = 1
			if weight != nil {
				d[[2]int32{int32(i), j}] = weight[k]
			}
		}
	}
	return d
}

type edges struct {
	n        int
	src, dst []int32
	weight   []float32
}

func drawEdges(t *rapid.T) edges {
	e := edges{n: rapid.IntRange(1, 12).Draw(t, "n")}
	node := rapid.Int32Range(0, int32(e.n-1))
	e.src = rapid.SliceOfN(node, 0, 40).Draw(t, "src")
	e.dst = rapid.SliceOfN(node, len(e.src), len(e.src)).Draw(t, "dst")
	if rapid.Bool().Draw(t, "weighted") {
		e.weight = rapid.SliceOfN(rapid.Float32Range(0, 8), len(e.src), len(e.src)).Draw(t, "weight")
	}
	return e
}

func drawCSR(t *rapid.T) (*CSR, edges) {
	e := drawEdges(t)
	g, err := FromEdges(e.n, e.src, e.dst, e.weight, Build{
		Directed: rapid.Bool().Draw(t, "directed"), KeepLoops: rapid.Bool().Draw(t, "loops")})
	if err != nil {
		t.Fatal(err)
	}
	return &g, e
}

func TestFromEdgesEqualsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEdges(t)
		b := Build{Directed: rapid.Bool().Draw(t, "directed"), KeepLoops: rapid.Bool().Draw(t, "loops")}
		want := dense{}
		put := func(i, j int32, w float32) {
			if old, ok := want[[2]int32{i, j}]; !ok || w > old {
				want[[2]int32{i, j}] = w
			}
		}
		for k := range e.src {
			w := float32(1)
			if e.weight != nil {
				w = e.weight[k]
			}
			if e.src[k] == e.dst[k] && !b.KeepLoops {
				continue
			}
			put(e.dst[k], e.src[k], w)
			if !b.Directed {
				put(e.src[k], e.dst[k], w)
			}
		}
		g, err := FromEdges(e.n, e.src, e.dst, e.weight, b)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Valid(); err != nil {
			t.Fatal(err)
		}
		if (g.Weight != nil) != (e.weight != nil) {
			t.Fatalf("weighted: %v from a list that is %v", g.Weight != nil, e.weight != nil)
		}
		if got := g.dense(); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		slices.Reverse(e.src)
		slices.Reverse(e.dst)
		slices.Reverse(e.weight)
		if again, _ := FromEdges(e.n, e.src, e.dst, e.weight, b); !reflect.DeepEqual(again, g) {
			t.Fatal("the order of the list shows in the result")
		}
	})
}

func TestFromEdgesRefuses(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name     string
		n        int
		src, dst []int32
		weight   []float32
		want     string
	}{
		{"negative count", -1, nil, nil, nil, "number of nodes must be 0 to 2147483647 (got -1)"},
		{"lengths", 3, []int32{0, 1}, []int32{1}, nil,
			"edges must have as many sources, destinations and weights (got 2, 1 and 0)"},
		{"weights", 3, []int32{0}, []int32{1}, []float32{1, 2},
			"edges must have as many sources, destinations and weights (got 1, 1 and 2)"},
		{"source past the end", 3, []int32{0, 3}, []int32{1, 1}, nil, "edge 1 goes from node 3"},
		{"negative destination", 3, []int32{0, 1}, []int32{1, -1}, nil, "edge 1 goes from node 1 to node -1"},
		{"no nodes", 0, []int32{0}, []int32{0}, nil, "edge 0"},
		{"NaN", 3, []int32{0}, []int32{1}, []float32{nan},
			"weight of edge 0 must be a finite number, 0 or more (got NaN)"},
		{"negative weight", 3, []int32{0, 1}, []int32{1, 2}, []float32{1, -2},
			"weight of edge 1 must be a finite number, 0 or more (got -2)"},
	} {
		if _, err := FromEdges(c.n, c.src, c.dst, c.weight, Build{}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if g, err := FromEdges(0, nil, nil, nil, Build{}); err != nil || g.Valid() != nil {
		t.Errorf("the empty graph: %v, %v", err, g.Valid())
	}
}

func TestTranspose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, _ := drawCSR(t)
		perm := make([]int64, g.NumEdges())
		tr := g.Transpose(perm)
		if err := tr.Valid(); err != nil {
			t.Fatal(err)
		}
		want := dense{}
		for at, w := range g.dense() {
			want[[2]int32{at[1], at[0]}] = w
		}
		if !reflect.DeepEqual(tr.dense(), want) {
			t.Fatalf("got %v, want %v", tr.dense(), want)
		}
		for k, at := range perm {
			if g.Weight != nil && tr.Weight[k] != g.Weight[at] {
				t.Fatalf("edge %d of the transpose has weight %v, its origin %d has %v", k, tr.Weight[k], at,
					g.Weight[at])
			}
		}
		if back := tr.Transpose(nil); !reflect.DeepEqual(back, g) {
			t.Fatalf("twice transposed: %v, want %v", back, g)
		}
	})
}

func TestBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, e := drawCSR(t)
		all := make([]int32, e.n)
		for i := range all {
			all[i] = int32(i)
		}
		dst := rapid.Permutation(all).Draw(t, "dst")[:rapid.IntRange(0, e.n).Draw(t, "size")]
		b, sources := Block(g, dst)
		if err := b.Valid(); err != nil {
			t.Fatal(err)
		}
		if b.NumDst != len(dst) || b.NumSrc != len(sources) || !slices.Equal(sources[:len(dst)], dst) {
			t.Fatalf("block of %v: %d×%d, sources %v", dst, b.NumDst, b.NumSrc, sources)
		}
		if rest := sources[len(dst):]; !slices.IsSorted(rest) {
			t.Fatalf("other sources %v are not ascending", rest)
		}
		want := dense{}
		need := map[int32]bool{}
		for at, w := range g.dense() {
			if slices.Contains(dst, at[0]) {
				want[at], need[at[1]] = w, true
			}
		}
		for _, i := range dst {
			need[i] = true
		}
		got := dense{}
		for at, w := range b.dense() {
			got[[2]int32{sources[at[0]], sources[at[1]]}] = w
		}
		if !reflect.DeepEqual(got, want) || len(need) != len(sources) {
			t.Fatalf("got %v with %d sources, want %v with %d", got, len(sources), want, len(need))
		}
	})
}

func TestWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, e := drawCSR(t)
		split := rapid.SliceOfN(rapid.Map(rapid.Uint8Range(0, 3), func(s uint8) Split { return Split(s) }), e.n,
			e.n).Draw(t, "split")
		got := g.Without(split, Val, Test)
		if err := got.Valid(); err != nil {
			t.Fatal(err)
		}
		want := g.dense()
		for at := range want {
			if split[at[0]] >= Val || split[at[1]] >= Val {
				delete(want, at)
			}
		}
		if !reflect.DeepEqual(got.dense(), want) || (got.Weight == nil) != (g.Weight == nil) {
			t.Fatalf("got %v, want %v", got.dense(), want)
		}
	})
}

func TestNormaliseIsFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, e := drawCSR(t)
		degree := g.Degrees()
		for i, d := range degree {
			want := float64(0)
			for at, w := range g.dense() {
				if at[0] == int32(i) {
					want += float64(w)
				}
			}
			if math.Abs(float64(d)-want) > 1e-4 {
				t.Fatalf("degree of %d is %v, want %v", i, d, want)
			}
		}
		for _, norm := range []Norm{Plain, Loops, GCN, Mean} {
			out := Normalise(g, degree, norm)
			if err := out.Valid(); err != nil {
				t.Fatal(err)
			}
			got := out.dense()
			for i := range e.n {
				self, had := got[[2]int32{int32(i), int32(i)}]
				if norm == Loops && self != 1 || norm == GCN && !had {
					t.Fatalf("norm %d: self-loop of %d weighs %v", norm, i, self)
				}
				if norm == GCN && degree[i] == 0 && self != 1 {
					t.Fatalf("self-loop of the isolated node %d weighs %v, want 1", i, self)
				}
			}
			for at, w := range got {
				if !finite(w) || w < 0 {
					t.Fatalf("norm %d: edge %v weighs %v", norm, at, w)
				}
				if at[0] == at[1] {
					continue
				}
				raw, di, dj := float64(g.dense()[at]), float64(degree[at[0]]), float64(degree[at[1]])
				want := raw
				switch {
				case norm == GCN:
					want = raw / math.Sqrt((1+di)*(1+dj))
				case norm == Mean && di > 0:
					want = raw / di
				case norm == Mean:
					want = 0
				}
				if math.Abs(float64(w)-want) > 1e-5*(1+want) {
					t.Fatalf("norm %d: edge %v weighs %v, want %v", norm, at, w, want)
				}
			}
		}
	})
}
