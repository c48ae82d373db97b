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
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/session"
)

// train trains by p, of method layer-wise, over a site alone.
func train(ctx context.Context, p plan.Plan, site *shard.Shard) (*nn.Model, error) {
	if err := p.Check([]*shard.Shard{site}); err != nil {
		return nil, err
	}
	var model func() (*nn.Model, error)
	err := session.Local(ctx, nil, nil, make([]session.Terms, 1), func(ctx context.Context, at *session.Session) error {
		at.New = func(*session.Session) (t session.Trainer, err error) {
			t, model, err = Begin(p, site)
			return t, err
		}
		_, _, err := at.Run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return model()
}

// Begin returns a site's trainer by p, of method layer-wise, of classes of nodes, and what gives its model.
func Begin(p plan.Plan, own *shard.Shard) (t session.Trainer, model func() (*nn.Model, error), err error) {
	if p.Method == plan.ClassMeans {
		c, err := p.ClosedForm(own)
		if err != nil {
			return nil, nil, err
		}
		one, err := classmeans.New(c, own)
		if err != nil {
			return nil, nil, err
		}
		var secret [32]byte
		rand.Read(secret[:])
		one.Edges, err = c.Edges(secret)
		return one, func() (*nn.Model, error) { return one.Model(), nil }, err
	}
	c, err := p.Layerwise(own)
	if err != nil {
		return nil, nil, err
	}
	begun, err := c.NewModel()
	if err != nil {
		return nil, nil, err
	}
	one, err := retexo.New(c, own, begun)
	if err != nil {
		return nil, nil, err
	}
	return one, one.Model, nil
}
