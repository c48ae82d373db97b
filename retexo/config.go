// Package retexo trains a model layer by layer over a partitioned graph ("lazy message passing"; Kolluri, Choudhary,
// Hooi and Saxena, arXiv 2302.13053). A layer's inputs are frozen while it trains: boundary rows are sent once for each
// layer and hop, and after that only model updates are.
//
// Letters in comments: N nodes, F in, H hidden, C classes, K peers.
package retexo

import (
	"errors"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/train"
)

// Config is how a model is trained. Stage 0 trains Spec.Encoder, stage k ≥ 1 trains Spec.Layers[k−1]. Peers compare the
// Fingerprint and do not start if their configurations differ.
type Config struct {
	train.Config

	// optimizer steps between two reductions; at least 1. 1 is exact data-parallel training
	LocalSteps int `json:"local_steps"`
	PCAPasses  int `json:"pca_passes"` // encoder pca: products with the Gram matrix; at least 1

	// Sums is the number format in which the peers' contributions to the encoder's sums are sent: "int16", "int8",
	// "auto" (int16), or empty for float32.
	Sums string `json:"sums,omitempty"`

	// Updates is the number format of a peer's update in a round, also "int4"; "auto" is int8 for up to 8 peers, else
	// int16. A peer adds the rounding error of its update to its next one (error feedback).
	Updates string `json:"updates,omitempty"`

	// Classes is a closed form whose logits are columns of the first layer's inputs, as in Spec.Encoder.Classes (nil =
	// none). WithoutClasses explains why it is nil although the plan asks for it.
	Classes        *classmeans.Config `json:"classes,omitempty"`
	WithoutClasses string             `json:"-"`

	// EnoughLabels disables weight decay, despite Optimizer.Decay, if there are at least this number of training labels
	// (0 = never).
	EnoughLabels int `json:"enough_labels,omitempty"`

	// the model has all layers, even if it validates better without the last ones
	KeepLast bool `json:"keep_last,omitempty"`
}

// Defaults returns the default configuration of spec.
func Defaults(spec nn.Spec) Config {
	return Config{
		Config: train.Config{
			Seed: 1, Spec: spec, Rounds: 200, EvalEvery: 1, Metric: "accuracy",
			Optimizer: optim.Config{Name: "adam", LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 5e-4},
			Schedule:  optim.Schedule{Kind: "constant"}, Exchange: "auto",
		},
		LocalSteps: 1, PCAPasses: 1,
	}
}

// fewPeers is the greatest number of peers with updates of 8 bits.
const fewPeers = 8

// UpdateBits returns the bits of a number in the updates of `peers` peers (comm.Contribution.Bits; 0 = float32).
func (c Config) UpdateBits(peers int) int {
	switch {
	case c.Updates == "int4":
		return 4
	case c.Updates == "auto" && peers <= fewPeers:
		return 8
	}
	return comm.SumBits(c.Updates)
}

// optimizer returns the optimizer's configuration for `labelled` training labels.
func (c Config) optimizer(labelled float64) optim.Config {
	if c.EnoughLabels > 0 && labelled >= float64(c.EnoughLabels) {
		c.Optimizer.Decay = 0
	}
	return c.Optimizer
}

// Stages returns how many stages the model has: the encoder and the layers.
func (c Config) Stages() int { return 1 + len(c.Spec.Layers) }

// rounds returns the greatest number of rounds of the stages before k.
func (c Config) rounds(k int) int {
	if c.Spec.Encoder.Kind != "mlp" {
		k--
	}
	return max(k, 0) * c.Rounds
}

// LastRound reports whether all layers are taken as they are after their last round.
func (c Config) LastRound() bool {
	return c.Config.LastRound() && c.KeepLast
}

// Draw returns which nodes validate if none are marked as validation nodes, and which class is positive.
func (c Config) Draw() train.Draw {
	return train.Draw{Seed: c.Seed, LastRound: c.LastRound(), Positive: c.Positive}
}

// headsBefore returns how many parameters the heads have of those stages before k that send hidden rows. The model has
// such a head only if it ends with its stage.
func (c Config) headsBefore(k int) (n int) {
	if c.Spec.LayerOutput == nn.Logits {
		return 0
	}
	if c.Spec.Encoder.Kind == "mlp" && k > 0 {
		n = (c.Spec.Encoder.Out + 1) * c.Spec.Classes
	}
	for _, l := range c.Spec.Layers[:max(0, min(k, len(c.Spec.Layers))-1)] {
		in := l.Out
		for _, out := range append(l.Head[:len(l.Head):len(l.Head)], c.Spec.Classes)[:max(1, len(l.Head))] {
			n += (in + 1) * out
			in = out
		}
	}
	return n
}

// shape returns the bounds of a snapshot of a run of m.
func (c Config) shape(m *nn.Model) (s train.SnapshotShape) {
	widest := c.Spec.Encoder.Out
	for _, l := range c.Spec.Layers {
		widest = max(widest, l.Out)
	}
	s.Rounds, s.Labels, s.Heads = c.Rounds, train.LabelsLen(c.Spec.Kind(), c.Spec.Classes), c.headsBefore(c.Stages())
	for _, v := range m.Params() {
		s.Params += v.Value.Rows * v.Value.Cols
	}
	s.Slab = s.Params + (widest+1)*c.Spec.Classes // with the head of a stage, which the model does not keep
	return s
}

// Validate returns all faults at once, or nil.
func (c Config) Validate() error {
	errs := train.ConfigFaults{c.Config.Validate(), c.Optimizer.Validate(), c.Schedule.Validate()}
	fault := errs.If
	fault(c.LocalSteps < 1, "local_steps must be at least 1 (got %d)", c.LocalSteps)
	fault(c.Exchange == "cover" && c.Inductive,
		"exchange must be halo or auto with inductive (got cover): the halo's rows serve two graphs")
	fault(len(c.Spec.Layers) == 0, "layers must be at least 1 (got 0)")
	for i, l := range c.Spec.Layers {
		conv, ok := nn.ConvolutionNamed(l.Conv)
		fault(ok && !conv.LayerWise, "model must be one that can be trained layer by layer (got %s in layers[%d]): "+
			"it is trained end to end only", l.Conv, i)
	}
	fault(c.Spec.BatchNormed(), "batch_norm must be off: its statistics would need the rows of all peers at every "+
		"local step; use norm (of each row)")
	fault(c.Spec.Encoder.Kind == "pca" && c.PCAPasses < 1, "pca_passes must be at least 1 (got %d)", c.PCAPasses)
	fault((c.Classes != nil) != (c.Spec.Encoder.Classes != nil) || c.Classes != nil && c.Inductive,
		"classes must be given with the encoder's columns of classes, without inductive")
	fault(comm.SumBits(c.Sums) < 0, "sums must be auto, int16, int8 or empty (got %q)", c.Sums)
	fault(c.UpdateBits(1) < 0, "updates must be auto, int16, int8, int4 or empty (got %q)", c.Updates)
	return errors.Join(errs...)
}

// ShareCounts returns train.ShareCounts of this run: zeros if its logits are never moved.
func (c Config) ShareCounts() (first, second, sites, wide int) {
	if c.Balanced || c.ClassWeights != nil {
		return 0, 0, 0, 0
	}
	return train.ShareCounts(c.Spec.Kind(), c.Metric, c.Spec.Classes, true)
}

// Fingerprint names everything that decides the result; how often checkpoints are written does not.
func (c Config) Fingerprint() [32]byte { return train.Fingerprint(c) }
