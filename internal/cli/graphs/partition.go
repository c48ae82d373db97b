package graphs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
	"github.com/heddle-gnn/heddle/plan"
)

// cutting is a run of heddle partition.
type cutting struct {
	data              string
	split             int
	parts             int    // plan.AutoPeers: 4, or as many as sites
	by                string // policy
	seed              uint64
	out, page         string
	caps              map[string]string
	capacity          []float64
	objective, memory string
	dry, quiet        bool
	clusters          bool // the rows are in cluster order, else by ID

	// What the flags mean.
	policy partition.Policy
	goal   partition.Goal
	bytes  int64 // of memory (0 = no limit)

	manifest *shard.Manifest
	phases   []external.PhaseTimes
}

func newPartition() *cobra.Command {
	s := cutting{parts: plan.AutoPeers}
	c := &cobra.Command{
		Use:   "partition --data D --parts K --out DIR",
		Short: "Cut a data set into a part for each peer",
		Long: `Cut a data set into a part for each peer, and measure the quality of the partition.

Policies are random, contiguous, by-column, fennel, restream:N and multilevel.

A bound limits what a part has relative to its fair share: of work (the processor time of a layer: a node is 16
edges; 1.03 unless another bound is given), vertices, edges, train (training nodes), bytes (of features), relations
(edges of each) and types (nodes of each), as --cap work=1.03,train=1.1. A partition that breaks a bound is refused.
--capacity sets the fair shares of unequal machines.`,
		Example: `  heddle partition --data data/cora --parts 4 --policy random --out parts
  heddle partition --data data/twitch --policy by-column --out parts
  heddle partition --data data/cora --parts 4 --policy multilevel --cap train=1.05 --capacity 2,1,1,1 --out parts
  heddle partition --data web.graph --parts 16 --policy restream:5 --memory 2GiB --out parts --report parts.html`,
		RunE: func(c *cobra.Command, _ []string) error {
			w := cli.NewWatch(c.ErrOrStderr(), s.quiet)
			defer w.End()
			return s.cutGraph(c.Context(), w, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&s.data, "data", "", "data set, a directory, .npz or .graph file")
	cli.Reads(f, "data")
	f.IntVar(&s.split, "split", 0, "split of the data set")
	f.IntVar(&s.parts, "parts", s.parts, "number of parts (default: 4, or the sites with by-column)")
	f.Lookup("parts").DefValue = "0"
	f.StringVar(&s.by, "policy", "random", "partitioning policy")
	f.Uint64Var(&s.seed, "seed", 1, "random seed of the policy")
	f.StringVarP(&s.out, "out", "o", "", "new or empty directory to write to")
	f.StringToStringVar(&s.caps, "cap", nil, "bounds of parts over fair shares, as work=1.03")
	f.Float64SliceVar(&s.capacity, "capacity", nil, "relative sizes of the parts, as 2,1,1 (default: equal)")
	f.StringVar(&s.objective, "objective", "volume", "what multilevel minimizes (volume, cut)")
	f.StringVar(&s.memory, "memory", "", "memory limit for a stored graph, as 2GiB")
	f.BoolVar(&s.clusters, "cluster-order", false, "order rows by neighborhood instead of by ID")
	f.StringVar(&s.page, "report", "", "HTML page of the partition's quality")
	f.BoolVar(&s.dry, "dry", false, "only report the quality, write no parts")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "no progress display")
	cli.Required(c, "data")
	cli.ShortHelp(c, "data", "parts", "policy", "seed", "cap", "capacity", "memory", "report", "dry", "out")
	return c
}

func (s *cutting) cutGraph(ctx context.Context, w *cli.Watch, stdout io.Writer) (err error) {
	if err := s.parseFlags(); err != nil {
		return cli.Invalid(err)
	}
	if s.stored() {
		err = s.fromDisk(ctx, w)
	} else {
		err = s.inMemory()
	}
	if err != nil {
		return err
	}
	w.End()
	describe(stdout, s.out, s.manifest)
	timings(stdout, s.phases)
	if s.page == "" {
		return nil
	}
	return cli.WriteFile(stdout, s.page,
		func(w io.Writer) error { return report.WritePartition(w, s.manifest, s.phases, cli.PeakMemory()) })
}

// parseFlags parses the flags and checks that they fit together.
func (s *cutting) parseFlags() (err error) {
	if s.parts < 1 && s.parts != plan.AutoPeers {
		return fmt.Errorf("parts must be at least 1 (got %d)", s.parts)
	}
	if s.out == "" && !s.dry {
		return errors.New("give a directory to write with --out, or --dry")
	}
	if s.goal, err = goal(s.caps, s.capacity, s.objective); err != nil {
		return err
	}
	if s.memory != "" {
		if s.bytes, err = bytesOf(s.memory); err != nil {
			return err
		}
		if !s.stored() {
			return fmt.Errorf("--memory applies only to stored graphs (.graph): %s is read into memory", s.data)
		}
	}
	if s.clusters && s.stored() {
		return fmt.Errorf("--cluster-order applies only to graphs that are read into memory (got %s)", s.data)
	}
	if s.dry && s.stored() {
		return errors.New("--dry does not apply to stored graphs, which are partitioned in files: give --out")
	}
	bounded := len(s.caps) > 0 || s.capacity != nil || s.objective != "volume"
	if s.policy, err = partition.ParsePolicy(s.by); err == nil && bounded {
		s.policy = partition.Bounded(s.policy, s.goal)
	}
	return err
}

// goal parses --cap, --capacity and --objective.
func goal(caps map[string]string, capacity []float64, objective string) (g partition.Goal, err error) {
	bounds := map[string]*float64{"vertices": &g.Vertices, "edges": &g.Edges, "train": &g.Train, "bytes": &g.Bytes,
		"work": &g.Work, "relations": &g.Relations, "types": &g.Types}
	for name, text := range caps {
		bound, ok := bounds[name]
		if !ok {
			return g, fmt.Errorf("a bound of --cap must be of work, vertices, edges, train, bytes, relations or "+
				"types (got %q)", name)
		}
		if *bound, err = strconv.ParseFloat(text, 64); err != nil || !(*bound >= 1) {
			return g, fmt.Errorf("a bound of --cap must be a number of at least 1 (got %s=%s)", name, text)
		}
	}
	if g.Work == 0 && g.Vertices == 0 && g.Edges == 0 {
		g.Work = partition.Even.Work
	}
	g.Capacity = capacity
	switch objective {
	case "volume":
	case "cut":
		g.Objective = partition.EdgeCut
	default:
		return g, fmt.Errorf("objective must be volume or cut (got %q)", objective)
	}
	return g, nil
}

// bytesOf parses a size such as 2GiB, 500 MB or 1000000.
func bytesOf(text string) (int64, error) {
	x, err := plan.ParseSize(text, 1)
	if err != nil || !(x >= 1 && x < 1<<62) {
		return 0, fmt.Errorf("memory must be a size, as 2GiB or 500MB (got %q)", text)
	}
	return int64(x), nil
}

// stored reports whether the data is a stored graph, which need not fit into memory. One with types or
// columns of edges is read into it.
func (s *cutting) stored() bool {
	return filepath.Ext(s.data) == storedSuffix && !external.Typed(s.data)
}

// meta is what the manifest records about the partition besides its parts.
func (s *cutting) meta(sites []string) shard.Meta {
	m := shard.Meta{Policy: s.by, Seed: s.seed}
	if s.clusters {
		m.Policy += ", rows by cluster"
	}
	if s.by == "by-column" {
		m.Sites = sites
	}
	return m
}

// inMemory partitions a data set in memory.
func (s *cutting) inMemory() error {
	began := time.Now()
	took := func(phase string) {
		s.phases = append(s.phases, external.PhaseTimes{Phase: phase, Seconds: time.Since(began).Seconds()})
		began = time.Now()
	}
	g, err := dataset.Read(s.data, s.split)
	if err != nil {
		return cli.Invalid(err)
	}
	g = g.Numbered()
	took("read")
	shards := []*shard.Shard{}
	if n := s.count(); n == 1 {
		shards = append(shards, shard.Whole(g))
	} else if shards, err = partition.Partition(g, s.policy, n, s.seed); err != nil {
		return cli.Invalidf("%s: %w", g.Name, err)
	}
	if s.clusters {
		shards = shard.Reorder(shards, partition.ClusterOrder)
	}
	took("partition")
	if s.dry {
		s.out, s.manifest = s.data, shard.Describe(shards, s.meta(g.Sites))
		return nil
	}
	if s.manifest, err = shard.WriteDir(s.out, shards, s.meta(g.Sites)); err != nil {
		return cli.Invalid(err)
	}
	took("write")
	return nil
}

// fromDisk partitions a stored graph.
func (s *cutting) fromDisk(ctx context.Context, w *cli.Watch) (err error) {
	if s.bytes > 0 { // the program stays within the limit
		debug.SetMemoryLimit(s.bytes * 3 / 4)
	}
	g, err := external.OpenGraph(s.data)
	if err != nil {
		return cli.Invalid(err)
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	sites, err := g.Sites()
	if err != nil {
		return cli.Invalid(err)
	}
	p := &progress{watch: w, ctx: ctx}
	s.manifest, s.phases, err = g.Write(s.out,
		external.Job{Policy: s.policy, Parts: s.count(), Memory: s.bytes, Meta: s.meta(sites), Watch: p.show})
	if err != nil {
		return ended(ctx, err)
	}
	return nil
}

// count returns the number of parts (0 = as many as sites).
func (s *cutting) count() int {
	switch {
	case s.parts != plan.AutoPeers:
		return s.parts
	case s.by == "by-column":
		return 0
	}
	return 4
}
