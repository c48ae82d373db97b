package recorded

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/privacy/secagg"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/train"
)

// Run is a run of all peers in this process. One member recorded what it received.
type Run struct {
	Plan     plan.Plan
	Shards   []*shard.Shard // by rank
	Attacker int            // the member that recorded
	Record   *Record
	Model    *nn.Model    // that all members end with
	Result   train.Result // as the attacker saw it
	Ranks    eval.Ranks   // of task links: of the links that test

	far mat.Dense // of links with method layer-wise: rows of the attacker's halo by the final model

	sums func(rank int, r comm.Reducer) comm.Reducer // wraps a peer's reducer (nil = not wrapped)
}

// Train trains by p over shards, a peer each, connected in memory, while one of them records.
func Train(ctx context.Context, p plan.Plan, shards []*shard.Shard, attacker int) (*Run, error) {
	return TrainOver(ctx, p, shards, attacker, nil)
}

// TrainOver is Train with the attacker's reducer wrapped by over: to keep the sums, or to send other values than an
// honest member would.
func TrainOver(
	ctx context.Context, p plan.Plan, shards []*shard.Shard, attacker int, over func(comm.Reducer) comm.Reducer,
) (*Run, error) {
	if attacker < 0 || attacker >= len(shards) {
		return nil, fmt.Errorf("the attacker must be one of the %d peers (got %d)", len(shards), attacker)
	}
	run := &Run{Plan: p, Shards: shards, Attacker: attacker, Record: new(Record)}
	if over != nil {
		run.sums = func(rank int, r comm.Reducer) comm.Reducer {
			if rank == attacker {
				return over(r)
			}
			return r
		}
	}
	if err := run.train(ctx); err != nil {
		return nil, err
	}
	return run, run.Record.Err()
}

// Attacked returns why runs by p are not attacked, or nil.
func Attacked(p plan.Plan) error {
	if !p.Federated() && (p.Method != plan.FullBatch || !p.Task.Links()) {
		return fmt.Errorf("method must be class-means or layer-wise, or full-batch with task links (got %s): "+
			"the other runs are for data of one owner", p.Method)
	}
	return nil
}

// train trains with all peers of the run.
func (run *Run) train(ctx context.Context) error {
	p := run.Plan
	if err := Attacked(p); err != nil {
		return err
	}
	if err := p.Check(run.Shards); err != nil {
		return err
	}
	return session.Local(ctx, "", nil, make([]session.Terms,
		len(run.Shards)), func(ctx context.Context, at *session.Session) error {
		if honest := at.Meet; run.Record != nil && at.Rank == run.Attacker {
			at.Meet = func(ctx context.Context) (comm.Transport, error) {
				over, err := honest(ctx)
				return run.Record.Over(over), err
			}
		}
		return run.peer(ctx, at, run.Shards[at.Rank])
	})
}

// peer is one peer's part in the run.
func (run *Run) peer(ctx context.Context, m *session.Session, own *shard.Shard) error {
	var links *retexo.LinkTrainer
	if run.Plan.Secure(len(run.Shards)) {
		terms := secagg.KeyTerms{Least: plan.LeastSecure}
		m.Reducer = func(ctx context.Context, g *comm.Group) (comm.Reducer, error) { return secagg.New(ctx, terms, g) }
	}
	if run.sums != nil {
		honest := m.Reducer
		m.Reducer = func(ctx context.Context, g *comm.Group) (r comm.Reducer, err error) {
			if r = g; honest != nil {
				r, err = honest(ctx, g)
			}
			return run.sums(m.Rank, r), err
		}
	}
	method, err := run.Plan.Configure(own)
	if err != nil {
		return err
	}
	t, _, err := m.Run(ctx, func(ctx context.Context, s *session.Session) (*train.Trained, error) {
		c, ok := method.(retexo.LinkConfig)
		if !ok {
			return method.Train(ctx, &s.Place, own)
		}
		return train.Train(ctx, &s.Place, c, own, func(c retexo.LinkConfig, own *shard.Shard,
			model *nn.Model) (*retexo.LinkTrainer, error) {
			one, err := retexo.NewLinks(c, own, model)
			if m.Rank == run.Attacker {
				links = one
			}
			return one, err
		})
	})
	if err != nil || m.Rank != run.Attacker {
		return err
	}
	run.Model, run.Result, run.Ranks = t.Model, t.Result, t.Links[graph.Test].All
	if links != nil {
		run.far = links.Far()
	}
	return nil
}
