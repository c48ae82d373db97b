package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/cmd/peer/flags"
	"github.com/heddle-gnn/heddle/cmd/peer/live"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/privacy/dp"
)

// job is a simulation of all peers on this machine.
type job struct {
	plan *heddle.Plan
	jobFile
	init    *heddle.Initial // what training starts from; nil: random parameters
	tunes   bool            // preset is auto, whatever settings say
	ledger  dp.Ledger
	planOut string // file for the settings by which the model was trained; empty: none
}

// jobFile is what a settings file of peer train has besides settings.
type jobFile struct {
	cli.Source `yaml:",inline"`
	Out        string `yaml:"out"` // directory to write to; empty: runs/DATA-MODE-MODEL-SEED
}

func (j *jobFile) bind(f *pflag.FlagSet) {
	f.StringVar(&j.Data, "data", "", "data set: a directory with graph.npz, or the .npz file")
	f.StringVar(&j.Shards, "shards", "", "partition: a directory that peer partition wrote")
	f.IntVar(&j.Split, "split", 0, "split of the data set")
	f.StringVarP(&j.Out, "out", "o", "", "directory to write to (default runs/DATA-MODE-MODEL-SEED)")
}

// load makes the job from the settings file at path, if there is one, and the flags that were
// given.
func (j *job) load(path string, f *pflag.FlagSet, warn func(string)) (err error) {
	given, settings := j.jobFile, flags.Given(f)
	if j.tunes {
		settings["preset"] = "auto"
	}
	if j.init, err = cli.TakeInitial(settings); err != nil {
		return err
	}
	if j.plan, _, err = cli.LoadPlan("train", path, settings, &j.jobFile, warn); err != nil {
		return err
	}
	for name, restore := range map[string]func(){
		"data": func() { j.Data = given.Data }, "shards": func() { j.Shards = given.Shards },
		"split": func() { j.Split = given.Split }, "out": func() { j.Out = given.Out },
	} {
		if f.Changed(name) {
			restore()
		}
	}
	return nil
}

func newTrain() *cobra.Command {
	return newSimulation(new(job), &cobra.Command{
		Use:   "train (--data D [--peers K] | --shards DIR)",
		Short: "Simulate all peers on one machine and train a model",
		Long: `Simulate all peers on one machine, each with its own part of the graph, and train a model.

The output directory gets model.safetensors, report.html, result.json, settings.yaml that repeats the run by --config, and
predictions.csv and predictions.parquet with the class of every node. Ctrl-C leaves checkpoints there, and the same command
with --resume continues from them.`,
		Example: `  peer train --data data/cora --peers 4 --model gcn --seed 1 --json out.json
  peer train --data data/cora --preset retexo
  peer train --data data/cora --mode fullbatch --peers 4 --model gat
  peer train --data data/cora --mode standalone --model gat
  peer train --shards parts --config settings.yaml --lr 0.01
  peer train --data data/cora --link latency=50ms,rate=5Mbit,loss=1%`,
	}, func(plan.Setting) bool { return true })
}

// newSimulation completes c, which runs j with the flags of those settings that wanted accepts.
func newSimulation(j *job, c *cobra.Command, wanted func(plan.Setting) bool) *cobra.Command {
	var config, jsonPath string
	var resume bool
	var view cli.WatchFlags
	var http live.Flags
	c.RunE = func(c *cobra.Command, _ []string) error {
		w, err := view.Start(c.ErrOrStderr())
		if err != nil {
			return err
		}
		defer w.End()
		if err := j.load(config, c.Flags(), w.Warn); err != nil {
			return err
		}
		out := output{json: jsonPath, stdout: c.OutOrStdout()}
		return j.run(c.Context(), out, resume, http, w, cli.Text(out.stdout, c.ErrOrStderr(), jsonPath, j.planOut))
	}
	flags.Bind(c.Flags(), "train", wanted)
	j.bind(c.Flags())
	flags.Group(c, "data", "shards", "split", "config")
	c.Flags().StringVar(&config, "config", "", "settings file (YAML); flags override it")
	c.Flags().StringVar(&jsonPath, "json", "", "JSON file for the results; - for standard output")
	c.Flags().StringVar(&j.planOut, "plan-out", "", "file for the settings that trained the model; empty: none")
	cli.BindLedger(c.Flags(), &j.ledger)
	c.Flags().BoolVar(&resume, "resume", false, "continuation of an interrupted run")
	http.Bind(c.Flags())
	view.Bind(c.Flags())
	return c
}

// run trains and writes the files of out, whose directory is that of the job. Messages go to text.
func (j *job) run(ctx context.Context, out output, resume bool, http live.Flags, w *cli.Watch, text io.Writer) (err error) {
	p := j.plan
	shards, closer, err := j.Open(p, w.Event)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if err := p.Check(shards); err != nil {
		return cli.Invalid(err)
	}
	name := shards[0].Name
	if j.Out == "" {
		j.Out = filepath.Join("runs", fmt.Sprintf("%s-%s-%s-%d", cli.FileName(name), p.Mode, p.Model, p.Seed))
		if p.Candidates() != nil {
			j.Out = filepath.Join("runs", fmt.Sprintf("%s-%s-%d", cli.FileName(name), p.Preset, p.Seed))
		}
	}
	out.dir = j.Out
	state := filepath.Join(j.Out, "checkpoints")
	if err := errors.Join(out.check(), cli.Writable(j.planOut)); err != nil {
		return err
	}
	about := live.About{Dataset: name, Mode: p.Mode, Model: p.Model, Sites: make([]string, len(shards)), Simulated: true}
	copy(about.Sites, j.Sites)
	page, err := http.Start(about, w.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.End(err)) }()
	local := heddle.Local{Plan: *p, Shards: shards, State: state, OnEvent: page.Over(w.Event), Ledger: j.ledger, Init: j.init}
	if left, err := local.Interrupted(); err != nil {
		return err
	} else if left && !resume {
		return cli.Invalidf("%s holds an interrupted run: add --resume to continue it, or remove %s to start again", j.Out,
			state)
	} else if resume && !left {
		w.Log.Warn("no checkpoints to resume from: the run starts from the beginning", "checkpoints", state)
	}
	o, err := local.Train(ctx)
	w.End()
	if err != nil {
		if ctx.Err() == nil {
			return err
		}
		if left, _ := local.Interrupted(); left {
			return fmt.Errorf("interrupted; the checkpoints are in %s: to continue, repeat the command with --resume --out %s",
				state, j.Out)
		}
		return errors.New("interrupted before the first checkpoint")
	}
	place, err := yaml.Marshal(j.jobFile)
	if err != nil {
		return err
	}
	again := "peer train --config " + out.settings() + " --out " + j.Out + "-again"
	run := report.Run{Names: j.Sites, Settings: string(place), Command: again}
	if err := errors.Join(out.write(o, *p, shards, run), j.writePlan(out.stdout, o)); err != nil {
		return err
	}
	if err := os.RemoveAll(state); err != nil {
		return err
	}
	if err := printTried(text, o); err != nil {
		return err
	}
	if err := out.print(text, o, shards); err != nil {
		return err
	}
	return cli.PrintLedger(text, j.ledger, name)
}
