package graphs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
)

// Source is where a run's shards come from.
type Source struct {
	Data   string `yaml:"data"`   // directory or .npz of a data set; or
	Shards string `yaml:"shards"` // directory that heddle partition wrote
	Split  int    `yaml:"split"`  // column of the data set's masks, from 0

	Sites    []string `yaml:"-"` // names of the sites whose parts Open has read (nil = none)
	Warnings []string `yaml:"-"` // of the data that Open has read
}

// RunFile is what a settings file of simulated runs has besides settings. Flags override it.
type RunFile struct {
	Source   `yaml:",inline"`
	InitFile string `yaml:"init_file,omitempty"` // model file whose SHA-256 is setting init
	Out      string `yaml:"out"`                 // directory to write to (empty = the command names it)
	// runs; each takes the next seed, and the next split if there are several
	Seeds int `yaml:"seeds,omitempty"`

	Config string `yaml:"-"` // settings file
}

// Bind adds the flags; seeds is the usual number of runs, out the usual directory.
func (r *RunFile) Bind(f *pflag.FlagSet, seeds int, out string) {
	f.StringVar(&r.Data, "data", "", "data set, as heddle import writes it, or .npz file")
	f.StringVar(&r.Shards, "shards", "", "partition, a directory that heddle partition wrote")
	f.IntVar(&r.Split, "split", 0, "split of the first run, counted from 0")
	f.StringVar(&r.Config, "config", "", "settings file (YAML), which flags override")
	cli.Reads(f, "data", "shards", "config", "init")
	f.IntVar(&r.Seeds, "seeds", seeds, "runs, each with the next seed, and the next split if any")
	f.StringVarP(&r.Out, "out", "o", "", "directory to write to (default: "+out+")")
}

// Load makes a plan from the settings file, if there is one, and the flags that were given.
func (r *RunFile) Load(f *pflag.FlagSet, settings map[string]string) (*heddle.Plan, error) {
	given := map[string]string{}
	f.Visit(func(one *pflag.Flag) {
		if slices.Contains([]string{"data", "shards", "split", "out", "seeds"}, one.Name) {
			given[one.Name] = one.Value.String()
		}
	})
	p, _, err := cli.LoadPlan("train", r.Config, settings, r)
	for name, text := range given {
		err = errors.Join(err, f.Set(name, text))
	}
	return p, cmp.Or(err, r.CheckSeeds())
}

// CheckSeeds refuses no runs and too many.
func (r *RunFile) CheckSeeds() error {
	if r.Seeds < 1 || r.Seeds > 1000 {
		return cli.Invalidf("--seeds must be 1 to 1000 (got %d)", r.Seeds)
	}
	return nil
}

// Splits is how many splits the data have; several runs take one after the other.
func (s *Source) Splits() (int, error) {
	n, err := dataset.Splits(s.Data)
	if err != nil {
		return 0, cli.Invalid(err)
	}
	if s.Split < 0 || s.Split >= n {
		return 0, cli.Invalidf("split must be 0 to %d (got %d)", n-1, s.Split)
	}
	return n, nil
}

// ReadData reads the data set in a split, with labels for p. event gets its warnings, which are returned, too.
func (s *Source) ReadData(p heddle.Plan, split int, event func(heddle.Event)) (*graph.Graph, []string, error) {
	g, err := dataset.As{Task: p.Task.Kind}.Read(s.Data, split)
	if err != nil {
		return nil, nil, cli.Invalid(err)
	}
	warnings, err := warn(s.Data, g, p.Task.Kind, event)
	return g, warnings, err
}

// warn passes on the warnings of data.
func warn(path string, g *graph.Graph, task string, event func(heddle.Event)) ([]string, error) {
	all, err := table.Warnings(path, g, task)
	for k, text := range all {
		all[k] = cli.Flags(text)
		event(heddle.Event{Kind: train.Warning, Text: all[k]})
	}
	return all, cli.Invalid(err)
}

// Open returns the shards, whose arrays are valid until Close, and makes p what it means for the data. event gets the
// notes on that. It sets Sites and Warnings.
func (s *Source) Open(p *heddle.Plan, event func(heddle.Event)) ([]*shard.Shard, io.Closer, error) {
	shards, closer, err := s.openParts(p, event)
	if err == nil && len(shards) > 1 && !p.Federated() {
		m := shard.Describe(shards, shard.Meta{})
		event(heddle.Event{Kind: train.Note, Text: partition.Slowest(m, len(shards)).String()})
	}
	return shards, closer, err
}

func (s *Source) openParts(p *heddle.Plan, event func(heddle.Event)) ([]*shard.Shard, io.Closer, error) {
	if (s.Data == "") == (s.Shards == "") {
		return nil, nil, cli.Invalidf("a run needs either --data D (a data set) or --shards DIR (written by heddle " +
			"partition)")
	}
	// A settings file may name them, too.
	if err := cmp.Or(cli.CheckRead("data", s.Data), cli.CheckRead("shards", s.Shards)); err != nil {
		return nil, nil, err
	}
	if s.Shards != "" {
		return s.readShards(*p, event)
	}
	g, warnings, err := s.ReadData(*p, s.Split, event)
	if s.Warnings = warnings; err != nil {
		return nil, nil, err
	}
	if g.Labels.Classes > 0 && !p.Task.Links() && len(g.InSplit(graph.Train)) == 0 {
		return nil, nil, cli.Invalidf("%s: array train_mask must mark nodes with a label (got none)", s.Data)
	}
	shards, err := Place(g, p, event)
	if len(g.Sites) == len(shards) && p.Policy == "by-column" {
		s.Sites = g.Sites
	}
	return shards, io.NopCloser(nil), err
}

// Place cuts g into parts, and makes p what it means for g.
func Place(g *graph.Graph, p *heddle.Plan, event func(heddle.Event)) ([]*shard.Shard, error) {
	placed, notes := p.ForGraph(g)
	for _, e := range notes {
		event(e)
	}
	*p = placed
	return heddle.Split(g, placed)
}

// readShards reads a partition.
func (s *Source) readShards(p heddle.Plan, event func(heddle.Event)) ([]*shard.Shard, io.Closer, error) {
	shards, closer, err := shard.ReadDir(s.Shards)
	if err != nil {
		return nil, nil, cli.Invalid(err)
	}
	if p.Peers != plan.AutoPeers && p.Peers != len(shards) {
		shards, err = grouped(shards, p.Peers)
	} else {
		var m *shard.Manifest
		if m, err = shard.ReadManifest(s.Shards); err == nil {
			s.Sites = m.Sites
			s.Warnings, err = warn(s.Shards, nil, "", event)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(cli.Invalid(err), closer.Close())
	}
	return shards, closer, nil
}

// grouped merges the parts for fewer peers.
func grouped(shards []*shard.Shard, peers int) ([]*shard.Shard, error) {
	if peers < 1 || peers > len(shards) {
		return nil, fmt.Errorf("peers must be 1 to %d, the number of shards (got %d)", len(shards), peers)
	}
	var all []*shard.Shard
	for w := range peers {
		lo, hi := shard.Group(len(shards), peers, w)
		one, err := shard.Merge(shards[lo:hi], peers)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
