package heddle

import (
	"errors"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/traffic"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/tune"
)

// limit returns the bytes that all peers of a run by p send at most. own is one of the parts.
func limit(p Plan, own *shard.Shard, e tune.Extent) (int64, error) {
	if p.InClosedForm() {
		c, err := p.ClosedForm(own)
		if err != nil {
			return 0, err
		}
		residual := c.Residual(e.Counts(own.Labels.Multi(), p.Seed).Labelled, float64(e.Nodes))
		return traffic.ClassMeans(c, int(e.Peers), residual, p.Secure(int(e.Peers))).Bytes(e.Peers, e.Halo), nil
	}
	c, err := p.Layerwise(own)
	if err != nil {
		return 0, err
	}
	l, err := traffic.Layerwise(c, p.Secure(int(e.Peers)))
	return l.Bytes(e.Peers, e.Halo), err
}

// extent is what one peer adds to the extent of a contest between candidates.
func extent(p Plan, own *shard.Shard, all []plan.Candidate) tune.Extent {
	e := tune.Extent{Peers: 1, Nodes: int64(own.Owned), Halo: int64(own.Halo()), Labels: labels.Numbers(own, p.Seed), Barred: make([]int64, len(all))}
	for i, c := range all {
		if c.Fault != nil {
			e.Barred[i] = 1
		}
	}
	return e
}

// entrantOf is what a contest knows of c.
func entrantOf(c plan.Candidate) tune.Entrant {
	return tune.Entrant{Name: c.Name, Plan: c.Plan.Agreed(), Trained: c.Trained}
}

// contest returns the contest between candidates of p over parts of which own is one, and of whose extents e is the sum.
func contest(p Plan, all []plan.Candidate, e tune.Extent, own *shard.Shard) (*tune.Contest, error) {
	list := make([]tune.Entrant, len(all))
	for i, c := range all {
		list[i] = entrantOf(c)
		err := c.Fault
		if err == nil && e.Barred[i] > 0 {
			err = errors.New("another site does not allow it")
		}
		if err == nil {
			list[i].Limit, err = limit(c.Plan, own, e)
		}
		if err != nil {
			list[i].Barred = err.Error()
		}
	}
	c, err := tune.New(p.Goal, int64(math.Round(float64(p.Budget)*1e6)), int64(e.Counts(own.Labels.Multi(), p.Seed).Validating()), list)
	if err != nil {
		return nil, input(fmt.Errorf("preset auto: %w; use another preset: retexo or frugal", err))
	}
	return c, nil
}
