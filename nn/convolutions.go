package nn

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
)

// table has one row for each convolution. To add one, write a file with its operator, and with its aggregator unless
// package aggregate has a suitable one, and add a row here. Programs, trainers and model files find it by its name and
// ask for its traits.
var table = []Convolution{
	{
		Name: "gcn", Edges: graph.GCN, Recipe: recipe,
		Traits: Traits{Aggregates: true, Sum: true, Linear: true, Hops: true, LayerWise: true},
		build:  newGCN,
	},
	{
		Name: "sage", Edges: graph.Mean, Recipe: recipe,
		Traits: Traits{Aggregates: true, Sum: true, Linear: true, Hops: true, LayerWise: true, OwnRow: true},
		build:  newSAGE,
	},
	{
		Name: "sage-sum", Edges: graph.Plain, Recipe: recipe.normalised(),
		Traits: Traits{Aggregates: true, Sum: true, Linear: true, Hops: true, LayerWise: true, OwnRow: true},
		build:  newSAGE,
	},
	{
		Name: "sage-pool", Edges: graph.Plain, Recipe: recipe,
		Traits: Traits{Aggregates: true, LayerWise: true, OwnRow: true},
		build:  newSAGEPool, weights: weightsTwice,
	},
	{
		Name: "gat", Edges: graph.Loops, Recipe: recipe.attention(),
		Traits: Traits{Aggregates: true, NeedsSource: true, Heads: true, LayerWise: true},
		build:  newGAT, weights: weightsOfHeads,
	},
	{
		Name: "gatv2", Edges: graph.Loops, Recipe: recipe.attention(),
		Traits: Traits{Aggregates: true, NeedsSource: true, Heads: true, LayerWise: true, EdgeColumns: true},
		build:  newGATv2, weights: weightsOfGATv2,
	},
	{
		Name: "gin", Edges: graph.Loops, Recipe: recipe.normalised(), Undropped: true,
		Traits: Traits{Aggregates: true, Sum: true, Linear: true, Hops: true, LayerWise: true},
		build:  newGIN, weights: weightsTwice,
	},
	{
		Name: "gine", Edges: graph.Plain, Recipe: recipe.normalised(),
		Traits: Traits{Aggregates: true, NeedsSource: true, LayerWise: true, EdgeColumns: true, OwnRow: true},
		build:  newGINE, weights: weightsOfGINE,
	},
	{
		Name: "appnp", Edges: graph.GCN, Recipe: recipe.propagation(10, 0.1),
		Traits: Traits{Aggregates: true, Sum: true, Linear: true, Hops: true, Propagates: true},
		build:  newAPPNP, arrange: arrangeAPPNP,
	},
	{
		Name: "sign", Recipe: recipe.propagation(3, 0),
		Traits: Traits{Hops: true, Propagates: true, First: true, OwnRow: true},
		build:  newSIGN, faults: faultsOfSIGN, arrange: arrangeSIGN, weights: weightsOfSIGN,
	},
	{
		Name: "rgcn", Edges: graph.Mean,
		Recipe: relational, Bare: bareRelational, Wide: Shared{Features: 1000, Bases: 2, Decay: 0.1},
		Traits: Traits{Aggregates: true, Linear: true, Typed: true, OwnRow: true},
		build:  newRGCN, weights: weightsOfRGCN,
	},
	{
		Name: "rsage", Edges: graph.Mean, Recipe: relational, Bare: bareRelational,
		Traits: Traits{Aggregates: true, Linear: true, Typed: true, OwnRow: true},
		build:  newRSAGE, weights: weightsOfRSAGE,
	},
	{
		Name: "rgat", Edges: graph.Plain, Recipe: recipe.attention(),
		Traits: Traits{Aggregates: true, NeedsSource: true, Heads: true, Typed: true, OwnRow: true},
		build:  newRGAT, weights: weightsOfRGAT,
	},
	{
		Name: "mlp", Recipe: recipe,
		build: newMLP,
	},
}

// A Convolution is one row of the table of convolutions. Code that composes a model asks it for
// what the convolution can do, and never compares its name:
//
//	c, ok := nn.ConvolutionNamed(plan.Model)                      // !ok: there is none; nn.Convolutions has all names
//	if !c.LayerWise { ... }                                       // refuse layer-wise training
//	if plan.Heads > 0 && !c.Heads { ... }                         // refuse a setting that the model does not read
//	defaults := c.Recipe                                          // where end-to-end training starts from
//	spec, err := nn.Architecture{Model: plan.Model, ...}.Spec()   // an end-to-end model with its settings
type Convolution struct {
	Name  string     // value of LayerSpec.Conv
	Edges graph.Norm // the edge weights that it reads
	Traits
	Recipe Recipe
	Bare   Recipe // for nodes with numbers instead of features (zero = Recipe)
	Wide   Shared // for nodes with many features (zero = Recipe)

	Undropped bool // its layers are trained layer by layer without dropout, by default

	build   func(name string, s LayerSpec, key rng.Key) Conv
	faults  func(s LayerSpec) []error                      // faults beyond its traits, or nil
	arrange func(s *Spec, a Architecture)                  // arranges it among layers (nil = all layers are alike)
	weights func(s LayerSpec, matrix func(rows, cols int)) // the matrices of a layer (nil = one, In×Out)
}

// Shared has the differences from a Recipe for nodes with many features: a matrix for each relation would then have far
// more weights than there are labels.
type Shared struct {
	Features int     // the least number of feature columns
	Bases    int     // bases that the relations share
	Decay    float32 // weight decay
}

// Traits are what a convolution can do and what it needs.
type Traits struct {
	Aggregates  bool // it reads the rows of neighbours; else only a node's own row
	Sum         bool // its aggregate is Σ_j w_ij z_j, so that sums may be sent instead of rows (shard.Cover)
	Linear      bool // its aggregate is linear in the rows of neighbours, so that a sample of them can be unbiased
	NeedsSource bool // its backward pass reads the rows of neighbours again
	Hops        bool // a layer may aggregate several times
	Propagates  bool // any layer may have several hops in end-to-end training; else only the first one, on raw features
	Heads       bool // it has attention heads: LayerSpec.Heads, Average and AttentionDropout are its settings
	Typed       bool // it reads typed edges: LayerSpec.Relations and Bases are its settings
	EdgeColumns bool // it reads the columns of edges, if the graph has any: LayerSpec.EdgeColumns
	First       bool // it is the first of several layers, after an encoder that aggregates for it
	LayerWise   bool // it can be trained layer by layer; else only end to end
	OwnRow      bool // a node's own row has weights that no row of a neighbour shares
}

// Restarts reports whether LayerSpec.Alpha, the restart probability, is a setting of the
// convolution.
func (c Convolution) Restarts() bool { return c.Recipe.Alpha > 0 }

// A Recipe is how the convolution's authors train a model of it end to end: the defaults of end-to-end training.
type Recipe struct {
	Hidden           int     // width of hidden rows, all heads together
	Heads            int     // attention heads of hidden layers (0 = it has none)
	Hops             int     // aggregations of a layer, ≥ 1
	Epochs           int     // epochs at most
	LR, Decay        float32 // step size and weight decay
	Dropout          float32 // dropout probability of a layer's input
	AttentionDropout float32 // dropout probability of attention coefficients
	Alpha            float32 // restart probability (0 = it has none)
	Norm             string  // norm after each layer except the last, as Architecture.Norm
}

// recipe is from Kipf and Welling, ICLR 2017, §5.2, with wider rows.
var recipe = Recipe{Hidden: 64, Hops: 1, Epochs: 200, LR: 0.01, Decay: 5e-4, Dropout: 0.5}

// relational is the Recipe for a matrix for each relation. Such matrices overfit without a strong decay, which was
// chosen by the validation nodes of imdb and s-ffsd. The bases that rgcn shares from 1,000 features on were chosen by
// four random sets of validation nodes of imdb, which has 1,256 features; s-ffsd, which has 176, validates better
// without (docs/measurements/accuracy.md).
var relational = Recipe{Hidden: 64, Hops: 1, Epochs: 200, LR: 0.01, Decay: 0.02, Dropout: 0.5}

// bareRelational is from Schlichtkrull et al., ESWC 2018, §5.1, always with their decay for mutag: it does not harm
// aifb, measured on a tenth of the training nodes.
var bareRelational = Recipe{Hidden: 16, Hops: 1, Epochs: 50, LR: 0.01, Decay: 5e-4}

// attention returns r with the settings for graph attention (Veličković et al., ICLR 2018, §3.3).
func (r Recipe) attention() Recipe {
	r.Heads, r.LR, r.Dropout, r.AttentionDropout = 8, 0.005, 0.6, 0.6
	return r
}

// normalised returns r with batch norm, as for the graph isomorphism network (Xu et al., ICLR 2019, §7): its sums grow
// with the degree. Step size and decay were chosen by validation on four graphs (bench defaults).
func (r Recipe) normalised() Recipe {
	r.Norm, r.LR, r.Decay = "batch", 0.003, 5e-3
	return r
}

// propagation returns r with that many hops and that restart probability.
func (r Recipe) propagation(hops int, alpha float32) Recipe {
	r.Hops, r.Alpha = hops, alpha
	return r
}

// Key determines the initial values of a layer.
type Key = rng.Key

// Register adds a user's convolution to the table, from init or before any plan is read. Plans name it, each method
// trains it by its traits, and model files have its name and parameters, whose names begin with the name of the layer.
// All members of a run, and all readers of its model, must register it. Without a Recipe it has gcn's. A name must be
// new.
func Register(c Convolution, build func(name string, s LayerSpec, key Key) Conv) {
	if _, taken := ConvolutionNamed(c.Name); taken || c.Name == "" {
		panic(fmt.Sprintf("nn: the name of a convolution must be new (got %q)", c.Name))
	}
	if c.build = build; c.Recipe == (Recipe{}) {
		c.Recipe = recipe
	}
	table = append(table, c)
}

// ConvolutionNamed returns the row of the table that has the name.
func ConvolutionNamed(name string) (c Convolution, ok bool) {
	k := slices.IndexFunc(table, func(c Convolution) bool { return c.Name == name })
	if k < 0 {
		return Convolution{}, false
	}
	return table[k], true
}

// Convolutions returns the names of all convolutions, or of those that have the trait.
func Convolutions(trait func(Convolution) bool) (names []string) {
	for _, c := range table {
		if trait == nil || trait(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// convolution returns the row of s.Conv, or one without a name.
func (s LayerSpec) convolution() Convolution {
	c, _ := ConvolutionNamed(s.Conv)
	return c
}

// Weights calls matrix with the shape of every weight matrix of the layer, including its head's: a reader of model
// files allocates these.
func (s LayerSpec) Weights(matrix func(rows, cols int)) {
	if weights := s.convolution().weights; weights != nil {
		weights(s, matrix)
	} else {
		matrix(s.In, s.Out)
	}
	in := s.Out
	for _, w := range s.Head {
		matrix(in, w)
		in = w
	}
}

// weightsTwice has the matrices of a convolution with a second matrix, of the width of its output.
func weightsTwice(s LayerSpec, matrix func(rows, cols int)) {
	matrix(s.In, s.Out)
	matrix(s.Out, s.Out)
}
