package attack

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/heddle-gnn/heddle/bench/attack/infer"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
)

// own is a site's own plan and its part of the graph, which is divided among as many sites as the plan has members.
type own struct {
	plan, part string // files
}

// findings prints all findings of one plan: of settings over data sets, or of a site's own plan over its own part.
func (b *inference) findings(ctx context.Context, p *page.Page, all []*graph.Graph) error {
	p.Text("Site 1 is attacked by site 0, which follows the protocol; rows are sent as they are (`exchange: halo`). " +
		"The baseline is\nwhat the same attacker finds without the run; AUC 0.5 is chance. " +
		"Other attacks may find more.")
	p.Table("data set %s", "plan %s", "attack %s", "attacker has %s", "tried %d", "measure %s", "found %.3g",
		"baseline %.3g")
	if b.own.plan != "" {
		return b.ownFindings(ctx, p)
	}
	one, err := b.plan(b.settings)
	if err != nil {
		return err
	}
	for _, g := range all {
		shards, err := b.parts(g, b.sites, false)
		if err != nil {
			return err
		}
		if err := b.attack(ctx, p, one, shards); err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	return nil
}

// ownFindings divides a site's own part among as many sites as its plan has members. Nothing leaves.
func (b *inference) ownFindings(ctx context.Context, p *page.Page) (err error) {
	text, err := os.ReadFile(b.own.plan)
	if err != nil {
		return err
	}
	one, err := plan.Read(text, nil, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", b.own.plan, err)
	}
	part, closer, err := shard.ReadShard(b.own.part)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	policy, err := partition.ParsePolicy("random")
	if err != nil {
		return err
	}
	shards, err := partition.Partition(part.Alone().Numbered(), policy, len(one.Members), one.Seed)
	if err != nil {
		return fmt.Errorf("%s: %w", b.own.part, err)
	}
	return b.attack(ctx, p, *one, shards)
}

// attack prints what all attacks find in a run by one plan.
func (b *inference) attack(ctx context.Context, p *page.Page, one plan.Plan, shards []*shard.Shard) error {
	if len(shards) < 2 {
		return fmt.Errorf("sites must be at least 2 to attack one of them (got %d)", len(shards))
	}
	one.Federation().Exchange, one.Members = "halo", nil
	effort := infer.Effort{Rows: b.rows, Tries: 1_000_000}
	if one.Method == plan.ClassMeans {
		effort.Shadows = b.shadows
	}
	run, err := infer.Train(ctx, one, shards, 0)
	if err != nil {
		return err
	}
	found, err := run.All(ctx, 1, effort)
	if err != nil {
		return err
	}
	name := named(one, len(shards))
	for _, f := range found {
		p.Row(shards[0].Name, name, f.Attack, f.Holder, f.Tried, f.Measure, f.Value, f.Base)
	}
	if len(found) == 0 {
		p.Row(shards[0].Name, name, "it sends nothing that our attacks use", "–", 0, "–", 0., 0.)
	}
	return nil
}

// named returns the name of a plan in a row of the table.
func named(p plan.Plan, sites int) string {
	if p.Task.Links() {
		return fmt.Sprintf("links by %s and %s, negatives from %s", p.Gradient().Model, p.Gradient().Decoder,
			p.Gradient().NegativesFrom)
	}
	sums := "in the clear"
	if p.Secure(sites) {
		sums = "secure"
	}
	return fmt.Sprintf("%s, encoder %v, sums %s", p.Method, p.Encoder(), sums)
}
