package plan

import (
	"cmp"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
)

// Defaults returns the default settings of a method and, of one that trains layers, of a model. Empty, they are
// class-means and gcn.
func Defaults(method, model string) Plan {
	ask := Plan{Method: cmp.Or(method, ClassMeans)}
	ask.Gradient().Model = model
	return ask.Usual()
}

// Usual returns the default settings for the method, task, model, decoder, epsilon and phones of ask, whose other
// settings do not count. Empty, they are class-means, auto, gcn, dot and none.
func (ask Plan) Usual() (p Plan) {
	method := cmp.Or(ask.Method, ClassMeans)
	for _, s := range settings(method) {
		if s.Default != "" {
			must(p.set(s, s.Default))
		}
	}
	if p.Method = method; ask.Task.Kind != "" {
		p.Task = ask.Task
	}
	g, asked := p.Gradient(), ask.Gradient()
	g.Model, g.Decoder = cmp.Or(asked.Model, g.Model), cmp.Or(asked.Decoder, g.Decoder)
	switch p.Method {
	case ClassMeans:
		p.Rows, p.ClassMeans.Sums = "int8", Auto // docs/adr/0040-rounds-of-class-means.md
		if ask.ClassMeans.Epsilon > 0 || ask.ClassMeans.Leaves > 0 {
			p.ClassMeans.Hops = 2 // each hop has its own noise, or is another message of a phone
		}
	case LayerWise:
		if conv, _ := nn.ConvolutionNamed(g.Model); conv.Undropped {
			g.Dropout = 0 // docs/measurements/accuracy.md
		}
		if p.Task.Links() {
			g.NegativesFrom, p.LayerWise.KeepLast = "near", true
			p.ofLinks()
		}
	default:
		p.endToEnd()
	}
	return p
}

// bare changes the settings of p that are its model's recipe to the recipe for nodes without features. The run ends
// with the last epoch: such graphs have few labels, and too few of them validate to compare epochs.
func (p *Plan) bare() {
	g := p.Gradient()
	conv, _ := nn.ConvolutionNamed(g.Model)
	usual, bare := conv.Recipe, conv.Bare
	if bare == (nn.Recipe{}) {
		return
	}
	instead(&g.Hidden, usual.Hidden, bare.Hidden)
	instead(&g.Rounds, usual.Epochs, bare.Epochs)
	instead(&g.LR, usual.LR, bare.LR)
	instead(&g.Decay, usual.Decay, bare.Decay)
	instead(&g.Dropout, usual.Dropout, bare.Dropout)
	instead(&g.EvalEvery, 1, g.Rounds)
}

// wide changes the settings of p that are its model's recipe to the recipe for nodes with `features` features.
func (p *Plan) wide(features int) {
	conv, _ := nn.ConvolutionNamed(p.Gradient().Model)
	if w := conv.Wide; w.Features > 0 && features >= w.Features {
		instead(&p.Joint().Bases, 0, w.Bases)
		instead(&p.Gradient().Decay, conv.Recipe.Decay, w.Decay)
	}
}

// numeric changes the settings of p that are its model's recipe to the ones that validate best for a numeric target of
// nodes with features (docs/measurements/tasks.md). Typed convolutions keep their recipe, whose decay is larger.
func (p *Plan) numeric() {
	if conv, _ := nn.ConvolutionNamed(p.Gradient().Model); !conv.Typed {
		instead(&p.Gradient().Decay, conv.Recipe.Decay, 5e-3)
		instead(&p.Gradient().Dropout, conv.Recipe.Dropout, 0)
	}
}

// fewColumns is the most columns whose values are never divided with row_norm auto: the length of a row of few numbers
// has a meaning.
const fewColumns = 64

// NormByFeatures reports whether the features of all sites decide on the norm that divides them; own is this site's
// part.
func (p Plan) NormByFeatures(own *shard.Shard) bool {
	numbers := !p.Task.Links() && own.Labels.Kind() == graph.Numbers
	return p.RowNorm == Auto && p.Method != ClassMeans && p.Gradient().Init == "" && !numbers &&
		own.X.Cols() > fewColumns
}

// rowNorm returns the norm that divides the features of t: none if NormByFeatures.
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
	j := p.Joint()
	conv, ok := nn.ConvolutionNamed(j.Model)
	if !ok {
		return // Validate reports it
	}
	r := conv.Recipe
	j.Hidden, j.Hops, j.Rounds, j.LR, j.Decay = r.Hidden, r.Hops, r.Epochs, r.LR, r.Decay
	j.Dropout, j.AttentionDropout, j.Alpha = r.Dropout, r.AttentionDropout, r.Alpha
	switch {
	case r.Norm == "batch" && p.Method == MiniBatch:
		j.Norm = "layer" // statistics of a sample differ from the graph's
	case r.Norm != "":
		j.Norm = r.Norm
	}
	if p.Task.Links() {
		p.ofLinks()
	}
}

// ofLinks changes p to the settings that validated best for links (docs/measurements/tasks.md).
func (p *Plan) ofLinks() {
	g := p.Gradient()
	g.Hidden, g.Decay, g.Dropout, g.LR, g.EvalEvery = 64, 0, 0, 0.01, 5
	if g.Decoder == "dot" {
		g.Dropout = dotDropout
	}
	if p.Method == MiniBatch { // an epoch has many steps
		g.LR, g.Rounds = 0.003, 40
	}
}
