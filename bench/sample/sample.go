// Package sample measures the samplers of mini-batches by themselves.
package sample

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "embed"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/sample"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels/measure"
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
	python := f.String("python", "", "Python with DGL, which is measured beside; empty: it is not")
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
		p.Table("sampler %s", "threads %d", "seeds a processor second %.0f", "million edges a processor second %.2f", "edges a batch %.0f", "inputs a batch %.0f")
		for _, kind := range sample.Kinds {
			c := sample.Config{Kind: kind, Fanouts: hops}
			if err := c.Validate(); err != nil {
				return err
			}
			for threads := 1; threads <= min(2, runtime.NumCPU()); threads++ {
				var best turn
				for range *turns {
					if one := measured(g, c, *batches, threads); best.took == 0 || one.took < best.took {
						best = one
					}
				}
				n := float64(*batches * threads)
				p.Row("Heddle, "+kind, threads, 1000*n/best.took.Seconds(), best.edges/best.took.Seconds()/1e6, best.edges/n, best.inputs/n)
			}
		}
		if *python == "" {
			return nil
		}
		return beside(ctx, p, *python, *nodes, *edges, *fanouts, *batches, *turns)
	}
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

// turn is what one turn took and drew.
type turn struct {
	took          time.Duration
	edges, inputs float64
}

// measured draws so many batches on each thread.
func measured(g *graph.CSR, c sample.Config, batches, threads int) (all turn) {
	edges := sample.NewEdges(g, nil, false, false)
	order := rng.New(3).Perm(g.NumDst)
	of := make([]turn, threads)
	draw := func(thread, batches int) {
		s, b := sample.New(c, edges), sample.NewBuilder(g.NumSrc, edges)
		for i := range batches {
			at := (thread*batches + i) * 1000 % max(1, g.NumDst-1000)
			one := s.Batch(rng.New(2).Fold(uint64(at)), order[at:at+1000], b)
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
		wait.Go(func() { draw(thread, batches) })
	}
	wait.Wait()
	cost := measure.Since(start)
	all.took = cmp.Or(cost.Processor, cost.Wall)
	for _, one := range of {
		all.edges, all.inputs = all.edges+one.edges, all.inputs+one.inputs
	}
	return all
}

// beside measures DGL's samplers on a graph drawn likewise.
func beside(ctx context.Context, p *page.Page, python string, nodes, edges int, fanouts string, batches, turns int) error {
	c := exec.CommandContext(ctx, python, "-", strconv.Itoa(nodes), strconv.Itoa(edges), fanouts, strconv.Itoa(batches), strconv.Itoa(turns))
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
		if _, err := fmt.Sscanf(line, "row %s %d %g %g %g %g", &name, &threads, &seeds, &rate, &each, &inputs); err != nil {
			continue
		}
		p.Row(strings.ReplaceAll(name, "_", " "), threads, seeds, rate, each, inputs)
	}
	return nil
}
