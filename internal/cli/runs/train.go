package runs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/internal/cli/graphs"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// job is a simulation of all peers on this machine.
type job struct {
	plan *heddle.Plan
	graphs.RunFile
	init    *heddle.Initial // what training starts from (nil = random parameters)
	ledger  gate.Ledger
	planOut string // file for the settings that trained the model (empty = none)
	out     cli.Output
	resume  bool
	ask     bool        // after each round
	last    func() bool // whether the round is the last (nil = nobody is asked)
	http    federation.HTTP
	view    cli.WatchFlags
}

// load makes the job from the settings file, if there is one, and the flags that were given.
func (j *job) load(f *pflag.FlagSet) (err error) {
	settings := cli.GivenSettings(f)
	initFile := settings["init"]
	if j.init, err = cli.TakeInitial(settings); err != nil {
		return err
	}
	if j.plan, err = j.Load(f, settings); err != nil {
		return err
	}
	if initFile != "" {
		j.InitFile = initFile
	} else if j.init, err = cli.ReadInitial(j.InitFile); err != nil {
		return fmt.Errorf("%s: init_file: %w", j.Config, err)
	}
	return nil
}

func newTrain() *cobra.Command {
	j := new(job)
	c := &cobra.Command{
		Use:   "train (--data D [--peers K] | --shards DIR)",
		Short: "Simulate all peers on one machine and train a model",
		Long: `Train a model over sites simulated on this machine, each with its own part of the graph.

The output directory gets model.safetensors, report.html, result.json, settings.yaml that repeats the run by --config,
and predictions.csv, .npz and .parquet with the class of every node. Ctrl-C leaves checkpoints there, and the same
command with --resume continues from them.`,
		Example: `  heddle train --data data/cora --peers 4 --seed 1 --json out.json
  heddle train --data data/cora --config examples/plans/retexo-paper.yaml
  heddle train --data data/cora --method full-batch --peers 1 --model gat
  heddle train --shards parts --config settings.yaml --rows bf16`,
	}
	j.out.Pages = report.Pages{}
	c.RunE = func(c *cobra.Command, _ []string) error {
		w, err := j.view.Start(c)
		if err != nil {
			return err
		}
		defer w.End()
		if err := j.load(c.Flags()); err != nil {
			return err
		}
		j.out.Stdout = c.OutOrStdout()
		ctx, cancel := context.WithCancel(c.Context())
		defer cancel()
		if j.ask {
			answers := bufio.NewScanner(c.InOrStdin())
			j.last = func() bool {
				if !answers.Scan() { // nobody answers any more
					cancel()
				}
				return answers.Text() == "stop"
			}
		}
		return j.runAll(ctx, w, j.view.Text(c, j.out.JSON, j.planOut))
	}
	f := c.Flags()
	cli.BindSettings(f, "train", func(plan.Setting) bool { return true })
	j.Bind(f, 1, "one in runs/")
	j.out.Bind(f)
	f.StringVar(&j.planOut, "plan-out", "", "file for the settings that trained the model")
	cli.BindLedger(f, &j.ledger)
	f.BoolVar(&j.ask, "ask", false, "read a line after each round's event: stop ends the rounds")
	if err := f.MarkHidden("ask"); err != nil { // for programs, as the Python package
		panic(err)
	}
	f.BoolVar(&j.resume, "resume", false, "continue an interrupted run")
	j.http.Bind(f)
	j.view.Bind(f)
	cli.ShortHelp(c, "method", "data", "shards", "peers", "policy", "config", "seed", "seeds", "task", "metric",
		"epsilon", "rows", "link", "out", "json", "http", "resume", "quiet")
	return c
}

// runAll trains and writes the files, in the job's directory. Messages go to text.
func (j *job) runAll(ctx context.Context, w *cli.Watch, text io.Writer) (err error) {
	splits := 1
	if j.Data != "" && j.Seeds > 1 {
		if splits, err = j.Splits(); err != nil {
			return err
		}
	}
	first, err := j.open(0, splits, w.Event)
	if err != nil {
		return err
	}
	j.nameOut(first)
	j.out.Dir = j.Out
	state := filepath.Join(j.Out, "checkpoints")
	release := func() {}
	if err = errors.Join(j.out.Check(), cli.Writable(j.planOut)); err == nil {
		release, err = j.lockState(first, state, w)
	}
	if err != nil {
		return errors.Join(err, first.closer.Close())
	}
	defer release()
	about := federation.About{Dataset: first.shards[0].Name, Method: first.plan.Method,
		Model: first.plan.Gradient().Model,
		Sites: make([]string, len(first.shards)), Simulated: true}
	copy(about.Sites, first.source.Sites)
	page, err := j.http.Start(about, report.Pages{}, w.Log)
	if err != nil {
		return errors.Join(err, first.closer.Close())
	}
	defer func() { err = errors.Join(err, page.End(err)) }()
	best, all, err := j.runs(ctx, first, splits, state, w, page.Over)
	if best != nil {
		defer func() { err = errors.Join(err, best.closer.Close()) }()
	}
	w.End()
	release()
	if err != nil {
		return j.stopped(ctx, err, first, state)
	}
	return j.finish(best, all, state, text)
}

// nameOut completes the job's directory.
func (j *job) nameOut(first *trained) {
	if j.Out != "" {
		return
	}
	p, data := first.plan, cli.FileName(first.shards[0].Name)
	j.Out = filepath.Join("runs", fmt.Sprintf("%s-%s-%s-%d", data, p.Method, p.Gradient().Model, p.Seed))
	if p.Method == plan.ClassMeans {
		j.Out = filepath.Join("runs", fmt.Sprintf("%s-%s-%d", data, p.Method, p.Seed))
	}
}

// settings returns the settings of a run and of its data, as a settings file.
func (j *job) settings(p heddle.Plan) ([]byte, error) {
	setting, err := p.MarshalYAML()
	if err != nil {
		return nil, err
	}
	place, err := yaml.Marshal(j.RunFile)
	return append(setting, place...), err
}

// lockState locks state until release, and checks and records what resumed does. Without further seeds the trainer
// locks it instead.
func (j *job) lockState(first *trained, state string, w *cli.Watch) (release func(), err error) {
	release, err = checkpoint.Lock(state)
	if err != nil {
		return nil, cli.Invalid(err)
	}
	if err = j.resumed(first, state, w); err != nil || j.Seeds == 1 {
		release()
	}
	return release, err
}

// resumed checks what an earlier process left in state, and records there how this run continues.
func (j *job) resumed(first *trained, state string, w *cli.Watch) error {
	now, err := j.settings(first.plan)
	if err != nil {
		return err
	}
	left := false
	for k := range j.Seeds {
		one, err := (heddle.Local{Plan: first.plan, Shards: first.shards, State: j.stateOf(state, k)}).Interrupted()
		if err != nil {
			return cli.Explain(err, state, now)
		}
		left = left || one
	}
	held, err := checkpoint.Find(state)
	if err != nil {
		return err
	}
	switch {
	case (left || len(held) > 0) && !j.resume:
		return cli.Invalidf("%s has an interrupted run: add --resume to continue it, or remove %s to start again",
			j.Out, state)
	case len(held) > 0 && !left: // of another method or number of seeds
		other := &checkpoint.MismatchError{Path: held[0].Dir, Which: []string{"config"}}
		return cli.Invalid(cli.Explain(other, state, now))
	case left:
		return nil
	case j.resume:
		if begun, err := cli.ReadRecord(state); begun != nil && err == nil {
			if differ, err := begun.Differ(now); err == nil && len(differ) > 0 {
				return cli.Invalidf("%s has a run with other settings: %s. Use the same, or remove %s to start again",
					j.Out, strings.Join(differ, "; "), state)
			}
		}
		w.Log.Warn("no checkpoints to resume from: the run starts from the beginning", "checkpoints", state)
	}
	path := cli.RecordOf(state)
	again := fmt.Sprintf("heddle train --config %s --resume", path)
	if j.ledger.Path != "" {
		again += " --privacy-ledger " + j.ledger.Path
	}
	return cli.Record{Path: path, Settings: now, Again: again}.Keep()
}

// stopped completes the error of a run that did not end.
func (j *job) stopped(ctx context.Context, err error, first *trained, state string) error {
	held, finding := checkpoint.Find(state)
	if finding == nil && len(held) == 0 {
		err = errors.Join(err, os.RemoveAll(state)) // the record there describes how to continue, and nothing can
	}
	if ctx.Err() == nil {
		now, _ := j.settings(first.plan)
		return cli.Explain(err, state, now)
	}
	if len(held) > 0 {
		return fmt.Errorf("interrupted; the checkpoints are in %s: to continue, repeat the command with --resume "+
			"--out %s",
			state, j.Out)
	}
	return errors.New("interrupted before the first checkpoint")
}

// finish writes and prints what the best of all runs gave.
func (j *job) finish(best *trained, all []cli.RunOfAll, state string, text io.Writer) error {
	one := j.RunFile
	one.Split, one.Seeds = best.source.Split, 0 // the settings are of the run that is written
	place, err := yaml.Marshal(one)
	if err != nil {
		return err
	}
	j.out.Runs = all
	o := best.Result
	page := cli.RunPage{Data: best.source.Warnings, Names: best.source.Sites, Settings: string(place),
		Command: "heddle train --config " + j.out.Settings() + " --out " + j.Out + "-again",
		Runs:    cli.RunsTable(o.Metric, all)}
	if err := j.out.Write(o, best.plan, best.shards, page); err != nil {
		return err
	}
	if j.planOut != "" {
		settings, err := o.Plan.MarshalYAML()
		if err = errors.Join(err, cli.WriteText(j.out.Stdout, j.planOut, string(settings))); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(state); err != nil {
		return err
	}
	return j.out.PrintAll(text, o, best.shards, j.ledger)
}
