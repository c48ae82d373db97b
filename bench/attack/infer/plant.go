package infer

import (
	"context"

	"github.com/heddle-gnn/heddle/bench/attack/recorded"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// planter is a member that adds to the gradient of an encoder's first weights a huge one of fixed signs: an optimiser
// that divides by the gradient's size then moves the weights by these signs, until they are random projections.
type planter struct {
	comm.Reducer
	weights int // of them
	cols    int
	key     rng.Key
}

// The magnitude of what a planter adds to each number.
const size = 1e4

// Reduce implements comm.Reducer.
func (p *planter) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	if c.ID.Kind == ofRound && c.ID.Stage == 0 && len(c.Update) >= p.weights {
		for i := range p.weights { // a column and the one of opposite signs: of each pair one passes ReLU
			at, sign := i, float32(size)
			if i%p.cols%2 == 1 {
				at, sign = i-1, -size
			}
			if p.key.Uint64(uint64(at))%2 == 0 {
				sign = -sign
			}
			c.Update[i] += sign
		}
	}
	return p.Reducer.Reduce(ctx, c)
}

// Planted is recorded.TrainOver by a plan with encoder mlp whose weights the attacker decides.
func Planted(ctx context.Context, p plan.Plan, shards []*shard.Shard, attacker int) (*recorded.Run, error) {
	if p.LayerWise.Encoder.Kind != "mlp" {
		return nil, ErrNothing
	}
	weights := shards[0].X.Cols() * p.Gradient().Hidden
	return recorded.TrainOver(ctx, p, shards, attacker, func(r comm.Reducer) comm.Reducer {
		return &planter{r, weights, p.Gradient().Hidden, rng.New(p.Seed).FoldString("planted")}
	})
}
