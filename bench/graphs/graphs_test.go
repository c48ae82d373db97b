package graphs

import (
	"slices"
	"testing"
)

// Graphs follow from a seed: both kinds have hubs, and only communities keep most edges in their groups.
func TestDraw(t *testing.T) {
	for _, kind := range []string{"power-law", "communities"} {
		g, err := Open("", kind+"-1M")
		if err != nil {
			t.Fatal(err)
		}
		degrees := g.Adj.Degrees()
		if most := slices.Max(degrees); g.N() != 100_000 || g.Adj.NumEdges() < 1_500_000 || most < 500 {
			t.Errorf("%s: %d nodes, %d edges, highest degree %v", kind, g.N(), g.Adj.NumEdges(), most)
		}
	}
	for _, name := range []string{"power-law-0M", "communities-20", "power-law-xM"} {
		if _, err := Open("", name); err == nil {
			t.Errorf("%s must be refused", name)
		}
	}
	if _, _, err := Draw("ring", 1000); err == nil {
		t.Error("an unknown kind must be refused")
	}
}
