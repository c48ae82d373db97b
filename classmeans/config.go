// Package classmeans trains a model over a partitioned graph without gradients, in a few rounds. In
// each round sums over all peers give a linear map of the features: class means of labels, residuals
// of the model so far, or directions, which are what neighbours' features explain of the residuals.
// The map makes a short row for each node, boundary rows are sent once a hop, and a ridge regression
// on the columns of all rounds so far makes logits. These are soft labels, or leave residuals, for
// the next round. First rounds without rows choose scaling and target; validation nodes choose
// penalty, columns and round (docs/explanation/training.md).
//
// Letters in comments: N nodes, F features, C classes, D columns, R random features.
package classmeans

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// Config is how a model is trained. Settings that are Auto follow from the labels of all peers, before the first round.
// Peers whose configurations differ do not start: they compare the Fingerprint.
type Config struct {
	Seed     uint64 `json:"seed"`
	Task     string `json:"task"`     // "single", "multi" or "regression", as in nn.Spec
	Features int    `json:"features"` // F
	// Columns for a node's neighbours if features only identify nodes (0 = nodes have features).
	Adjacent int         `json:"adjacent"`
	Classes  int         `json:"classes"` // C: classes, or columns of numbers
	Metric   eval.Metric `json:"metric"`  // compared over validation nodes

	RowNorm string `json:"row_norm"` // of the features: "none", "l1" or "l2"
	Target  string `json:"target"`   // "labels": class means of soft labels; "residual"; Auto
	// whether a node's row goes without its own part of the sums: "true", "false" or Auto
	LeaveOut    string  `json:"leave_out"`
	ClassRounds int     `json:"rounds"`   // at most (0 = Auto)
	Hops        int     `json:"hops"`     // of the columns
	LastHop     bool    `json:"last_hop"` // the regressions read the last hop only, not all of them
	Random      int     `json:"random"`   // random features of each head; −1: Auto
	Shrink      float64 `json:"shrink"`   // of the variances, in units of their mean
	Coarse      bool    `json:"coarse"`   // whether rows of nodes with few values are rounded: closed.Layout.Coarsen
	// Whether nodes have few features: the regressions read them as they are, and what rows hold of them has at most
	// half as many dimensions. Rows then have directions, too.
	Few      bool `json:"few"`
	MinClass int  `json:"min_class"` // a class of fewer training nodes sends no mean in the first round

	Lambdas   []float64 `json:"lambdas"` // penalties to choose from, ascending
	Balanced  bool      `json:"balanced"`
	Positive  int       `json:"positive,omitempty"` // as in train.Config
	Inductive bool      `json:"inductive"`
	// [C] weight of a label of each class in the regressions (nil = equal, or Balanced)
	ClassWeights []float32 `json:"class_weights,omitempty"`

	// Privacy of edges (package privacy/dp): nodes learn about their neighbours only by noisy sums, Hops times, in the
	// last Hops rounds (0 = no privacy, exact sums).
	Epsilon float64 `json:"epsilon,omitempty"`
	Delta   float64 `json:"delta,omitempty"`

	Rows comm.Coding `json:"rows,omitzero"` // of rows that are sent
	// "halo" is all rows; Auto is the fewest rows and sums if they take fewer bytes
	Exchange string `json:"exchange"`
	Sums     string `json:"sums"` // number format of the sums of features: "float32", "int16", "int8" or Auto
}

// Auto, as a setting of a Config, leaves the choice to the labels of all peers.
const Auto = "auto"

// Lambdas are the penalties of every plan, in half decades; the columns have variance 1. They are written out, as
// math.Pow gives other last bits on other processors, and peers compare them.
func Lambdas() []float64 {
	return []float64{1e-05, 3.162277660168379e-05, 0.0001, 0.00031622776601683794, 0.001, 0.003162277660168379, 0.01,
		0.03162277660168379, 0.1, 0.31622776601683794, 1, 3.1622776601683795, 10, 31.622776601683796, 100}
}

// Validate returns all faults at once, or nil.
func (c Config) Validate() error {
	kind, _ := graph.KindNamed(c.Task)
	errs := train.ConfigFaults{c.Metric.Fits(kind), c.Rows.Validate()}
	fault := errs.If
	one := func(name, got string, of ...string) {
		fault(!slices.Contains(of, got), "%s must be one of %q (got %q)", name, of, got)
	}
	one("class_target", c.Target, Auto, "labels", "residual")
	one("leave_one_out", c.LeaveOut, Auto, "true", "false")
	one("row_norm", c.RowNorm, Auto, "none", "l1", "l2")
	fault(c.Few && (c.Adjacent > 0 || c.Epsilon > 0 || c.Features > MostFew),
		"few must be false beyond %d features, without features and with epsilon (got true)", MostFew)
	fault(c.Target == "labels" && c.numbers(),
		"class_target must be auto or residual where nodes have numbers (got labels)")
	fault(c.Balanced && c.numbers(),
		"balanced must be false where nodes have numbers (got true): there are no classes to weigh")
	errs = append(errs, nn.CheckClassWeights(c.ClassWeights, c.Classes, c.Balanced, kind))
	fault(c.Target == "labels" && c.Task == "multi",
		"class_target must be auto or residual where a node may have several classes (got labels)")
	fault(c.ClassRounds < 0 || c.ClassRounds > maxRounds, "class_rounds must be 0 (auto) to %d (got %d)", maxRounds,
		c.ClassRounds)
	fault(c.Random < -1, "random_features must be at least -1 (got %d)", c.Random)
	fault(!(c.Shrink > 0 && c.Shrink <= math.MaxFloat32), "shrink must be above 0 (got %g)", c.Shrink)
	fault(c.MinClass < 1, "min_class must be at least 1 (got %d)", c.MinClass)
	fault(len(c.Lambdas) == 0 || !slices.IsSorted(c.Lambdas), "lambdas must be ascending, at least one (got %v)",
		c.Lambdas)
	for _, l := range c.Lambdas {
		fault(!(l > 0 && l <= math.MaxFloat64), "lambdas must be finite and above 0 (got %g)", l)
	}
	one("exchange", c.Exchange, Auto, "halo")
	one("sums", c.Sums, Auto, "float32", "int16", "int8")
	fault(c.Adjacent > 0 && c.Inductive, "inductive must be false if nodes have no features (got true)")
	if private := c.private(); private != nil {
		return errors.Join(append(errs, private...)...)
	}
	errs = append(errs, c.spec(c.MostRounds()).Validate())
	return errors.Join(errs...)
}

// numbers reports whether nodes have numbers, not classes.
func (c Config) numbers() bool { return c.Task == graph.Numbers.String() }

// Inputs returns the columns of what class means are made of: features, or neighbours.
func (c Config) Inputs() int { return cmp.Or(c.Adjacent, c.Features) }

// maxRounds bounds the rounds: each of them is a few messages and a regression.
const maxRounds = 20

// MostRounds returns how many rounds there are at most.
func (c Config) MostRounds() int {
	if c.ClassRounds > 0 {
		return c.ClassRounds
	}
	return max(c.learning("labels").usualRounds(), c.learning("residual").usualRounds())
}

// narrow is the number of peers up to which sums of 8 bits are as good as exact ones: with more, their
// steps are too coarse.
const narrow = 8

// SumBits returns the bits of a number in the sums of features of `peers` peers (0 = float32).
func (c Config) SumBits(peers int) int {
	switch {
	case c.Sums == "int16" || c.Sums == Auto && peers > narrow:
		return 16
	case c.Sums == "int8" || c.Sums == Auto:
		return 8
	}
	return 0
}

// preciseFrom is a number of labels. From there on, if soft labels are the target, class means have 16 bits a number
// and products of random features 32. With fewer labels, chance changes these sums more than rounding does. If
// residuals are the target, the next round corrects the rounding of this one.
const preciseFrom = 5000

// MeansBits returns the bits of a number in the sums of features over each class, for `peers` peers with `labelled`
// labels (0 = float32).
func (c Config) MeansBits(peers int, labelled float64) int {
	if c.Sums == Auto && !c.residual() && labelled >= preciseFrom {
		return 16
	}
	return c.SumBits(peers)
}

// RandomBits returns the bits of a number in the sums of products of random features, for `peers` peers with `labelled`
// labels (0 = float32).
func (c Config) RandomBits(peers int, labelled float64) int {
	switch {
	case c.SumBits(peers) == 0:
		return 0
	case !c.residual() && labelled >= preciseFrom:
		return 32
	}
	return 16
}

// private returns what is wrong with the privacy of edges.
func (c Config) private() (errs train.ConfigFaults) {
	if c.Epsilon == 0 {
		return nil
	}
	if _, err := c.mechanism([32]byte{}); err != nil {
		errs = append(errs, err)
	}
	fault := errs.If
	fault(c.Task == "multi", "epsilon must be 0 where a node may have several classes (got %g): noise "+
		"cannot hide unbounded rows", c.Epsilon)
	fault(c.numbers(), "epsilon must be 0 where nodes have numbers (got %g): noise cannot hide unbounded rows",
		c.Epsilon)
	fault(c.Adjacent > 0, "epsilon must be 0 where nodes have no features (got %g): class means of their "+
		"neighbours have no noise", c.Epsilon)
	fault(c.Inductive, "epsilon must be 0 with inductive (got %g): edges would be released by two graphs", c.Epsilon)
	fault(c.MostRounds() > maxRounds, "hops must be at most %d with epsilon (got %d): each has its own round",
		maxRounds-ownRounds, c.Hops)
	fault(c.ClassRounds > 0 && c.ClassRounds <= c.Hops,
		"class_rounds must be more than the %d hops with epsilon (got %d): each has its own round after the first",
		c.Hops, c.ClassRounds)
	return errs
}

// Privacy returns what a run by c keeps private of each peer's edges (nil = nothing).
func (c Config) Privacy() (*train.Privacy, error) {
	edges, err := c.mechanism([32]byte{}) // for its statement
	if edges == nil {
		return nil, err
	}
	s := edges.Statement()
	return &s, nil
}

// mechanism returns what keeps the edges of one peer private in one run, nil if they are not private. secret must come
// from crypto/rand.
func (c Config) mechanism(secret [32]byte) (*dp.PrivateEdges, error) {
	if c.Epsilon == 0 {
		return nil, nil
	}
	if c.Hops < 1 {
		return nil, fmt.Errorf("epsilon must be 0 without hops (got %g): no edge is used", c.Epsilon)
	}
	return dp.NewEdges(dp.Guarantee{Epsilon: c.Epsilon, Delta: c.Delta}, c.Hops, secret)
}

// The rounds of either target if no number is given, and the random features of residuals.
const (
	labelRounds    = 3
	residualRounds = 4
	residualRandom = 256
	residualAlone  = 2 // before residualRounds

	// randomEach bounds how many random features a head has for each of its columns: heads of the first rounds read few
	// columns, about which many random features reveal hardly more than some.
	randomEach = 32

	ownRounds = 4 // of either target where edges are private, before the rounds that use them

	// MostFew is how many features a node may have for the regressions to read them: a few rounds find what a few
	// columns contain, and a regression what all do. Their products are few, and no row has them.
	MostFew = 64

	labelRandom = 64 // random features of each head with soft labels
	fewHops     = 4  // of rounds of few features
)

// spec returns the model of `rounds` rounds (0 = the target's default).
func (c Config) spec(rounds int) nn.Spec {
	residual := c.residual()
	s := closed.Layout{Numbers: c.numbers(), Adjacent: c.Adjacent, Rounds: rounds, Random: max(c.Random, 0),
		Residual: residual, LeaveOut: c.leavesOut(), Inductive: c.Inductive, Multi: c.Task == "multi", Alone: c.alone()}
	s.TrainLead = s.LeaveOut && !residual && c.Classes > 1 && c.Epsilon == 0 && c.Hops > 0
	if s.Rounds == 0 {
		s.Rounds = c.usualRounds()
	}
	switch {
	case c.Random >= 0:
	case residual && c.Adjacent == 0:
		s.Random = residualRandom
	case c.Epsilon == 0:
		s.Random = labelRandom
	}
	if s.Random > 0 {
		s.RandomEach = randomEach
	}
	if c.Epsilon > 0 {
		s.Own = max(s.Rounds-c.Hops, 1)
	} else {
		s.Hops, s.AllHops = c.Hops, !c.LastHop && c.Hops > 0
		s.Degree = s.AllHops
		switch {
		case c.Few:
			c.ofFew(&s)
		case residual:
			if s.Mean, s.LogitHops = true, min(c.Hops, 2); s.Alone > 0 {
				s.Hops = 0 // only logits are sent
			}
		}
	}
	// If no edge is used, no row is sent. Nodes without features stay coarse: exact columns would follow the training
	// nodes'.
	if c.Coarse && (c.Hops > 0 || c.Adjacent > 0) {
		// With rounds of own features first, fewer numbers are sent, but each may not reveal more: our attack found
		// nodes about which they did.
		switch s.Coarse = max(s.Rounds-s.Alone, min(s.Rounds, labelRounds)) * s.Width(c.Classes); {
		case s.Own > 0:
			s.Coarse = (s.Rounds - s.Own) * c.Classes
		case c.Few:
			s.Coarse = (s.Rounds - s.Alone) * s.MapWidth(s.Alone, c.Classes)
		case residual:
			s.Coarse = s.Rounds * s.Width(c.Classes) // logits are made of all
		}
	}
	s.OwnExact = s.Coarse > 0 && s.Hops > 0 && s.AllHops && s.LogitHops == 0 && s.Adjacent == 0
	return nn.Spec{Task: c.Task, Features: c.Features, Classes: c.Classes, LayerOutput: nn.Hidden, Closed: &s,
		Encoder: nn.EncoderSpec{Kind: "closed", Out: c.Classes, L1Norm: c.RowNorm == "l1", L2Norm: c.RowNorm == "l2"}}
}

// ofFew completes the layout of nodes of few features. The first round sends no row: what it leaves of the labels is
// what directions explain. In all rounds after it together, rows have at most half as many dimensions as features.
func (c Config) ofFew(s *closed.Layout) {
	s.OwnFeatures = c.Features
	if s.Hops = min(c.Hops, fewHops); s.Hops == 0 {
		return
	}
	most, width := max(c.Features/2, 1), s.Width(c.Classes)
	s.Mean, s.Directions = true, min(max(c.Classes-1, 1), most)
	if c.numbers() || s.Multi {
		s.Directions = min(c.Classes, most)
	}
	s.DirectionsOnly = width+s.Directions > most
	if s.Alone = min(1, s.Rounds-1); c.ClassRounds == 0 {
		s.Alone, s.Rounds = 1, 1+labelRounds
	}
	s.Rounds = min(s.Rounds, s.Alone+max(most/s.MapWidth(s.Alone, c.Classes), 1))
}

// AsksForEdges reports whether the peers sum how many of them have edges to nodes of others: only then are rows
// rounded. Columns of nodes without features are rounded anyway, and private edges are in no sum.
func (c Config) AsksForEdges(peers int) bool {
	return peers > 1 && c.Adjacent == 0 && c.Epsilon == 0 && c.Layout().Rounded()
}

// usualRounds returns how many rounds a target has by default.
func (c Config) usualRounds() int {
	switch {
	case c.Epsilon > 0:
		return ownRounds + c.Hops
	case c.residual():
		return residualRounds + c.alone()
	}
	return labelRounds
}

// alone returns how many first rounds use only a node's own features. With residuals, logits are sent after them and no
// columns: columns of four rounds revealed 14 features of a hundred on facebook-pages. If there are few features,
// logits contain too little about neighbours.
func (c Config) alone() int {
	if !c.residual() || c.numbers() || c.Features <= MostFew || c.Hops == 0 || c.Epsilon > 0 {
		return 0
	}
	return min(residualAlone, cmp.Or(c.ClassRounds, maxRounds)-1)
}

// manyLabels is the fraction of all nodes from which on a target of residuals is better than soft
// labels.
const manyLabels = 1.0 / 5

// Residual reports whether the residuals are the target if `labelled` of all nodes have a label.
func (c Config) Residual(labelled, nodes float64) bool {
	if c.Target == Auto {
		return c.Task != graph.Single.String() || labelled >= manyLabels*nodes
	}
	return c.Target == "residual"
}

// leavesOut reports whether a node's own part of the sums is taken out of its row. If few nodes are labelled, rows
// would otherwise reveal the class of every training node; rows made from numbers would reveal more than a class.
func (c Config) leavesOut() bool {
	if c.LeaveOut == Auto {
		return !c.residual() || c.numbers()
	}
	return c.LeaveOut == "true"
}

// Layout returns the layout of the model, of soft labels if the target is Auto.
func (c Config) Layout() closed.Layout { return *c.spec(c.ClassRounds).Closed }

// learning returns c with that target.
func (c Config) learning(target string) Config {
	c.Target = target
	return c
}

// residual reports whether residuals are the target.
func (c Config) residual() bool { return c.Target == "residual" || c.numbers() }

// cost returns what the largest regression takes at each peer.
func (c Config) cost() linear.Cost {
	most := 0 // columns
	for _, target := range []string{"labels", "residual"} {
		spec := c.learning(target).Layout()
		d := 0
		for r := range spec.Rounds {
			d += spec.Columns(r, c.Classes)
		}
		most = max(most, 1+d+spec.RandomOf(d))
	}
	return linear.RidgeCost(most, c.Classes, mostCandidates)
}

// Draw returns which training nodes validate if the data marks none, and which class is positive.
func (c Config) Draw() train.Draw { return train.Draw{Seed: c.Seed, Positive: c.Positive} }

// Fingerprint names everything that decides the result.
func (c Config) Fingerprint() [32]byte { return train.Fingerprint(c) }
