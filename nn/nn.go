// Package nn has the layers of graph neural networks with hand-written backward passes.
//
// Letters in comments: N nodes, E edges, F in, H hidden, C classes. Everything that acts row by row is a
// tape.Operator; only an aggregate.Aggregator sees edges; a Conv puts them together; a Layer adds what surrounds a
// convolution; a Model is an encoder and layers.
package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Input is the input of a layer: a block G with the rows X of its sources (destinations first) or, if the aggregate is
// computed once, no G but the destinations' rows X and their aggregate Z.
type Input struct {
	G      *graph.CSR // for a layer of R relations, R·D rows for D destinations (graph.Relations)
	Remote bool       // other workers have more of the sources: blocks for aggregate.Hop.Add
	EdgeX  mat.Dense  // rows of the edges' columns, which G and the remote blocks index (graph.CSR.Edge)
	X      graph.Features
	Z      graph.Features
	Nodes  []int64 // [rows of X] global node IDs, which key dropout
	Again  Again   // how to recompute X, if its memory may be reused
}

// Spec describes a model completely: New(Spec) and the parameters make it again.
type Spec struct {
	// of a graph.TargetKind. "single": one class a node; "multi": any number; "regression": numbers; "links": none
	Task     string `json:"task"`
	Features int    `json:"features"` // F, columns of the raw input
	// C: classes, columns of numbers, or for links the columns that the decoder reads
	Classes int `json:"classes"`
	// Units are the units of standardised numbers, [C]: graph.Restored turns the model's output into them. It is
	// nil for classes, or if not yet known.
	Units   []graph.Unit `json:"units,omitempty"`
	Encoder EncoderSpec  `json:"encoder"`
	Layers  []LayerSpec  `json:"layers"`
	// LayerOutput is the output of a layer, Hidden or Logits.
	LayerOutput string `json:"carry"`
	// Closed describes a model that is solved in closed form and has no layers (nil = it has layers).
	Closed *closed.Layout `json:"closed,omitempty"`
	// CorrectSmooth postprocesses the logits of the trained model (nil = none).
	CorrectSmooth *CorrectSmooth `json:"correct_smooth,omitempty"`
	// SiteShares moves each site's logits to the shares of the classes there (nil = it does not).
	SiteShares *eval.Shares `json:"site_shares,omitempty"`
	// Decoder computes scores of links from the rows of two nodes (nil = nodes have classes or numbers).
	Decoder *DecoderSpec `json:"decoder,omitempty"`
}

// The values of Spec.LayerOutput, as in model files.
const (
	Hidden = "hidden" // a layer's rows
	Logits = "scores" // the output of the layer's head
)

// EncoderSpec describes stage 0, which sees a node's own features and no edge. Kind is one of
//
//	raw        the features themselves
//	sign       the features and their aggregates of 1 to Hops hops, side by side
//	pca        a projection of the features, rows of unit length
//	mlp        a hidden layer, trained
//	embedding  a linear layer, trained; a node without features has a learned row instead, which only its owner has
//	closed     the first part of a model in closed form, which Spec.Closed describes
type EncoderSpec struct {
	L1Norm bool   `json:"unit_sum,omitempty"` // divide each row of the features by its l1 norm
	L2Norm bool   `json:"l2_norm,omitempty"`  // divide each row of the features by its l2 norm
	Hops   int    `json:"hops,omitempty"`     // sign: times the features are aggregated, ≥ 1
	Kind   string `json:"kind"`
	// width of its output; raw: F, or F+C with Labels; sign: (Hops+1)·F; closed: C
	Out    int     `json:"out"`
	Labels float32 `json:"labels,omitempty"` // raw: fraction of the training labels that are inputs of a step, [0, 1)
	// mlp: width; Out = Hidden, or Classes if LayerOutput is Logits. embedding: width; Out = Hidden
	Hidden  int     `json:"hidden,omitempty"`
	Dropout float32 `json:"dropout,omitempty"` // mlp: of the input and of the hidden rows

	// pca: C columns after the components, the logits of a closed form with this layout (nil = none). Out includes
	// them.
	Classes *closed.Layout `json:"classes,omitempty"`
}

// LayerSpec describes one layer: dropout, convolution, norm, activation, residual and possibly a
// head.
type LayerSpec struct {
	Conv string `json:"conv"` // the name of a Convolution
	In   int    `json:"in"`
	Out  int    `json:"out"` // width after the convolution, with all concatenated heads
	// ≥ 1; > 1 if the convolution has hops; sign: the encoder's
	Hops int `json:"hops"`
	// restart probability, (0, 1], if the convolution restarts
	Alpha       float32 `json:"teleport,omitempty"`
	Relations   int     `json:"relations,omitempty"`    // of the graph, if the convolution is typed
	Bases       int     `json:"bases,omitempty"`        // of the relations' matrices (0 = none)
	EdgeColumns int     `json:"edge_columns,omitempty"` // of the graph's edges, if the convolution reads them
	Heads       int     `json:"heads,omitempty"`        // of attention, at least 1 if the convolution has heads
	Average     bool    `json:"average,omitempty"`      // average the heads instead of concatenating
	Norm        bool    `json:"norm,omitempty"`         // LayerNorm after the convolution
	// BatchNorm instead; the convolution then ends without a bias
	BatchNorm        bool    `json:"batch_norm,omitempty"`
	Act              string  `json:"act,omitempty"`     // "", "relu", "elu"
	Dropout          float32 `json:"dropout,omitempty"` // of the input, [0, 1)
	AttentionDropout float32 `json:"attention_dropout,omitempty"`
	Residual         bool    `json:"residual,omitempty"` // add x to the output; by a linear map if the widths differ
	Head             []int   `json:"head,omitempty"`     // widths of the head's outputs, the last one C (empty = none)
}
