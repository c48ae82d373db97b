package closedform

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

// skewed returns a graph without edges of three classes that overlap, in shares of 7, 2 and 1 of ten nodes. 20 nodes of each
// class train. 30 of each validate, or where drawn is false one in six of all others.
func skewed(drawn bool) *graph.Graph {
	const n = 2000
	key, x := rng.New(9), mat.New(n, 6)
	adj, err := graph.FromEdges(n, nil, nil, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	g := &graph.Graph{Name: "skewed", Adj: adj, Split: make([]graph.Split, n), Labels: graph.Labels{Classes: 3, Class: make([]int32, n)}}
	var seen [3]int
	for i := range n {
		class := []int32{0, 0, 0, 0, 0, 0, 0, 1, 1, 2}[i%10]
		g.Labels.Class[i] = class
		for j := range x.Cols {
			x.Set(i, j, 1+0.5*float32(key.Normal(uint64(i*x.Cols+j))))
		}
		x.Set(i, int(class), x.At(i, int(class))+0.7)
		switch seen[class]++; {
		case seen[class] <= 20:
			g.Split[i] = graph.Train
		case drawn && seen[class] <= 50, !drawn && key.Fold(1).Float64(uint64(i)) < 1.0/6:
			g.Split[i] = graph.Val
		default:
			g.Split[i] = graph.Test
		}
	}
	g.X = graph.Features{Dense: x}
	return g
}

// Where training nodes were drawn by class, logits move to the shares of the classes, which the validation nodes tell or,
// where they were drawn by class as well, the nodes without a label: alike for any number of peers.
func TestLogitsMoveToShares(t *testing.T) {
	for _, drawn := range []bool{false, true} {
		g := skewed(drawn)
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
