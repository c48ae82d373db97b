package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/ingest"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/partition/external"
	"github.com/heddle-gnn/heddle/graph/partition/quality"
	"github.com/heddle-gnn/heddle/graph/partition/vertexcut"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disk"
)

// cutting is what the flags of peer partition say.
type cutting struct {
	Source
	parts                int    // heddle.Auto: 4, or as many as sites
	by                   string // policy
	seed                 uint64
	out, page            string
	caps                 map[string]string
	capacity             []float64
	objective, memory    string
	reorder              string
	dry, quiet, directed bool
	policy               partition.Policy
	vertexCut            vertexcut.Cut // or this one
	goal                 partition.Goal
	order                partition.Order // of the rows; nil: as it is
	bytes                int64           // of memory; 0: any
	manifest             *shard.Manifest
	phases               []external.PhaseTimes
	seat                 seat // with other peers, where it has a plan
	rounds               int
}

func newPartition() *cobra.Command {
	s := cutting{parts: heddle.Auto}
	c := &cobra.Command{
		Use:   "partition --data D --parts K --out DIR",
		Short: "Cut a data set into a part for each peer",
		Long: `Cut a data set into a part for each peer, and measure the quality of the partition.

Policies are random, contiguous, contiguous-edges, hash, by-column, ldg, fennel, fec, restream:N and multilevel; with --dry
also the vertex cuts dbh, hvc, cvc, gvc, svc, hdrf and 2ps-l.

A bound limits what a part holds relative to its fair share: of vertices, edges, train (training nodes), bytes (of features)
and relations (edges of each), as --cap vertices=1.03,train=1.1. A partition that breaks a bound is refused. --capacity sets
the fair shares of unequal machines.

With --plan the peers of a plan partition a stored graph together: each reads its slice and writes its own part. The more
often they exchange what they have assigned (--rounds), the fewer edges are cut.`,
		Example: `  peer partition --data data/cora --parts 4 --policy random --out parts
  peer partition --data data/twitch --policy by-column --out parts
  peer partition --data data/cora --parts 4 --policy multilevel --cap train=1.05 --capacity 2,1,1,1 --out parts
  peer partition --data web.u32 --parts 16 --policy restream:5 --memory 2GiB --out parts --report parts.html
  peer partition --data web.graph --plan plan.yaml --policy restream:2 --out part`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.read(); err != nil {
				return badInput{err}
			}
			w := newWatch(c.ErrOrStderr(), s.quiet)
			defer w.end()
			if s.vertexCut != nil {
				r, err := s.weigh(c.Context(), w)
				if err != nil {
					return err
				}
				w.end()
				return s.describeReplicas(c.OutOrStdout(), r)
			}
			run := s.inMemory
			switch {
			case s.seat.plan != "":
				run = func(c *cobra.Command, w *watch) error { return s.together(c.Context(), w) }
			case s.stored():
				run = s.fromDisk
			}
			if err := run(c, w); err != nil {
				return err
			}
			w.end()
			describe(c.OutOrStdout(), s.out, s.manifest)
			timings(c.OutOrStdout(), s.phases)
			return s.write()
		},
	}
	f := c.Flags()
	f.StringVar(&s.Data, "data", "", "data set: a folder, or a .npz, .graph, .u32 or .u64 file")
	f.IntVar(&s.Split, "split", 0, "split of the data set")
	f.IntVar(&s.parts, "parts", s.parts, "number of parts (default 4; the sites for by-column)")
	f.Lookup("parts").DefValue = "0"
	f.StringVar(&s.by, "policy", "random", "partitioning policy")
	f.Uint64Var(&s.seed, "seed", 1, "random seed of the policy")
	f.StringVarP(&s.out, "out", "o", "", "directory to write; must be new or empty")
	f.StringToStringVar(&s.caps, "cap", nil, "bounds of parts over fair shares, as vertices=1.03")
	f.Float64SliceVar(&s.capacity, "capacity", nil, "relative sizes of the parts, as 2,1,1; default: equal")
	f.StringVar(&s.objective, "objective", "volume", "objective of multilevel: volume or cut")
	f.StringVar(&s.memory, "memory", "", "memory limit for a stored graph, as 2GiB; empty: none")
	f.BoolVar(&s.directed, "directed", false, "directed edges in .u32 and .u64 files")
	f.StringVar(&s.reorder, "reorder", "", "order of rows: cluster, rcm or degree; default: by ID")
	f.StringVar(&s.page, "report", "", "HTML page of the partition's quality")
	f.BoolVar(&s.dry, "dry", false, "quality report only, without writing parts")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "no progress display")
	s.bindTogether(f)
	required(c, "data")
	return c
}

// read checks the flags.
func (s *cutting) read() (err error) {
	if s.parts < 1 && s.parts != heddle.Auto {
		return fmt.Errorf("parts: %d, want at least 1", s.parts)
	}
	if s.out == "" && !s.dry {
		return errors.New("out: want a directory to write, or --dry")
	}
	if s.seat.plan != "" {
		if err := s.checkTogether(); err != nil {
			return err
		}
	}
	if s.goal, err = goal(s.caps, s.capacity, s.objective); err != nil {
		return err
	}
	if s.memory != "" {
		if s.bytes, err = bytesOf(s.memory); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
		if !s.stored() {
			return fmt.Errorf("memory: %s is read into memory as a whole; stored graphs (.graph, .u32, .u64) are not", s.Data)
		}
	}
	if s.reorder != "" {
		if s.order, err = partition.ParseOrder(s.reorder); err != nil {
			return fmt.Errorf("reorder: %w", err)
		}
		if s.stored() {
			return fmt.Errorf("reorder: %s is not in memory as a whole; its parts are put into order by peer reorder", s.Data)
		}
	}
	bounded := len(s.caps) > 0 || s.capacity != nil || s.objective != "volume"
	if s.dry {
		if s.vertexCut = vertexcut.Parse(s.by); s.vertexCut != nil {
			if bounded || s.order != nil {
				return fmt.Errorf("policy %q: a vertex cut takes no bounds and no order", s.by)
			}
			if s.stored() && filepath.Ext(s.Data) != storedSuffix {
				return fmt.Errorf("dry: %s is a list of edges: store it first, by peer import --edges %s --out NAME.graph", s.Data, s.Data)
			}
			return nil
		}
		if s.stored() {
			return errors.New("dry: stored graphs are partitioned in files: want --out")
		}
	}
	if s.policy, err = parseEdgeCut(s.by); err != nil {
		return err
	}
	if bounded {
		s.policy = partition.Bounded(s.policy, s.goal)
	}
	return nil
}

// goal returns what --cap, --capacity and --objective say.
func goal(caps map[string]string, capacity []float64, objective string) (g partition.Goal, err error) {
	bounds := map[string]*float64{"vertices": &g.Vertices, "edges": &g.Edges, "train": &g.Train, "bytes": &g.Bytes, "relations": &g.Relations}
	for name, text := range caps {
		bound, ok := bounds[name]
		if !ok {
			return g, fmt.Errorf("cap: %q, want vertices, edges, train, bytes or relations", name)
		}
		if *bound, err = strconv.ParseFloat(text, 64); err != nil || !(*bound >= 1) {
			return g, fmt.Errorf("cap: %s=%s, want a number of 1 or more, as %s=1.05", name, text, name)
		}
	}
	if g.Vertices == 0 { // what policies that balance do unasked
		g.Vertices = 1.03
	}
	g.Capacity = capacity
	switch objective {
	case "volume":
	case "cut":
		g.Objective = partition.EdgeCut
	default:
		return g, fmt.Errorf("objective: %q, want volume or cut", objective)
	}
	return g, nil
}

// bytesOf reads a size as 2GiB, 500 MB or 1000000.
func bytesOf(text string) (int64, error) {
	units := []struct {
		name string
		size float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"", 1}}
	for _, u := range units {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || !(x >= 1 && x*u.size < 1<<62) {
				break
			}
			return int64(x * u.size), nil
		}
	}
	return 0, fmt.Errorf("%q, want a size as 2GiB or 500MB", text)
}

// stored reports whether the data is a graph that need not be in memory.
func (s *cutting) stored() bool {
	return slices.Contains([]string{".graph", ".u32", ".u64"}, filepath.Ext(s.Data))
}

func (s *cutting) meta(sites []string) shard.Meta {
	policy := s.by
	if s.order != nil {
		policy += ", rows by " + s.reorder
	}
	return shard.Meta{Policy: policy, Seed: s.seed, Sites: sitesOf(s.by, sites)}
}

// inMemory partitions a data set that is read as a whole.
func (s *cutting) inMemory(*cobra.Command, *watch) error {
	began := time.Now()
	took := func(phase string) {
		s.phases, began = append(s.phases, external.PhaseTimes{Phase: phase, Seconds: time.Since(began).Seconds()}), time.Now()
	}
	g, err := readData(s.Data, s.Split)
	if err != nil {
		return err
	}
	took("read")
	shards := []*shard.Shard{}
	if n := s.count(); n == 1 {
		shards = append(shards, shard.Whole(g))
	} else if shards, err = partition.Partition(g, s.policy, n, s.seed); err != nil {
		return badInput{fmt.Errorf("%s: %w", g.Name, err)}
	}
	if s.order != nil {
		shards = shard.Reorder(shards, s.order)
	}
	took("partition")
	if s.dry {
		s.out, s.manifest = s.Data, shard.Describe(shards, s.meta(g.Sites))
		return nil
	}
	if s.manifest, err = shard.WriteDir(s.out, shards, s.meta(g.Sites)); err != nil {
		return badInput{err}
	}
	took("write")
	return nil
}

// fromDisk partitions a stored graph; a list of edges is stored first, beside the parts.
func (s *cutting) fromDisk(c *cobra.Command, w *watch) (err error) {
	if s.bytes > 0 {
		debug.SetMemoryLimit(s.bytes * 3 / 4)
	}
	path := s.Data
	if bits := map[string]int{".u32": 32, ".u64": 64}[filepath.Ext(path)]; bits > 0 {
		path, err = s.ingest(c.Context(), w, bits)
		if c.Context().Err() != nil {
			return stopped(err)
		}
		if err != nil {
			return badInput{err}
		}
	}
	g, err := external.OpenGraph(path)
	if err != nil {
		return badInput{err}
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	sites, err := g.Sites()
	if err != nil {
		return badInput{err}
	}
	p := &partitioning{watch: w, ctx: c.Context()}
	s.manifest, s.phases, err = g.Write(s.out, external.Job{Policy: s.policy, Parts: s.count(), Memory: s.bytes,
		Meta: s.meta(sites), Watch: p.show})
	if c.Context().Err() != nil {
		return stopped(err)
	}
	if err != nil {
		return badInput{err}
	}
	return nil
}

// ingest stores a list of edges as OUT.graph, unless it is there from an earlier run and newer than the list.
func (s *cutting) ingest(ctx context.Context, w *watch, bits int) (path string, err error) {
	path = filepath.Clean(s.out) + ".graph"
	list, err := os.Stat(s.Data)
	if err != nil {
		return "", err
	}
	if stored, err := os.Stat(path); err == nil && stored.ModTime().After(list.ModTime()) {
		w.log.Info("stored graph is there already: taken as it is", "file", path)
		return path, nil
	}
	edges, n, err := ingest.BinaryEdges(s.Data, bits)
	if err != nil {
		return "", err
	}
	w.log.Info("storing the edges", "file", path, "nodes", n)
	name := strings.TrimSuffix(filepath.Base(s.Data), filepath.Ext(s.Data))
	return path, ingest.WriteEdges(path, name, n, until(ctx, edges), graph.Build{Directed: s.directed}, s.bytes/4)
}

// write writes the page, if one is asked for.
func (s *cutting) write() error {
	if s.page == "" {
		return nil
	}
	return disk.WriteStream(disk.OS{}, s.page, func(w io.Writer) error { return report.WritePartition(w, s.manifest, s.phases, peakMemory()) })
}

// count is the number of parts; 0: as many as sites.
func (s *cutting) count() int {
	switch {
	case s.parts != heddle.Auto:
		return s.parts
	case s.by == "by-column":
		return 0
	}
	return 4
}

// weigh finds out what a vertex cut would be worth.
func (s *cutting) weigh(ctx context.Context, w *watch) (r vertexcut.Replicas, err error) {
	parts := s.count()
	if !s.stored() {
		g, err := readData(s.Data, s.Split)
		if err != nil {
			return r, err
		}
		if r, err = vertexcut.Measure(partition.Memory{Graph: g}, s.vertexCut, parts, partition.Key(s.seed)); err != nil {
			return r, badInput{err}
		}
		return r, nil
	}
	if s.bytes > 0 {
		debug.SetMemoryLimit(s.bytes * 3 / 4)
	}
	g, err := external.OpenGraph(s.Data)
	if err != nil {
		return r, badInput{err}
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	p := &partitioning{watch: w, ctx: ctx}
	if r, err = g.Replicas(s.vertexCut, external.Job{Parts: parts, Memory: s.bytes, Meta: s.meta(nil), Watch: p.show}); err != nil && ctx.Err() == nil {
		return r, badInput{err}
	}
	return r, err
}

// describeReplicas prints what a vertex cut would be worth.
func (s *cutting) describeReplicas(w io.Writer, r vertexcut.Replicas) error {
	fmt.Fprintf(w, "%s in %d parts by %s, seed %d: a vertex cut, which no trainer takes\n", s.Data, r.Parts, s.by, s.seed)
	fmt.Fprintf(w, "  %d nodes, %d edges; replication factor %.2f\n", r.Nodes, r.Edges/2, r.Replication)
	fmt.Fprintf(w, "  largest part over the mean: edges %.2f, replicas %.2f\n", r.EdgeBalance, r.ReplicaBalance)
	_, err := fmt.Fprintf(w, "  an exchange: %d partial sums to the owners, and as many rows back\n", r.Replicas-r.Nodes)
	return err
}

func sitesOf(policy string, sites []string) []string {
	if policy != "by-column" {
		return nil
	}
	return sites
}

// describe prints what a partition is like.
func describe(w io.Writer, dir string, m *shard.Manifest) {
	r := quality.Measure(m)
	fmt.Fprintf(w, "%s: %s in %d parts by %s, seed %d\n", dir, m.Name, r.Parts, m.Policy, m.Seed)
	fmt.Fprintf(w, "  %d nodes, %d edges, of which %.1f %% are cut; replication factor %.2f\n", r.Nodes, r.Edges/2, 100*r.CutShare, r.Replication)
	fmt.Fprintf(w, "  largest part over the mean: nodes %.2f, edges %.2f, training nodes %.2f, bytes of features %.2f, halo %.2f\n", r.NodeBalance, r.EdgeBalance, r.TrainBalance, r.ByteBalance, r.HaloBalance)
	row := r.Halo * 4 * report.Width
	fmt.Fprintf(w, "  an exchange is %d rows; of %d columns layer by layer %s a layer, once; full-batch %s a layer and epoch\n", r.Halo, report.Width, report.Bytes(row), report.Bytes(2*row))
	if p, q, most := r.Widest(); most > 0 {
		fmt.Fprintf(w, "  most between two parts: %d rows from part-%d to part-%d\n", most, p, q)
	}
	for i, p := range m.Parts {
		name := ""
		if i < len(m.Sites) {
			name = " " + m.Sites[i]
		}
		halo := 0
		for _, n := range p.Halo {
			halo += n
		}
		fmt.Fprintf(w, "  part-%d%s: %d nodes (%d train, %d val, %d test), %d halo rows\n", i, name, p.Owned, p.Train, p.Val, p.Test, halo)
	}
}

// timings prints how long the phases took.
func timings(w io.Writer, phases []external.PhaseTimes) {
	if len(phases) == 0 {
		return
	}
	for _, t := range phases {
		rate := ""
		if t.Edges > 0 {
			rate = fmt.Sprintf(", %.1f M edges/s", float64(t.Edges)/1e6/t.Seconds)
		}
		fmt.Fprintf(w, "  %s: %.1f s%s\n", t.Phase, t.Seconds, rate)
	}
	if peak := peakMemory(); peak > 0 {
		fmt.Fprintf(w, "  peak memory %s\n", report.Bytes(peak))
	}
}
