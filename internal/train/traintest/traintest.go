// Package traintest makes what tests of trainers of all layers at once have in common: graphs, and the peers of a run.
package traintest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// Relations is how many Typed makes.
const Relations = 3

// Typed returns g with its edges dealt to relations, those with an odd end in one direction only, some to two of them.
func Typed(g *graph.Graph) *graph.Graph {
	h, list := *g, make([]*graph.CSR, Relations)
	for r := range list {
		one := &graph.CSR{NumDst: g.N(), NumSrc: g.N(), RowPtr: []int64{0}}
		for i := range g.N() {
			col, _ := g.Adj.Row(i)
			for _, j := range col {
				if u := rng.New(11).Fold(uint64(i)).Uint64(uint64(j)); u%Relations == uint64(r) && j%2 == 0 ||
					r == 2 && u>>8%3 == 0 {
					one.Col = append(one.Col, j)
				}
			}
			one.RowPtr = append(one.RowPtr, int64(len(one.Col)))
		}
		list[r] = one
	}
	h.Typed = graph.Relations{Names: []string{"a", "b", "c"}, Adj: graph.Stack(list)}
	return &h
}

// BothWays is Typed, with the reverse of each relation.
func BothWays(g *graph.Graph) *graph.Graph {
	h := Typed(g)
	list := make([]*graph.CSR, Relations)
	for r := range list {
		list[r] = h.Typed.Adj.Relation(r, Relations)
	}
	h.Typed = graph.WithInverses(h.Typed.Names, list)
	return h
}

// Linked makes spec a model of links of these relations, whose rows have 8 columns, with a decoder.
func Linked(spec *nn.Spec, decoder string, relations ...string) {
	spec.Layers = slices.Clone(spec.Layers)
	spec.Layers[len(spec.Layers)-1].Out = 8
	spec.Task, spec.Classes = "links", 8
	spec.Decoder = &nn.DecoderSpec{Kind: decoder, Width: 8, Relations: relations}
	if decoder == "mlp" {
		spec.Decoder.Hidden = 6
	}
}

// Columned returns g with three columns of its edges; both directions of an edge have one row, one edge in ten has
// none.
func Columned(g *graph.Graph) *graph.Graph {
	h, rows := *g, make(map[[2]int32]int32)
	number := func(adj *graph.CSR) []int32 {
		edges := make([]int32, 0, len(adj.Col))
		for i := range adj.NumDst {
			col, _ := adj.Row(i)
			for _, j := range col {
				at := int32(i % g.N())
				pair := [2]int32{min(at, j), max(at, j)}
				if _, seen := rows[pair]; !seen {
					rows[pair] = int32(len(rows))
					if rows[pair]%10 == 9 {
						rows[pair] = -1
					}
				}
				edges = append(edges, rows[pair])
			}
		}
		return edges
	}
	h.Adj.Edge = number(&h.Adj)
	if h.Typed.Count() > 0 {
		h.Typed.Adj.Edge = number(&h.Typed.Adj)
	}
	h.EdgeX = mat.New(len(rows), 3)
	for k := range h.EdgeX.Data {
		h.EdgeX.Data[k] = float32(rng.New(12).Normal(uint64(k)))
	}
	return &h
}

// Sparsed returns g with two thirds of its features left out and the rest stored sparsely.
func Sparsed(g *graph.Graph) *graph.Graph {
	s := &mat.Sparse{Rows: g.N(), Cols: g.X.Cols(), RowPtr: []int64{0}}
	for i := range s.Rows {
		for c, v := range g.X.Dense.Row(i) {
			if v > 0.4 {
				s.Col, s.Val = append(s.Col, int32(c)), append(s.Val, v)
			}
		}
		s.RowPtr = append(s.RowPtr, int64(len(s.Col)))
	}
	h := *g
	h.X = graph.Features{Sparse: s}
	return &h
}

// Run runs f as the peer of each of the shards, with its trainer, and returns the trainers.
func Run[T any](t testing.TB, shards []*shard.Shard, begin func(s *shard.Shard) (T, error),
	f func(tr T, g *comm.Group) error) []T {
	t.Helper()
	all, errs := make([]T, len(shards)), make([]error, len(shards))
	net := netsim.New(len(shards), netsim.Config{})
	var wait sync.WaitGroup
	for r, s := range shards {
		wait.Go(func() {
			g := comm.NewGroup(net.Transport(r), r, len(shards))
			defer g.Close()
			var err error
			if all[r], err = begin(s); err == nil {
				err = f(all[r], g)
			}
			if err != nil {
				errs[r] = fmt.Errorf("peer %d: %w", r, err)
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return all
}
