package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

const peers = 3

// toy is a directed graph of 60 nodes with edge weights; part 0 owns the fewest nodes.
func toy(t *testing.T) (*graph.Graph, []*shard.Shard) {
	t.Helper()
	const n, columns = 60, 4
	key := rng.New(3)
	g := &graph.Graph{Name: "toy", Labels: graph.Labels{Classes: 3}, Split: make([]graph.Split, n)}
	var src, dst []int32
	var weight []float32
	x, owner := mat.New(n, columns), make([]int32, n)
	for i := range n {
		for k := range 5 {
			src, dst = append(src, int32(key.Fold(uint64(i)).Uint64(uint64(k))%n)), append(dst, int32(i))
			weight = append(weight, float32(0.5+key.Float64(uint64(5*i+k))))
		}
		for j := range columns {
			x.Set(i, j, float32(key.Normal(uint64(columns*i+j))))
		}
		g.Split[i] = []graph.Split{graph.Train, graph.Val, graph.Train, graph.Test}[i%4]
		g.Labels.Class = append(g.Labels.Class, int32(i%7%4)-1) // some have none
		owner[i] = int32(min(i%5, 2))
	}
	var err error
	if g.Adj, err = graph.FromEdges(n, src, dst, weight, graph.Build{Directed: true}); err != nil {
		t.Fatal(err)
	}
	g.X = graph.Features{Dense: x}
	shards, err := shard.Cut(g, owner, peers)
	if err != nil {
		t.Fatal(err)
	}
	return g, shards
}

// each runs do at every peer, in memory.
func each(t *testing.T, shards []*shard.Shard, c comm.Coding,
	do func(g *comm.Group, s *Sender, own *shard.Shard) error) {
	t.Helper()
	network := netsim.New(peers, netsim.Config{})
	var wait sync.WaitGroup
	for rank, own := range shards {
		wait.Go(func() {
			g := comm.NewGroup(network.Transport(rank), rank, peers)
			defer g.Close()
			if err := do(g, NewSender(g, own, c), own); err != nil {
				t.Errorf("peer %d: %v", rank, err)
			}
		})
	}
	wait.Wait()
}

// TestHaloRows: every peer gets the rows of its halo, rounded by the coding and no further; single numbers are exact.
func TestHaloRows(t *testing.T) {
	g, shards := toy(t)
	for _, c := range []struct {
		coding comm.Coding
		off    float64
	}{{comm.Coding{}, 0}, {comm.Coding{Compress: "zstd"}, 0}, {comm.Coding{Values: "int8"}, 0.03}} {
		each(t, shards, c.coding, func(_ *comm.Group, s *Sender, own *shard.Shard) error {
			x, err := s.Halo(t.Context(), own.X, false, "rows")
			if err != nil {
				return err
			}
			mine := make([]float32, own.Owned)
			for i := range mine {
				mine[i] = 1 + 1/float32(1+own.Global[i])
			}
			numbers, err := s.Numbers(t.Context(), mine, "numbers")
			if err != nil {
				return err
			}
			for k, node := range own.Global {
				for j, v := range g.X.Dense.Row(int(node)) {
					if off := math.Abs(float64(x.Dense.At(k, j) - v)); k < own.Owned && off > 0 || off > c.off {
						t.Errorf("%+v: peer %d, node %d: %v, want %v", c.coding, own.Rank, node, x.Dense.At(k, j), v)
					}
				}
				if want := 1 + 1/float32(1+node); numbers[k] != want {
					t.Errorf("%+v: peer %d: the number of node %d is %v, want %v", c.coding, own.Rank, node, numbers[k],
						want)
				}
			}
			return nil
		})
	}
}

// TestInductiveView compares what each peer sees with the whole graph without its validation and test nodes.
func TestInductiveView(t *testing.T) {
	g, shards := toy(t)
	left := g.Adj.Without(g.Split, graph.Val, graph.Test)
	degree := left.Degrees()
	each(t, shards, comm.Coding{Values: "int8"}, func(_ *comm.Group, s *Sender, own *shard.Shard) error {
		v, err := s.InductiveView(t.Context())
		if err == nil && len(v.Degree) != own.Owned {
			t.Errorf("peer %d has %d degrees of others' nodes", own.Rank, len(v.Degree)-own.Owned)
		}
		if err == nil {
			v, err = s.WithDegrees(t.Context(), v)
		}
		if err != nil {
			return err
		}
		for k, node := range own.Global {
			if v.Degree[k] != degree[node] {
				t.Errorf("peer %d: node %d has degree %v, want %v", own.Rank, node, v.Degree[k], degree[node])
			}
		}
		for i := range own.Owned {
			var got, want []string
			col, weight := v.Adj.Row(i)
			for k, j := range col {
				got = append(got, fmt.Sprint(own.Global[j], weight[k]))
			}
			col, weight = left.Row(int(own.Global[i]))
			for k, j := range col {
				want = append(want, fmt.Sprint(j, weight[k]))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("peer %d: node %d has edges from %q, want %q", own.Rank, own.Global[i], got, want)
			}
		}
		return nil
	})
}

// TestEdgesAreNormalisedOnce: layers of one kind share their edges, layers of another have their own.
func TestEdgesAreNormalisedOnce(t *testing.T) {
	g, shards := toy(t)
	spec, err := nn.Preset("gcn", "single", g.X.Cols(), 3, 8, 2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Config{Seed: 1, Spec: spec}.NewModel()
	if err != nil {
		t.Fatal(err)
	}
	own := shards[0]
	v := NewGraphView(&own.Adj, &own.Typed.Adj, make([]float32, len(own.Global)))
	if a, b := v.Received(graph.GCN), v.Received(graph.GCN); a != b || a == v.Edges(m.Layers[0]) {
		t.Error("edges for rows that their owners have weighed are those of GCN, or are computed twice")
	}
	if a, b := v.Edges(m.Layers[0]), v.Edges(m.Layers[1]); a != b || a == nil {
		t.Error("two layers of GCN do not share their edges")
	}
	if v.Normalised(graph.Mean) == v.Edges(m.Layers[0]) {
		t.Error("a mean has the edges of GCN")
	}
}

// TestCovers: what a peer gives another is what that one takes, fewer messages than rows; if it saves nothing, nobody
// is asked.
func TestCovers(t *testing.T) {
	_, shards := toy(t)
	for _, worth := range []bool{true, false} {
		var mu sync.Mutex
		given, taken := map[[2]int]int{}, map[[2]int]int{} // from, to
		each(t, shards, comm.Coding{}, func(_ *comm.Group, s *Sender, own *shard.Shard) error {
			c, err := s.AgreeCovers(t.Context(), "covers", own.Boundary,
				func(q int) *graph.CSR { return own.From(&own.Adj, q) }, func(int, int) bool { return worth })
			if err != nil {
				return err
			}
			give, sums := c.Split(own.Boundary, nil, own.Owned)
			mu.Lock()
			defer mu.Unlock()
			for q := range peers {
				given[[2]int{own.Rank, q}] = len(give[q])
				if sums[q] != nil {
					given[[2]int{own.Rank, q}] += sums[q].NumDst
				}
				taken[[2]int{q, own.Rank}] = own.HaloPtr[q+1] - own.HaloPtr[q]
				if c.Take[q] != nil {
					taken[[2]int{q, own.Rank}] = c.Take[q].Len()
				}
			}
			return nil
		})
		messages, halo := 0, 0
		for pair, n := range given {
			if n != taken[pair] {
				t.Errorf("peer %d gives peer %d %d rows and sums, which takes %d", pair[0], pair[1], n, taken[pair])
			}
			messages += n
		}
		for _, s := range shards {
			halo += s.Halo()
		}
		if worth && messages >= halo || !worth && messages != halo {
			t.Errorf("worth %t: %d messages in place of %d rows", worth, messages, halo)
		}
	}
}

// TestFits: whatever of a shard the model cannot take is named, all at once.
func TestFits(t *testing.T) {
	_, shards := toy(t)
	spec := nn.Spec{Task: "single", Features: 4, Classes: 3}
	if err := (Config{Spec: spec}).Fits(shards[1]); err != nil {
		t.Error(err)
	}
	err := Config{Spec: nn.Spec{Task: "multi", Features: 5, Classes: 2, Layers: []nn.LayerSpec{{Relations: 6}}}}.Fits(
		shards[1])
	for _, want := range []string{
		"shard 1 must have 5 features a node, as the model has (got 4)",
		"shard 1 must have 2 classes, as the model has (got 3)", "shard 1 must have labels for task multi",
		"edges must have 6 relations, as layers[0] of the model has (got 0)",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
}

// TestDigest: every bit counts, and so does the order.
func TestDigest(t *testing.T) {
	x := []float32{1, 2, 3}
	seen := map[uint32]string{Digest(x): "x", Digest(nil): "nothing", Digest([]float32{2, 1, 3}): "another order",
		Digest(x[:2]): "fewer"}
	for i := range x {
		for bit := range 32 {
			y := slices.Clone(x)
			y[i] = math.Float32frombits(math.Float32bits(y[i]) ^ 1<<bit)
			name := fmt.Sprintf("bit %d of value %d", bit, i)
			if other, ok := seen[Digest(y)]; ok {
				t.Errorf("%s gives the digest of %s", name, other)
			}
			seen[Digest(y)] = name
		}
	}
}
