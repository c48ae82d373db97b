// Package fullbatch trains all layers of a model jointly on the whole graph, one step an epoch. Any number of workers
// each have a part of the graph: the loss curve is the same for any number, up to rounding. A layer's halo rows are
// fetched while it is computed, part by part if wanted (sequential aggregation and rematerialisation; Mostafa, MLSys
// 2022). With one worker it is the ordinary end-to-end training of a graph neural network, the baseline of every
// comparison.
//
// Letters in comments: N nodes, F in, H hidden, C classes, K workers.
package fullbatch

import (
	"errors"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/train"
)

// Config is how a model is trained. A round is an epoch.
type Config struct {
	train.Config

	Fetch string `json:"fetch"` // how a layer's halo rows arrive: "sar", "sa", "oneshot" or "auto" (Fetches)

	Links *train.LinkTask `json:"links,omitempty"` // for link prediction (nil = nodes have labels)

	Order string `json:"order"` // order of summation: "any" (as rows arrive), or "fixed" (the same bits in every run)
	// blocks of rows, and of gradients, on their way while one is being computed; at least 0
	Prefetch int `json:"-"`
	// bytes of halo rows that this worker may keep although it could fetch them again (0 = no limit)
	Memory int64 `json:"-"`
}

// Fetches are the ways to fetch a layer's halo rows. "sar" fetches them peer by peer, drops each block once it is added
// up, and fetches it again if the gradient reads it. "sa" keeps the blocks for the gradient instead. "oneshot" fetches
// all at once and keeps them. "auto" keeps what fits in Memory.
var Fetches = []string{"sar", "sa", "oneshot", "auto"}

// Defaults returns the default configuration of spec.
func Defaults(spec nn.Spec) Config {
	return Config{
		Config: train.Config{
			Seed: 1, Spec: spec, Rounds: 200, EvalEvery: 1, Metric: "accuracy",
			Optimizer: optim.Config{Name: "adam", LR: 0.01, Decay: 5e-4},
			Schedule:  optim.Schedule{Kind: "constant"}, Exchange: "auto",
		},
		Fetch: "auto", Order: "any", Prefetch: 1,
	}
}

// Validate returns all faults at once, or nil.
func (c Config) Validate() error {
	errs := train.ConfigFaults{c.Config.Validate(), c.Optimizer.Validate(), c.Schedule.Validate(),
		c.Links.Check(c.Config)}
	fault := errs.If
	fault(!slices.Contains(Fetches, c.Fetch), "fetch must be one of %q (got %q)", Fetches, c.Fetch)
	fault(c.Inductive && c.Spec.BatchNormed(), "batch_norm must be off with inductive: its statistics are of "+
		"every node, also of validation and test nodes; use norm (of each row)")
	fault(c.Order != "any" && c.Order != "fixed", "order must be any or fixed (got %q)", c.Order)
	fault(c.Prefetch < 0, "prefetch must be at least 0 (got %d)", c.Prefetch)
	fault(c.Memory < 0, "memory must be at least 0 (got %d)", c.Memory)
	fault(c.Spec.Encoder.Kind == "pca",
		"encoder must be raw, mlp or embedding (got pca): end to end the first layer learns its own projection")
	fault(c.Rows.Columns,
		"rows must have one scale each end to end: they are sent in pieces, each before the next is known")
	for i, l := range c.Spec.Layers {
		fault(max(l.In, l.Out) > train.MaxColumns && c.Rows.Values != "",
			"rows must be float32 for layers[%d] (got %s): it has %d columns, and %d is the most that "+
				"another coding takes", i, c.Rows.Values, max(l.In, l.Out), train.MaxColumns)
		conv, _ := nn.ConvolutionNamed(l.Conv)
		fault(l.Hops > 1 && !conv.Propagates && (i > 0 || c.Spec.Encoder.Kind != "raw"),
			"hops must be 1 for layers[%d] (got %d): end to end only %s, and the first layer on raw features, "+
				"aggregate more than once", i, l.Hops,
			strings.Join(nn.Convolutions(func(c nn.Convolution) bool { return c.Propagates }), ", "))
	}
	return errors.Join(errs...)
}

// Fingerprint names everything that decides the result.
func (c Config) Fingerprint() [32]byte { return train.Fingerprint(c) }
