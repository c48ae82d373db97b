package retexo

import (
	"cmp"
	"context"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/train"
)

// view is the graph as one purpose sees it, with the rows of the stage at hand. There is one for everything; training has
// its own where it may not see the validation and test nodes (inductive), or sees a sample of the edges.
type view struct {
	train.GraphView
	own    graph.Features // [Owned] the stage's input
	src    graph.Features // [Owned + halo] what the next hop aggregates
	z      graph.Features // [Owned] what the last hop made of it
	summed *graph.CSR     // normalised edges from src where it has partial sums; nil: those of the GraphView
}

// wholeView returns the view of all of s, whose nodes have the given input.
func wholeView(s *shard.Shard, own graph.Features) *view {
	return &view{GraphView: train.WholeGraph(s), own: own}
}

// fetch fills src with the input (hop 0) or the aggregate so far, and the halo's rows of the same.
func (v *view) fetch(ctx context.Context, s *train.Sender, hop int, what string) (err error) {
	x := v.own
	if hop > 0 {
		x = v.z
	}
	v.src, err = s.Halo(ctx, x, v.own.Sparse != nil, what)
	return err
}

// aggregate replaces z by the aggregate of src.
func (v *view) aggregate(l *nn.Layer) {
	edges := v.summed
	if edges == nil {
		edges = v.Edges(l)
	}
	v.z = aggregate.Features(l.Conv.Agg, edges, v.src)
}

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
	return nn.Input{G: block, X: v.src.Select(sources), Nodes: globals(s, sources)}
}

// all returns the layer's input for every owned node, without copies.
func (v *view) all(l *nn.Layer, s *shard.Shard) nn.Input {
	if l.Frozen() {
		return nn.Input{X: v.own, Z: v.z, Nodes: s.Global[:s.Owned]}
	}
	return nn.Input{G: v.Edges(l), X: v.src, Nodes: s.Global}
}

func globals(s *shard.Shard, rows []int32) []int64 {
	ids := make([]int64, len(rows))
	for k, i := range rows {
		ids[k] = s.Global[i]
	}
	return ids
}

// sampled returns v with at most n in-edges a node, those with the smallest keys: every peer and every run with
// the same key keeps the same edges. The degrees are those of what is kept, so that a mean stays a mean; where edges
// are weighed by the degrees of both their ends (GCN), those of the halo travel, one number a row.
func (v *view) sampled(ctx context.Context, from *train.Sender, s *shard.Shard, norm graph.Norm, n int, key rng.Key) (*view, error) {
	adj := &graph.CSR{NumDst: v.Adj.NumDst, NumSrc: v.Adj.NumSrc, RowPtr: make([]int64, v.Adj.NumDst+1)}
	var keep []int32 // places in a row
	for i := range adj.NumDst {
		col, weight := v.Adj.Row(i)
		keep = keep[:0]
		for k := range col {
			keep = append(keep, int32(k))
		}
		if len(keep) > n {
			at := key.Fold(uint64(s.Global[i]))
			slices.SortFunc(keep, func(a, b int32) int {
				return cmp.Compare(at.Uint64(uint64(s.Global[col[a]])), at.Uint64(uint64(s.Global[col[b]])))
			})
			keep = keep[:n]
			slices.Sort(keep)
		}
		for _, k := range keep {
			adj.Col = append(adj.Col, col[k])
			if weight != nil {
				adj.Weight = append(adj.Weight, weight[k])
			}
		}
		adj.RowPtr[i+1] = int64(len(adj.Col))
	}
	degree := slices.Clone(v.Degree)
	copy(degree, adj.Degrees())
	if norm == graph.GCN {
		var err error
		if degree, err = from.Numbers(ctx, degree, "degrees of the sample"); err != nil {
			return nil, err
		}
	}
	return &view{GraphView: train.NewGraphView(adj, v.Typed, degree), own: v.own, src: v.src, z: v.z}, nil
}
