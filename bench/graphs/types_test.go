package graphs

import (
	"math"
	"testing"
)

// TestDrawTyped: three quarters of each relation join the classes that its name says.
func TestDrawTyped(t *testing.T) {
	g, err := DrawTyped(3)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	again, _ := DrawTyped(3)
	other, _ := DrawTyped(4)
	if again.Digest() != g.Digest() || other.Digest() == g.Digest() {
		t.Error("seed 3 must give the same graph again, and seed 4 another")
	}
	for r, next := range []int32{1, 0} {
		as, all := 0, 0
		for i := range g.N() {
			col, _ := g.Typed.Adj.Relation(r, g.Typed.Count()).Row(i)
			for _, j := range col {
				if all++; g.Labels.Class[i] == (g.Labels.Class[j]+next)%3 {
					as++
				}
			}
		}
		if share := float64(as) / float64(all); math.Abs(share-0.75) > 0.03 {
			t.Errorf("%.2f of the edges of %s join the classes that they are to join, must be 0.75", share,
				g.Typed.Names[r])
		}
	}
}
