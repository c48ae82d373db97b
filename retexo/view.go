package retexo

import (
	"context"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/train"
)

// view is the graph as training or evaluation sees it, with the rows of the current stage. One view serves both, unless
// training may not see the validation and test nodes (inductive).
type view struct {
	train.GraphView
	own   graph.Features // [Owned] the stage's input
	src   graph.Features // rows that the next hop aggregates: of own nodes and of others (train.Sender.Sources)
	edges *graph.CSR     // edges from src
	z     graph.Features // [Owned] rows after the last hop
}

// wholeView returns the view of the whole of s with the given input of its nodes.
func wholeView(s *shard.Shard, own graph.Features) *view {
	return &view{GraphView: train.WholeGraph(s), own: own}
}

// weighs reports whether owners multiply the rows of l's input by the source's factor in the weights; then nobody needs
// the degrees of the halo. Sparse rows are sent unweighted, with one degree a row: multiplied values would take more
// bytes.
func (v *view) weighs(l *nn.Layer) bool { return l.Edges == graph.GCN && v.own.Sparse == nil }

// fetch fills src with rows of own nodes and of the halo, or with the rows and sums of covers c. The rows of own nodes
// are the input (hop 0) or the last aggregate.
func (v *view) fetch(ctx context.Context, s *train.Sender, c *train.Covers, l *nn.Layer, hop int,
	what string) (err error) {
	if err := v.learnDegrees(ctx, s, l); err != nil {
		return err
	}
	x := v.own
	if hop > 0 {
		x = v.z
	}
	v.src, v.edges, err = s.Sources(ctx, c, v.GraphView, l, x, v.own.Sparse != nil, what)
	return err
}

// learnDegrees fetches the degrees of the halo if sparse rows are sent.
func (v *view) learnDegrees(ctx context.Context, s *train.Sender, l *nn.Layer) (err error) {
	if l.Edges == graph.GCN && !v.weighs(l) {
		v.GraphView, err = s.WithDegrees(ctx, v.GraphView)
	}
	return err
}

// adopt takes the rows of view `from`, which has other edges. If owners weigh the rows, they are weighed again.
func (v *view) adopt(ctx context.Context, s *train.Sender, l *nn.Layer, from *view) (err error) {
	if v.src = from.src; v.weighs(l) {
		v.src.Dense, err = s.Reweigh(ctx, from.src.Dense, l.Edges, from.GraphView, v.GraphView)
	} else {
		err = v.learnDegrees(ctx, s, l)
	}
	if err == nil {
		v.edges = v.SourceEdges(l, v.own.Sparse != nil)
	}
	return err
}

// aggregate replaces z by the aggregate of src.
func (v *view) aggregate(l *nn.Layer) { v.z = aggregate.Features(l.Conv.Agg, v.edges, v.src) }

// batch returns the layer's input for the given owned nodes.
func (v *view) batch(l *nn.Layer, s *shard.Shard, rows []int32) nn.Input {
	if l.Frozen() {
		in := nn.Input{X: v.own.Select(rows), Nodes: globals(s, rows)}
		if l.Conv.Agg != nil {
			in.Z = v.z.Select(rows)
		}
		return in
	}
	block, sources := graph.Block(v.Edges(l), rows)
	return nn.Input{G: block, EdgeX: s.EdgeX, X: v.src.Select(sources), Nodes: globals(s, sources)}
}

// all returns the layer's input for every owned node, without copies.
func (v *view) all(l *nn.Layer, s *shard.Shard) nn.Input {
	if l.Frozen() {
		return nn.Input{X: v.own, Z: v.z, Nodes: s.Global[:s.Owned]}
	}
	return nn.Input{G: v.Edges(l), EdgeX: s.EdgeX, X: v.src, Nodes: s.Global}
}

func globals(s *shard.Shard, rows []int32) []int64 {
	ids := make([]int64, len(rows))
	for k, i := range rows {
		ids[k] = s.Global[i]
	}
	return ids
}
