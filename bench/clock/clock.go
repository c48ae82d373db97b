// Package clock times the epochs of a run.
package clock

import (
	"context"
	"errors"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/train"
)

// errTrained ends a run whose last epoch is timed.
var errTrained = errors.New("the last epoch has ended")

// Epochs trains and calls each with the end of every epoch of the first peer, and what the process took for it. The run
// ends with the last epoch: what the whole graph yields afterwards is left out.
func Epochs(ctx context.Context, p heddle.Plan, shards []*shard.Shard,
	each func(e heddle.Event, took measure.Cost)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun measure.Cost
	_, err := heddle.Local{Plan: p, Shards: shards, OnEvent: func(e heddle.Event) {
		if e.Kind != train.RoundEnd {
			return
		}
		each(e, measure.Since(begun))
		if begun = measure.Now(); e.Round == p.Gradient().Rounds-1 {
			cancel(errTrained)
		}
	}}.Train(ctx)
	if context.Cause(ctx) == errTrained {
		return nil
	}
	return err
}
