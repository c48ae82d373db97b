// Command fullbatch measures what a worker of exact full-batch training holds and sends: a dense graph that no partition
// helps, cut into K parts, is trained for a few steps by K workers in this process, for every way to fetch halo rows.
// What a worker holds is counted, array by array, and does not depend on the machine; seconds do.
//
//	go run ./bench/fullbatch -nodes 50000 -degree 400 -model sage -workers 1,2,4,8
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

func main() {
	nodes := flag.Int("nodes", 50_000, "nodes")
	degree := flag.Int("degree", 400, "edges into each node, even")
	features := flag.Int("features", 100, "columns of the features")
	classes := flag.Int("classes", 40, "classes")
	model := flag.String("model", "sage", "sage (hidden 256), gat (4 heads of 128) or gcn (hidden 256); 3 layers with LayerNorm")
	workers := flag.String("workers", "1,2,4,8", "numbers of workers")
	fetches := flag.String("fetch", "sar,sa,oneshot", "ways to fetch halo rows")
	prefetch := flag.Int("prefetch", 0, "blocks of rows, and of gradients, on their way while one is worked on")
	memory := flag.Int64("memory", 0, "MiB that a worker may hold of rows that it could fetch again; 0: any number")
	steps := flag.Int("steps", 2, "steps, at least 2")
	flag.Parse()
	if err := run(*nodes, *degree, *features, *classes, *model, *workers, *fetches, *prefetch, *memory, *steps); err != nil {
		fmt.Fprintln(os.Stderr, "fullbatch:", err)
		os.Exit(1)
	}
}

func run(nodes, degree, features, classes int, model, workers, fetches string, prefetch int, memory int64, steps int) error {
	g := ring(nodes, degree, features, classes)
	spec, err := spec(model, features, classes)
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes, %d edges, %s; MB of the worker that holds most, by what for\n\n", g.N(), g.Adj.NumEdges(), model)
	fmt.Println("| workers | fetch | layers | aggregates | halo rows | kept of layer 1 | all four | × workers / one worker | edges and transposes | rows sent a step, values/(halo·width) | s a step |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	var one float64
	for _, list := range strings.Split(workers, ",") {
		k, err := strconv.Atoi(list)
		if err != nil || k < 1 {
			return fmt.Errorf("workers: %q, want numbers from 1", workers)
		}
		shards := []*partition.Shard{partition.Whole(g)}
		if k > 1 {
			if shards, err = partition.Partition(g, partition.Contiguous{}, k, 1); err != nil {
				return err
			}
		}
		for i, fetch := range strings.Split(fetches, ",") {
			if k == 1 && i > 0 {
				continue
			}
			c := fullbatch.Defaults(spec)
			c.Epochs, c.EvalEvery, c.Fetch, c.Prefetch, c.Memory = max(steps, 2), 1<<30, fetch, prefetch, memory<<20
			r, err := train(c, shards)
			if err != nil {
				return err
			}
			act := r.rows + r.aggregates + r.halo + r.first
			if k == 1 {
				one, fetch = act, "–"
			}
			fmt.Printf("| %d | %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.2f | %.0f | %.0f | %.1f |\n", k, fetch, r.rows, r.aggregates, r.halo, r.first, act,
				act*float64(k)/max(one, 1), r.edges, r.sent, r.seconds)
		}
	}
	return nil
}

// figures are MB of the worker that holds most, what all send a step for each halo row, and seconds a step.
type figures struct{ rows, aggregates, halo, first, edges, sent, seconds float64 }

func train(c fullbatch.Config, shards []*partition.Shard) (figures, error) {
	net := sim.New(len(shards), sim.Config{})
	results := make([]fullbatch.Result, len(shards))
	var first, last time.Time
	all, ctx := errgroup.WithContext(context.Background())
	for r, s := range shards {
		all.Go(func() error {
			group := comm.NewGroup(net.Transport(r), r, len(shards))
			defer group.Close()
			m, err := fullbatch.NewModel(c)
			if err != nil {
				return err
			}
			t, err := fullbatch.New(c, s, m)
			if err != nil {
				return err
			}
			t.Observer.EpochEnd = func(e fullbatch.EpochInfo) {
				if r == 0 && e.Epoch == 0 {
					first = time.Now()
				} else if r == 0 {
					last = time.Now()
				}
			}
			err = t.Run(ctx, group, group)
			results[r] = t.Result()
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return figures{}, err
	}
	var f figures
	var sent, halo int64
	for r, x := range results {
		m := x.Memory
		f.rows, f.aggregates = max(f.rows, mb(m.Tape.Rows)), max(f.aggregates, mb(m.Tape.Aggregates))
		f.halo, f.first = max(f.halo, mb(m.Halo)), max(f.first, mb(m.First))
		f.edges = max(f.edges, mb(m.Edges+m.Tape.Transposes))
		n := len(x.Epochs)
		sent += x.Epochs[n-1].Bytes.Halo - x.Epochs[n-2].Bytes.Halo
		halo += int64(shards[r].Halo())
	}
	f.sent = float64(sent) / 4 / float64(max(halo, 1))
	f.seconds = last.Sub(first).Seconds() / float64(c.Epochs-1)
	return f, nil
}

func mb(n int64) float64 { return float64(n) / 1e6 }

// ring is a graph in which node i has the neighbours i ± o for the same offsets o, drawn from all: whatever the parts,
// nearly every node is a neighbour of each of them. All nodes train.
func ring(n, degree, features, classes int) *graph.Graph {
	key := rng.New(1)
	offsets := make([]int32, 0, degree)
	for _, o := range key.Perm((n - 1) / 2)[:degree/2] {
		offsets = append(offsets, o+1, int32(n)-o-1)
	}
	g := &graph.Graph{Name: "ring", Adj: graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1), Col: make([]int32, 0, n*len(offsets))}}
	row := make([]int32, len(offsets))
	for i := range n {
		for k, o := range offsets {
			row[k] = int32((i + int(o)) % n)
		}
		slices.Sort(row)
		g.Adj.Col = append(g.Adj.Col, row...)
		g.Adj.RowPtr[i+1] = int64(len(g.Adj.Col))
	}
	g.X.Dense = mat.New(n, features)
	for k := range g.X.Dense.Data {
		g.X.Dense.Data[k] = float32(key.Float64(uint64(k))) - 0.5
	}
	g.Labels.Classes = classes
	g.Labels.Class = make([]int32, n)
	g.Split = make([]graph.Split, n)
	for i := range n {
		g.Labels.Class[i], g.Split[i] = int32(key.FoldString("y").Uint64(uint64(i))%uint64(classes)), graph.Train
	}
	return g
}

func spec(model string, features, classes int) (nn.Spec, error) {
	hidden := 256
	if model == "gat" {
		hidden = 512
	}
	s, err := nn.Preset(model, "single", features, classes, hidden, 3)
	for k := range s.Layers {
		l := &s.Layers[k]
		l.Dropout, l.AttentionDropout, l.Norm = 0, 0, k < 2
		if model == "gat" && k < 2 {
			l.Heads = 4
		}
	}
	return s, err
}
