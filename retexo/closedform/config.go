// Package closedform trains a model over a partitioned graph without gradients, in a few rounds. In
// each round the peers sum class means of the features (or, where many nodes are labelled, what the
// features say of the residuals), every node gets one column a class, boundary rows of so many
// numbers cross the network once a hop, and a ridge regression on the columns of all rounds so far
// makes logits of them. These are soft labels, or leave residuals, for the round after. Validation
// nodes choose penalty, columns and round.
//
// Letters in comments: N nodes, F features, C classes, D columns, R random features.
package closedform

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/task"
	"github.com/heddle-gnn/heddle/privacy/dp"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/train/linear"
)

// Config says how a model is trained. What is Auto follows from the labels of all peers, before the
// first round. Peers whose configurations differ do not start: Fingerprint is compared.
type Config struct {
	Seed     uint64 `json:"seed"`
	Task     string `json:"task"`     // "single", "multi" or "regression", as in nn.Spec
	Features int    `json:"features"` // F
	// Columns for a node's neighbours, where features say no more than which node it is; 0: nodes have features.
	Adjacent int         `json:"adjacent"`
	Classes  int         `json:"classes"` // C: classes, or columns of numbers
	Metric   eval.Metric `json:"metric"`  // by which validation nodes choose

	RowNorm     string  `json:"row_norm"`  // of the features: "none", "l1" or "l2"
	Target      string  `json:"target"`    // "labels": class means of soft labels; "residual"; Auto
	LeaveOut    string  `json:"leave_out"` // whether a node's row goes without its own part of the sums: "true", "false" or Auto
	ClassRounds int     `json:"rounds"`    // at most; 0: Auto
	Hops        int     `json:"hops"`      // of the columns
	HopsKept    string  `json:"hops_kept"` // "last", "all" or Auto
	Random      int     `json:"random"`    // random features of each head; −1: Auto
	Shrink      float64 `json:"shrink"`    // of the variances, in units of their mean
	Coarse      bool    `json:"coarse"`    // whether rows of nodes with few values are rounded: closed.Layout.Coarsen
	Alone       int     `json:"alone"`     // first rounds without hops; −1: Auto
	WithholdFew bool    `json:"withhold"`  // no rows of nodes with few values: closed.Layout.WithholdFew
	MinClass    int     `json:"min_class"` // a class of fewer training nodes sends no mean in the first round

	Lambdas   []float64 `json:"lambdas"` // penalties to choose from, ascending
	Balanced  bool      `json:"balanced"`
	Positive  int       `json:"positive,omitempty"` // as in train.Config
	Inductive bool      `json:"inductive"`
	// [C] what a label of each class counts in the regressions; nil: all alike, or as Balanced says.
	ClassWeights []float32 `json:"class_weights,omitempty"`

	// Privacy of edges (package privacy/dp): nodes learn of their neighbours by sums with noise alone, Hops
	// times, in the last so many rounds. Epsilon 0: none, and sums are exact.
	Epsilon float64 `json:"epsilon,omitempty"`
	Delta   float64 `json:"delta,omitempty"`

	Rows     wire.Coding `json:"rows,omitzero"` // of rows that travel
	Exchange string      `json:"exchange"`      // "halo": all rows; Auto: the fewest rows and sums where that takes fewer bytes
	Sums     string      `json:"sums"`          // number format of the sums of features: "float32", "int16", "int8" or Auto
}

// Auto, as a setting of a Config, leaves the choice to the labels of all peers.
const Auto = "auto"

// Lambdas are the penalties of every plan, in half decades; the columns have variance 1. They are written out, as math.Pow gives other
// last bits on other processors, and peers compare them.
func Lambdas() []float64 {
	return []float64{1e-05, 3.162277660168379e-05, 0.0001, 0.00031622776601683794, 0.001, 0.003162277660168379, 0.01, 0.03162277660168379,
		0.1, 0.31622776601683794, 1, 3.1622776601683795, 10, 31.622776601683796, 100}
}

// Validate returns all faults at once, or nil.
func (c Config) Validate() error {
	kind, _ := target.Named(c.Task)
	errs := []error{c.Metric.Fits(kind), c.Rows.Validate()}
	fault := faults(&errs)
	one := func(name, got string, of ...string) {
		fault(!slices.Contains(of, got), "%s must be one of %q (got %q)", name, of, got)
	}
	one("class_target", c.Target, Auto, "labels", "residual")
	one("leave_one_out", c.LeaveOut, Auto, "true", "false")
	one("hops_kept", c.HopsKept, Auto, "last", "all")
	one("row_norm", c.RowNorm, "none", "l1", "l2")
	fault(c.Target == "labels" && c.numbers(), "class_target must be auto or residual where nodes have numbers (got labels)")
	fault(c.Balanced && c.numbers(), "balanced must be false where nodes have numbers (got true): there are no classes to weigh")
	errs = append(errs, task.CheckWeights(c.ClassWeights, c.Classes, c.Balanced, kind))
	fault(c.Target == "labels" && c.Task == "multi", "class_target must be auto or residual where a node may have several classes (got labels)")
	fault(c.ClassRounds < 0 || c.ClassRounds > maxRounds, "class_rounds must be 0 (auto) to %d (got %d)", maxRounds, c.ClassRounds)
	fault(c.Random < -1, "random_features must be at least -1 (got %d)", c.Random)
	fault(!(c.Shrink > 0 && c.Shrink <= math.MaxFloat32), "shrink must be above 0 (got %g)", c.Shrink)
	fault(c.Alone < -1 || c.Alone >= maxRounds, "rounds_alone must be -1 (auto) to %d (got %d)", maxRounds-1, c.Alone)
	fault(c.Alone > 0 && (c.Hops == 0 || c.Epsilon > 0), "rounds_alone must be 0 without hops, and with epsilon (got %d)", c.Alone)
	fault(c.Alone > 0 && c.ClassRounds > 0 && c.ClassRounds <= c.Alone, "class_rounds must be more than the %d rounds_alone (got %d)", c.Alone, c.ClassRounds)
	fault(c.MinClass < 1, "min_class must be at least 1 (got %d)", c.MinClass)
	fault(len(c.Lambdas) == 0 || !slices.IsSorted(c.Lambdas), "lambdas must be ascending, at least one (got %v)", c.Lambdas)
	for _, l := range c.Lambdas {
		fault(!(l > 0 && l <= math.MaxFloat64), "lambdas must be finite and above 0 (got %g)", l)
	}
	one("exchange", c.Exchange, Auto, "halo")
	one("sums", c.Sums, Auto, "float32", "int16", "int8")
	fault(c.Adjacent > 0 && c.Inductive, "inductive must be false (got true) where nodes are told by their neighbours")
	if private := c.private(); private != nil {
		return errors.Join(append(errs, private...)...)
	}
	errs = append(errs, c.spec(false, c.MostRounds()).Validate())
	return errors.Join(errs...)
}

// faults returns a function that adds an error to errs where something is bad.
func faults(errs *[]error) func(bad bool, format string, args ...any) {
	return func(bad bool, format string, args ...any) {
		if bad {
			*errs = append(*errs, fmt.Errorf(format, args...))
		}
	}
}

// numbers reports whether nodes have numbers, not classes.
func (c Config) numbers() bool { return c.Task == target.Numbers.String() }

// Inputs returns the columns of what class means are made of: features, or neighbours.
func (c Config) Inputs() int { return cmp.Or(c.Adjacent, c.Features) }

// maxRounds bounds the rounds: each of them is a few messages and a regression.
const maxRounds = 20

// MostRounds returns how many rounds there are at most.
func (c Config) MostRounds() int {
	if c.ClassRounds > 0 {
		return c.ClassRounds
	}
	return max(c.usualRounds(false), c.usualRounds(true))
}

// narrow is the number of peers up to which sums of 8 bits are as good as exact ones: with more, their
// steps are too coarse.
const narrow = 8

// SumBits returns the bits of a number in the sums of features of so many peers; 0: float32.
func (c Config) SumBits(peers int) int {
	switch {
	case c.Sums == "int16" || c.Sums == Auto && peers > narrow:
		return 16
	case c.Sums == "int8" || c.Sums == Auto:
		return 8
	}
	return 0
}

// preciseFrom is from how many labels on class means need 16 bits, and products of random features 32, with a target of soft
// labels: the fewer labels, the more do these sums differ from those of other nodes by chance. What rounding does to a round of
// residuals the next round puts right.
const preciseFrom = 5000

// MeansBits returns the bits of a number in the sums of features over each class, of so many peers whose nodes have so many
// labels; 0: float32.
func (c Config) MeansBits(peers int, labelled float64, residual bool) int {
	if c.Sums == Auto && !residual && labelled >= preciseFrom {
		return 16
	}
	return c.SumBits(peers)
}

// RandomBits returns the bits of a number in the sums of products of random features, of so many peers whose nodes have so
// many labels; 0: float32.
func (c Config) RandomBits(peers int, labelled float64, residual bool) int {
	switch {
	case c.SumBits(peers) == 0:
		return 0
	case !residual && labelled >= preciseFrom:
		return 32
	}
	return 16
}

// private returns what is wrong with the privacy of edges.
func (c Config) private() (errs []error) {
	if c.Epsilon == 0 {
		return nil
	}
	if _, err := c.Edges([32]byte{}); err != nil {
		errs = append(errs, err)
	}
	fault := faults(&errs)
	fault(c.Task == "multi", "epsilon must be 0 where a node may have several classes (got %g): there is no bound on what a row tells", c.Epsilon)
	fault(c.numbers(), "epsilon must be 0 where nodes have numbers (got %g): there is no bound on what a row tells", c.Epsilon)
	fault(c.Adjacent > 0, "epsilon must be 0 where nodes have no features (got %g): class means of their neighbours have no noise", c.Epsilon)
	fault(c.Inductive, "epsilon must be 0 with inductive (got %g): edges would be released by two graphs", c.Epsilon)
	fault(c.HopsKept == "all", "hops_kept must be auto or last with epsilon (got all): its column of degrees has no noise")
	fault(c.MostRounds() > maxRounds, "hops must be at most %d with epsilon (got %d): each has a round of its own", maxRounds-ownRounds, c.Hops)
	fault(c.ClassRounds > 0 && c.ClassRounds <= c.Hops, "class_rounds must be more than the %d hops with epsilon (got %d): each has a round of its own after the first",
		c.Hops, c.ClassRounds)
	return errs
}

// Edges returns the mechanism that keeps the edges of one peer private in one run; nil: they are not.
// secret must come from crypto/rand.
func (c Config) Edges(secret [32]byte) (*dp.Edges, error) {
	if c.Epsilon == 0 {
		return nil, nil
	}
	if c.Hops < 1 {
		return nil, fmt.Errorf("epsilon must be 0 without hops (got %g): no edge is used", c.Epsilon)
	}
	return dp.NewEdges(dp.Guarantee{Epsilon: c.Epsilon, Delta: c.Delta}, c.Hops, secret)
}

// The rounds of either target where there is no number given, and the random features of residuals.
const (
	labelRounds    = 3
	residualRounds = 4
	residualRandom = 256
	residualAlone  = 2 // before residualRounds

	// randomEach is how many random features a head has for each of its columns, at most: those of the first rounds read a few
	// columns, of which many random features say hardly more than some.
	randomEach = 32

	ownRounds = 4 // of either target where edges are private, before the rounds that use them

	// mostOwn is how many features a node may have for all of them to be columns where nodes have numbers: a round has one
	// column a target, so that a few rounds find what a few columns say, and a regression what all of them do. Their products
	// are few, and no row holds them.
	mostOwn = 64
)

// spec returns the model of so many rounds, or of the number that the target has by default (0).
func (c Config) spec(residual bool, rounds int) nn.Spec {
	residual = residual || c.numbers()
	s := closed.Layout{Numbers: c.numbers(), Adjacent: c.Adjacent, Rounds: rounds, Random: max(c.Random, 0),
		Residual: residual, LeaveOut: c.leavesOut(residual), Inductive: c.Inductive, Multi: c.Task == "multi", Alone: c.alone(residual), WithholdFew: c.WithholdFew}
	s.TrainLead = s.LeaveOut && !residual && c.Classes > 1 && c.Epsilon == 0 && c.Hops > 0
	if c.numbers() && c.Adjacent == 0 && c.Features <= mostOwn {
		s.OwnFeatures = c.Features
	}
	if s.Rounds == 0 {
		s.Rounds = c.usualRounds(residual)
	}
	if residual && c.Random < 0 {
		s.Random = residualRandom
	}
	if s.Random > 0 {
		s.RandomEach = randomEach
	}
	if c.Epsilon > 0 {
		s.Own = max(s.Rounds-c.Hops, 1)
	} else {
		s.Hops, s.AllHops = c.Hops, c.HopsKept == "all" || c.HopsKept == Auto && residual
		if s.Degree = s.AllHops; residual {
			if s.Mean, s.LogitHops = true, min(c.Hops, 2); s.Alone > 0 {
				s.Hops = 0 // logits alone cross
			}
		}
	}
	// Where no edge is used no row crosses. Nodes without features stay coarse: exact columns would follow the training nodes'.
	if c.Coarse && (c.Hops > 0 || c.Adjacent > 0) {
		// With rounds alone fewer numbers cross, which may each tell no more: our attack found nodes of which they did.
		switch s.Coarse = max(s.Rounds-s.Alone, min(s.Rounds, labelRounds)) * s.Width(c.Classes); {
		case s.Own > 0:
			s.Coarse = (s.Rounds - s.Own) * c.Classes
		case residual:
			s.Coarse = s.Rounds * s.Width(c.Classes) // logits are made of all
		}
	}
	s.OwnExact = s.Coarse > 0 && s.Hops > 0 && s.AllHops && s.LogitHops == 0 && s.Adjacent == 0
	return nn.Spec{Task: c.Task, Features: c.Features, Classes: c.Classes, LayerOutput: nn.Hidden, Closed: &s,
		Encoder: nn.EncoderSpec{Kind: "closed", Out: c.Classes, L1Norm: c.RowNorm == "l1", L2Norm: c.RowNorm == "l2"}}
}

// AsksForEdges reports whether the peers sum how many of them have edges to nodes of others: rounding of rows is for these
// alone. Columns of nodes without features are rounded anyway, and private edges are in no sum.
func (c Config) AsksForEdges(peers int, residual bool) bool {
	return peers > 1 && c.Adjacent == 0 && c.Epsilon == 0 && c.Layout(residual).Rounded()
}

// usualRounds returns how many rounds a target has by default.
func (c Config) usualRounds(residual bool) int {
	switch {
	case c.Epsilon > 0:
		return ownRounds + c.Hops
	case c.Alone > 0:
		return c.Alone + 1
	case residual:
		return residualRounds + c.alone(true)
	}
	return labelRounds
}

// alone returns how many first rounds use a node's own features only. After them logits cross with residuals, and no columns:
// those of four rounds named 14 features of a hundred on facebook-pages. Of few features logits say too little of neighbours.
func (c Config) alone(residual bool) int {
	few := !residual || c.numbers() || c.Features <= mostOwn || c.Hops == 0
	if few || c.Alone >= 0 || c.Epsilon > 0 {
		return max(c.Alone, 0)
	}
	return min(residualAlone, cmp.Or(c.ClassRounds, maxRounds)-1)
}

// manyLabels is the fraction of all nodes from which on a target of residuals is better than soft
// labels.
const manyLabels = 1.0 / 5

// Residual reports whether the residuals are the target, where so many of all nodes have a label.
func (c Config) Residual(labelled, nodes float64) bool {
	if c.Target == Auto {
		return c.Task != target.Single.String() || labelled >= manyLabels*nodes
	}
	return c.Target == "residual"
}

// Resolved returns c with what is Auto as so many labels of so many nodes decide it, but for number formats.
func (c Config) Resolved(labelled, nodes float64) Config {
	residual := c.Residual(labelled, nodes)
	l := c.Layout(residual)
	c.Target, c.LeaveOut, c.HopsKept = "labels", strconv.FormatBool(l.LeaveOut), "last"
	if residual {
		c.Target = "residual"
	}
	if l.AllHops {
		c.HopsKept = "all"
	}
	c.ClassRounds, c.Random, c.Alone = l.Rounds, l.Random, l.Alone
	return c
}

// leavesOut reports whether a node's own part of the sums is taken out of its row. Where few nodes
// are labelled, rows would otherwise tell the class of every training node; those of numbers would tell more than a class.
func (c Config) leavesOut(residual bool) bool {
	if c.LeaveOut == Auto {
		return !residual || c.numbers()
	}
	return c.LeaveOut == "true"
}

// Layout returns the layout of the model for either target.
func (c Config) Layout(residual bool) closed.Layout { return *c.spec(residual, c.ClassRounds).Closed }

// Cost returns what the largest regression takes at each peer.
func (c Config) Cost() linear.Cost {
	most, sets := 0, 4 // of columns: of this round, of the last two, of all, and with random features
	for _, residual := range []bool{false, true} {
		spec := c.Layout(residual)
		d := 0
		for r := range spec.Rounds {
			d += spec.Columns(r, c.Classes)
		}
		most = max(most, 1+d+spec.RandomOf(d))
	}
	return linear.RidgeCost(most, c.Classes, sets*len(c.Lambdas))
}

// Draw returns which training nodes validate where none are marked for it, and which class is positive.
func (c Config) Draw() labels.Draw { return labels.Draw{Seed: c.Seed, Positive: c.Positive} }

// Fingerprint names everything that decides the result.
func (c Config) Fingerprint() [32]byte { return train.Fingerprint(c) }
