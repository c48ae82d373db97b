// Package retexo trains a model layer by layer over a partitioned graph ("lazy message passing"; Kolluri, Choudhary,
// Hooi and Saxena, arXiv 2302.13053). A layer's inputs are frozen while it trains: boundary rows cross the network
// once a layer and hop, and after that only model updates do.
//
// Letters in comments: N nodes, F in, H hidden, C classes, K peers.
package retexo

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
)

// Config says how a model is trained. Peers whose configs differ do not start: Fingerprint is compared.
type Config struct {
	Seed uint64  `json:"seed"`
	Spec nn.Spec `json:"spec"` // stage 0 is Spec.Encoder, stage k ≥ 1 is Spec.Layers[k−1]

	Rounds     int            `json:"rounds"`      // rounds of a stage at most; ≥ 1
	LocalSteps int            `json:"local_steps"` // optimiser steps between two reductions; ≥ 1. 1 is exact data-parallel training
	Patience   int            `json:"patience"`    // a look at the validation nodes that finds the best state this many rounds back ends a stage; 0: none
	EvalEvery  int            `json:"eval_every"`  // rounds between two looks at the validation nodes; ≥ 1
	Metric     eval.Metric    `json:"metric"`      // by which the best state of a stage is chosen: a name of nn/eval
	Solver     string         `json:"solver"`      // "adam", "adamw", "sgd", or "ridge": the closed form, one round
	Optimizer  optim.Config   `json:"optimizer"`   // its Name is the Solver's; unused by "ridge"
	Schedule   optim.Schedule `json:"schedule"`    // of the learning rate over a stage's steps
	Lambdas    []float64      `json:"lambdas"`     // ridge: penalties tried, ascending, each > 0, times the mean diagonal of the Gram matrix
	Balanced   bool           `json:"balanced"`    // weigh each class by the inverse of its share of the training labels

	Inductive  bool `json:"inductive"`  // validation and test nodes and their edges are absent while training
	Neighbours int  `json:"neighbours"` // in-edges kept of a node while a layer trains; 0: all
	PCAPasses  int  `json:"pca_passes"` // encoder pca: products with the Gram matrix; ≥ 1

	Rows     wire.Coding `json:"rows,omitzero"` // how the values of halo rows travel
	Exchange string      `json:"exchange"`      // what travels: "halo", "cover" or "auto" (Exchanges)

	Survival Survival `json:"survival,omitzero"` // how it goes on when a peer is lost

	Checkpoint int `json:"-"` // rounds between two checkpoints; 0: at the ends of stages only
}

// Defaults returns the config of spec that the program starts from.
func Defaults(spec nn.Spec) Config {
	return Config{
		Seed: 1, Spec: spec, Rounds: 200, LocalSteps: 1, EvalEvery: 1, Metric: "accuracy", Solver: "adam",
		Optimizer: optim.Config{Name: "adam", LR: 0.003, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 5e-4},
		Schedule:  optim.Schedule{Kind: "constant"},
		Lambdas:   []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100}, PCAPasses: 1, Exchange: "auto",
	}
}

// Stages returns how many stages the model has: the encoder and the layers.
func (c Config) Stages() int { return 1 + len(c.Spec.Layers) }

// Validate returns all faults at once, or nil.
func (c Config) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(c.Rounds < 1, "rounds: %d, want at least 1", c.Rounds)
	fault(c.LocalSteps < 1, "local_steps: %d, want at least 1", c.LocalSteps)
	fault(c.Patience < 0, "patience: %d, want 0 (none) or more rounds", c.Patience)
	fault(c.EvalEvery < 1, "eval_every: %d, want at least 1", c.EvalEvery)
	fault(c.Neighbours < 0, "neighbours: %d, want 0 (all) or more", c.Neighbours)
	fault(c.Checkpoint < 0, "checkpoint: %d, want 0 (ends of stages) or more rounds", c.Checkpoint)
	fault(!slices.Contains(Exchanges, c.Exchange), "exchange: %q, want one of %q", c.Exchange, Exchanges)
	fault(c.Exchange == "cover" && (c.Inductive || c.Neighbours > 0), "exchange: cover, but training sees another graph (inductive: %t, neighbours: %d), for which the rows of the halo serve as well; use halo or auto", c.Inductive, c.Neighbours)
	fault(len(c.Spec.Layers) == 0, "layers: none, want at least one")
	fault(c.Spec.BatchNormed(), "batch_norm: its statistics add up rows of all peers at every local step, of which only updates travel here, and those of one peer's nodes alone would make another model at each; use norm (of each row)")
	switch c.Solver {
	case "adam", "adamw", "sgd":
		fault(c.Optimizer.Name != c.Solver, "solver: %q, but the optimizer is %q", c.Solver, c.Optimizer.Name)
		if err := c.Optimizer.Validate(); err != nil {
			errs = append(errs, err)
		}
		if err := c.Schedule.Validate(); err != nil {
			errs = append(errs, err)
		}
	case "ridge":
		fault(len(c.Lambdas) == 0, "lambdas: none, want at least one penalty")
		for _, l := range c.Lambdas {
			fault(!(l > 0 && l <= math.MaxFloat64), "lambdas: %g, want a finite number above 0", l)
		}
		fault(!slices.IsSorted(c.Lambdas), "lambdas: %v, want them ascending", c.Lambdas)
		fault(c.Spec.Encoder.Kind == "mlp", "solver: ridge has no closed form for encoder mlp")
		for i, l := range c.Spec.Layers {
			fault(l.Out != c.Spec.Classes || l.Norm || l.Act != "" || l.Residual || len(l.Head) > 0 || l.Dropout > 0 || l.Conv != "gcn" && l.Conv != "sage",
				"layers[%d]: ridge solves a gcn or sage layer straight to the %d classes, without norm, activation, residual, dropout or head", i, c.Spec.Classes)
		}
	default:
		fault(true, "solver: %q, want adam, adamw, sgd or ridge", c.Solver)
	}
	fault(c.Spec.Encoder.Kind == "pca" && c.PCAPasses < 1, "pca_passes: %d, want at least 1", c.PCAPasses)
	fault(c.Inductive && c.Survival.LostRows != "" && c.Survival.LostRows != "wait",
		"lost_rows: %s, but with inductive the halo's degrees among training nodes are wanted as well: use wait", c.Survival.LostRows)
	fault(c.Survival.Straggler == "adapt" && c.Solver == "ridge",
		"straggler: adapt, but ridge solves a layer in one round: there is no local work to make less, use wait or drop")
	errs = append(errs, c.Metric.Validate(), c.Rows.Validate(), c.Survival.Validate(0))
	return errors.Join(errs...)
}

// Fingerprint names everything that decides the result; where and how often checkpoints are written does not.
func (c Config) Fingerprint() [32]byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic("retexo: config does not encode: " + err.Error()) // plain numbers and strings: only NaN can do it
	}
	return sha256.Sum256(b)
}
