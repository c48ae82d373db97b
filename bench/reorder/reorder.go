// Package reorder measures what the order of rows inside shards does to the time of neighbour sums.
package reorder

import (
	"cmp"
	"context"
	"flag"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "reorder",
	Title: "Order of rows inside shards",
	Text: `What the order of rows inside shards does to the time of neighbour sums (SpMM). On Linux times
are those of the process, so that GOMAXPROCS=1 gives those of one processor whatever else it
does.`,
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	root := graphs.Root(f)
	names := f.String("graph", "amazon-computers,github-web-ml,communities-1M,power-law-1M", "graphs to measure")
	parts := f.String("k", "1,4", "numbers of parts, by multilevel")
	width := f.String("width", "64,256", "columns of the rows that are summed")
	repeat := f.Int("repeat", 30, "runs of which the fastest counts")
	return func(_ context.Context, p *page.Page) error {
		p.Table("graph %s", "k %d", "order %s", "seconds to order %.3f", "width %d", "SpMM, ms %.3f",
			"relative to random %.2f")
		for _, name := range strings.Split(*names, ",") {
			g, err := graphs.Open(*root, name)
			if err != nil {
				return err
			}
			for _, list := range strings.Split(*parts, ",") {
				k, err := strconv.Atoi(list)
				if err != nil {
					return err
				}
				if err := compare(p, g, name, k, strings.Split(*width, ","), *repeat); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// now is the processor's time if the system counts it.
func now() time.Duration {
	t := measure.Now()
	return cmp.Or(t.Processor, t.Wall)
}

// random is an order without any locality.
func random(adj *graph.CSR) []int32 {
	order := make([]int32, adj.NumDst)
	for k, i := range rng.New(1).Perm(adj.NumDst) {
		order[k] = int32(i)
	}
	return order
}

func compare(p *page.Page, g *graph.Graph, name string, k int, widths []string, repeat int) error {
	var owner []int32
	var err error
	if k == 1 {
		owner = make([]int32, g.N())
	} else if owner, err = (partition.Multilevel{Goal: partition.Goal{Vertices: 1.03}}).Assign(g, k,
		rng.New(1)); err != nil {
		return err
	}
	plain, err := shard.Cut(&graph.Graph{Adj: g.Adj, Split: g.Split, Labels: g.Labels}, owner, k)
	if err != nil {
		return err
	}
	orders := []string{"random", "as it is", "cluster"}
	ordered, took := [][]*shard.Shard{nil, plain, nil}, make([]time.Duration, len(orders))
	for at, by := range map[int]func(*graph.CSR) []int32{0: random, 2: partition.ClusterOrder} {
		start := now()
		ordered[at] = shard.Reorder(plain, by)
		took[at] = now() - start
	}
	for _, text := range widths {
		width, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		least := spmm(ordered, width, repeat)
		for at, order := range orders {
			p.Row(name, k, order, took[at].Seconds(), width, least[at].Seconds()*1e3,
				float64(least[at])/float64(least[0]))
		}
	}
	return nil
}

// spmm returns, for each order, the least time of one sum over all neighbours of all shards. The orders take turns, so
// that other work of the machine slows down all of them alike.
func spmm(ordered [][]*shard.Shard, width, repeat int) []time.Duration {
	sum := make([]time.Duration, len(ordered))
	for p := range ordered[0] {
		s := ordered[0][p]
		x, y := mat.New(len(s.Global), width), mat.New(s.Owned, width)
		for k := range x.Data {
			x.Data[k] = float32(k%7) / 8
		}
		least := slices.Repeat([]time.Duration{1 << 62}, len(ordered))
		for range repeat {
			for at := range ordered {
				a := &ordered[at][p].Adj
				start := now()
				kernels.SpMM(a.RowPtr, a.Col, a.Weight, width, x.Data, width, y.Data, width, false)
				least[at] = min(least[at], now()-start)
			}
		}
		for at, t := range least {
			sum[at] += t
		}
	}
	return sum
}
