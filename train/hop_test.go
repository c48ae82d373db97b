package train

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// TestHop: whatever crosses, a hop is that of the whole graph, or of what is left of it where sums have to be over
// several rows; sums are rounded no worse than rows.
func TestHop(t *testing.T) {
	g, shards := toy(t)
	for _, norm := range []graph.Norm{graph.GCN, graph.Mean} {
		for name, crossing := range map[string]Crossing{
			"rows":              {},
			"covers":            {Worth: func(int, int) bool { return true }},
			"sums of two":       {LeastInSum: 2},
			"sums of three":     {LeastInSum: 3},
			"sums of a hundred": {LeastInSum: 100},
		} {
			for _, c := range []struct {
				coding wire.Coding
				off    float64
			}{{wire.Coding{}, 1e-5}, {wire.Coding{Values: "int8", Columns: true}, 0.05}} {
				var mu sync.Mutex
				got, left := mat.New(g.N(), 4), &graph.CSR{NumDst: g.N(), NumSrc: g.N(), Weight: []float32{}}
				rows, missing := make([]map[int32]float32, g.N()), 0
				each(t, shards, c.coding, func(_ *comm.Group, s *Sender, own *shard.Shard) error {
					h, err := s.NewHop(t.Context(), WholeGraph(own), norm, "hop", crossing)
					if err != nil {
						return err
					}
					z, err := h.Aggregate(t.Context(), own.X.Dense, "rows")
					if err != nil {
						return err
					}
					adj := &own.Adj
					if crossing.LeastInSum > 1 {
						covers, err := s.agreeGroups(t.Context(), adj, norm, "again", crossing.LeastInSum)
						if err != nil {
							return err
						}
						adj = covers.only(own, adj)
						for q, c := range covers.Give {
							if c != nil && len(c.Rows) > 0 {
								t.Errorf("peer %d is given %d rows", q, len(c.Rows))
							}
						}
					}
					mu.Lock()
					defer mu.Unlock()
					missing += own.Adj.NumEdges() - adj.NumEdges()
					for i := range own.Owned {
						copy(got.Row(int(own.Global[i])), z.Row(i))
						row := map[int32]float32{}
						col, weight := adj.Row(i)
						for k, j := range col {
							row[int32(own.Global[j])] = weight[k]
						}
						rows[own.Global[i]] = row
					}
					return nil
				})
				left.RowPtr = []int64{0}
				for _, row := range rows {
					for j := range int32(g.N()) {
						if w, ok := row[j]; ok {
							left.Col, left.Weight = append(left.Col, j), append(left.Weight, w)
						}
					}
					left.RowPtr = append(left.RowPtr, int64(len(left.Col)))
				}
				if (missing > 0) != (crossing.LeastInSum > 1) {
					t.Errorf("%s: %d edges are left out", name, missing)
				}
				want := aggregate.Features(aggregate.Sum{}, graph.Normalise(left, left.Degrees(), norm), g.X).Dense
				for i := range g.N() {
					for j, v := range want.Row(i) {
						if off := math.Abs(float64(v - got.At(i, j))); off > c.off {
							t.Fatalf("norm %d, %s, %+v: node %d, column %d is %g, want %g", norm, name, c.coding, i, j, got.At(i, j), v)
						}
					}
				}
			}
		}
	}
}

// TestGroupsAreChecked: who owns the rows refuses a request for a row or a small sum, and names the peer.
func TestGroupsAreChecked(t *testing.T) {
	_, shards := toy(t)
	var mu sync.Mutex
	found := 0
	each(t, shards, wire.Coding{}, func(g *comm.Group, s *Sender, own *shard.Shard) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		least := 3
		if own.Rank == 2 { // deviates
			least = 2
		}
		_, err := s.agreeGroups(ctx, &own.Adj, graph.GCN, "sums", least)
		if own.Rank != 2 {
			mu.Lock()
			defer mu.Unlock()
			var peer *comm.PeerError
			if errors.As(err, &peer) && peer.Rank == 2 && strings.Contains(err.Error(), "must be over at least 3 rows (got 2)") {
				found++
			}
			g.Close()
		}
		return nil
	})
	if found == 0 {
		t.Error("no peer refused sums of two where they must be over three")
	}
}

// TestReweigh: rows that owners weighed for one view are as if they had weighed them for the other.
func TestReweigh(t *testing.T) {
	g, shards := toy(t)
	left := g.Adj.Without(g.Split, graph.Val, graph.Test)
	degree := left.Degrees()
	each(t, shards, wire.Coding{Values: "int8"}, func(_ *comm.Group, s *Sender, own *shard.Shard) error {
		full := WholeGraph(own)
		seen, err := s.InductiveView(t.Context())
		if err != nil {
			return err
		}
		exact := s.Exact()
		rows, err := exact.Halo(t.Context(), graph.Features{Dense: full.Weigh(own.X.Dense, graph.GCN)}, false, "rows")
		if err != nil {
			return err
		}
		again, err := s.Reweigh(t.Context(), rows.Dense, graph.GCN, full, seen)
		if err != nil {
			return err
		}
		for k, node := range own.Global {
			f := 1 / math.Sqrt(1+float64(degree[node]))
			for j, v := range g.X.Dense.Row(int(node)) {
				if off := math.Abs(float64(again.At(k, j)) - f*float64(v)); off > 1e-6 {
					t.Errorf("peer %d, node %d, column %d: %g, want %g", own.Rank, node, j, again.At(k, j), f*float64(v))
				}
			}
		}
		same, err := s.Reweigh(t.Context(), rows.Dense, graph.Mean, full, seen)
		if err == nil && &same.Data[0] != &rows.Dense.Data[0] {
			t.Error("rows of a mean are weighed")
		}
		return err
	})
}

// TestFarValuesAreRefused: what is beyond the limit is cut off by its owner, whoever it is, and what a peer sends beyond
// it is refused by that peer's name; so are values that are not finite where rows cross as they are.
func TestFarValuesAreRefused(t *testing.T) {
	_, shards := toy(t)
	for name, lie := range map[string]func(x mat.Dense, c *Crossing){
		"none":    func(mat.Dense, *Crossing) {},
		"beyond":  func(_ mat.Dense, c *Crossing) { c.Most = 0 },
		"not one": func(x mat.Dense, c *Crossing) { x.Data[0], c.Most = float32(math.NaN()), 0 },
	} {
		for _, coding := range []wire.Coding{{}, {Values: "int8", Columns: true}} {
			var mu sync.Mutex
			refused := 0
			each(t, shards, coding, func(g *comm.Group, s *Sender, own *shard.Shard) error {
				c, x := Crossing{Most: 1.5}, mat.New(own.Owned, 2)
				for i := range x.Data {
					x.Data[i] = float32(1e9 * float64(1-2*(i%2)))
				}
				if own.Rank == 1 {
					for i := range x.Data {
						lie(mat.View(1, 1, x.Data[i:i+1]), &c)
					}
				}
				h, err := s.NewHop(t.Context(), WholeGraph(own), graph.Mean, "hop", c)
				if err != nil {
					return err
				}
				z, err := h.Aggregate(t.Context(), x, "rows")
				if own.Rank == 1 {
					g.Close()
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				var peer *comm.PeerError
				switch {
				case name == "none" && err == nil:
					for _, v := range z.Data {
						if !(v >= -1.501 && v <= 1.501) {
							t.Errorf("a sum of values of at most 1.5 is %g", v)
						}
					}
				case name != "none" && errors.As(err, &peer) && peer.Rank == 1 && errors.Is(err, comm.ErrRefused):
					refused++
					g.Close()
				case name == "none" || err != nil:
					t.Errorf("%s: peer 1 must be refused, or nobody (got %v)", name, err)
				}
				return nil
			})
			if name != "none" && refused == 0 {
				t.Errorf("%s, %+v: no peer refused the rows of peer 1", name, coding)
			}
		}
	}
}
