package partition

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/rng"
)

func TestPolicies(t *testing.T) {
	g := graphtest.Path(10)
	for _, name := range []string{"random", "contiguous", "by-column"} {
		p, err := ParsePolicy(name)
		if err != nil {
			t.Fatal(err)
		}
		owner, err := p.Assign(g, 2, rng.New(7))
		if err != nil {
			t.Fatal(err)
		}
		count := [2]int{}
		for _, p := range owner {
			count[p]++
		}
		if count != [2]int{5, 5} {
			t.Errorf("%s: parts of %v nodes", name, count)
		}
		if again, _ := p.Assign(g, 2, rng.New(7)); !slices.Equal(again, owner) {
			t.Errorf("%s: another result for the same key", name)
		}
	}
	if owner, _ := (Contiguous{}).Assign(g, 3, 0); !slices.Equal(owner, []int32{0, 0, 0, 0, 1, 1, 1, 2, 2, 2}) {
		t.Errorf("contiguous: %v", owner)
	}
	a, _ := (Random{}).Assign(g, 2, rng.New(1))
	b, _ := (Random{}).Assign(g, 2, rng.New(2))
	if slices.Equal(a, b) {
		t.Error("random: two keys, one result")
	}
	shards, err := Partition(g, ByColumn{}, 0, 1)
	if err != nil || len(shards) != 2 || shards[1].Global[0] != 1 {
		t.Errorf("by-column with 0 parts: %v, %v", shards, err)
	}
}

func TestPartitionRefuses(t *testing.T) {
	g, lone := graphtest.Path(4), graphtest.Path(4)
	lone.Site = nil
	gap := graphtest.Path(4)
	gap.Site, gap.Sites = []int32{0, 2, 2, 0}, []string{"a", "b", "c"}
	assign := func(p Policy, g *graph.Graph, parts int) error { _, err := Partition(g, p, parts, 1); return err }
	_, unknown := ParsePolicy("metis")
	for _, c := range []struct {
		err  error
		want string
	}{
		{unknown, `policy must be one of random, contiguous, by-column`},
		{assign(Random{}, g, 0), "(got 0)"},
		{assign(Random{}, g, 5), "parts must be 1 to 4, as many as nodes (got 5)"},
		{assign(Contiguous{}, g, -1), "(got -1)"},
		{assign(ByColumn{}, g, 3), "by-column: number of parts must be 2 (or 0), the number of sites (got 3)"},
		{assign(ByColumn{}, lone, 2), "site of each node"},
		{assign(ByColumn{}, gap, 0), "every site must own a node (b owns none)"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, must be %q", c.err, c.want)
		}
	}
}
