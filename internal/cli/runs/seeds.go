package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/graphs"
	"github.com/heddle-gnn/heddle/train"
)

// trained is a finished run of a job.
type trained struct {
	*heddle.Result
	plan   heddle.Plan
	source graphs.Source
	shards []*shard.Shard
	closer io.Closer
}

// open opens the data of run k, from 0.
func (j *job) open(k, splits int, event func(heddle.Event)) (*trained, error) {
	t := &trained{plan: *j.plan, source: j.Source}
	t.plan.Seed += uint64(k)
	if k > 0 && splits > 1 {
		t.source.Split = (j.Split + k) % splits
	}
	var err error
	if t.shards, t.closer, err = t.source.Open(&t.plan, event); err != nil {
		return nil, err
	}
	if err := t.plan.Check(t.shards); err != nil {
		return nil, errors.Join(cli.Invalid(err), t.closer.Close())
	}
	return t, nil
}

// stateOf is the directory of the checkpoints of run k.
func (j *job) stateOf(state string, k int) string {
	if j.Seeds == 1 {
		return state
	}
	return filepath.Join(state, fmt.Sprintf("seed-%d", j.plan.Seed+uint64(k)))
}

// runs trains first, whose data are open, and the runs after it. It returns the one that validates best, and closes the
// others; without validation nodes that is the first. What events go to besides w is over's.
func (j *job) runs(
	ctx context.Context, first *trained, splits int, state string, w *cli.Watch,
	over func(func(heddle.Event)) func(heddle.Event),
) (best *trained, all []cli.RunOfAll, err error) {
	one, chosen := first, 0
	for k := range j.Seeds {
		if k > 0 {
			if one, err = j.open(k, splits, func(heddle.Event) {}); err != nil {
				return best, nil, err
			}
		}
		event := w.Event
		if j.Seeds > 1 {
			event = w.Part(fmt.Sprintf("run %d of %d", k+1, j.Seeds))
		}
		local := heddle.Local{Plan: one.plan, Shards: one.shards, State: j.stateOf(state, k), OnEvent: over(event),
			Ledger: j.ledger, Init: j.init, Embed: j.out.Rows != ""}
		if j.last != nil {
			show, last := local.OnEvent, false
			local.OnEvent = func(e heddle.Event) {
				if show(e); e.Kind == train.RoundEnd {
					last = j.last()
				}
			}
			local.Last = func() bool { return last }
		}
		end := cli.LittleGarbage(one.plan.Method)
		one.Result, err = local.Train(ctx)
		if end(); err != nil {
			return best, nil, errors.Join(err, one.closer.Close())
		}
		sum := one.Total()
		all = append(all, cli.RunOfAll{Seed: one.plan.Seed, Split: one.source.Split, Test: cli.Number(one.Test),
			Val: cli.Number(one.Val), Bytes: sum.Total(), Seconds: one.Seconds})
		if best == nil || one.Metric.Gain(one.Val, best.Val) > 0 || math.IsNaN(best.Val) && !math.IsNaN(one.Val) {
			best, one = one, best
			chosen = k
		}
		if one != nil {
			if err := one.closer.Close(); err != nil {
				return best, nil, err
			}
		}
	}
	all[chosen].Chosen = true
	return best, all, nil
}
