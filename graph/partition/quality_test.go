package partition

import (
	"reflect"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/rng"
)

func TestQuality(t *testing.T) {
	// 0–1–2–3–4–5 in runs of two: each of the two cut edges is stored twice, the middle part holds
	// two halo rows.
	r := measure(t, graphtest.Path(6), Contiguous{}, 3)
	want := Quality{Parts: 3, Nodes: 6, Edges: 10, Cut: 4, Halo: 4, CutShare: 0.4, Replication: 10.0 / 6,
		WorkBalance: 36 * 3 / 106.0, Slowest: 1, NodeBalance: 1, EdgeBalance: 1.2, TrainBalance: 1.5, ByteBalance: 1,
		HaloBalance: 1.5, Rows: [][]int64{{0, 1, 0}, {1, 0, 1}, {0, 1, 0}}}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, must be %+v", r, want)
	}
	// Three parts of 1, 2, 1 edges more than 16 a node: of two workers the second has two of them.
	m := &shard.Manifest{Parts: []shard.Part{{Owned: 2, Edges: 2}, {Owned: 2, Edges: 4}, {Owned: 2, Edges: 2}}}
	if l, must := Slowest(m, 2), (workLoad{Worker: 1, Balance: 70 * 2 / 104.0}); l != must {
		t.Errorf("the slowest of two workers is %+v, must be %+v", l, must)
	}
	if r := Measure(&shard.Manifest{Parts: make([]shard.Part, 2)}); !reflect.DeepEqual(
		r, Quality{Parts: 2, Rows: square(2)}) {
		t.Errorf("of nothing: %+v", r)
	}
}

func TestCoverByHand(t *testing.T) {
	// Node 0 of part 0 has edges to 2, 3, 4 of part 1, node 1 only to 2, and 5 of part 1 to nobody.
	adj, err := graph.FromEdges(6, []int32{0, 0, 0, 1, 5}, []int32{2, 3, 4, 2, 4}, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	shards, err := shard.Cut(&graph.Graph{Adj: adj, Split: make([]graph.Split, 6),
		Labels: graph.Labels{Classes: 1, Class: make([]int32, 6)}}, []int32{0, 0, 1, 1, 1, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	// 0 → 1 takes row 0, and row 1 or the sum for 2. 1 → 0 takes the sum for 0 in place of rows 2,
	// 3, 4, and row 2 or the sum for 1. Without sums that would be 2 and 3 rows.
	plan, r := LeastMessages(shards), Measure(shard.Describe(shards, shard.Meta{}))
	if got := plan.Rows[0][1] + plan.Sums[0][1]; got != 2 || r.Rows[0][1] != 2 {
		t.Errorf("0 → 1: %d messages of %d rows, must be 2 of 2", got, r.Rows[0][1])
	}
	if got := plan.Rows[1][0] + plan.Sums[1][0]; got != 2 || r.Rows[1][0] != 3 {
		t.Errorf("1 → 0: %d messages of %d rows, must be 2 of 3", got, r.Rows[1][0])
	}
	if plan.Total != 4 || r.Halo != 5 {
		t.Errorf("%d messages of %d rows, must be 4 of 5", plan.Total, r.Halo)
	}
}

func TestCoverIsNoMoreThanRows(t *testing.T) {
	g := graphtest.Communities(1000, 8, 6, 0.8, rng.New(11))
	for _, name := range []string{"random", "restream:5", "multilevel"} {
		shards, err := Partition(g, cutPolicy(t, name), 6, 1)
		if err != nil {
			t.Fatal(err)
		}
		plan, r := LeastMessages(shards), Measure(shard.Describe(shards, shard.Meta{}))
		sum := int64(0)
		for p := range shards {
			for q := range shards {
				n := plan.Rows[p][q] + plan.Sums[p][q]
				// undirected: the destinations are the rows the other way
				if sum += n; n > r.Rows[p][q] || n > r.Rows[q][p] {
					t.Errorf("%s: %d messages from %d to %d, of %d rows and %d the other way", name, n, p, q,
						r.Rows[p][q], r.Rows[q][p])
				}
			}
		}
		if sum != plan.Total || sum == 0 || sum >= r.Halo {
			t.Errorf("%s: %d messages, in all %d, of %d rows", name, plan.Total, sum, r.Halo)
		}
	}
}

// measure returns the quality of what a policy makes of g.
func measure(t *testing.T, g *graph.Graph, p Policy, parts int) Quality {
	shards, err := Partition(g, p, parts, 1)
	if err != nil {
		t.Fatal(err)
	}
	return Measure(shard.Describe(shards, shard.Meta{}))
}

func cutPolicy(t *testing.T, name string) Policy {
	p, err := ParsePolicy(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
