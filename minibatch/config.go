// Package minibatch trains all layers of a model jointly by sampled mini-batches, over any number of peers that each
// have a part of the graph. A step takes a random batch of training nodes, new in each epoch, and computes them from a
// sample of their neighbourhood. For link prediction, a step takes both ends of a batch of links and of random pairs.
// For a group of batches the peers ask each other once a hop for samples and once for features, while the last group
// trains. This is multi-minibatch sampling; DistDGL (Zheng et al., IA3 2020) asks for each batch.
//
// Samples depend only on the seed, the epoch, the step, the hop and the vertex. A batch is the same in groups of any
// size and over any number of peers.
//
// Letters in comments: N nodes, F in, H hidden, C classes, K peers, B batches of a group.
package minibatch

import (
	"errors"
	"strings"

	"github.com/heddle-gnn/heddle/internal/graph/sample"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
)

// Config is how a model is trained. A round is an epoch, or RoundSteps steps.
type Config struct {
	train.Config

	Sample    Sampling `json:"sample"`
	BatchSize int      `json:"batch_size"` // labels of a step, summed over the peers; at least 1
	// batches that the peers sample and fetch features for at once (0 = as many as hide the latency)
	Group int `json:"group"`

	// RoundSteps is how many steps a round takes (0 = an epoch). Batches do not depend on it.
	RoundSteps int `json:"round_steps,omitempty"`

	// for link prediction: BatchSize then counts links, each at both ends (nil = nodes have labels)
	Links *train.LinkTask `json:"links,omitempty"`

	// Cache and Memory are bytes of features. Cache is what a peer keeps of other peers' nodes between groups; Memory
	// is what two groups may take if Group is 0 (0 = 1 GiB). Neither changes the model.
	Cache  int64 `json:"-"`
	Memory int64 `json:"-"`
}

// Sampling is how in-edges of a node are sampled.
type Sampling struct {
	Kind    string `json:"kind"`    // neighbour or labor
	Fanouts []int  `json:"fanouts"` // [hops] in-edges of a node that are sampled, from the seeds outward (-1 = all)
}

// MostGroup is the largest Group: the features of 64 batches must fit into memory twice.
const MostGroup = 64

// maxRoundSteps bounds RoundSteps.
const maxRoundSteps = 1 << 30

// Validate returns all faults at once, or nil.
func (c Config) Validate() error {
	rates := c.Schedule // the schedule is over steps; the labels determine their number
	rates.Total = max(c.Rounds, 1)
	errs := train.ConfigFaults{c.Config.Validate(), c.Optimizer.Validate(), rates.Validate(),
		sample.Config(c.Sample).Validate(), c.Links.Check(c.Config)}
	fault := errs.If
	fault(c.BatchSize < 1, "batch_size must be at least 1 (got %d)", c.BatchSize)
	fault(c.Group < 0 || c.Group > MostGroup, "group must be from 0 (chosen by latency) to %d (got %d)", MostGroup,
		c.Group)
	fault(c.RoundSteps < 0 || c.RoundSteps > maxRoundSteps, "round_steps must be from 0 (an epoch) to %d (got %d)",
		maxRoundSteps, c.RoundSteps)
	fault(c.Links != nil && c.Links.Near, "negatives_from must be all with method mini-batch (got near): a batch has "+
		"the neighbourhoods of all that it draws")
	fault(c.Cache < 0, "feature_cache must be at least 0 (got %d)", c.Cache)
	fault(c.Memory < 0, "memory must be at least 0 (got %d)", c.Memory)
	if n := len(c.Spec.Layers); len(c.Sample.Fanouts) > 0 {
		fault(len(c.Sample.Fanouts) != n, "fanouts must have a number for each of %d layers (got %d)", n,
			len(c.Sample.Fanouts))
	}
	fault(c.Spec.Encoder.Kind != "raw",
		"encoder must be raw (got %s): the first layer reads sampled neighbours' features", c.Spec.Encoder.Kind)
	fault(c.Spec.Encoder.Labels > 0, "label_inputs must be 0 (got %g): samples have no labels as input",
		c.Spec.Encoder.Labels)
	fault(c.Spec.CorrectSmooth != nil, "correct_smooth must be 0 with method mini-batch")
	fault(c.Spec.BatchNormed(),
		"norm must be none or layer (got batch): statistics of a batch would depend on which peers hold its nodes")
	for i, l := range c.Spec.Layers {
		conv, _ := nn.ConvolutionNamed(l.Conv)
		fault(!Samples(conv), "model must be %s with method mini-batch (got %s in layers[%d], which %s)",
			strings.Join(nn.Convolutions(Samples), ", "), l.Conv, i, why(conv))
		fault(l.Hops > 1, "hops must be 1 for layers[%d] (got %d): a layer reads one block", i, l.Hops)
		fault(l.Conv != c.Spec.Layers[0].Conv, "layers must be of one convolution (got %s after %s)", l.Conv,
			c.Spec.Layers[0].Conv)
	}
	return errors.Join(errs...)
}

// Samples reports whether a convolution can be computed over a sample of the in-edges.
func Samples(c nn.Convolution) bool {
	return c.Aggregates && !c.Propagates && !c.First && !sumsMessages(c)
}

// sumsMessages reports whether a convolution sums a function of each neighbour and edge. Its sum over a sample would
// need weights, which it does not read.
func sumsMessages(c nn.Convolution) bool { return c.EdgeColumns && !c.Heads }

// why explains why Samples is false.
func why(c nn.Convolution) string {
	switch {
	case sumsMessages(c):
		return "sums messages, without the weights that an unbiased sample needs"
	case c.Propagates || c.First:
		return "aggregates over many hops at once, whose samples would be the whole graph"
	}
	return "reads no edges: method full-batch trains it"
}

// Fingerprint names everything that decides the result, and what the peers must have in common.
func (c Config) Fingerprint() [32]byte { return train.Fingerprint(c) }
