package fullbatch

import (
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// partners is a graph of n nodes in which an edge's column tells what counts: each node has one partner, and the edge
// between them a column of 1; its other edges, to nodes at random, have 0. A node's features tell its colour, and its
// class is the colour of its partner.
func partners(t *testing.T, n int) *graph.Graph {
	t.Helper()
	const colours, degree = 4, 3
	key := rng.New(21)
	g := &graph.Graph{Name: "partners", Labels: graph.Labels{Classes: colours}, EdgeX: mat.View(2, 1, []float32{0, 1})}
	g.X.Dense = mat.New(n, colours)
	colour := func(i int) int { return int(key.Uint64(uint64(i)) % colours) }
	var src, dst, row []int32
	for i := range n {
		g.X.Dense.Set(i, colour(i), 1)
		g.Labels.Class = append(g.Labels.Class, int32(colour(i^1)))
		g.Split = append(g.Split,
			[]graph.Split{graph.Train, graph.Train, graph.Val, graph.Test}[key.Fold(1).Uint64(uint64(i))%4])
		if i%2 == 0 {
			src, dst, row = append(src, int32(i)), append(dst, int32(i+1)), append(row, 1)
		}
		for k := range degree {
			if j := int32(key.Fold(2).Fold(uint64(i)).Uint64(uint64(k)) % uint64(n)); j != int32(i) && j != int32(i^1) {
				src, dst, row = append(src, int32(i)), append(dst, j), append(row, 0)
			}
		}
	}
	var err error
	if g.Adj, err = graph.FromEdges(n, src, dst, nil, graph.Build{Edge: row}); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestColumnsOfEdgesMatter: where the class depends on the column of an edge, the layers that read it learn the class,
// over one worker and over three, and those that do not cannot.
func TestColumnsOfEdgesMatter(t *testing.T) {
	g := partners(t, 500)
	for _, k := range []struct {
		model       string
		least, most float64
	}{{"gcn", 0, 0.65}, {"gine", 0.95, 1}, {"gatv2", 0.95, 1}} {
		t.Run(k.model, func(t *testing.T) {
			l := nn.LayerSpec{Conv: k.model, In: 4, Out: 16, Hops: 1, Act: "relu", Head: []int{4}}
			c, _ := nn.ConvolutionNamed(k.model)
			if c.Heads {
				l.Heads = 4
			}
			if c.EdgeColumns {
				l.EdgeColumns = 1
			}
			spec := nn.Spec{Task: "single", Features: 4, Classes: 4, LayerOutput: nn.Hidden,
				Encoder: nn.EncoderSpec{Kind: "raw", Out: 4}, Layers: []nn.LayerSpec{l}}
			config := Defaults(spec)
			config.Rounds, config.Optimizer.LR, config.Optimizer.Decay = 60, 0.02, 0
			for _, parts := range []int{1, 3} {
				got := trained(t, config, cut(t, g, "uneven", parts))[0].Result().Final().Test
				if !(got >= k.least && got <= k.most) {
					t.Errorf("%s over %d workers: the test accuracy must be %g to %g (got %.3f)", k.model, parts,
						k.least, k.most, got)
				}
			}
		})
	}
}
