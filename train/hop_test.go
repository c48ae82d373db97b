package train

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/closed"
)

// TestHop: whatever is sent, a hop equals the hop over the whole graph; sums are rounded no worse than rows.
func TestHop(t *testing.T) {
	g, shards := toy(t)
	for _, norm := range []graph.Norm{graph.GCN, graph.Mean} {
		for name, crossing := range map[string]Crossing{
			"rows":   {},
			"covers": {Worth: func(int, int) bool { return true }},
		} {
			for _, c := range []struct {
				coding comm.Coding
				off    float64
			}{{comm.Coding{}, 1e-5}, {comm.Coding{Values: "int8", Columns: true}, 0.05}} {
				hop := func(nodes int64) mat.Dense {
					var mu sync.Mutex
					got := mat.New(g.N(), 4)
					each(t, shards, c.coding, func(_ *comm.Group, s *Sender, own *shard.Shard) error {
						own.Nodes = nodes
						h, err := s.NewHop(t.Context(), WholeGraph(own), norm, "hop", crossing)
						if err != nil {
							return err
						}
						z := mat.New(own.Owned, 4)
						if err := h.Aggregate(t.Context(), z, own.X.Dense, "rows"); err != nil {
							return err
						}
						mu.Lock()
						defer mu.Unlock()
						for i := range own.Owned {
							copy(got.Row(int(own.Global[i])), z.Row(i))
						}
						return nil
					})
					return got
				}
				got := hop(int64(g.N()))
				if !slices.Equal(hop(1<<20).Data, got.Data) { // whose columns come in two messages
					t.Errorf("norm %d, %s, %+v: a large graph has other sums", norm, name, c.coding)
				}
				want := aggregate.Features(aggregate.Sum{}, graph.Normalise(&g.Adj, g.Adj.Degrees(), norm), g.X).Dense
				for i := range g.N() {
					for j, v := range want.Row(i) {
						if off := math.Abs(float64(v - got.At(i, j))); off > c.off {
							t.Fatalf("norm %d, %s, %+v: node %d, column %d is %g, want %g", norm, name, c.coding, i, j,
								got.At(i, j), v)
						}
					}
				}
			}
		}
	}
}

// TestRowsOfALargeGraph: the list of what leaves has half of the columns of a hop in each message.
func TestRowsOfALargeGraph(t *testing.T) {
	for nodes, want := range map[int64]string{1<<19 - 1: "1×19 1×9", 1 << 19: "1×10 1×9 1×5 1×4"} {
		l := NewMessages(Members{Peers: 2, Nodes: nodes})
		layout := closed.Layout{Rounds: 2, Hops: 1, LogitHops: 1, Directions: 10, Residual: true}
		l.AddClassRows(layout, 1, 1, 10, comm.Coding{})
		var got []string
		for _, m := range l.List {
			got = append(got, fmt.Sprintf("%d×%d", m.Times, m.Numbers))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%d nodes: messages must be %s (got %s)", nodes, want, text)
		}
	}
}

// TestReweigh: rows that owners weighed for one view are as if they had weighed them for the other.
func TestReweigh(t *testing.T) {
	g, shards := toy(t)
	left := g.Adj.Without(g.Split, graph.Val, graph.Test)
	degree := left.Degrees()
	each(t, shards, comm.Coding{Values: "int8"}, func(_ *comm.Group, s *Sender, own *shard.Shard) error {
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
					t.Errorf("peer %d, node %d, column %d: %g, want %g", own.Rank, node, j, again.At(k, j),
						f*float64(v))
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

// TestFarValuesAreRefused: its owner clips what is beyond the limit, and what a peer sends beyond it is refused by that
// peer's name. So are values that are not finite if rows are sent as they are.
func TestFarValuesAreRefused(t *testing.T) {
	_, shards := toy(t)
	for name, lie := range map[string]func(x mat.Dense, c *Crossing){
		"none":    func(mat.Dense, *Crossing) {},
		"beyond":  func(_ mat.Dense, c *Crossing) { c.Most = 0 },
		"not one": func(x mat.Dense, c *Crossing) { x.Data[0], c.Most = float32(math.NaN()), 0 },
	} {
		for _, coding := range []comm.Coding{{}, {Values: "int8", Columns: true}} {
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
				z := mat.New(own.Owned, 2)
				err = h.Aggregate(t.Context(), z, x, "rows")
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
