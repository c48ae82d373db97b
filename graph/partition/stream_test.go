package partition

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/rng"
	"pgregory.net/rapid"
)

type fataler interface{ Fatal(...any) }

func policy(t fataler, name string) Policy {
	p, err := ParsePolicy(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func cutOf(g *graph.Graph, owner []int32) (cut int) {
	for i, p := range owner {
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			if owner[j] != p {
				cut++
			}
		}
	}
	return cut
}

// balancing are the policies that keep a goal whatever the graph, where it can be kept.
var balancing = []string{"fennel", "restream:2", "restream:3", "multilevel"}

// TestFormula: αγ = 1.5·3·√2/8 = 0.795. Node 1 scores 1−0.795 in part 0, and node 2 1−0.795·√2 < 0.
func TestFormula(t *testing.T) {
	owner, err := Bounded(Fennel{Passes: 1}, Goal{Vertices: 2}).Assign(graphtest.Path(4), 2, 0)
	if want := []int32{0, 0, 1, 1}; err != nil || !slices.Equal(owner, want) {
		t.Errorf("owners are %v (%v), must be %v", owner, err, want)
	}
}

func TestPoliciesKeepCaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphtest.Draw(t)
		k := rapid.IntRange(1, g.N()).Draw(t, "parts")
		goal := Goal{Objective: Objective(rapid.IntRange(0, 1).Draw(t, "objective"))}
		for _, slack := range []*float64{&goal.Vertices, &goal.Edges, &goal.Train, &goal.Bytes} {
			if rapid.Bool().Draw(t, "bounded") {
				*slack = rapid.Float64Range(1, 2).Draw(t, "slack")
			}
		}
		if rapid.Bool().Draw(t, "unlike") {
			goal.Capacity = rapid.SliceOfN(rapid.Float64Range(0.5, 4), k, k).Draw(t, "capacity")
		}
		key := rng.New(rapid.Uint64().Draw(t, "seed"))
		for _, name := range append([]string{"random", "contiguous"}, balancing...) {
			owner, err := Bounded(policy(t, name), goal).Assign(g, k, key)
			if err != nil {
				if !strings.Contains(err.Error(), "part") || !strings.Contains(err.Error(), "raise the bound on") {
					t.Fatalf("%s: %v", name, err)
				}
				continue
			}
			if err := goal.Check(InMemory{g}, owner, k); err != nil || len(owner) != g.N() {
				t.Fatalf("%s: %d owners: %v", name, len(owner), err)
			}
			if _, err := shard.Cut(g, owner, k); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

// Of nodes alone every goal can be kept, and of several weights a loose one.
func TestCapsThatFitAreKept(t *testing.T) {
	g := graphtest.Communities(600, 6, 4, 0.8, rng.New(5))
	for _, goal := range []Goal{
		{Vertices: 1},
		{Vertices: 1, Capacity: []float64{1, 2, 3, 4, 5}},
		{Vertices: 1.05, Edges: 1.05, Train: 1.05, Bytes: 1.05},
		{Edges: 1.01, Train: 1, Capacity: []float64{9, 1, 1, 1, 1}},
	} {
		for _, name := range balancing {
			owner, err := Bounded(policy(t, name), goal).Assign(g, 5, rng.New(1))
			if err == nil {
				err = goal.Check(InMemory{g}, owner, 5)
			}
			if err != nil {
				t.Errorf("%s, %+v: %v", name, goal, err)
			}
		}
	}
}

func TestSameForAnyNumberOfThreads(t *testing.T) {
	g := graphtest.Communities(3000, 12, 6, 0.8, rng.New(6))
	for _, name := range append([]string{"random", "contiguous"}, balancing...) {
		assign := func(threads int) []int32 {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
			owner, err := policy(t, name).Assign(g, 7, rng.New(3))
			if err != nil {
				t.Fatal(err)
			}
			return owner
		}
		want := assign(1)
		for _, threads := range []int{1, 2, 5} {
			if !slices.Equal(assign(threads), want) {
				t.Errorf("%s: another result with %d threads", name, threads)
			}
		}
	}
}

// A graph of 16 groups in 8 parts: random cuts 7/8 of the edges, the groups themselves would cut a
// tenth of that.
func TestPoliciesFindCommunities(t *testing.T) {
	g := graphtest.Communities(4000, 16, 8, 0.9, rng.New(7))
	random, err := Random{}.Assign(g, 8, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	for name, most := range map[string]float64{"fennel": 0.7, "restream:2": 0.45, "restream:5": 0.35,
		"multilevel": 0.2} {
		owner, err := policy(t, name).Assign(g, 8, rng.New(1))
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(cutOf(g, owner)) / float64(cutOf(g, random)); got > most {
			t.Errorf("%s cuts %.3f of what random cuts, must be at most %.2f", name, got, most)
		}
	}
}

func TestPoliciesRefuse(t *testing.T) {
	g, bad := graphtest.Path(4), graphtest.Path(4)
	bad.Adj.Col[0] = 77
	parse := func(name string) error { _, err := ParsePolicy(name); return err }
	assign := func(p Policy, g *graph.Graph, parts int) error { _, err := p.Assign(g, parts, 0); return err }
	for _, c := range []struct {
		err  error
		want string
	}{
		{parse("restream:0"), "restream:N"},
		{parse("restream:x"), "1 to 1000"},
		{parse("restream:1001"), "1 to 1000"},
		{assign(policy(t, "fennel"), g, 0), "(got 0)"},
		{assign(policy(t, "fennel"), g, 5), "parts must be 1 to 4, as many as nodes (got 5)"},
		{assign(policy(t, "fennel"), bad, 2), "source 77"},
		{assign(Bounded(policy(t, "fennel"), Goal{Vertices: 0.5, Edges: -1}), g, 2),
			"edges: bound must be 1 or more times the fair share, or 0 for no bound (got -1)"},
		{assign(Bounded(policy(t, "fennel"), Goal{Capacity: []float64{1, 0}}), g, 2),
			"capacity of part 1 must be a positive number (got 0)"},
		{assign(Bounded(policy(t, "fennel"), Goal{Capacity: []float64{1}}), g, 2),
			"capacity must be given for each of 2 parts (got 1)"},
		{assign(Bounded(policy(t, "fennel"), Goal{Objective: 2}), g, 2), "objective must be Volume or EdgeCut (got 2)"},
		{assign(Bounded(policy(t, "fennel"), Goal{Edges: 1}), graphtest.Star(1001), 4),
			"cannot fit: node 600 has 1001 edges, and no part may hold more than 501 of all 2002"},
		{assign(Bounded(ByColumn{}, Goal{Train: 1}), graphtest.Path(8), 0),
			"part 1 would hold 2 training nodes, of at most 1"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, must be %q", c.err, c.want)
		}
	}
}
