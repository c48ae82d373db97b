// Package sample measures the samplers of mini-batches by themselves.
package sample

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "embed"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/bench/raw"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/sample"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/rng"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "sample",
	Title: "Speed of the samplers",
	Text: `Seeds a second of processor time for which blocks are drawn, from a graph with uniform targets and
sources that are squares of uniform numbers, so that few vertices are the sources of many edges. Rows are
drawn without replacement, 5, 10 and 15 in-edges from the seeds outward, for batches of 1,000 seeds. All
edges are in memory. Times are those of the process, all threads together, of the fastest turn.`,
}

//go:embed dgl.py
var dgl string

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	nodes := f.Int("nodes", 1_000_000, "nodes of the graph")
	edges := f.Int("edges", 10_000_000, "edges of the graph")
	fanouts := f.String("fanouts", "5,10,15", "in-edges a vertex, from the seeds outward")
	batches := f.Int("batches", 20, "batches of 1,000 seeds in a turn")
	turns := f.Int("turns", 5, "turns, of which the fastest counts")
	pythons := f.String("python", "", "Pythons with DGL, which are measured beside")
	columns := f.Int("train", 0, "columns of features; 0: sampling without training")
	formats := f.Bool("bf16", false, "with -train: also time epochs with rows: bf16")
	return func(ctx context.Context, p *page.Page) error {
		var hops []int
		for text := range strings.SplitSeq(*fanouts, ",") {
			k, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("fanouts must be numbers with commas between (got %q)", *fanouts)
			}
			hops = append(hops, k)
		}
		g, err := drawn(*nodes, *edges)
		if err != nil {
			return err
		}
		o := options{hops: hops, batches: *batches, turns: *turns, columns: *columns, order: rng.New(3).Perm(*nodes)}
		rates := []string{"million edges a processor second %.2f", "edges a batch %.0f", "inputs a batch %.0f"}
		if *formats {
			p.Table("columns %d", "float32, s %.2f", "bf16, s %.2f", "gain %.2f")
			return o.formats(ctx, p, g)
		}
		if o.columns > 0 {
			o.graph = fmt.Sprintf("%.3g M edges", float64(*edges)/1e6)
			p.Table(append([]string{"graph %s", "program %s", "threads %d", "labels a processor second %.0f"},
				rates...)...)
			err = o.epochs(ctx, p, g)
		} else {
			p.Table(append([]string{"sampler %s", "threads %d", "seeds a processor second %.0f"}, rates...)...)
			err = o.samplers(p, g)
		}
		if err != nil || *pythons == "" {
			return err
		}
		dir, err := os.MkdirTemp("", "bench-sample")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := raw.Write(dir, map[string]any{"indptr": g.RowPtr, "indices": g.Col, "order": o.order}); err != nil {
			return err
		}
		for python := range strings.SplitSeq(*pythons, ",") {
			if err := o.beside(ctx, p, python, dir); err != nil {
				return err
			}
		}
		return nil
	}
}

// options set what is sampled.
type options struct {
	hops           []int
	batches, turns int
	columns        int
	graph          string  // of epochs
	order          []int32 // seeds
}

// samplers measures Heddle's samplers.
func (o options) samplers(p *page.Page, g *graph.CSR) error {
	for _, kind := range []string{"neighbour", "labor"} {
		c := sample.Config{Kind: kind, Fanouts: o.hops}
		if err := c.Validate(); err != nil {
			return err
		}
		for threads := 1; threads <= min(2, runtime.NumCPU()); threads++ {
			var best turn
			for range o.turns {
				if one := o.measured(g, c, threads); best.took == 0 || one.took < best.took {
					best = one
				}
			}
			n := float64(o.batches * threads)
			p.Row("Heddle, "+kind, threads, 1000*n/best.took.Seconds(), best.edges/best.took.Seconds()/1e6,
				best.edges/n, best.inputs/n)
		}
	}
	return nil
}

// drawn returns the graph.
func drawn(n, edges int) (*graph.CSR, error) {
	key := rng.New(1).FoldString("bench/sample")
	src, dst := make([]int32, edges), make([]int32, edges)
	for e := range edges {
		u := key.Float64(2 * uint64(e))
		src[e], dst[e] = int32(u*u*float64(n)), int32(key.Float64(2*uint64(e)+1)*float64(n))
	}
	g, err := graph.FromEdges(n, src, dst, nil, graph.Build{Directed: true})
	return &g, err
}

// turn is what one turn took and sampled.
type turn struct {
	took          time.Duration
	edges, inputs float64
}

// measured samples `batches` batches on each thread.
func (o options) measured(g *graph.CSR, c sample.Config, threads int) (all turn) {
	edges := sample.NewEdges(g, nil, false, false)
	of := make([]turn, threads)
	draw := func(thread, batches int) {
		s, b := sample.New(c, edges), sample.NewBuilder(g.NumSrc, edges)
		for i := range batches {
			at := (thread*o.batches + i) * 1000 % max(1, g.NumDst-1000)
			one := s.Batch(rng.New(2).Fold(uint64(at)), o.order[at:at+1000], b)
			for _, block := range one.Blocks {
				of[thread].edges += float64(block.NumEdges())
			}
			of[thread].inputs += float64(len(one.Nodes))
		}
	}
	draw(0, 2) // memory is touched once
	of[0] = turn{}
	runtime.GC()
	start := measure.Now()
	var wait sync.WaitGroup
	for thread := range threads {
		wait.Go(func() { draw(thread, o.batches) })
	}
	wait.Wait()
	cost := measure.Since(start)
	all.took = cmp.Or(cost.Processor, cost.Wall)
	for _, one := range of {
		all.edges, all.inputs = all.edges+one.edges, all.inputs+one.inputs
	}
	return all
}

// beside measures DGL, and GraphBolt if it is installed, on the same graph and seeds.
func (o options) beside(ctx context.Context, p *page.Page, python, dir string) error {
	args := []string{"-", dir, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(o.hops)), ","), "[]"),
		strconv.Itoa(o.batches), strconv.Itoa(o.turns)}
	if o.columns > 0 {
		args = append(args, strconv.Itoa(o.columns))
	}
	c := exec.CommandContext(ctx, python, args...)
	c.Stdin = strings.NewReader(dgl)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", python, err, errs.String())
	}
	for line := range strings.Lines(string(out)) {
		var name string
		var threads int
		var seeds, rate, each, inputs float64
		if _, err := fmt.Sscanf(line, "row %s %d %g %g %g %g", &name, &threads, &seeds, &rate, &each,
			&inputs); err != nil {
			continue
		}
		name = strings.ReplaceAll(name, "_", " ")
		if o.columns > 0 {
			p.Row(o.graph, name, threads, seeds, rate, each, inputs)
		} else {
			p.Row(name, threads, seeds, rate, each, inputs)
		}
	}
	return nil
}
