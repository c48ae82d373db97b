// Package fullbatch trains all layers of a model jointly on the whole graph, one step an epoch, over any number of
// workers that each hold a part of it: the same curve for any number, up to rounding. A layer's halo rows are fetched
// while it is computed, part by part if wanted (sequential aggregation and rematerialisation; Mostafa, MLSys 2022). With
// one worker it is the ordinary end-to-end training of a graph neural network, the baseline of every comparison.
//
// Letters in comments: N nodes, F in, H hidden, C classes, K workers.
package fullbatch

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
)

// Config says how a model is trained.
type Config struct {
	Seed uint64  `json:"seed"`
	Spec nn.Spec `json:"spec"`

	Epochs    int            `json:"epochs"`     // at most; ≥ 1
	Patience  int            `json:"patience"`   // epochs without a better validation metric after which training ends; 0: none
	EvalEvery int            `json:"eval_every"` // epochs between two looks at the validation nodes; ≥ 1
	Metric    eval.Metric    `json:"metric"`     // by which the best state is chosen
	Optimizer optim.Config   `json:"optimizer"`
	Schedule  optim.Schedule `json:"schedule"`  // of the learning rate over epochs
	Balanced  bool           `json:"balanced"`  // weigh each class by the inverse of its share of the training labels
	Inductive bool           `json:"inductive"` // validation and test nodes and their edges are absent while training

	Fetch    string      `json:"fetch"`         // how a layer's halo rows come: "sar", "sa", "oneshot" or "auto" (Fetches)
	Boundary string      `json:"boundary"`      // of halo rows and their gradients while training: "exact", "sample:P", "stale:1", "stale:1:G" or "none" (see Share, Stale)
	Order    string      `json:"order"`         // in which they are added up: "any" (as they come), or "fixed": the same bits at every run
	Rows     wire.Coding `json:"rows,omitzero"` // how the values of halo rows and of their gradients travel
	Exchange string      `json:"exchange"`      // what travels of the halo: "halo", "cover" or "auto" (Exchanges)
	Prefetch int         `json:"-"`             // blocks of rows, and of gradients, on their way while one is worked on; ≥ 0
	Memory   int64       `json:"-"`             // bytes that this worker may hold of halo rows that it could fetch again; 0: any number

	Checkpoint int `json:"-"` // epochs between two checkpoints; 0: none but at an interruption
}

// Fetches are the ways in which a layer's halo rows come. "sar" fetches them peer by peer, drops what has been added up,
// and fetches it again for the gradient if that reads it; "sa" keeps it instead; "oneshot" fetches all at once, and
// keeps. "auto" keeps what fits in Memory.
var Fetches = []string{"sar", "sa", "oneshot", "auto"}

// Defaults returns the config of spec that the program starts from.
func Defaults(spec nn.Spec) Config {
	return Config{
		Seed: 1, Spec: spec, Epochs: 200, EvalEvery: 1, Metric: "accuracy",
		Optimizer: optim.Config{Name: "adam", LR: 0.01, Decay: 5e-4},
		Schedule:  optim.Schedule{Kind: "constant"},
		Boundary:  "exact", Fetch: "auto", Order: "any", Exchange: "auto", Prefetch: 1,
	}
}

// Validate returns all faults at once, or nil.
func (c Config) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(c.Epochs < 1, "epochs: %d, want at least 1", c.Epochs)
	fault(c.Patience < 0, "patience: %d, want 0 (none) or more epochs", c.Patience)
	fault(c.EvalEvery < 1, "eval_every: %d, want at least 1", c.EvalEvery)
	fault(c.Checkpoint < 0, "checkpoint: %d, want 0 (none) or more epochs", c.Checkpoint)
	fault(!slices.Contains(Fetches, c.Fetch), "fetch: %q, want one of %q", c.Fetch, Fetches)
	if share, err := c.Share(); err != nil {
		errs = append(errs, err)
	} else if share > 0 && share < 1 {
		for i, l := range c.Spec.Layers {
			fault(l.Conv == "gat" || l.Conv == "sage-pool", "boundary: %s, but layers[%d] (%s) is no sum, of which a sample would be unbiased; use exact or none", c.Boundary, i, l.Conv)
		}
	}
	if _, stale := c.Stale(); stale {
		for i, l := range c.Spec.Layers {
			fault(l.Hops > 1, "boundary: %s, but layers[%d] (%s) aggregates %d times in a step, and one step old is known of each layer once; use exact", c.Boundary, i, l.Conv, l.Hops)
		}
	}
	fault(c.Inductive && c.Spec.BatchNormed(), "inductive: but batch_norm takes its statistics of every node, and held-out ones would be among them; use norm (of each row)")
	fault(!slices.Contains(Exchanges, c.Exchange), "exchange: %q, want one of %q", c.Exchange, Exchanges)
	fault(c.Order != "any" && c.Order != "fixed", "order: %q, want any or fixed", c.Order)
	fault(c.Prefetch < 0, "prefetch: %d, want 0 or more", c.Prefetch)
	fault(c.Memory < 0, "memory: %d, want 0 (no bound) or more bytes", c.Memory)
	fault(c.Spec.Encoder.Kind == "pca", "encoder: pca is found layer-wise; end to end the first layer learns its own projection, use raw or mlp")
	for i, l := range c.Spec.Layers {
		fault(max(l.In, l.Out) > wire.MaxCols && c.Rows.Values != "", "rows: %s, but layers[%d] has %d columns, of %d that one travels with", c.Rows.Values, i, max(l.In, l.Out), wire.MaxCols)
		fault(l.Hops > 1 && l.Conv != "appnp" && l.Conv != "sign" && (i > 0 || c.Spec.Encoder.Kind != "raw"), "layers[%d]: hops %d, but only appnp and the first layer, on raw features, aggregate more than once end to end", i, l.Hops)
	}
	errs = append(errs, c.Rows.Validate(), c.Metric.Validate(), c.Optimizer.Validate(), c.Schedule.Validate())
	return errors.Join(errs...)
}

// Share returns the share of the halo rows that travel at a step: 1 for boundary "exact"; P of "sample:P", drawn anew at
// every step, the sums divided by P and weighed by the degrees of the whole graph, so that they are unbiased; 0 for
// "none", which leaves out the edges between workers, also from degrees. Features of the halo, fetched once, and
// whatever is validated or tested are exact in any case but training by "none".
func (c Config) Share() (float32, error) {
	switch p, sampled := strings.CutPrefix(c.Boundary, "sample:"); {
	case c.Boundary == "exact":
		return 1, nil
	case strings.HasPrefix(c.Boundary, "stale:"):
		if _, stale := c.Stale(); stale {
			return 1, nil
		}
	case c.Boundary == "none":
		return 0, nil
	case sampled:
		if share, err := strconv.ParseFloat(p, 32); err == nil && share > 0 && share < 1 {
			return float32(share), nil
		}
	}
	return 0, fmt.Errorf("boundary: %q, want exact, none, stale:1, stale:1:G with G in [0, 1), or sample:P with P between 0 and 1", c.Boundary)
}

// Stale reports whether a step computes with the halo's rows and gradients of the step before, boundary "stale:1", and
// what share of what was known stays when new ones come: G of "stale:1:G", 0 without.
func (c Config) Stale() (gamma float32, stale bool) {
	if c.Boundary == "stale:1" {
		return 0, true
	}
	g, stale := strings.CutPrefix(c.Boundary, "stale:1:")
	x, err := strconv.ParseFloat(g, 32)
	return float32(x), stale && err == nil && x >= 0 && x < 1
}

// Fingerprint names everything that decides the result.
func (c Config) Fingerprint() [32]byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic("fullbatch: config does not encode: " + err.Error()) // plain numbers and strings: only NaN can do it
	}
	return sha256.Sum256(b)
}
