package sample

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// saintOf returns what draws subgraphs of g at one peer.
func saintOf(c Config, g *graph.CSR, e *Edges) *Within {
	degree := make([]float32, g.NumDst)
	for v := range degree {
		degree[v] = float32(g.RowPtr[v+1] - g.RowPtr[v])
	}
	weight, touch := make([]uint64, g.NumDst), make([]uint64, g.NumDst)
	if c.Kind == "saint-node" {
		SaintNodes(g, degree, weight)
		return &Within{Of: Saint(c, weight, nil)}
	}
	p := NewPairs(e, degree)
	p.Reverse(func(u, v uint64) bool {
		col, _ := g.Row(int(u))
		return slices.Contains(col, int32(v))
	})
	p.Weights(weight, touch)
	return &Within{Of: Saint(c, weight, touch), Pairs: p}
}

// twoRelations returns the edges of g by relation, a third of them in both.
func twoRelations(g *graph.CSR) *Edges {
	e := &Edges{RowPtr: []int64{0}, Relations: 2, Scaled: true}
	for r := range int32(2) {
		for v := range g.NumDst {
			col, _ := g.Row(v)
			for _, u := range col {
				if (u+int32(v))%3 != r {
					e.Col = append(e.Col, u)
				}
			}
			e.RowPtr = append(e.RowPtr, int64(len(e.Col)))
		}
	}
	return e
}

// TestSaintIsUnbiased: over many subgraphs, the mean of what a node counts in the loss is 1, and that of its sums over
// the edges of a subgraph, weighed so, is its sum over all edges: both within five standard errors. The graph has edges of
// one direction and of both, isolated nodes, and edges from a node to itself. With relations, some edges are of two.
func TestSaintIsUnbiased(t *testing.T) {
	var src, dst []int32
	for k := range uint64(60) {
		u, v := int32(rng.New(5).Uint64(3*k)%14), int32(rng.New(5).Uint64(3*k+1)%16)
		src, dst = append(src, u), append(dst, v)
		if k%3 > 0 {
			src, dst = append(src, v), append(dst, u)
		}
	}
	g, err := graph.FromEdges(18, src, dst, nil, graph.Build{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	value := func(v int32) float64 { return float64(v%5) - 1.5 }
	for _, edges := range []string{"plain", "with loops", "with relations"} {
		for _, kind := range []string{"saint-node", "saint-edge"} {
			c := Config{Kind: kind, Fanouts: []int{-1}, Draws: 6}
			e := NewEdges(&g, nil, edges == "with loops", true)
			w := saintOf(c, &g, e)
			if edges == "with relations" {
				e = twoRelations(&g)
			}
			s, n := NewWithin(c, e, w), g.NumDst
			const draws = 20000
			moments := make([][4]float64, g.NumDst) // sums and squares of the loss and of the sum
			for i := range draws {
				key := rng.New(8).Fold(uint64(i))
				nodes, hits := w.Of.Draw(0, key, 0)
				for _, h := range hits {
					nodes = append(nodes, w.Pairs.Source(h.Node, h.Rest))
				}
				nodes = distinctOf(nodes)
				w.Enter(nodes)
				var d Drawn
				s.Draw(key, 0, nodes, &d)
				at := int32(0)
				for k, v := range nodes {
					x := 0.0
					for ; at < d.End[(k+1)*e.relations()-1]; at++ {
						if !slices.Contains(nodes, d.Src[at]) {
							t.Fatalf("%s: an edge from node %d, which is not in the subgraph", kind, d.Src[at])
						}
						x += float64(d.Weight[at]) * value(d.Src[at])
					}
					f := 1 / w.Of.Lambda(v)
					m := &moments[v]
					m[0], m[1], m[2], m[3] = m[0]+f, m[1]+f*f, m[2]+f*x, m[3]+f*x*f*x
				}
			}
			for v, m := range moments {
				exact := 0.0
				for r := range e.relations() {
					for _, j := range e.Col[e.RowPtr[r*n+v]:e.RowPtr[r*n+v+1]] {
						exact += value(j)
					}
				}
				for k, want := range []float64{1, exact} {
					mean := m[2*k] / draws
					deviation := math.Sqrt((m[2*k+1]/draws-mean*mean)/draws) + 1e-9
					if math.Abs(mean-want) > 5*deviation {
						t.Errorf("%s, %s, node %d: mean %d is %g with standard error %g, must be %g", kind, edges, v, k, mean, deviation, want)
					}
				}
			}
		}
	}
}

// TestClustersAreDealtOut: in each epoch every node is in one batch, with its whole cluster, in another order each time;
// a row is scaled to its edges.
func TestClustersAreDealtOut(t *testing.T) {
	g := uniformSquared(60, 700)
	cluster := make([]int32, 60)
	for v := range cluster {
		cluster[v] = int32(v % 7)
	}
	c := Config{Kind: "cluster", Fanouts: []int{-1}, Clusters: 7, BatchClusters: 2}
	w := &Within{Of: Clusters(c, cluster, 7)}
	e := NewEdges(g, nil, false, true)
	s := NewWithin(c, e, w)
	if w.Of.Steps() != 4 {
		t.Fatalf("an epoch is %d steps, must be 4", w.Of.Steps())
	}
	orders := map[string]bool{}
	for epoch := range uint64(3) {
		seen, order := make([]bool, 60), ""
		for step := range 4 {
			nodes, _ := w.Of.Draw(rng.New(epoch), 0, step)
			order += fmt.Sprint(nodes)
			w.Enter(nodes)
			var d Drawn
			s.Draw(rng.New(1), 0, nodes, &d)
			at := int32(0)
			for k, v := range nodes {
				if seen[v] || !slices.ContainsFunc(nodes, func(u int32) bool { return u != v && cluster[u] == cluster[v] }) {
					t.Fatalf("node %d is in two batches, or without its cluster", v)
				}
				seen[v] = true
				col, _ := g.Row(int(v))
				sum := 0.0
				for ; at < d.End[k]; at++ {
					sum += float64(d.Weight[at])
				}
				if sum != 0 && math.Abs(sum-float64(len(col))) > 1e-4 {
					t.Errorf("the weights of node %d add up to %g, must be %d", v, sum, len(col))
				}
			}
		}
		if slices.Contains(seen, false) {
			t.Error("an epoch leaves a node out")
		}
		orders[order] = true
	}
	if len(orders) != 3 {
		t.Errorf("3 epochs have %d orders", len(orders))
	}
}

// TestValidateSubgraphs: what a subgraph cannot have is refused.
func TestValidateSubgraphs(t *testing.T) {
	if err := (Config{Kind: "saint-edge", Fanouts: []int{-1, -1}, Draws: 5}).Validate(); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]Config{
		"fanouts must be -1":     {Kind: "saint-node", Fanouts: []int{3}, Draws: 5},
		"draws must be":          {Kind: "saint-node", Fanouts: []int{-1}},
		"by_weight must be":      {Kind: "saint-node", Fanouts: []int{-1}, Draws: 5, Weighted: true},
		"clusters must be":       {Kind: "cluster", Fanouts: []int{-1}, BatchClusters: 1},
		"batch_clusters must be": {Kind: "cluster", Fanouts: []int{-1}, Clusters: 3, BatchClusters: 4},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, must contain %q", c, err, want)
		}
	}
}
