// Package links trains a model of links layer by layer over a partitioned graph. Before a layer trains, each owner sends to the
// peers with an edge from a node what the layer reads to compute the node's row: the node's input and its aggregate. Both stay as they
// are while the layer trains, so that a peer computes the rows of the halo by itself in every round, and scores the pairs
// of its own nodes with each other and with the halo: after that exchange only gradients are summed.
//
// Letters in comments: N nodes, H hidden, K peers.
package links

import (
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/links"
)

// Config says how a model is trained. Rounds are those of a layer.
type Config struct {
	train.Config

	Links     links.Config `json:"links"`
	PCAPasses int          `json:"pca_passes"`     // encoder pca: products with the Gram matrix; at least 1
	Sums      string       `json:"sums,omitempty"` // retexo.Config.Sums
}

// Validate returns all faults at once, or nil.
func (c Config) Validate() error {
	errs := []error{c.Config.Validate(), c.Optimizer.Validate(), c.Schedule.Validate(), c.Links.Check(c.Config)}
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(!c.Links.Near, "negatives_from must be near with method layer-wise (got all): no rows cross but those of boundary nodes")
	fault(c.Spec.Encoder.Kind != "raw" && c.Spec.Encoder.Kind != "pca", "encoder must be raw or pca for task links with method layer-wise (got %s): the rows of the halo must be known before a layer trains", c.Spec.Encoder.Kind)
	fault(c.Spec.Encoder.Kind == "pca" && c.PCAPasses < 1, "pca_passes must be at least 1 (got %d)", c.PCAPasses)
	fault(comm.SumBits(c.Sums) < 0, "sums must be auto, int16, int8 or empty (got %q)", c.Sums)
	fault(c.Spec.LayerOutput != nn.Hidden, "layer_output must be hidden for task links with method layer-wise (got %s)", c.Spec.LayerOutput)
	fault(c.Exchange == "cover", "exchange must be halo or auto for task links with method layer-wise (got cover): a link needs the row of the node itself")
	fault(c.Spec.BatchNormed(), "batch_norm must be off: its statistics would need the rows of all peers; use norm (of each row)")
	fault(len(c.Spec.Layers) == 0, "layers must be at least 1 (got 0)")
	for i, l := range c.Spec.Layers {
		conv, ok := nn.ConvolutionNamed(l.Conv)
		fault(ok && !(conv.LayerWise && conv.Sum), "model must be gcn, sage or gin for task links with method layer-wise (got %s in layers[%d]): "+
			"the row of another peer's node must follow from its input and one sum", l.Conv, i)
	}
	return errors.Join(errs...)
}

// total returns how many rounds all layers take at most.
func (c Config) total() int { return c.Rounds * len(c.Spec.Layers) }

// Fingerprint names everything that decides the result, and what the peers must have in common.
func (c Config) Fingerprint() [32]byte { return train.Fingerprint(c) }
