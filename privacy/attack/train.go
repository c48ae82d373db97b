// Package attack has our own attacks on rows that a site sends: what a person reads before it approves a plan. They are given
// what every member has, the plan and the model; the truth only scores them.
package attack

import (
	"context"
	"crypto/rand"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/session"
)

// train trains by p, of method layer-wise, over a site alone.
func train(ctx context.Context, p plan.Plan, site *shard.Shard) (*nn.Model, error) {
	if err := p.Check([]*shard.Shard{site}); err != nil {
		return nil, err
	}
	var one plan.Trainer
	err := session.Local(ctx, nil, nil, make([]session.Terms, 1), func(ctx context.Context, at *session.Session) error {
		at.New = func(*session.Session) (t session.Trainer, err error) {
			one, err = Begin(p, site)
			return one, err
		}
		_, _, err := at.Run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return one.Trained()
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
