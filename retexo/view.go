package retexo

import (
	"cmp"
	"context"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn"
)

// view is the graph as one purpose sees it. There is one for everything; training has its own where it may not see
// the validation and test nodes (inductive), or sees a sample of the edges.
type view struct {
	adj    *graph.CSR     // Owned × (Owned + halo)
	degree []float32      // [Owned + halo] in the graph that the view shows
	own    graph.Features // [Owned] the stage's input
	src    graph.Features // [Owned + halo] what the next hop aggregates
	z      graph.Features // [Owned] what the last hop made of it
	met    *graph.CSR     // weighed edges from src where sums are in it; nil: adj are the edges
}

// fetch fills src with the input (hop 0) or the aggregate so far, and the halo's rows of the same.
func (v *view) fetch(ctx context.Context, g *comm.Group, k *wire.Coder, s *partition.Shard, hop int, what string) (err error) {
	x := v.own
	if hop > 0 {
		x = v.z
	}
	v.src, err = exchange(ctx, g, k, s, x, v.own.Sparse != nil, what)
	return err
}

// aggregate replaces z by the aggregate of src.
func (v *view) aggregate(l *nn.Layer) {
	edges := v.met
	if edges == nil {
		edges = graph.Normalise(v.adj, v.degree, l.Edges)
	}
	v.z = nn.Aggregate(l.Conv.Agg, edges, v.src)
}

// batch returns the layer's input for the given owned nodes.
func (v *view) batch(l *nn.Layer, s *partition.Shard, rows []int32) nn.Input {
	if l.Frozen() {
		in := nn.Input{X: v.own.Select(rows), Nodes: globals(s, rows)}
		if l.Conv.Agg != nil {
			in.Z = v.z.Select(rows)
		}
		return in
	}
	block, sources := graph.Block(graph.Normalise(v.adj, v.degree, l.Edges), rows)
	return nn.Input{G: block, X: v.src.Select(sources), Nodes: globals(s, sources)}
}

// all returns the layer's input for every owned node, without copies.
func (v *view) all(l *nn.Layer, s *partition.Shard) nn.Input {
	if l.Frozen() {
		return nn.Input{X: v.own, Z: v.z, Nodes: s.Global[:s.Owned]}
	}
	return nn.Input{G: graph.Normalise(v.adj, v.degree, l.Edges), X: v.src, Nodes: s.Global}
}

func globals(s *partition.Shard, rows []int32) []int64 {
	ids := make([]int64, len(rows))
	for k, i := range rows {
		ids[k] = s.Global[i]
	}
	return ids
}

// trainingView returns the graph without its validation and test nodes: their edges are gone on both sides, and the
// degrees are those of what is left. Two numbers a halo row travel for it: whether it is there, and its degree.
func trainingView(ctx context.Context, g *comm.Group, s *partition.Shard) (*view, error) {
	held := make([]float32, s.Owned)
	for i, split := range s.Split {
		if split == graph.Val || split == graph.Test {
			held[i] = 1
		}
	}
	absent, err := numbers(ctx, g, s, held, "which halo nodes are held out")
	if err != nil {
		return nil, err
	}
	split := make([]graph.Split, len(s.Global))
	for j := range split {
		if absent[j] != 0 {
			split[j] = graph.Test
		}
	}
	adj := s.Adj.Without(split, graph.Test)
	degree, err := numbers(ctx, g, s, adj.Degrees(), "degrees among training nodes")
	if err != nil {
		return nil, err
	}
	return &view{adj: adj, degree: degree}, nil
}

// sampled returns v with at most n in-edges a node, those with the smallest keys: every peer and every run with
// the same key keeps the same edges. The degrees are those of what is kept, so that a mean stays a mean; where edges
// are weighed by the degrees of both their ends (GCN), those of the halo travel, one number a row.
func (v *view) sampled(ctx context.Context, g *comm.Group, s *partition.Shard, norm graph.Norm, n int, key rng.Key) (*view, error) {
	adj := filter(v.adj, func(i int, col []int32, keep []int32) []int32 {
		for k := range col {
			keep = append(keep, int32(k))
		}
		if len(keep) <= n {
			return keep
		}
		at := key.Fold(uint64(s.Global[i]))
		slices.SortFunc(keep, func(a, b int32) int {
			return cmp.Compare(at.Uint64(uint64(s.Global[col[a]])), at.Uint64(uint64(s.Global[col[b]])))
		})
		keep = keep[:n]
		slices.Sort(keep)
		return keep
	})
	degree := slices.Clone(v.degree)
	copy(degree, adj.Degrees())
	if norm == graph.GCN {
		var err error
		if degree, err = numbers(ctx, g, s, degree, "degrees of the sample"); err != nil {
			return nil, err
		}
	}
	return &view{adj: adj, degree: degree, own: v.own, src: v.src, z: v.z}, nil
}

// filter returns g with the in-edges that choose keeps: it appends to keep the places in col of destination i.
func filter(g *graph.CSR, choose func(i int, col []int32, keep []int32) []int32) *graph.CSR {
	out := &graph.CSR{NumDst: g.NumDst, NumSrc: g.NumSrc, RowPtr: make([]int64, g.NumDst+1)}
	var keep []int32
	for i := range g.NumDst {
		col, weight := g.Row(i)
		keep = choose(i, col, keep[:0])
		for _, k := range keep {
			out.Col = append(out.Col, col[k])
			if weight != nil {
				out.Weight = append(out.Weight, weight[k])
			}
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return out
}
