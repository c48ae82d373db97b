package retexo

import (
	"github.com/heddle-gnn/heddle/graph/sample"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// drawer draws in-edges of training nodes anew for each round, from the rows that are in place: nothing travels for it.
// Of an aggregate over several hops it draws those of the last, whose sources are aggregated over all of theirs, and
// what the next layer reads is computed from all edges. A sum over a sample has weights that make it unbiased.
type drawer struct {
	view    *view
	layer   *nn.Layer
	shard   *shard.Shard
	key     rng.Key
	sampler *sample.Sampler
	builder *sample.Builder
}

// newDrawer returns one of at most n in-edges a node, of each relation.
func newDrawer(v *view, l *nn.Layer, s *shard.Shard, n int, key rng.Key) *drawer {
	e := v.SampledEdges(s, l, v.SourceEdges(l, v.own.Sparse != nil), l.Spec.EdgeColumns > 0)
	c := sample.Config{Kind: "neighbour", Fanouts: []int{n}}
	return &drawer{view: v, layer: l, shard: s, key: key, sampler: sample.New(c, e),
		builder: sample.NewBuilder(len(s.Global), e)}
}

// input returns the layer's input for the given owned nodes in a round.
func (d *drawer) input(rows []int32, round int) nn.Input {
	b := d.sampler.Batch(d.key.Fold(uint64(round)), rows, d.builder)
	edges := b.Blocks[0]
	if d.layer.Conv.Reached {
		edges = edges.WithReached(len(rows), b.Reached[0])
	}
	x := d.view.src.Select(b.Nodes)
	if d.layer.Frozen() {
		return nn.Input{X: d.view.own.Select(rows), Z: aggregate.Features(d.layer.Conv.Agg, edges, x),
			Nodes: globals(d.shard, rows)}
	}
	return nn.Input{G: edges, EdgeX: b.EdgeX[0], X: x, Nodes: globals(d.shard, b.Nodes)}
}
