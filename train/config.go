// Package train is what the trainers share: the base configuration, the events of a run, its state and checkpoints, and
// the results that it returns.
package train

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/rng"
)

// Config is the part of a configuration that every trainer has. A round is one step that all peers take together; if
// all layers are trained at once, it is an epoch and the run is one stage.
type Config struct {
	Seed uint64  `json:"seed"`
	Spec nn.Spec `json:"spec"`

	Rounds    int            `json:"rounds"`     // maximum number of rounds of a stage; at least 1
	Patience  int            `json:"patience"`   // rounds without better validation that end a stage (0 = never)
	EvalEvery int            `json:"eval_every"` // rounds between two validations; at least 1
	Metric    eval.Metric    `json:"metric"`     // selects the best state of a stage
	Optimizer optim.Config   `json:"optimizer"`
	Schedule  optim.Schedule `json:"schedule"` // of the learning rate over the steps of a stage
	// weights each class by the inverse of its frequency among the training labels
	Balanced bool `json:"balanced"`
	// [C] weight of a label of each class in the loss (nil = equal, or Balanced)
	ClassWeights []float32 `json:"class_weights,omitempty"`
	Positive     int       `json:"positive,omitempty"` // Draw.Positive
	// validation and test nodes and their edges are absent from training
	Inductive bool `json:"inductive"`

	// SHA-256 of the model file whose parameters training starts from (empty = random parameters)
	Init string `json:"init,omitempty"`

	Rows     comm.Coding `json:"rows,omitzero"` // encodes the values of rows that are sent
	Exchange string      `json:"exchange"`      // one of Exchanges

	Checkpoint int `json:"-"` // rounds between two checkpoints (0 = none during a stage)
}

// Exchanges are the ways in which a layer receives its inputs from other peers: "halo" sends rows; "cover" sends the
// smallest set of rows and partial sums to each layer that sums rows; "auto" does the same if it takes fewer bytes,
// including the messages that agree on the cover.
var Exchanges = []string{"halo", "cover", "auto"}

// Validate returns all faults at once, or nil. The optimizer and the schedule are not checked: a solver may need
// neither.
func (c Config) Validate() error {
	kind := c.Spec.Kind()
	errs := ConfigFaults{c.Metric.Fits(kind), c.Rows.Validate()}
	errs.If(c.Balanced && kind == graph.Numbers, "balanced must be false if nodes have numbers (got true): there are "+
		"no classes to weigh")
	errs = append(errs, nn.CheckClassWeights(c.ClassWeights, c.Spec.Classes, c.Balanced, kind))
	least := func(name string, got, bound int) {
		errs.If(got < bound, "%s must be at least %d (got %d)", name, bound, got)
	}
	least("rounds", c.Rounds, 1)
	least("patience", c.Patience, 0)
	least("eval_every", c.EvalEvery, 1)
	least("checkpoint_every", c.Checkpoint, 0)
	errs.If(!slices.Contains(Exchanges, c.Exchange), "exchange must be one of %q (got %q)", Exchanges, c.Exchange)
	return errors.Join(errs...)
}

// ConfigFaults are what is wrong with a configuration.
type ConfigFaults []error

// If adds a fault if something is bad.
func (f *ConfigFaults) If(bad bool, format string, args ...any) {
	if bad {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// Fits returns why a model of c.Spec cannot be trained on shard s, or nil.
func (c Config) Fits(s *shard.Shard) error {
	var errs ConfigFaults
	errs.If(c.Spec.Reads(s.X).Cols() != c.Spec.Features, "shard %d must have %d features a node, as the model has "+
		"(got %d)", s.Rank, c.Spec.Features, s.X.Cols())
	if c.Spec.Kind() != graph.Links {
		errs.If(s.Labels.Classes != c.Spec.Classes, "shard %d must have %d classes, as the model has (got %d)", s.Rank,
			c.Spec.Classes, s.Labels.Classes)
		errs.If(s.Labels.Kind() != c.Spec.Kind(), "shard %d must have labels for task %s (got %s)", s.Rank, c.Spec.Task,
			s.Labels.Kind())
	}
	return errors.Join(append(errs, FitsEdges(c.Spec, s)...)...)
}

// FitsEdges returns why the layers of a model cannot read the edges of s.
func FitsEdges(m nn.Spec, s *shard.Shard) (errs ConfigFaults) {
	for i, l := range m.Layers {
		errs.If(l.Relations > 0 && l.Relations != s.Typed.Count(),
			"edges must have %d relations, as layers[%d] of the "+
				"model has (got %d)", l.Relations, i, s.Typed.Count())
		errs.If(l.EdgeColumns > 0 && l.EdgeColumns != s.EdgeX.Cols, "edges must have %d columns, as layers[%d] of the "+
			"model reads (got %d)", l.EdgeColumns, i, s.EdgeX.Cols)
	}
	return errs
}

// LastRound reports whether the state of the last round is taken, whatever validates.
func (c Config) LastRound() bool { return c.EvalEvery >= c.Rounds }

// Draw returns which training nodes validate if the data marks no validation nodes.
func (c Config) Draw() Draw {
	return Draw{Seed: c.Seed, LastRound: c.LastRound(), Positive: c.Positive}
}

// NewModel returns the model that c describes, with the initial parameters of c.Seed: the same at every peer.
func (c Config) NewModel() (*nn.Model, error) {
	return nn.New(c.Spec, rng.New(c.Seed).FoldString("init"))
}

// Fingerprint returns the SHA-256 of a configuration's JSON: two peers hold the same configuration exactly when their
// fingerprints agree. Fields that do not change the result are left out of the JSON.
func Fingerprint(config any) [32]byte {
	b, err := json.Marshal(config)
	if err != nil {
		panic("train: configuration cannot be encoded: " + err.Error()) // only a NaN, which Validate refuses
	}
	return sha256.Sum256(b)
}

// Accumulated returns how many counts a metric has while it selects and at the end, and how many of either are wide.
func Accumulated(metric eval.Metric, k graph.TargetKind, classes int) (selecting, final, wide int64) {
	none := graph.Labels{Classes: classes}.None(k, 0)
	a := eval.NewAccumulator(metric, none, SelectionBins)
	for i := range a.Size() {
		if a.Wide(i) {
			wide++
		}
	}
	return int64(a.Size()), int64(eval.NewAccumulator(metric, none, eval.DefaultBins).Size()), wide
}
