package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/kernels"
)

// job is a run of all peers on this machine: the settings file of peer train.
type job struct {
	Settings  `yaml:",inline"`
	Source    `yaml:",inline"`
	Transport string `yaml:"transport"` // libp2p (a host for each peer, on loopback) or memory
	Carrier   string `yaml:"carrier"`   // of libp2p: quic, tcp, noise, ws or auto
	Link      string `yaml:"link"`      // a slower network to put in the way; empty: none
	Out       string `yaml:"out"`       // directory to write to; empty: runs/DATA-MODE-MODEL-SEED
}

func newJob() *job {
	return &job{Source: Source{Peers: auto, Policy: "random"}, Transport: "libp2p", Carrier: "quic"}
}

func (j *job) bind(f *pflag.FlagSet) {
	j.Settings.bind(f)
	f.StringVar(&j.Data, "data", j.Data, "data set: a directory with graph.npz, or the .npz file")
	f.StringVar(&j.Shards, "shards", j.Shards, "partition: a directory that peer partition wrote")
	f.IntVar(&j.Split, "split", j.Split, "column of the data set's masks")
	f.IntVar(&j.Peers, "peers", j.Peers, "number of peers (default 4; 1 for standalone; the sites for by-column; with --shards, as many as parts, or fewer that hold several each)")
	f.Lookup("peers").DefValue = "0" // the value that help does not show
	f.StringVar(&j.Policy, "policy", j.Policy, "who owns which node: random, contiguous, contiguous-edges, hash, by-column, ldg, fennel, fec, restream:N or multilevel")
	f.StringVar(&j.Transport, "transport", j.Transport, "libp2p (a host for each peer, on loopback) or memory")
	f.StringVar(&j.Carrier, "carrier", j.Carrier, "of libp2p: quic, tcp, noise (TCP without TLS), ws (WebSocket) or auto (the fastest for each pair)")
	f.StringVar(&j.Link, "link", j.Link, linkHelp)
	f.StringVarP(&j.Out, "out", "o", j.Out, "directory to write to (default runs/DATA-MODE-MODEL-SEED)")
}

var jobFile = file[job]{settings: func(j *job) *Settings { return &j.Settings }, bind: (*job).bind}

func newTrain() *cobra.Command {
	var config, jsonPath string
	var resume, quiet bool
	c := &cobra.Command{
		Use:   "train (--data D [--peers K] | --shards DIR)",
		Short: "Train a model with all peers on this machine",
		Long: `Train a model with all peers on this machine, each with its own part of the graph.

The model, a report and the figures are written to a directory: model.safetensors, report.html,
result.json. Ctrl-C leaves checkpoints there, and the same command with --resume goes on from them.`,
		Example: `  peer train --data data/cora --peers 4 --model gcn --seed 1 --json out.json
  peer train --data data/cora --preset retexo
  peer train --data data/cora --mode fullbatch --peers 4 --model gat
  peer train --data data/cora --mode standalone --model gat
  peer train --shards parts --config settings.yaml --lr 0.01
  peer train --data data/cora --link latency=50ms,rate=5Mbit,loss=1%`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			j, err := jobFile.load(config, c.Flags(), newJob)
			if err != nil {
				return err
			}
			return j.run(c.Context(), jsonPath, resume, newWatch(c.ErrOrStderr(), quiet), c.OutOrStdout())
		},
	}
	defaults := newJob()
	defaults.Settings, _ = base("retexo", "", "gcn")
	defaults.bind(c.Flags())
	c.Flags().StringVar(&config, "config", "", "settings file (YAML); flags override it")
	c.Flags().StringVar(&jsonPath, "json", "", "write the figures to this file, too")
	c.Flags().BoolVar(&resume, "resume", false, "go on from the checkpoints of an interrupted run")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	return c
}

func (j *job) validate() error {
	if j.Transport != "libp2p" && j.Transport != "memory" {
		return badInput{fmt.Errorf("transport: %q, want libp2p or memory", j.Transport)}
	}
	if err := knownCarrier(j.Carrier); err != nil {
		return badInput{err}
	}
	return nil
}

func (j *job) run(ctx context.Context, jsonPath string, resume bool, w *watch, stdout io.Writer) (err error) {
	if err := j.validate(); err != nil {
		return err
	}
	shards, closer, err := j.open(j.Mode, j.Seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	way, err := slower(j.Link, len(shards))
	if err != nil {
		return err
	}
	if err := j.check(shards); err != nil {
		return err
	}
	name := shards[0].Name
	if j.Out == "" {
		j.Out = filepath.Join("runs", fmt.Sprintf("%s-%s-%s-%d", fileName(name), j.Mode, j.Model, j.Seed))
	}
	state := filepath.Join(j.Out, "checkpoints")
	if err := errors.Join(writableDir(j.Out), writable(jsonPath)); err != nil {
		return err
	}
	if left, err := leftovers(state, len(shards)); err != nil {
		return err
	} else if left && !resume {
		return badInput{fmt.Errorf("%s holds an interrupted run: add --resume to go on with it, or remove %s to start anew", j.Out, state)}
	} else if resume && !left {
		w.log.Warn("there are no checkpoints to go on from: the run begins anew", "checkpoints", state)
	}
	o, err := together(ctx, j.Settings, shards, network{j.Transport, j.Carrier, way}, state, w)
	w.end()
	if err != nil {
		if ctx.Err() == nil {
			return err
		}
		if left, _ := leftovers(state, len(shards)); left {
			return fmt.Errorf("interrupted; the checkpoints are in %s: the same command with --resume --out %s goes on", state, j.Out)
		}
		return errors.New("interrupted before the first checkpoint")
	}
	setting, err := yaml.Marshal(j)
	if err != nil {
		return err
	}
	files, err := o.write(j.Out, shards, j.Settings, report.Page{Setting: string(setting), Command: "peer train --config settings.yaml"})
	if err != nil {
		return err
	}
	if jsonPath != "" {
		if err := writeJSON(jsonPath, o.result(j.Settings, name, len(shards), kernels.Name())); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(state); err != nil {
		return err
	}
	sum := o.bytes()
	fmt.Fprintf(stdout, "%s: %s %s test, %s validation, %.1f s\n", name, o.Metric, percent(o.Test), percent(o.Val), o.Seconds)
	fmt.Fprintf(stdout, "sent: halo %s, reduce %s, control %s", report.Bytes(sum.Halo), report.Bytes(sum.Reduce), report.Bytes(sum.Control))
	if sum.Wire > 0 {
		fmt.Fprintf(stdout, "; on the wire %s", report.Bytes(sum.Wire))
	}
	fmt.Fprintf(stdout, "\nmodel:  %s\nreport: %s\n", files.model, files.report)
	return nil
}

func percent(x float64) string {
	if math.IsNaN(x) {
		return "none"
	}
	return fmt.Sprintf("%.2f %%", 100*x)
}

// leftovers reports whether some peer has checkpoints in state.
func leftovers(state string, peers int) (bool, error) {
	for r := range peers {
		seqs, err := (&checkpoint.Store{Dir: filepath.Join(state, fmt.Sprintf("peer-%d", r))}).List()
		if err != nil {
			return false, badInput{err}
		}
		if len(seqs) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// written are the files of a run.
type written struct{ model, report, result string }

// write writes model, report and figures into dir. page has what the outcome does not know.
func (o *outcome) write(dir string, shards []*partition.Shard, s Settings, page report.Page) (written, error) {
	f := written{filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "report.html"), filepath.Join(dir, "result.json")}
	first := shards[0]
	config, err := json.Marshal(o.Config)
	if err != nil {
		return f, err
	}
	sum := o.bytes()
	// What differs between peers, or after a resume, stays out: all of them write the same file.
	card := checkpoint.Card{Dataset: first.Name, Nodes: first.Nodes, Mode: s.Mode, Peers: first.Parts, Seed: s.Seed, Setting: config,
		Metric: string(o.Metric), Val: finite(o.Val), Test: finite(o.Test), Classes: first.Labels.Names, Encoding: first.Encoding}
	if err := checkpoint.WriteModel(f.model, o.Model, card); err != nil {
		return f, err
	}
	page.Title = fmt.Sprintf("%s · %s · %s · %d peers", first.Name, s.Mode, s.Model, first.Parts)
	page.Metric, page.Stages, page.Peers = string(o.Metric), o.Stages, o.Peers
	page.Links = predicted(o.predictions(o.Link))
	page.Lost = survived(o.history(first.Parts))
	page.Summary = []report.Fact{
		{Name: "test " + string(o.Metric), Value: percent(o.Test)}, {Name: "validation " + string(o.Metric), Value: percent(o.Val)},
		{Name: "seconds", Value: fmt.Sprintf("%.1f", o.Seconds)}, {Name: "rounds", Value: fmt.Sprint(o.Rounds)},
		{Name: "bytes sent", Value: report.Bytes(sum.Halo + sum.Reduce + sum.Control)},
	}
	if err := writeWhole(f.report, func(w io.Writer) error { return report.Write(w, page) }); err != nil {
		return f, err
	}
	return f, writeJSON(f.result, o.result(s, first.Name, first.Parts, kernels.Name()))
}

// finite is x for a model card, whose figures are numbers: 0 where there was nothing to measure.
func finite(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}
