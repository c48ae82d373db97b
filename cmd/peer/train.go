package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
)

// job is a run of all peers on this machine.
type job struct {
	plan *heddle.Plan
	jobFile
}

// jobFile is what the settings file of peer train holds besides settings.
type jobFile struct {
	Source `yaml:",inline"`
	Out    string `yaml:"out"` // directory to write to; empty: runs/DATA-MODE-MODEL-SEED
}

func (j *jobFile) bind(f *pflag.FlagSet) {
	f.StringVar(&j.Data, "data", "", "data set: a directory with graph.npz, or the .npz file")
	f.StringVar(&j.Shards, "shards", "", "partition: a directory that peer partition wrote")
	f.IntVar(&j.Split, "split", 0, "split of the data set")
	f.StringVarP(&j.Out, "out", "o", "", "directory to write to (default runs/DATA-MODE-MODEL-SEED)")
}

// load puts the job together: the settings file at path, none where it is empty, and the flags that were given.
func (j *job) load(path string, flags *pflag.FlagSet, warn func(string)) (err error) {
	given := j.jobFile
	if j.plan, err = loadPlan("train", path, givenSettings(flags), &j.jobFile, warn); err != nil {
		return err
	}
	for name, restore := range map[string]func(){
		"data": func() { j.Data = given.Data }, "shards": func() { j.Shards = given.Shards },
		"split": func() { j.Split = given.Split }, "out": func() { j.Out = given.Out },
	} {
		if flags.Changed(name) {
			restore()
		}
	}
	return nil
}

func newTrain() *cobra.Command {
	var j job
	var config, jsonPath string
	var resume bool
	var view watchFlags
	c := &cobra.Command{
		Use:   "train (--data D [--peers K] | --shards DIR)",
		Short: "Simulate all peers on one machine and train a model",
		Long: `Simulate all peers on one machine, each with its own part of the graph, and train a model.

The output directory gets model.safetensors, report.html and result.json. Ctrl-C leaves checkpoints there, and the
same command with --resume continues from them.`,
		Example: `  peer train --data data/cora --peers 4 --model gcn --seed 1 --json out.json
  peer train --data data/cora --preset retexo
  peer train --data data/cora --mode fullbatch --peers 4 --model gat
  peer train --data data/cora --mode standalone --model gat
  peer train --shards parts --config settings.yaml --lr 0.01
  peer train --data data/cora --link latency=50ms,rate=5Mbit,loss=1%`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := view.start(c.ErrOrStderr())
			if err != nil {
				return err
			}
			defer w.end()
			if err := j.load(config, c.Flags(), w.warn); err != nil {
				return err
			}
			return j.run(c.Context(), jsonPath, resume, w, c.OutOrStdout())
		},
	}
	bindSettings(c.Flags(), "train")
	j.bind(c.Flags())
	groupHelp(c, "data", "shards", "split", "config")
	c.Flags().StringVar(&config, "config", "", "settings file (YAML); flags override it")
	c.Flags().StringVar(&jsonPath, "json", "", "JSON file for the results")
	c.Flags().BoolVar(&resume, "resume", false, "continuation of an interrupted run")
	view.bind(c.Flags())
	return c
}

func (j *job) run(ctx context.Context, jsonPath string, resume bool, w *watch, stdout io.Writer) (err error) {
	p := j.plan
	shards, closer, err := j.open(*p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if err := p.Check(shards); err != nil {
		return badInput{err}
	}
	name := shards[0].Name
	if j.Out == "" {
		j.Out = filepath.Join("runs", fmt.Sprintf("%s-%s-%s-%d", fileName(name), p.Mode, p.Model, p.Seed))
	}
	state := filepath.Join(j.Out, "checkpoints")
	if err := errors.Join(writableDir(j.Out), writable(jsonPath)); err != nil {
		return err
	}
	local := heddle.Local{Plan: *p, Shards: shards, State: state, OnEvent: w.event}
	if left, err := local.Interrupted(); err != nil {
		return err
	} else if left && !resume {
		return badInput{fmt.Errorf("%s holds an interrupted run: add --resume to go on with it, or remove %s to start anew", j.Out, state)}
	} else if resume && !left {
		w.log.Warn("there are no checkpoints to go on from: the run begins anew", "checkpoints", state)
	}
	o, err := local.Train(ctx)
	w.end()
	if err != nil {
		if ctx.Err() == nil {
			return err
		}
		if left, _ := local.Interrupted(); left {
			return fmt.Errorf("interrupted; the checkpoints are in %s: the same command with --resume --out %s goes on", state, j.Out)
		}
		return errors.New("interrupted before the first checkpoint")
	}
	setting, err := p.MarshalYAML()
	if err != nil {
		return err
	}
	place, err := yaml.Marshal(j.jobFile)
	if err != nil {
		return err
	}
	files, err := writeRun(o, j.Out, shards[0], *p, report.Page{Setting: string(setting) + string(place), Command: "peer train --config settings.yaml"})
	if err != nil {
		return err
	}
	if jsonPath != "" {
		if err := writeJSON(jsonPath, resultOf(o, *p, name, len(shards), kernels.Name())); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(state); err != nil {
		return err
	}
	sum := o.Total()
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

// written are the files of a run.
type written struct{ model, report, result string }

// writeRun writes model, report and figures of a run into dir. page has what the result does not know.
func writeRun(o *heddle.Result, dir string, first *shard.Shard, p heddle.Plan, page report.Page) (written, error) {
	f := written{filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "report.html"), filepath.Join(dir, "result.json")}
	if err := o.Save(f.model); err != nil {
		return f, err
	}
	sum := o.Total()
	page.Title = fmt.Sprintf("%s · %s · %s · %d peers", first.Name, p.Mode, p.Model, first.Parts)
	page.Metric, page.Stages, page.Peers = string(o.Metric), o.Stages, o.Peers
	page.Links = predicted(predictions(o))
	page.Lost = survived(historyOf(o, first.Parts))
	page.Summary = []report.Fact{
		{Name: "test " + string(o.Metric), Value: percent(o.Test)}, {Name: "validation " + string(o.Metric), Value: percent(o.Val)},
		{Name: "seconds", Value: fmt.Sprintf("%.1f", o.Seconds)}, {Name: "rounds", Value: fmt.Sprint(o.Rounds)},
		{Name: "bytes sent", Value: report.Bytes(sum.Halo + sum.Reduce + sum.Control)},
	}
	if err := writeWhole(f.report, func(w io.Writer) error { return report.Write(w, page) }); err != nil {
		return f, err
	}
	return f, writeJSON(f.result, resultOf(o, p, first.Name, first.Parts, kernels.Name()))
}
