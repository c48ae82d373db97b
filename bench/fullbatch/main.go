// Command fullbatch measures what a worker of exact full-batch training holds and sends: a dense graph that no partition
// helps, cut into K parts, is trained for a few steps by K workers in this process, for every way to fetch halo rows.
// What a worker holds is counted, array by array, and does not depend on the machine; seconds do. With -processes each
// worker is a process, and what it holds is told by the operating system as well.
//
//	go run ./bench/fullbatch -nodes 50000 -degree 400 -model sage -workers 1,2,4,8 -processes
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle/bench/rivals"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph/partition"
)

// settings are what the flags say.
type settings struct {
	Nodes, Degree, Features, Hidden, Classes int
	Model                                    string
	Batch                                    bool
	Prefetch, Steps                          int
	Memory                                   int64
	Late                                     bool
}

func main() {
	var s settings
	flag.IntVar(&s.Nodes, "nodes", 50_000, "nodes")
	flag.IntVar(&s.Degree, "degree", 400, "edges into each node, even")
	flag.IntVar(&s.Features, "features", 100, "columns of the features")
	flag.IntVar(&s.Hidden, "hidden", 0, "hidden columns; 0: 256, or 512 for gat")
	flag.IntVar(&s.Classes, "classes", 40, "classes")
	flag.StringVar(&s.Model, "model", "sage", "sage, gat (4 heads) or gcn; 3 layers with LayerNorm")
	flag.BoolVar(&s.Batch, "batchnorm", false, "BatchNorm instead")
	workers := flag.String("workers", "1,2,4,8", "numbers of workers")
	fetches := flag.String("fetch", "sar,sa,oneshot", "ways to fetch halo rows")
	flag.IntVar(&s.Prefetch, "prefetch", 0, "blocks of rows, and of gradients, on their way while one is worked on")
	flag.Int64Var(&s.Memory, "memory", 0, "MiB that a worker may hold of rows that it could fetch again; 0: any number")
	flag.IntVar(&s.Steps, "steps", 2, "steps, at least 2")
	flag.BoolVar(&s.Late, "late", false, "gradients are summed in one piece, behind the backward pass")
	link := flag.String("link", "", "delay,rate of a network between the workers of this process: 5ms,12.5e6 is 5 ms one way and 12.5 MB a second from one to another")
	processes := flag.Bool("processes", false, "each worker is a process")
	total := flag.Int("total", 0, "nodes of another graph, of which the memory is told for the numbers of machines in -machines")
	machines := flag.String("machines", "32,64,128", "numbers of machines for -total")
	child := flag.String("child", "", "be worker R of those that -processes started in this directory: DIR:R")
	flag.Parse()
	var err error
	switch {
	case *child != "":
		err = work(*child)
	case *total > 0:
		err = scale(s, *total, *machines)
	default:
		err = run(s, *workers, *fetches, *link, *processes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fullbatch:", err)
		os.Exit(1)
	}
}

// config returns what s says of training.
func (s settings) config(fetch string) (fullbatch.Config, error) {
	spec, err := spec(s.Model, s.Features, s.Hidden, s.Classes, s.Batch)
	c := fullbatch.Defaults(spec)
	c.Epochs, c.EvalEvery, c.Fetch, c.Prefetch, c.Memory = max(s.Steps, 2), 1<<30, fetch, s.Prefetch, s.Memory<<20
	return c, err
}

func run(s settings, workers, fetches, link string, processes bool) error {
	net := sim.Config{}
	if delay, rate, ok := strings.Cut(link, ","); ok {
		d, err := time.ParseDuration(delay)
		if err != nil {
			return err
		}
		if net.Bandwidth, err = strconv.ParseFloat(rate, 64); err != nil {
			return err
		}
		net.MinLatency, net.MaxLatency = d, d
	}
	g := ring(s.Nodes, s.Degree, s.Features, s.Classes)
	fmt.Printf("%d nodes, %d edges, %s; MB of the worker that holds most, by what for\n\n", g.N(), g.Adj.NumEdges(), s.Model)
	fmt.Println("| workers | fetch | layers | aggregates | halo rows | kept of layer 1 | all four | × workers / one worker | edges and transposes | resident | rows sent a step, values/(halo·width) | s a step | s of processor |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
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
			c, err := s.config(fetch)
			if err != nil {
				return err
			}
			var r []told
			if processes {
				r, err = apart(s, fetch, shards)
			} else {
				r, err = together(c, shards, net, s.Late)
			}
			if err != nil {
				return err
			}
			f := sum(r)
			act := f.rows + f.aggregates + f.halo + f.first
			if k == 1 {
				one, fetch = act, "–"
			}
			fmt.Printf("| %d | %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.2f | %.0f | %.0f | %.0f | %.2f | %.2f |\n", k, fetch, f.rows, f.aggregates, f.halo, f.first, act,
				act*float64(k)/max(one, 1), f.edges, f.resident, f.sent, f.seconds, f.busy)
		}
	}
	return nil
}

// told is what one worker says.
type told struct {
	Memory   fullbatch.Memory
	Resident int64 // bytes that the process came to hold beyond what it held before; 0: workers share a process
	Halo     int64 // rows
	Sent     int64 // bytes of the last step
	Seconds  float64
	Busy     float64 // seconds of processor of a step; 0: told by another worker of the process
}

// figures are MB of the worker that holds most, what all send a step for each halo row, and seconds a step.
type figures struct{ rows, aggregates, halo, first, edges, resident, sent, seconds, busy float64 }

func sum(all []told) (f figures) {
	var sent, halo int64
	for _, r := range all {
		m := r.Memory
		f.rows, f.aggregates = max(f.rows, mb(m.Tape.Rows)), max(f.aggregates, mb(m.Tape.Aggregates))
		f.halo, f.first = max(f.halo, mb(m.Halo)), max(f.first, mb(m.First))
		f.edges, f.resident = max(f.edges, mb(m.Edges+m.Tape.Transposes)), max(f.resident, mb(r.Resident))
		f.seconds, f.busy = max(f.seconds, r.Seconds), f.busy+r.Busy
		sent += r.Sent
		halo += r.Halo
	}
	f.sent = float64(sent) / 4 / float64(max(halo, 1))
	return f
}

func mb(n int64) float64 { return float64(n) / 1e6 }

// late is a group that the trainer does not know to be one: it sums when no rows travel.
type late struct{ *comm.Group }

// train is one worker.
func train(ctx context.Context, c fullbatch.Config, shard *partition.Shard, t comm.Transport, behind bool) (told, error) {
	group := comm.NewGroup(t, shard.Rank, shard.Parts)
	defer group.Close()
	m, err := fullbatch.NewModel(c)
	if err != nil {
		return told{}, err
	}
	trainer, err := fullbatch.New(c, shard, m)
	if err != nil {
		return told{}, err
	}
	var first, last time.Time
	var from, to time.Duration
	trainer.Observer.EpochEnd = func(e fullbatch.EpochInfo) {
		if last, to = time.Now(), rivals.Processor(); e.Epoch == 0 {
			first, from = last, to
		}
	}
	var r comm.Reducer = group
	if behind {
		r = late{group}
	}
	err = trainer.Run(ctx, group, r)
	x := trainer.Result()
	n := len(x.Epochs)
	if err != nil || n < 2 {
		return told{}, err
	}
	return told{
		Memory: x.Memory, Halo: int64(shard.Halo()), Sent: x.Epochs[n-1].Bytes.Halo - x.Epochs[n-2].Bytes.Halo,
		Seconds: last.Sub(first).Seconds() / float64(n-1), Busy: (to - from).Seconds() / float64(n-1),
	}, nil
}

// together trains with all workers in this process.
func together(c fullbatch.Config, shards []*partition.Shard, net sim.Config, behind bool) ([]told, error) {
	joint := sim.New(len(shards), net)
	results := make([]told, len(shards))
	all, ctx := errgroup.WithContext(context.Background())
	for r, s := range shards {
		all.Go(func() (err error) {
			results[r], err = train(ctx, c, s, joint.Transport(r), behind)
			if r > 0 {
				results[r].Busy = 0
			}
			return err
		})
	}
	return results, all.Wait()
}

// scale prints what a machine holds for a graph of total nodes on some numbers of them, by the bytes that one worker holds
// for each of the nodes of the graph that s describes.
func scale(s settings, total int, machines string) error {
	c, err := s.config("sar")
	if err != nil {
		return err
	}
	g := ring(s.Nodes, s.Degree, s.Features, s.Classes)
	r, err := together(c, []*partition.Shard{partition.Whole(g)}, sim.Config{}, false)
	if err != nil {
		return err
	}
	f, n := sum(r), float64(s.Nodes)/1e6
	widest := 0
	for _, l := range c.Spec.Layers {
		widest = max(widest, l.Out)
	}
	block := 4 * float64(widest*(1+s.Prefetch))
	if s.Model == "gat" {
		block *= 2
	}
	layers, features, edges := (f.rows+f.aggregates+f.first)/n, float64(4*s.Features), f.edges/n/float64(s.Degree)
	fmt.Printf("%s; bytes a node: %.0f of layers, at most %.0f of a block of halo rows and gradients, %.0f of features; bytes an edge: %.1f with transposes\n\n", s.Model, layers, block, features, edges)
	fmt.Println("| machines | layers, GB | with a block of halo rows | with features |")
	fmt.Println("|---|---|---|---|")
	for _, list := range strings.Split(machines, ",") {
		k, err := strconv.Atoi(list)
		if err != nil || k < 1 {
			return fmt.Errorf("machines: %q, want numbers from 1", machines)
		}
		gb := func(bytes float64) float64 { return bytes * float64(total) / float64(k) / 1e9 }
		fmt.Printf("| %d | %.1f | %.1f | %.1f |\n", k, gb(layers), gb(layers+block), gb(layers+block+features))
	}
	return nil
}
