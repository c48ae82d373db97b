package fullbatch

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/train/traintest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// drawn is a graph of which everything is drawn: one to forty nodes, directed edges, loops among them, between none and
// all, weights or none, features that may be sparse, and splits that may all be the same but for one training node.
func drawn(key rng.Key, features int) *graph.Graph {
	at := func(what string, i int) float64 { return key.FoldString(what).Float64(uint64(i)) }
	n := 1 + int(40*at("nodes", 0))
	g := &graph.Graph{Name: "drawn", Adj: graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}}
	if at("weighted", 0) < 0.5 {
		g.Adj.Weight = []float32{}
	}
	density := at("density", 0) * at("density", 1)
	for i := range n {
		for j := range n {
			if at("edge", i*n+j) < density {
				g.Adj.Col = append(g.Adj.Col, int32(j))
				if g.Adj.Weight != nil {
					g.Adj.Weight = append(g.Adj.Weight, float32(0.1+at("weight", i*n+j)))
				}
			}
		}
		g.Adj.RowPtr[i+1] = int64(len(g.Adj.Col))
	}
	g.X.Dense = mat.New(n, features)
	for k := range g.X.Dense.Data {
		g.X.Dense.Data[k] = float32(key.FoldString("x").Normal(uint64(k)))
	}
	g.Labels.Classes = 3
	kinds := 1 + int(4*at("splits", 0))
	for i := range n {
		g.Labels.Class = append(g.Labels.Class, int32(3*at("label", i)))
		g.Split = append(g.Split,
			[]graph.Split{graph.Train, graph.Val, graph.Test, graph.None}[int(float64(kinds)*at("split", i))])
	}
	g.Split[int(float64(n)*at("one", 0))] = graph.Train
	g = traintest.Columned(traintest.Typed(g))
	if at("sparse", 0) < 0.3 {
		g = traintest.Sparsed(g)
	}
	return g
}

// TestRandomGraphs holds rows, gradients of rows and of parameters to those of one worker for graphs, parts, models and
// settings that are drawn.
func TestRandomGraphs(t *testing.T) {
	all := models(9)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for k := range 120 {
		key := rng.New(77).Fold(uint64(k))
		pick := func(what string, n int) int { return int(key.FoldString(what).Float64(0) * float64(n)) }
		g := drawn(key, 9)
		parts := min(2+pick("parts", 7), g.N())
		owner := make([]int32, g.N())
		for i := range owner {
			owner[i] = int32(key.FoldString("owner").Float64(uint64(i)) * float64(parts))
		}
		name := names[pick("model", len(names))]
		c := Defaults(all[name])
		c.Order, c.Prefetch = []string{"any", "fixed"}[pick("order", 2)], pick("prefetch", 4)
		c.Fetch, c.Exchange = Fetches[pick("fetch", len(Fetches))],
			train.Exchanges[pick("exchange", len(train.Exchanges))]
		c.Memory = []int64{0, 1, 300, 3000}[pick("memory", 4)]
		c.Inductive = pick("inductive", 3) == 0 && !c.Spec.BatchNormed()
		what := fmt.Sprintf("draw %d: %s, %d nodes, %d edges, %d parts, fetch %s, order %s, exchange %s, "+
			"prefetch %d, memory %d, inductive %t", k, name, g.N(), g.Adj.NumEdges(), parts, c.Fetch, c.Order,
			c.Exchange, c.Prefetch, c.Memory, c.Inductive)
		ok := t.Run(what, func(t *testing.T) {
			want := onePass(t, c, cut(t, g, "", 1))
			shards, err := shard.Cut(g, owner, parts)
			if err != nil {
				t.Fatal(err)
			}
			onePass(t, c, shards).compare(t, want)
		})
		if !ok {
			break
		}
	}
}
