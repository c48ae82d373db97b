package fullbatch

import (
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// everywhere is a graph whose nodes have neighbours in every part, however it is cut into runs.
func everywhere(n, degree, features int) *graph.Graph {
	g := &graph.Graph{Name: "everywhere", Adj: graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}}
	for i := range n {
		var row []int32
		for k := range degree {
			row = append(row, int32((i+1+k*n/degree)%n))
		}
		slices.Sort(row)
		g.Adj.Col = append(g.Adj.Col, row...)
		g.Adj.RowPtr[i+1] = int64(len(g.Adj.Col))
	}
	g.X.Dense = mat.New(n, features)
	for k := range g.X.Dense.Data {
		g.X.Dense.Data[k] = float32(rng.New(1).Float64(uint64(k))) - 0.5
	}
	g.Labels.Classes, g.Labels.Class, g.Split = 4, make([]int32, n), make([]graph.Split, n)
	for i := range n {
		g.Labels.Class[i], g.Split[i] = int32(i%4), graph.Train
	}
	return g
}

// TestMemoryFallsWithWorkers holds what a worker holds for a step, on a graph that no partition helps, to one part in K
// of what one worker does, a tenth more, and a constant: a block of halo rows, whose gradients take its place where the
// gradient reads rows. One exchange at once takes at least twice that with eight workers.
func TestMemoryFallsWithWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	const n, hidden, few = 1 << 14, 48, 8
	g := everywhere(n, 8, few)
	for _, model := range []string{"sage", "gat"} {
		spec, err := nn.Preset(model, "single", few, 4, hidden, 3)
		if err != nil {
			t.Fatal(err)
		}
		for k := range spec.Layers {
			l := &spec.Layers[k]
			l.Dropout, l.AttentionDropout, l.Norm = 0, 0, k < 2
		}
		c := Defaults(spec)
		c.Rounds, c.EvalEvery, c.Prefetch, c.Exchange = 1, 100, 0, "halo"
		held := func(fetch string, parts int) (most int64) {
			c := c
			c.Fetch = fetch
			if c.Memory = 0; model == "gat" {
				c.Memory = 1 // the halo's features are fetched at every step
			}
			shards := []*shard.Shard{shard.Whole(g)}
			if parts > 1 {
				if shards, err = partition.Partition(g, partition.Contiguous{}, parts, 1); err != nil {
					t.Fatal(err)
				}
			}
			for _, tr := range trained(t, c, shards) {
				m := tr.Memory()
				most = max(most, m.Tape.Rows+m.Tape.Aggregates+m.Halo+m.First)
			}
			return most
		}
		one := held("sar", 1)
		block, pieces := int64(4*hidden*n/8), int64(1<<18)
		sar, oneshot := held("sar", 8), held("oneshot", 8)
		if want := one*11/80 + block + pieces; sar > want {
			t.Errorf("%s: one of 8 workers holds %d bytes, want at most %d; one alone holds %d", model, sar, want, one)
		}
		t.Logf("%s: %d bytes by sar, %d by oneshot, with 8 workers; %d alone", model, sar, oneshot, one)
		if 2*sar > oneshot+1<<20 {
			t.Errorf("%s: one of 8 workers holds %d bytes by sar, %d by oneshot, want at most half", model, sar,
				oneshot)
		}
	}
}
