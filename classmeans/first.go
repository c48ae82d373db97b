package classmeans

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/train"
)

// Options returns the configurations that first rounds choose from, the usual one first: how features are scaled, and
// what rounds learn from, where nodes have that many labels. Each fixes both.
func (c Config) Options(labelled, nodes float64) (all []Config) {
	scales, targets := []string{c.RowNorm}, []string{"labels"}
	if c.RowNorm == Auto {
		scales = []string{"l2", "none"}
		if c.numbers() {
			slices.Reverse(scales)
		}
		if !c.Few {
			scales = scales[:1]
		}
	}
	if c.Few && c.Target == Auto || c.Residual(labelled, nodes) {
		targets = []string{"residual"}
		if c.Target == Auto && !c.Few && c.Task == graph.Single.String() && c.Epsilon == 0 && c.Adjacent == 0 {
			targets = []string{"labels", "residual"}
		}
	}
	for _, scale := range scales {
		for _, of := range targets {
			one := c
			one.RowNorm, one.Target = scale, of
			all = append(all, one)
		}
	}
	return all
}

// The rounds in which options are compared. Residuals say little before the second.
const (
	firstRounds = 2
	firstRandom = 64
)

// First returns c for the rounds in which it is compared with other options: of own features, so that no row is sent.
func (c Config) First() Config {
	c.Hops, c.ClassRounds, c.Random, c.Coarse = 0, firstRounds, firstRandom, false
	return c
}

// choose takes the option that validates best in its first rounds: the usual one unless another is better by half a
// standard error.
func (t *Trainer) choose(ctx context.Context) error {
	counts := t.Labels
	options := t.given.Options(counts.Labelled, float64(t.Whole.Nodes))
	if len(options) == 1 || counts.Validating() == 0 || t.Leaves {
		return t.statistics(ctx) // of the usual one, which is resolved
	}
	best, margin := math.Inf(-1), 0.0
	for i, c := range options {
		one, err := t.first(ctx, i+1, c)
		if err != nil {
			return fmt.Errorf("first rounds, option %d: %w", i+1, err)
		}
		metric := one.config.Metric
		t.Log(train.Note, "own features, row_norm %s, %s: validation %s %.4f", c.RowNorm, c.Target, metric, one.At.Best)
		if i == 0 || metric.Gain(one.At.Best, best) > margin {
			best, margin, t.config = one.At.Best, one.margin, c
		}
	}
	if err := t.resolve(); err != nil {
		return err
	}
	return t.statistics(ctx)
}

// first returns this peer's trainer after the first rounds of c. The names of its sums have step.
func (t *Trainer) first(ctx context.Context, step int, c Config) (*Trainer, error) {
	one := *t
	one.config, one.step, one.OnEvent = c.First(), step, nil
	if err := one.resolve(); err != nil {
		return nil, err
	}
	if err := one.statistics(ctx); err != nil {
		return nil, err
	}
	for r := range firstRounds {
		if goOn, err := one.round(ctx, r); err != nil || !goOn {
			return &one, err
		}
	}
	return &one, nil
}
