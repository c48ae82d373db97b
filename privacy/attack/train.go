// Package attack has our own attacks on rows that a site sends: what a person reads before it approves a plan. They are
// given what every member has, the plan and the model; the truth only scores them.
package attack

import (
	"context"
	"errors"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
	of "github.com/heddle-gnn/heddle/train"
)

// train trains by p over a site alone. Its error is ErrUnmeasured if the site cannot train so, unless ctx has ended.
func train(ctx context.Context, p plan.Plan, site *shard.Shard) (*nn.Model, error) {
	m, err := trainAlone(ctx, p, site)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(ErrUnmeasured, err)
	}
	return m, err
}

func trainAlone(ctx context.Context, p plan.Plan, site *shard.Shard) (*nn.Model, error) {
	if err := p.Check([]*shard.Shard{site}); err != nil {
		return nil, err
	}
	m, err := p.Configure(site)
	if err != nil {
		return nil, err
	}
	g := alone()
	defer g.Close()
	t, err := m.Train(ctx, &of.Place{Group: g, Sums: g}, site)
	if err != nil {
		return nil, err
	}
	return t.Model, nil
}
