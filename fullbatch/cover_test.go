package fullbatch

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// oneWay returns a toy's edges in one direction or both, drawn, and weighted.
func oneWay(g *graph.Graph, key rng.Key) *graph.Graph {
	h := *g
	h.Adj = graph.CSR{NumDst: g.N(), NumSrc: g.N(), RowPtr: make([]int64, g.N()+1), Weight: []float32{}}
	for i := range g.N() {
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			at := key.Fold(uint64(i))
			if at.Float64(uint64(j)) < 0.6 {
				h.Adj.Col = append(h.Adj.Col, j)
				h.Adj.Weight = append(h.Adj.Weight, float32(0.2+at.Fold(1).Float64(uint64(j))))
			}
		}
		h.Adj.RowPtr[i+1] = int64(len(h.Adj.Col))
	}
	return &h
}

// TestCoverIsExact holds rows, their gradients and those of the parameters to what one worker computes, where sums
// travel in place of rows and the gradients of sums in place of those of rows: weighted, directed graphs, 2 to 7
// workers.
func TestCoverIsExact(t *testing.T) {
	for m, model := range []string{"gcn", "sage", "gin", "gcn of 3 hops", "sage, aggregated once"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			hows := []string{"uneven", "empty", "without edges", "training in one"}
			for parts := 2; parts <= 7; parts++ {
				g := oneWay(toy(rng.New(uint64(20+parts)), 90, 9), rng.New(uint64(m)))
				c := Defaults(models(9)[model])
				want := onePass(t, c, cut(t, g, "", 1))
				c.Exchange, c.Fetch = "cover", Fetches[parts%len(Fetches)]
				if parts%2 == 0 {
					c.Order = "fixed"
				}
				onePass(t, c, cut(t, g, hows[parts%len(hows)], parts)).compare(t, want)
			}
		})
	}
}

// TestCoverTrainsAsRows holds the curve of training by covers, of few nodes and of all, to that by rows, and its bytes
// after the first epoch to one value for each message of a least cover where a layer sums.
func TestCoverTrainsAsRows(t *testing.T) {
	for _, model := range []string{"gcn", "sage", "gin", "gat"} {
		for _, inductive := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, inductive %t", model, inductive), func(t *testing.T) {
				g := oneWay(toy(rng.New(31), 120, 9), rng.New(6))
				shards := cut(t, g, "uneven", 3)
				c := Defaults(models(9)[model])
				c.Rounds, c.Inductive, c.Exchange, c.Order = 6, inductive, "halo", "fixed"
				rows := trained(t, c, shards)
				c.Exchange = "cover"
				covers := trained(t, c, shards)
				again := trained(t, c, shards)
				got, want := covers[0].Result().Final(), rows[0].Result().Final()
				for i, e := range got.Curve {
					within(t, fmt.Sprintf("loss of epoch %d", i), e.Loss, want.Curve[i].Loss, 1e-4)
					if again[0].Result().Curve()[i].Loss != e.Loss {
						t.Errorf("epoch %d: %v, and again %v", i, e.Loss, again[0].Result().Curve()[i].Loss)
					}
				}
				within(t, "test loss", got.TestLoss, want.TestLoss, 1e-4)
				saved := func(tr []*Trainer) (n int64) {
					for _, tr := range tr {
						e := tr.Result().Curve()
						n += e[5].Sent.Halo - e[1].Sent.Halo
					}
					return n
				}
				switch a, b := saved(covers), saved(rows); {
				case model == "gat" && a != b:
					t.Errorf("attention: %d bytes, by rows %d", a, b)
				case model != "gat" && a >= b:
					t.Errorf("%d bytes, by rows %d", a, b)
				}
			})
		}
	}
}

// TestCoverTraffic holds the bytes of an epoch to 2·d·ΣC values, C the messages of a least cover, there and back.
func TestCoverTraffic(t *testing.T) {
	g := toy(rng.New(4), 150, 9)
	for i := range g.Split {
		g.Split[i] = graph.Train // every node is wanted: no blocks, and nothing to validate
	}
	shards := cut(t, g, "uneven", 3)
	halo := 0
	for _, s := range shards {
		halo += s.Halo()
	}
	plan := partition.LeastMessages(shards)
	if plan.Total >= int64(halo) {
		t.Fatalf("%d messages in place of %d rows", plan.Total, halo)
	}
	for _, model := range []string{"gcn", "sage", "gin"} {
		for _, exchange := range []string{"cover", "auto"} {
			c := Defaults(models(9)[model])
			c.Rounds, c.EvalEvery, c.Exchange = 4, 1000, exchange
			sent := make([]int64, c.Rounds)
			for _, tr := range trained(t, c, shards) {
				for i, e := range tr.Result().Curve() {
					sent[i] += e.Sent.Halo
				}
			}
			for i := 1; i < len(sent); i++ {
				if got, want := sent[i]-sent[i-1], 4*2*(8+3)*plan.Total; got != want {
					t.Errorf("%s, %s: epoch %d sent %d bytes of rows, sums and gradients, want %d", model, exchange, i,
						got, want)
				}
			}
		}
	}
}

// TestGradientOfSums holds what comes back for a sum to finite differences: the owner's rows move, and the loss, which
// is linear in what the other worker makes of the sum, with them.
func TestGradientOfSums(t *testing.T) {
	sums := &graph.CSR{NumDst: 2, NumSrc: 4, RowPtr: []int64{0, 3, 5}, Col: []int32{0, 1, 3, 1, 2},
		Weight: []float32{0.5, 2, 1, 3, 0.25}}
	f := &fetching{halo: &halo{give: [][]int32{nil, {2}}, sums: []*graph.CSR{nil, sums}}, room: make([][]float32, 2)}
	key, d := rng.New(7), 3
	z, ds := make([]float32, 4*d), make([]float32, 3*d) // one row and two sums go to peer 1
	for k := range z {
		z[k] = float32(key.Normal(uint64(k)))
	}
	for k := range ds {
		ds[k] = float32(key.Fold(1).Normal(uint64(k)))
	}
	loss := func(z []float32) (sum float64) {
		for k := range f.given(1) {
			for c, v := range f.out(mat.View(4, d, z), 1, k) {
				sum += float64(v) * float64(ds[k*d+c])
			}
		}
		return sum
	}
	dz := make([]float32, len(z))
	for k := range f.given(1) {
		f.back(mat.View(4, d, dz), 1, k, 0, ds[k*d:k*d+1]) // in two pieces
		f.back(mat.View(4, d, dz), 1, k, 1, ds[k*d+1:(k+1)*d])
	}
	const step = 1.0 / 64
	for k := range z {
		up, down := slices.Clone(z), slices.Clone(z)
		up[k], down[k] = up[k]+step, down[k]-step
		if want := (loss(up) - loss(down)) / (2 * step); math.Abs(float64(dz[k])-want) > 1e-4 {
			t.Errorf("value %d: gradient %g, by differences %g", k, dz[k], want)
		}
	}
}
