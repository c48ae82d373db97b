// Package attack has our own attacks on rows that a site sends: what a person reads before it approves a plan. They are given
// what every member has, the plan and the model; the truth only scores them.
package attack

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
	of "github.com/heddle-gnn/heddle/train"
)

// train trains by p, of method layer-wise, over a site alone.
func train(ctx context.Context, p plan.Plan, site *shard.Shard) (*nn.Model, error) {
	if err := p.Check([]*shard.Shard{site}); err != nil {
		return nil, err
	}
	m, err := p.Configure(site)
	if err != nil {
		return nil, err
	}
	g := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
	defer g.Close()
	t, err := m.Train(ctx, &of.Place{Group: g, Sums: g}, site)
	if err != nil {
		return nil, err
	}
	return t.Model, nil
}
