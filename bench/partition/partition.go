// Package partition measures policies: cut, volume, balance, seconds and memory.
package partition

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
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
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/rng"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "partition",
	Title: "Partition policies",
	Text: `Policies on public graphs and on drawn ones: edges cut, volume (rows of the halo), balance of
nodes and edges (the largest part over the mean), the least processor time of several runs, and
by how much a run whose garbage is collected early raised the peak of memory. With -work
parts of even work are compared with parts of as many nodes. With -stored graphs are partitioned from disk in bounded memory.`,
}

const (
	sets = "cora,citeseer,dblp-citation,coauthor-cs,amazon-photo,amazon-computers,facebook-pages,github-web-ml,nell," +
		"lastfm-asia,tolokers,actor,squirrel-filtered,chameleon-filtered,twitch"
	drawn = "power-law-1M,communities-1M"
)

// options are the flags.
type options struct {
	root, graphs, policies, parts, objective string
	stored, baseline, export                 string
	program                                  string
	repeat, edges                            int
	memory                                   int64
	even                                     bool
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var o options
	root := graphs.Root(f)
	f.StringVar(&o.graphs, "graph", sets+","+drawn, "graphs; power-law-20M is drawn, with 20 M undirected edges")
	f.StringVar(&o.policies, "policy", "multilevel,restream:5", "policies to measure")
	f.StringVar(&o.parts, "k", "4,16", "numbers of parts")
	f.IntVar(&o.repeat, "repeat", 3, "runs of which the fastest counts")
	f.StringVar(&o.objective, "objective", "volume", "objective of multilevel: volume or cut")
	f.StringVar(&o.stored, "stored", "", "folder of stored graphs, for -graph power-law or communities")
	f.IntVar(&o.edges, "edges", 1_000_000, "undirected edges of a stored graph")
	f.Int64Var(&o.memory, "memory", 2<<30, "bytes of memory for a stored graph")
	f.BoolVar(&o.even, "work", false, "parts of even work beside parts of as many nodes")
	f.StringVar(&o.program, "peer", "", "program heddle, to check the model of -work by wall time")
	f.StringVar(&o.baseline, "baseline", "", "command that measures a baseline on each graph")
	f.StringVar(&o.export, "export", "", "folder into which graphs are written, unmeasured")
	return func(ctx context.Context, p *page.Page) error {
		o.root = *root
		switch {
		case o.stored != "":
			return o.stream(p)
		case o.program != "":
			return o.wall(ctx, p)
		case o.even:
			return o.work(p)
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

// result is what one policy did to one graph.
type result struct {
	policy                   string
	cut, volume              int64
	nodeBalance, edgeBalance float64
	processor, peak          float64 // seconds, MB
}

// each calls f for each graph and number of parts.
func (o options) each(f func(name string, g *graph.Graph, k int) error) error {
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
			if err := f(name, g, k); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o options) run(ctx context.Context, p *page.Page) error {
	p.Table("graph %s", "k %d", "policy %s", "cut %d", "volume %d", "node balance %.3f", "edge balance %.3f",
		"processor seconds %.3f", "memory, MB %.1f")
	var all [][]result // of one graph and number of parts
	err := o.each(func(name string, g *graph.Graph, k int) (err error) {
		var results []result
		if o.baseline != "" {
			if results, err = o.measureBaseline(ctx, name, g, k); err != nil {
				return err
			}
		}
		for _, policy := range strings.Split(o.policies, ",") {
			r, err := o.measure(g, policy, k)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, policy, err)
			}
			results = append(results, r)
		}
		for _, r := range results {
			p.Row(name, k, r.policy, r.cut, r.volume, r.nodeBalance, r.edgeBalance, r.processor, r.peak)
		}
		all = append(all, results)
		return nil
	})
	if err != nil {
		return err
	}
	if o.baseline != "" {
		relate(p, all)
	}
	return nil
}

// relate prints the geometric means of each policy's figures relative to those of the first one,
// where neither is 0.
func relate(p *page.Page, all [][]result) {
	p.Text("Geometric means relative to %s, over all rows in which neither figure is 0:", all[0][0].policy)
	p.Table("policy %s", "cut %s", "volume %s", "processor seconds %s", "memory %s")
	for k := range all[0] {
		mean := func(of func(result) float64) string {
			sum, n := 0.0, 0.0
			for _, results := range all {
				if own, base := of(results[k]), of(results[0]); own > 0 && base > 0 {
					sum, n = sum+math.Log(own/base), n+1
				}
			}
			if n == 0 {
				return "–"
			}
			return fmt.Sprintf("%.2f", math.Exp(sum/n))
		}
		p.Row(all[0][k].policy, mean(func(r result) float64 { return float64(r.cut) }),
			mean(func(r result) float64 { return float64(r.volume) }),
			mean(func(r result) float64 { return r.processor }), mean(func(r result) float64 { return r.peak }))
	}
}

// policy returns the policy of that name. What balances keeps the nodes even, as METIS does.
func (o options) policy(name string) (partition.Policy, error) {
	by, err := partition.ParsePolicy(name)
	if err != nil || name != "multilevel" && !strings.HasPrefix(name, "restream") {
		return by, err
	}
	goal := partition.Goal{Vertices: 1.03}
	if o.objective == "cut" {
		goal.Objective = partition.EdgeCut
	}
	return partition.Bounded(by, goal), nil
}

// measure measures one policy.
func (o options) measure(g *graph.Graph, policy string, k int) (result, error) {
	by, err := o.policy(policy)
	if err != nil {
		return result{}, err
	}
	return measureNodes(g, by, policy, k, o.repeat)
}

// cost returns the least processor seconds of several runs of f, and by how many MB another run, whose garbage is
// collected at once as far as that goes, raised the peak of memory: what the memory of a partitioner, without its
// garbage.
func cost(repeat int, f func() error) (seconds, peak float64, err error) {
	debug.FreeOSMemory()
	base, percent := measure.Resident("VmRSS", true), debug.SetGCPercent(10)
	err = f()
	debug.SetGCPercent(percent)
	peak = float64(measure.Resident("VmHWM", false)-base) / (1 << 20)
	seconds = math.Inf(1)
	for range repeat {
		if err != nil {
			return 0, 0, err
		}
		start := measure.Now()
		err = f()
		seconds = min(seconds, measure.Since(start).Processor.Seconds())
	}
	return seconds, peak, err
}

// measureNodes measures a policy that assigns nodes.
func measureNodes(g *graph.Graph, by partition.Policy, policy string, k, repeat int) (result, error) {
	var owner []int32
	seconds, peak, err := cost(repeat, func() (err error) {
		owner, err = by.Assign(g, k, rng.New(1))
		return err
	})
	if err != nil {
		return result{}, err
	}
	shards, err := shard.Cut(&graph.Graph{Adj: g.Adj, Split: g.Split, Labels: g.Labels}, owner, k)
	if err != nil {
		return result{}, err
	}
	r := partition.Measure(shard.Describe(shards, shard.Meta{}))
	return result{policy, int64(r.Cut / 2), int64(r.Halo), r.NodeBalance, r.EdgeBalance, seconds, peak}, nil
}

// measureBaseline has the baseline measure the graph, which it reads from a separate folder; it prints a line for each
// of its policies, with figures separated by blanks.
func (o options) measureBaseline(ctx context.Context, name string, g *graph.Graph, k int) (all []result, err error) {
	dir, err := os.MkdirTemp("", "graph")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := export(filepath.Join(dir, name), g); err != nil {
		return nil, err
	}
	words := append(strings.Fields(o.baseline), "--only", name, "--k", strconv.Itoa(k), "--bare", dir)
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		var r result
		var graph, parts string
		if _, err := fmt.Sscan(line, &graph, &parts, &r.policy, &r.cut, &r.volume, &r.nodeBalance, &r.edgeBalance,
			&r.processor, &r.peak); err != nil {
			return nil, fmt.Errorf("the baseline printed %q: %w", line, err)
		}
		all = append(all, r)
	}
	return all, nil
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
