// Package partition measures policies: cut, volume, balance, seconds and memory.
package partition

import (
	"context"
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

	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/partition/quality"
	"github.com/heddle-gnn/heddle/graph/partition/vertexcut"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels/measure"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "partition",
	Title: "Partition policies",
	Text: `Policies on public graphs and on drawn ones: edges cut, volume (rows of the halo), balance of
nodes and edges, the least of several runs by the wall and by the processor, and by how much a
run whose garbage is collected early raised the peak of memory. With -stored graphs are
partitioned from disk in bounded memory; with -rounds the peers partition a stored graph
together.`,
}

const (
	sets = "cora,citeseer,dblp-citation,coauthor-cs,amazon-photo,amazon-computers,facebook-pages,github-web-ml,nell," +
		"lastfm-asia,tolokers,actor,squirrel-filtered,chameleon-filtered,twitch"
	drawn = "power-law-1M,communities-1M"
)

// options are the flags.
type options struct {
	root, graphs, policies, parts, objective string
	stored, baseline, export, rounds         string
	repeat, edges                            int
	memory                                   int64
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var o options
	root := graphs.Root(f)
	f.StringVar(&o.graphs, "graph", sets+","+drawn, "graphs; power-law-20M is drawn, with 20 M undirected edges")
	f.StringVar(&o.policies, "policy", "multilevel,restream:5", "policies to measure, vertex cuts among them")
	f.StringVar(&o.parts, "k", "4,16", "numbers of parts")
	f.IntVar(&o.repeat, "repeat", 3, "runs of which the fastest counts")
	f.StringVar(&o.objective, "objective", "volume", "objective of multilevel: volume or cut")
	f.StringVar(&o.stored, "stored", "", "folder of stored graphs, for -graph power-law or communities")
	f.IntVar(&o.edges, "edges", 1_000_000, "undirected edges of a stored graph")
	f.Int64Var(&o.memory, "memory", 2<<30, "bytes of memory for a stored graph")
	f.StringVar(&o.rounds, "rounds", "", "exchanges a pass of peers that partition together")
	f.StringVar(&o.baseline, "baseline", "", "command that measures a baseline on each graph")
	f.StringVar(&o.export, "export", "", "folder into which graphs are written, unmeasured")
	return func(ctx context.Context, p *page.Page) error {
		o.root = *root
		switch {
		case o.stored != "":
			return o.stream(p)
		case o.rounds != "":
			return o.together(ctx, p)
		case o.export != "":
			return o.write()
		}
		return o.run(ctx, p)
	}
}

// write exports the graphs.
func (o options) write() error {
	for _, name := range strings.Split(o.graphs, ",") {
		g, err := graphs.Open(o.root, name)
		if err != nil {
			return err
		}
		if err := export(filepath.Join(o.export, name), g); err != nil {
			return err
		}
	}
	return nil
}

func (o options) run(ctx context.Context, p *page.Page) error {
	p.Table("graph %s", "k %d", "policy %s", "cut %d", "volume %d", "node balance %.3f", "edge balance %.3f",
		"seconds %.3f",
		"processor seconds %.4f", "memory, MB %.1f")
	for _, name := range strings.Split(o.graphs, ",") {
		g, err := graphs.Open(o.root, name)
		if err != nil {
			return err
		}
		for _, list := range strings.Split(o.parts, ",") {
			k, err := strconv.Atoi(list)
			if err != nil {
				return err
			}
			if o.baseline != "" {
				if err := o.compare(ctx, p, name, g, k); err != nil {
					return err
				}
			}
			for _, policy := range strings.Split(o.policies, ",") {
				if err := o.measure(p, g, name, policy, k); err != nil {
					return fmt.Errorf("%s, %s: %w", name, policy, err)
				}
			}
		}
	}
	return nil
}

// measure measures one policy.
func (o options) measure(p *page.Page, g *graph.Graph, name, policy string, k int) error {
	if cut := vertexcut.Parse(policy); cut != nil {
		return measureEdges(p, g, name, cut, policy, k, o.repeat)
	}
	by, err := partition.ParsePolicy(policy)
	if err != nil {
		return err
	}
	goal := partition.Goal{Vertices: 1.03}
	if o.objective == "cut" {
		goal.Objective = partition.EdgeCut
	}
	if policy == "multilevel" || strings.HasPrefix(policy, "restream") {
		by = partition.Bounded(by, goal)
	}
	return measureNodes(p, g, name, by, policy, k, o.repeat)
}

// cost is the least of several runs, and by how much another, whose garbage is collected at once as
// far as that goes, raised the peak of memory: what a partitioner holds, without its garbage.
type cost struct {
	measure.Cost
	megabytes float64
}

func costOf(repeat int, f func() error) (c cost, err error) {
	debug.FreeOSMemory()
	base, percent := measure.Resident("VmRSS", true), debug.SetGCPercent(10)
	err = f()
	debug.SetGCPercent(percent)
	c.megabytes = float64(measure.Resident("VmHWM", false)-base) / (1 << 20)
	for k := range repeat {
		if err != nil {
			return c, err
		}
		start := measure.Now()
		err = f()
		took := measure.Since(start)
		if k == 0 {
			c.Cost = took
		}
		c.Wall, c.Processor = min(c.Wall, took.Wall), min(c.Processor, took.Processor)
	}
	return c, err
}

// measureNodes measures a policy that assigns nodes.
func measureNodes(p *page.Page, g *graph.Graph, name string, by partition.Policy, policy string, k, repeat int) error {
	var owner []int32
	c, err := costOf(repeat, func() (err error) {
		owner, err = by.Assign(g, k, rng.New(1))
		return err
	})
	if err != nil {
		return err
	}
	shards, err := shard.Cut(&graph.Graph{Adj: g.Adj, Split: g.Split, Labels: g.Labels}, owner, k)
	if err != nil {
		return err
	}
	r := quality.Measure(shard.Describe(shards, shard.Meta{}))
	p.Row(name, k, policy, r.Cut/2, r.Halo, r.NodeBalance, r.EdgeBalance, c.Wall.Seconds(), c.Processor.Seconds(),
		c.megabytes)
	return nil
}

// measureEdges measures a vertex cut: no edge is cut, and the volume is the partial sums that
// travel to their owners.
func measureEdges(p *page.Page, g *graph.Graph, name string, cut vertexcut.Cut, policy string, k, repeat int) error {
	var r vertexcut.Replicas
	c, err := costOf(repeat, func() (err error) {
		r, err = vertexcut.Measure(partition.Memory{Graph: g}, cut, k, rng.New(1))
		return err
	})
	if err != nil {
		return err
	}
	p.Row(name, k, policy, 0, r.Replicas-r.Nodes, r.ReplicaBalance, r.EdgeBalance, c.Wall.Seconds(),
		c.Processor.Seconds(), c.megabytes)
	return nil
}

// compare has the baseline measure the graph, which it reads from a folder of its own; it prints
// cells like ours, separated by blanks.
func (o options) compare(ctx context.Context, p *page.Page, name string, g *graph.Graph, k int) (err error) {
	dir, err := os.MkdirTemp("", "graph")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := export(filepath.Join(dir, name), g); err != nil {
		return err
	}
	words := append(strings.Fields(o.baseline), "--only", name, "--k", strconv.Itoa(k), "--bare", dir)
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		p.Cells(strings.Fields(line)...)
	}
	return nil
}

// export stores the adjacency as two files of little-endian numbers: dir/ptr (int64) and dir/col
// (int32).
func export(dir string, g *graph.Graph) error {
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
