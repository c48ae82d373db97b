// Reorder measures what the order of rows inside shards does to the time of neighbour sums (SpMM): one line a graph, number
// of parts, order and width. On Linux times are the process's own, so that GOMAXPROCS=1 gives those of one processor
// whatever else it does.
//
//	GOMAXPROCS=1 go run ./bench/reorder
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "reorder:", err)
		os.Exit(1)
	}
}

func run() error {
	root := flag.String("root", "../shared/data", "folder of the data sets")
	graphs := flag.String("graph", "amazon-computers,github-web-ml,communities,power-law", "graphs to measure")
	parts := flag.String("k", "1,4", "numbers of parts, by multilevel")
	width := flag.String("width", "64,256", "columns of the rows that are summed")
	edges := flag.Int("edges", 1_000_000, "undirected edges of a drawn graph")
	repeat := flag.Int("repeat", 30, "runs of which the fastest counts")
	flag.Parse()
	fmt.Println("graph k order seconds_to_order width ms_spmm against_random")
	for _, name := range strings.Split(*graphs, ",") {
		g, err := open(*root, name, *edges)
		if err != nil {
			return err
		}
		for _, k := range strings.Split(*parts, ",") {
			k, err := strconv.Atoi(k)
			if err != nil {
				return err
			}
			if err := measure(g, name, k, strings.Split(*width, ","), *repeat); err != nil {
				return err
			}
		}
	}
	return nil
}

func open(root, name string, edges int) (*graph.Graph, error) {
	switch name {
	case "communities":
		return draw(edges, edges/10/256, 0.8)
	case "power-law":
		return draw(edges, 1, 0)
	}
	return dataset.Read(filepath.Join(root, name), 0)
}

// draw returns a graph of a tenth as many nodes as edges and degrees of a power law of exponent 3 (Chung and Lu), in
// groups in which that share of the edges stays; IDs tell nothing.
func draw(edges, groups int, inside float64) (*graph.Graph, error) {
	n, key := edges/10, rng.New(1).FoldString("bench/reorder")
	name := key.FoldString("name").Perm(n)
	skewed := func(at uint64, n int) int { x := key.Float64(at); return int(x * x * float64(n)) }
	src, dst := make([]int32, edges), make([]int32, edges)
	for e := range uint64(edges) {
		u, v := skewed(3*e, n), skewed(3*e+1, n)
		if key.Float64(3*e+2) < inside {
			v = u%groups + groups*skewed(3*e+1, n/groups)
		}
		src[e], dst[e] = int32(name[u]), int32(name[v])
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	return &graph.Graph{Adj: adj, Split: make([]graph.Split, n), Labels: graph.Labels{Classes: 1, Class: make([]int32, n)}}, err
}

// random is the order that tells nothing.
func random(adj *graph.CSR) []int32 {
	order := make([]int32, adj.NumDst)
	for k, i := range rng.New(1).Perm(adj.NumDst) {
		order[k] = int32(i)
	}
	return order
}

func measure(g *graph.Graph, name string, k int, widths []string, repeat int) error {
	var owner []int32
	var err error
	if k == 1 {
		owner = make([]int32, g.N())
	} else if owner, err = (partition.Multilevel{}).Assign(g, k, rng.New(1)); err != nil {
		return err
	}
	plain, err := partition.Cut(&graph.Graph{Adj: g.Adj, Split: g.Split, Labels: g.Labels}, owner, k)
	if err != nil {
		return err
	}
	orders := []string{"random", "as it is", "degree", "rcm", "cluster"}
	ordered, took := make([][]*partition.Shard, len(orders)), make([]time.Duration, len(orders))
	for at, order := range orders {
		by := partition.Order(random)
		switch order {
		case "random":
		case "as it is":
			ordered[at] = plain
			continue
		default:
			if by, err = partition.ParseOrder(order); err != nil {
				return err
			}
		}
		start := clock()
		ordered[at] = partition.Reorder(plain, by)
		took[at] = clock() - start
	}
	for _, text := range widths {
		width, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		least := spmm(ordered, width, repeat)
		for at, order := range orders {
			fmt.Printf("%s %d %q %.3f %d %.3f %.2f\n", name, k, order, took[at].Seconds(), width, least[at].Seconds()*1e3, float64(least[at])/float64(least[0]))
		}
	}
	return nil
}

// spmm returns, for each order, the least time of one sum over all neighbours of all shards. The orders take turns, so that
// what else the machine does falls on all.
func spmm(ordered [][]*partition.Shard, width, repeat int) []time.Duration {
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
				start := clock()
				kernels.SpMM(a.RowPtr, a.Col, a.Weight, width, x.Data, width, y.Data, width, false)
				least[at] = min(least[at], clock()-start)
			}
		}
		for at, t := range least {
			sum[at] += t
		}
	}
	return sum
}
