package plan

import (
	"context"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/minibatch"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/train"
)

// Trainer is one peer's trainer of any method.
type Trainer interface {
	Resume() (done bool, err error)
	Run(ctx context.Context, g *comm.Group, r comm.Reducer) error
	Done() bool
	State() *train.RunState
	Result() train.Result
	Trained() (*nn.Model, error) // once the model is final
	Logits() mat.Dense           // of own nodes, then; empty: this process has not computed them
	Hidden() mat.Dense           // the rows that they are made of; empty unless RunState.KeepHidden
}

// Trainer returns the trainer of p's method for the peer that holds s, and its configuration. begin may change the parameters that
// training starts from; class means have none.
func (p Plan) Trainer(s *shard.Shard, begin func(*nn.Model) error) (t Trainer, config any, err error) {
	switch {
	case p.Method == ClassMeans:
		c, err := p.ClosedForm(s)
		if err != nil {
			return nil, nil, err
		}
		t, err := classmeans.New(c, s)
		return t, c, err
	case p.Method == LayerWise && p.Task.Links():
		return trainerOf(s, p.Linkwise, begin, retexo.NewLinks)
	case p.Method == LayerWise:
		return trainerOf(s, p.Layerwise, begin, retexo.New)
	case p.Method == MiniBatch:
		return trainerOf(s, p.Sampled, begin, minibatch.New)
	}
	return trainerOf(s, p.EndToEnd, begin, fullbatch.New)
}

// trainerOf makes a trainer of a model whose parameters are trained from their initial values.
func trainerOf[C interface{ NewModel() (*nn.Model, error) }, T Trainer](s *shard.Shard, configure func(*shard.Shard) (C, error),
	begin func(*nn.Model) error, start func(C, *shard.Shard, *nn.Model) (T, error)) (Trainer, any, error) {
	c, err := configure(s)
	if err != nil {
		return nil, nil, err
	}
	model, err := c.NewModel()
	if err == nil {
		err = begin(model)
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := start(c, s, model)
	return t, c, err
}
