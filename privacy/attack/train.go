// Package attack has our own attacks on rows that a site sends: what a person reads before it approves a plan. They are given
// what every member has, the plan and the model; the truth only scores them.
package attack

import (
	"context"
	"crypto/rand"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
)

// train trains by p, of method layer-wise, over a site alone.
func train(ctx context.Context, p plan.Plan, site *shard.Shard) (*nn.Model, error) {
	if err := p.Check([]*shard.Shard{site}); err != nil {
		return nil, err
	}
	t, err := Begin(p, site)
	if err != nil {
		return nil, err
	}
	g := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
	defer g.Close()
	if err := t.Run(ctx, g, g); err != nil {
		return nil, err
	}
	return t.Trained()
}

// Begin returns a site's trainer by p.
func Begin(p plan.Plan, own *shard.Shard) (plan.Trainer, error) {
	t, c, err := p.Trainer(own, func(*nn.Model) error { return nil })
	if of, ok := t.(*classmeans.Trainer); ok && err == nil {
		var secret [32]byte
		rand.Read(secret[:])
		of.Edges, err = c.(classmeans.Config).Edges(secret)
	}
	return t, err
}
