// Partition measures policies on the homogeneous graphs of shared/data and on generated ones: cut, volume, balance,
// seconds and memory, one line each. With -export it writes the graphs for bench/rivals/metis.py.
//
//	go run ./bench/partition -policy multilevel,restream:5,random
//	go run ./bench/partition -export /tmp/graphs
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
)

const (
	sets      = "cora,citeseer,dblp-citation,coauthor-cs,amazon-photo,amazon-computers,facebook-pages,github-web-ml,nell,lastfm-asia,tolokers,actor,squirrel-filtered,chameleon-filtered,twitch"
	generated = "power-law-1M,communities-1M"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "partition:", err)
		os.Exit(1)
	}
}

func run() error {
	root := flag.String("root", "../shared/data", "folder of the data sets")
	graphs := flag.String("graph", sets+","+generated, "graphs to partition; power-law-20M is generated, with 20 M undirected edges")
	policies := flag.String("policy", "multilevel,restream:5", "policies to measure")
	parts := flag.String("k", "4,16", "numbers of parts")
	repeat := flag.Int("repeat", 3, "runs of which the fastest counts")
	edges := flag.Int("edges", 1_000_000, "undirected edges of a generated graph that is stored")
	objective := flag.String("objective", "volume", "what multilevel makes small: volume or cut")
	stored := flag.String("stored", "", "folder for a generated graph that is stored and partitioned in bounded memory, instead of the others")
	memory := flag.Int64("memory", 2<<30, "bytes of memory for that")
	export := flag.String("export", "", "write the graphs into this folder, and measure nothing")
	flag.Parse()
	goal := partition.Goal{Vertices: 1.03}
	if *objective == "cut" {
		goal.Objective = partition.EdgeCut
	}
	if *stored != "" {
		return stream(*stored, *graphs, *policies, *parts, *edges, *memory)
	}
	if *export == "" {
		fmt.Println("graph k policy cut volume balance edge_balance seconds cpu_seconds extra_MB")
	}
	for _, name := range strings.Split(*graphs, ",") {
		g, err := open(*root, name)
		if err != nil {
			return err
		}
		if *export != "" {
			if err := write(filepath.Join(*export, name), g); err != nil {
				return err
			}
			continue
		}
		for _, k := range strings.Split(*parts, ",") {
			k, err := strconv.Atoi(k)
			if err != nil {
				return err
			}
			for _, policy := range strings.Split(*policies, ",") {
				p, err := partition.ParsePolicy(policy)
				if err != nil {
					return err
				}
				if policy == "multilevel" || strings.HasPrefix(policy, "restream") {
					p = partition.Bounded(p, goal)
				}
				if err := measure(g, name, p, policy, k, *repeat); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	return nil
}

func measure(g *graph.Graph, name string, p partition.Policy, policy string, k, repeat int) error {
	debug.FreeOSMemory()
	base := resident("VmRSS", true)
	best, cpu := time.Duration(1<<62), time.Duration(1<<62)
	var owner []int32
	var peak int
	for range repeat {
		var err error
		start, busy := time.Now(), processor()
		owner, err = p.Assign(g, k, rng.New(1))
		if err != nil {
			return err
		}
		cpu = min(cpu, processor()-busy)
		if best = min(best, time.Since(start)); peak == 0 {
			peak = resident("VmHWM", false)
		}
	}
	shards, err := partition.Cut(&graph.Graph{Adj: g.Adj, Split: g.Split, Labels: g.Labels}, owner, k)
	if err != nil {
		return err
	}
	r := partition.Describe(shards, partition.Meta{}).Report()
	fmt.Printf("%s %d %s %d %d %.3f %.3f %.3f %.3f %.1f\n", name, k, policy, r.Cut/2, r.Halo, r.NodeBalance, r.EdgeBalance, best.Seconds(), cpu.Seconds(), float64(peak-base)/1024)
	return nil
}

// resident returns a line of /proc/self/status in kB, and with reset makes the peak what is there now; 0 elsewhere than
// on Linux.
func resident(line string, reset bool) (kb int) {
	if reset {
		os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	}
	text, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := strings.Cut(string(text), line+":"); ok {
		fmt.Sscan(rest, &kb)
	}
	return kb
}

// processor returns the time that this process has run on any processor; 0 elsewhere than on Linux.
func processor() (sum time.Duration) {
	threads, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		var ns int64
		fmt.Sscan(string(text), &ns)
		sum += time.Duration(ns)
	}
	return sum
}

func open(root, name string) (*graph.Graph, error) {
	if kind, size, ok := strings.Cut(name, "-"); ok && kind == "communities" {
		return draw(size, groups, inside)
	}
	if size, ok := strings.CutPrefix(name, "power-law-"); ok {
		return draw(size, 1, 0)
	}
	return dataset.Read(filepath.Join(root, name), 0)
}

const (
	groups = 256 // of communities
	inside = 0.8 // share of their edges
)

// list draws a graph of a tenth as many nodes as edges and degrees of a power law of exponent 3 (Chung and Lu), in
// groups in which that share of the edges stays; IDs tell nothing.
func list(edges, groups int, inside float64) (n int, batches partition.Edges) {
	n = edges / 10
	key := rng.New(1).FoldString("bench/partition")
	name := key.FoldString("name").Perm(n)
	skewed := func(at uint64, n int) int { x := key.Float64(at); return int(x * x * float64(n)) }
	return n, func(yield func(src, dst []int32) error) error {
		var src, dst []int32
		for e := range uint64(edges) {
			u, v := skewed(3*e, n), 0
			if v = skewed(3*e+1, n); key.Float64(3*e+2) < inside {
				v = u%groups + groups*skewed(3*e+1, n/groups)
			}
			if src, dst = append(src, name[u]), append(dst, name[v]); len(src) == 1<<16 || e == uint64(edges)-1 {
				if err := yield(src, dst); err != nil {
					return err
				}
				src, dst = src[:0], dst[:0]
			}
		}
		return nil
	}
}

// draw returns such a graph in memory, of that many million edges, as 20M.
func draw(size string, groups int, inside float64) (*graph.Graph, error) {
	millions, err := strconv.Atoi(strings.TrimSuffix(size, "M"))
	if err != nil || millions < 1 || !strings.HasSuffix(size, "M") {
		return nil, fmt.Errorf("a generated graph of %q edges, want millions, as 20M", size)
	}
	n, batches := list(millions*1_000_000, groups, inside)
	var src, dst []int32
	if err := batches(func(u, v []int32) error {
		src, dst = append(src, u...), append(dst, v...)
		return nil
	}); err != nil {
		return nil, err
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	return &graph.Graph{Name: "drawn", Adj: adj, Split: make([]graph.Split, n), Labels: graph.Labels{Classes: 1, Class: make([]int32, n)}}, err
}

// write stores the adjacency as two files of little-endian numbers: dir/ptr (int64) and dir/col (int32).
func write(dir string, g *graph.Graph) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, values := range map[string]any{"ptr": g.Adj.RowPtr, "col": g.Adj.Col} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := binary.Write(f, binary.LittleEndian, values); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
