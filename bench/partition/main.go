// Partition measures policies on the homogeneous graphs of shared/data and on generated ones: cut, volume, balance,
// seconds and memory, one line each. With -export it writes the graphs for bench/rivals/metis.py.
//
//	go run ./bench/partition -policy multilevel,restream:5,random,hdrf
//	go run ./bench/partition -rival "python bench/rivals/metis.py --repeat 1"
//	go run ./bench/partition -export /tmp/graphs
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/bench/rivals"
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
	policies := flag.String("policy", "multilevel,restream:5", "policies to measure, vertex cuts among them")
	parts := flag.String("k", "4,16", "numbers of parts")
	repeat := flag.Int("repeat", 3, "runs of which the fastest counts")
	edges := flag.Int("edges", 1_000_000, "undirected edges of a generated graph that is stored")
	objective := flag.String("objective", "volume", "what multilevel makes small: volume or cut")
	stored := flag.String("stored", "", "folder for a generated graph that is stored and partitioned in bounded memory, instead of the others")
	memory := flag.Int64("memory", 2<<30, "bytes of memory for that")
	rival := flag.String("rival", "", "command that measures a rival on each graph, in turn with the policies")
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
			if *rival != "" {
				if err := compare(*rival, name, g, k); err != nil {
					return err
				}
			}
			for _, policy := range strings.Split(*policies, ",") {
				if cut := partition.ParseVertexCut(policy); cut != nil {
					if err := measureEdges(g, name, cut, policy, k, *repeat); err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					continue
				}
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

// cost is the least of several runs, and by how much another, whose garbage is collected at once as far as that goes, raised the
// peak of memory: what a partitioner holds, and not what it has done with.
type cost struct {
	clock, processor time.Duration
	kB               int
}

func (c cost) String() string {
	return fmt.Sprintf("%.3f %.4f %.1f", c.clock.Seconds(), c.processor.Seconds(), float64(c.kB)/1024)
}

func costOf(repeat int, f func() error) (c cost, err error) {
	debug.FreeOSMemory()
	base, percent := rivals.Resident("VmRSS", true), debug.SetGCPercent(10)
	err = f()
	debug.SetGCPercent(percent)
	c.kB = int(rivals.Resident("VmHWM", false)-base) >> 10
	for k := range repeat {
		if err != nil {
			return c, err
		}
		start, busy := time.Now(), rivals.Processor()
		err = f()
		clock, busy := time.Since(start), rivals.Processor()-busy
		if k == 0 {
			c.clock, c.processor = clock, busy
		}
		c.clock, c.processor = min(c.clock, clock), min(c.processor, busy)
	}
	return c, err
}

func measure(g *graph.Graph, name string, p partition.Policy, policy string, k, repeat int) error {
	var owner []int32
	c, err := costOf(repeat, func() (err error) {
		owner, err = p.Assign(g, k, rng.New(1))
		return err
	})
	if err != nil {
		return err
	}
	shards, err := partition.Cut(&graph.Graph{Adj: g.Adj, Split: g.Split, Labels: g.Labels}, owner, k)
	if err != nil {
		return err
	}
	r := partition.Describe(shards, partition.Meta{}).Report()
	fmt.Println(name, k, policy, r.Cut/2, r.Halo, fmt.Sprintf("%.3f %.3f", r.NodeBalance, r.EdgeBalance), c)
	return nil
}

// measureEdges measures a vertex cut: no edge is cut, and the volume is what partial sums travel to their owners.
func measureEdges(g *graph.Graph, name string, cut partition.VertexCut, policy string, k, repeat int) error {
	var r partition.Replicas
	c, err := costOf(repeat, func() (err error) {
		r, err = partition.ReplicasOf(g, cut, k, rng.New(1))
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println(name, k, policy, 0, r.Replicas-r.Nodes, fmt.Sprintf("%.3f %.3f", r.ReplicaBalance, r.EdgeBalance), c)
	return nil
}

// compare has the rival measure the graph, which it reads from a folder of its own.
func compare(command, name string, g *graph.Graph, k int) (err error) {
	dir, err := os.MkdirTemp("", "graph")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := write(filepath.Join(dir, name), g); err != nil {
		return err
	}
	words := append(strings.Fields(command), "--only", name, "--k", strconv.Itoa(k), "--bare", dir)
	c := exec.Command(words[0], words[1:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
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
