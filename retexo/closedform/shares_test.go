package closedform

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph/graphtest"
)

// Where training nodes were drawn by class, logits move to the shares of the classes, which the validation nodes tell or,
// where they were drawn by class as well, the nodes without a label: alike for any number of peers.
func TestLogitsMoveToShares(t *testing.T) {
	for _, drawn := range []bool{false, true} {
		g := graphtest.Skewed(drawn)
		c := plain(g)
		c.Hops, c.Target, c.Random = 0, "labels", 0
		one := mustRun(t, c, cut(t, g, 1), options{}).trainers[0]
		still := c
		still.ClassWeights = []float32{1, 1, 1} // as they were without, but for the move
		before := mustRun(t, still, cut(t, g, 1), options{}).trainers[0].Result().Stages[0].Test
		after := one.Result().Stages[0].Test
		if after < before+0.03 {
			t.Errorf("drawn %v: accuracy is %.4f after the move, must be 3 points above %.4f", drawn, after, before)
		}
		t.Logf("drawn %v: %.4f, after the move %.4f", drawn, before, after)
		for _, tr := range mustRun(t, c, cut(t, g, 4), options{}).trainers {
			for i, v := range tr.Logits().Data {
				k := int(tr.shard.Global[i/3])
				if by := one.Logits().At(k, i%3) - v; math.Abs(float64(by)) > 1e-3 {
					t.Fatalf("drawn %v: node %d has a logit that is %g from that of one peer, must be the same", drawn, k, by)
				}
			}
		}
	}
}
