package dgl

import (
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// TestEdgeFeatures compares the columns of the edges into each part with DGL's report: the columns of one relation,
// zeros in the others.
func TestEdgeFeatures(t *testing.T) {
	for _, name := range []string{"typed-random-2", "typed-metis-4", "typed-csc-2"} {
		p, want := open(t, name), expected(t, name)
		shards, err := shardsOf(p, Names{Edges: "year", Build: graph.Build{Directed: true, KeepLoops: true}})
		if err != nil {
			t.Fatal(err)
		}
		cites := slices.Index(p.EdgeTypes, "paper:cites:paper")
		for k, s := range shards {
			if err := s.Valid(); err != nil {
				t.Fatal(err)
			}
			var got []float64
			for r := range p.EdgeTypes {
				for _, e := range s.Typed.Adj.Relation(r, len(p.EdgeTypes)).Edge {
					v := float64(s.EdgeX.Row(int(e))[0])
					if r == cites {
						got = append(got, v)
					} else if v != 0 {
						t.Errorf("%s: part %d: an edge of %s has a year", name, k, p.EdgeTypes[r])
					}
				}
			}
			// A repeated edge counts once, with the row that is listed first.
			of, ends := want[k].EdgeColumns["paper:cites:paper/year"], map[[2]int64]bool{}
			part := p.Parts[k]
			for e, r := range part.Type {
				if int(r) == cites {
					ends[[2]int64{part.Global[part.Src[e]], part.Global[part.Dst[e]]}] = true
				}
			}
			if len(got) != len(ends) ||
				slices.ContainsFunc(got, func(v float64) bool { return !slices.Contains(of, v) }) {
				t.Errorf("%s: part %d: years %v of %d edges, must be of %v", name, k, got, len(ends), of)
			}
		}
	}
	_, err := shardsOf(open(t, "random-2"), Names{Edges: "none"})
	graphtest.Refused(t, err, `columns "none"`)
}
