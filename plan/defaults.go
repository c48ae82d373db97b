package plan

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
)

// Defaults returns the default settings for the Method, Task, Model, Decoder, Epsilon and Leaves of ask; its other
// fields are ignored. An empty Method is class-means, an empty Task auto, an empty Model gcn, an empty Decoder dot.
func Defaults(ask Plan) Plan {
	var p Plan
	for _, s := range settings() {
		if s.Default != "" {
			must(p.set(s, s.Default))
		}
	}
	given := func(to *string, value string) {
		if value != "" {
			*to = value
		}
	}
	given(&p.Method, ask.Method)
	given(&p.Model, ask.Model)
	if ask.Task.Kind != "" {
		p.Task = ask.Task
	}
	given(&p.Decoder, ask.Decoder)
	switch p.Method {
	case ClassMeans:
		// docs/adr/0040-rounds-of-class-means.md
		p.Layers, p.Encoder, p.Rows, p.Sums, p.RowNorm, p.Hops = 1, Encoder{Kind: "classes"}, "int8", Auto, Auto, 6
		if ask.Epsilon > 0 || ask.Leaves > 0 {
			p.Hops = 2 // each hop has noise of its own, or is another message of a phone
		}
	case LayerWise:
		p.Norm, p.RowNorm = "layer", Auto
		if conv, _ := nn.ConvolutionNamed(p.Model); conv.Undropped {
			p.Dropout = 0 // docs/measurements/accuracy.md
		}
		if p.Task.Links() {
			p.NegativesFrom, p.KeepLast = "near", true
			p.ofLinks()
		}
	default:
		p.Norm, p.RowNorm = "none", Auto
		p.endToEnd()
	}
	return p
}

// bare changes the settings of p that are the recipe's of its model to those of the recipe for nodes without features. The
// last epoch counts: such graphs have few labels, of which too few validate to tell epochs apart.
func (p *Plan) bare() {
	conv, _ := nn.ConvolutionNamed(p.Model)
	usual, bare := conv.Recipe, conv.Bare
	if bare == (nn.Recipe{}) {
		return
	}
	instead(&p.Hidden, usual.Hidden, bare.Hidden)
	instead(&p.Rounds, usual.Epochs, bare.Epochs)
	instead(&p.LR, usual.LR, bare.LR)
	instead(&p.Decay, usual.Decay, bare.Decay)
	instead(&p.Dropout, usual.Dropout, bare.Dropout)
	instead(&p.EvalEvery, 1, p.Rounds)
}

// wide changes the settings of p that are the recipe's of its model to those for nodes of so many features.
func (p *Plan) wide(features int) {
	conv, _ := nn.ConvolutionNamed(p.Model)
	if w := conv.Wide; w.Features > 0 && features >= w.Features {
		instead(&p.Bases, 0, w.Bases)
		instead(&p.Decay, conv.Recipe.Decay, w.Decay)
	}
}

// numeric changes the settings of p that are the recipe's of its model to those that validate best for a numeric target
// of nodes with features (docs/measurements/tasks.md). Typed convolutions keep their recipe, of which the decay is larger.
func (p *Plan) numeric() {
	if conv, _ := nn.ConvolutionNamed(p.Model); !conv.Typed {
		instead(&p.Decay, conv.Recipe.Decay, 5e-3)
		instead(&p.Dropout, conv.Recipe.Dropout, 0)
	}
}

// fewColumns is the most columns whose values are never divided with row_norm auto: sizes of a few numbers have a meaning.
const fewColumns = 64

// NormByFeatures reports whether the features of all sites, of which own has a part, decide on the norm that divides them.
func (p Plan) NormByFeatures(own *shard.Shard) bool {
	numbers := !p.Task.Links() && own.Labels.Kind() == graph.Numbers
	return p.RowNorm == Auto && p.Method != ClassMeans && p.Init == "" && !numbers && own.X.Cols() > fewColumns
}

// rowNorm returns the norm by which the features of t are divided: none where NormByFeatures.
func (p Plan) rowNorm(t task) string {
	switch {
	case p.RowNorm != Auto:
		return p.RowNorm
	case t.Kind == graph.Numbers || p.Method != ClassMeans:
		return "none"
	}
	return "l2"
}

// instead changes a setting that has the usual value.
func instead[T comparable](setting *T, usual, other T) {
	if *setting == usual {
		*setting = other
	}
}

// dotDropout is the default where an inner product scores links of nodes with features.
const dotDropout = 0.5

// endToEnd changes p to the settings that the authors of its model recommend.
func (p *Plan) endToEnd() {
	p.Encoder = Encoder{Kind: "raw"}
	conv, ok := nn.ConvolutionNamed(p.Model)
	if !ok {
		return // Validate says so
	}
	r := conv.Recipe
	p.Hidden, p.Hops, p.Rounds, p.LR, p.Decay = r.Hidden, r.Hops, r.Epochs, r.LR, r.Decay
	p.Dropout, p.AttentionDropout, p.Alpha = r.Dropout, r.AttentionDropout, r.Alpha
	switch {
	case r.Norm == "batch" && p.Method == MiniBatch:
		p.Norm = "layer" // statistics of a sample are not those of the graph
	case r.Norm != "":
		p.Norm = r.Norm
	}
	if p.Task.Links() {
		p.ofLinks()
	}
}

// ofLinks changes p to what validated best where links are learned (docs/measurements/tasks.md).
func (p *Plan) ofLinks() {
	p.Hidden, p.Decay, p.Dropout, p.LR, p.EvalEvery = 64, 0, 0, 0.01, 5
	if p.Decoder == "dot" {
		p.Dropout = dotDropout
	}
	if p.Method == MiniBatch { // an epoch has many steps
		p.LR, p.Rounds = 0.003, 40
	}
}
