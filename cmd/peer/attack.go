package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/cmd/peer/flags"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/privacy/attack"
	"github.com/heddle-gnn/heddle/privacy/attack/infer"
)

// attacking has the flags of peer attack.
type attacking struct {
	job
	planFile, part string
	rows           int
}

// attackedSettings are the settings that peer attack has as flags; a settings file or a plan may have all settings.
var attackedSettings = []string{"mode", "task", "model", "decoder", "negatives_from", "preset", "encoder", "layer_output", "secure_sums", "seed", "peers", "policy"}

func newAttack() *cobra.Command {
	var a attacking
	var config string
	c := &cobra.Command{
		Use:   "attack (--data D | --shards DIR | --plan plan.yaml --shard parts/part-0)",
		Short: "Run our own attacks on a simulated run",
		Long: `Simulate a run on this machine, attack site 1 as site 0, which follows the protocol, and print for each
attack what it finds and a baseline: what the same attacker finds without the run. With --plan and --shard the run has
the settings of that plan, and this site's own part is divided among as many sites as the plan has members: no other
site is needed, and nothing leaves. Rows are sent as they are (exchange: halo), the worst case. With preset auto one
plan of each kind is attacked. With --task links, in mode fullbatch or retexo, it infers the links between nodes of
site 1.`,
		Example: "  peer attack --data data/cora --preset frugal\n" +
			"  peer attack --plan plan.yaml --shard parts/part-0",
		RunE: func(c *cobra.Command, _ []string) error {
			w := cli.NewWatch(c.ErrOrStderr(), false)
			return a.run(c.Context(), config, c, w)
		},
	}
	f := c.Flags()
	f.StringVar(&a.Data, "data", "", "data set: a directory with graph.npz, or the .npz file")
	f.StringVar(&a.Shards, "shards", "", "partition: a directory that peer partition wrote")
	f.IntVar(&a.Split, "split", 0, "split of the data set")
	f.StringVar(&a.planFile, "plan", "", "plan to attack, with --shard")
	f.StringVar(&a.part, "shard", "", "this site's part of the graph, with --plan")
	f.StringVar(&config, "config", "", "settings file (YAML); flags override it")
	f.IntVar(&a.rows, "rows", 20, "rows that are inverted")
	flags.Bind(f, "train", func(s plan.Setting) bool { return slices.Contains(attackedSettings, s.Name) })
	cli.Reads(f, "data", "shards", "plan", "shard", "config")
	flags.Group(c, "data", "shards", "split", "config", "plan", "shard", "rows")
	return c
}

func (a *attacking) run(ctx context.Context, config string, c *cobra.Command, w *cli.Watch) (err error) {
	if a.rows < 1 {
		return cli.Invalidf("rows must be at least 1 (got %d)", a.rows)
	}
	shards, closer, err := a.sites(config, c, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if len(shards) < 2 {
		return cli.Invalidf("peers must be at least 2 to attack one of them (got %d)", len(shards))
	}
	plans, err := attacked(*a.plan, shards[0])
	if err != nil {
		return cli.Invalid(err)
	}
	out := c.OutOrStdout()
	fmt.Fprintf(out, "data     %s: site 1 of %d is attacked by site 0\n", shards[0].Name, len(shards))
	for _, one := range plans {
		if err := a.attack(ctx, one, shards, out); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "\nBaseline: what the same attacker finds without the run. AUC 0.5 is chance. Other attacks may find\n"+
		"more. Attacks that deviate from the protocol: docs/measurements/attacks.md")
	return nil
}

// sites returns the parts of the simulated run and sets the plan.
func (a *attacking) sites(config string, c *cobra.Command, w *cli.Watch) ([]*shard.Shard, io.Closer, error) {
	if (a.planFile == "") != (a.part == "") {
		return nil, nil, cli.Invalidf("--plan and --shard must be given together")
	}
	if a.planFile == "" {
		if err := a.load(config, c.Flags(), w.Warn); err != nil {
			return nil, nil, err
		}
		shards, closer, err := a.Open(a.plan, w.Event)
		return shards, closer, err
	}
	if a.Data != "" || a.Shards != "" || config != "" || len(flags.Given(c.Flags())) > 0 {
		return nil, nil, cli.Invalidf("--plan has all settings: it must be given with --shard and --rows alone")
	}
	p, _, err := cli.ReadPlan(a.planFile, w.Warn)
	if err != nil {
		return nil, nil, err
	}
	a.plan = p
	own, closer, err := cli.ReadParts(a.part, len(p.Members))
	if err != nil {
		return nil, nil, err
	}
	shards, err := divided(own, len(p.Members), p.Seed)
	if err != nil {
		return nil, nil, errors.Join(cli.Invalidf("%s: %w", a.part, err), closer.Close())
	}
	return shards, closer, nil
}

// divided divides a site's own part among the given number of sites.
func divided(own *shard.Shard, sites int, seed uint64) ([]*shard.Shard, error) {
	policy, err := partition.ParsePolicy("random")
	if err != nil {
		return nil, err
	}
	return partition.Partition(own.Alone().Numbered(), policy, sites, seed)
}

// attacked returns the plans to attack: p, or with preset auto the first candidate of each kind.
func attacked(p heddle.Plan, own *shard.Shard) (all []plan.Candidate, err error) {
	if err := attack.Attacked(p); err != nil {
		return nil, err
	}
	if p.Preset != plan.Auto {
		return []plan.Candidate{{Plan: p}}, nil
	}
	candidates, err := p.CandidatesFor(own)
	kinds := make(map[string]bool)
	for _, c := range candidates {
		kind := fmt.Sprint(c.Plan.Encoder.Kind, c.Plan.Encoder.K > 0, c.Trained, c.Plan.Hops > 0)
		if c.Fault == nil && !kinds[kind] {
			kinds[kind] = true
			all = append(all, c)
		}
	}
	return all, err
}

// ownModels is the number of shadow models, where training them takes little time.
const ownModels = 4

// attack prints what the attacks find in a run by one plan.
func (a *attacking) attack(ctx context.Context, c plan.Candidate, shards []*shard.Shard, out io.Writer) error {
	p := c.Plan
	p.Exchange, p.Members = "halo", nil
	if err := p.Check(shards); err != nil {
		return cli.Invalid(err)
	}
	effort := infer.Effort{Rows: a.rows, Tries: 1_000_000}
	if p.Solver == "ridge" {
		effort.Shadows = ownModels
	}
	run, err := infer.Train(ctx, p, shards, 0)
	if err != nil {
		return err
	}
	all, err := run.All(ctx, 1, effort)
	if err != nil {
		return err
	}
	name := ""
	if c.Name != "" {
		name = c.Name + ": "
	}
	sums := "in the clear"
	if p.Secure(len(shards)) {
		sums = "secure"
	}
	if p.Task == "links" {
		fmt.Fprintf(out, "\nplan     links by %s and %s, negatives from %s\n", p.Model, p.Decoder, p.NegativesFrom)
	} else {
		fmt.Fprintf(out, "\nplan     %sencoder %v, solver %s, sums %s\n", name, p.Encoder, p.Solver, sums)
	}
	if len(all) == 0 {
		fmt.Fprintln(out, "  this plan sends nothing that our attacks use")
		return nil
	}
	lines := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(lines, "  attack\tby\ttried\tmeasure\tfound\tbaseline")
	for _, f := range all {
		fmt.Fprintf(lines, "  %s\t%s\t%d\t%s\t%.3g\t%.3g\n", f.Attack, f.Holder, f.Tried, f.Measure, f.Value, f.Base)
	}
	return lines.Flush()
}
