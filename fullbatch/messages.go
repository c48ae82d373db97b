package fullbatch

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// Messages returns what a run of these members sends, under the assumption that rows which the gradient reads are
// fetched again.
func (c Config) Messages(members train.Members) ([]*train.Messages, error) {
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	l := train.NewMessages(members)
	steps := int64(c.Rounds)
	if c.Links == nil {
		l.AddLabels(c.Spec.Kind(), c.Spec.Classes)
	}
	views := int64(1)
	if c.Inductive {
		views = 2
		l.AddView(true)
	}
	if weighs(m) {
		l.AddDegrees(views)
	}
	for _, layer := range layersOf(m) {
		l.AddCovers("covers of "+layer.Name, 4)
	}
	l.Sum(ofMemory, "workers short of memory", 1, 0, 1)
	l.Sum(ofHops, "workers with dense sums", views*int64(c.Spec.Encoder.Hops), 0, 1)
	l.Sum(ofEdges, "edges of the rows that are wanted", 7, 0, 2)
	width := c.Spec.Features
	if c.Spec.Encoder.Labels > 0 {
		width += c.Spec.Classes
	}
	for hop := range c.Spec.Encoder.Hops {
		what := "features"
		if hop > 0 {
			what = "sums of features over hops"
		}
		l.Send(featureRows, what, views, width, hop == 0, c.Rows)
	}
	validations := (steps+int64(c.EvalEvery)-1)/int64(c.EvalEvery) + 2
	params := int64(0)
	if c.Links != nil {
		links.AddMessages(l, c.Config, steps, validations)
		params = train.NumbersOf(m.Decoder.Params())
	}
	for k, layer := range layersOf(m) {
		params += train.NumbersOf(layer.Params()) + train.NumbersOf(layer.Running())
		if layer.Head != nil {
			params += train.NumbersOf(layer.Head.Params())
		}
		if layer.Spec.BatchNorm {
			l.Sum(ofStatistics, "mean and variance of each hidden column, of each peer apart", steps,
				int64(l.Peers)*(4*int64(layer.Spec.Out)+2), 0)
			l.Sum(ofStatistics, "sums for the gradient of each hidden column", steps, 4*int64(layer.Spec.Out), 0)
		}
		if layer.Conv.Agg != nil {
			c.addHops(l, layer, k == 0, width, steps, validations, views)
		}
	}
	l.SumInParts(ofGradient, "gradients of all layers", steps, int64(len(c.Spec.Layers))+1, params, eval.RealLen)
	if c.Links != nil {
		links.AddRanks(l, m, validations)
		return []*train.Messages{l}, nil
	}
	metric, final, wide := train.Accumulated(c.Metric, c.Spec.Kind(), c.Spec.Classes)
	l.Count(ofValidation, "losses and validation counts", validations, metric, wide)
	l.Count(ofResult, "validation and test metrics", 2, final, wide)
	if s := c.Spec.CorrectSmooth; s != nil {
		l.SendExact("logits to smooth", "errors of the training nodes, and logits, to be smoothed", 2*int64(s.Steps)+2,
			c.Spec.Classes, false)
		l.Sum(ofSmoothing, "scale of the errors", 2, 4, 0)
	}
	figures.AddMessages(l, c.Spec.Kind(), c.Spec.Classes)
	return []*train.Messages{l}, nil
}

// weighs reports whether the weight of an edge depends on the degrees of both its ends.
func weighs(m *nn.Model) bool {
	return m.Spec.Encoder.Hops > 0 || m.Spec.CorrectSmooth != nil ||
		slices.ContainsFunc(layersOf(m), func(l *nn.Layer) bool { return l.Edges == graph.GCN })
}

// layersOf returns the layers that are trained jointly.
func layersOf(m *nn.Model) (all []*nn.Layer) {
	if m.Encoder.Layer != nil {
		all = append(all, m.Encoder.Layer)
	}
	return append(all, m.Layers...)
}

// featureRows is the name of the exchanges of features.
const featureRows = "features of the halo"

// addHops adds the rows that a layer aggregates, and the gradients that are sent back to their owners. The first
// layer's rows are features with `width` columns, which never change. They are sent once if they fit into memory and
// only one hop reads them.
func (c Config) addHops(l *train.Messages, layer *nn.Layer, first bool, width int, steps, validations, views int64) {
	hops := int64(max(layer.Spec.Hops, 1))
	if first {
		once, name := views, featureRows
		if c.Memory > 0 || hops > 1 {
			once, name = hops*(steps+validations+views), layer.Name
			// if they are aggregated once, not in each step
			l.Send(featureRows, "features", hops*views, width, false, c.Rows)
		}
		l.Send(name, "features", once, width, true, c.Rows)
		if c.Memory == 0 && hops == 1 {
			return
		}
	}
	if sent := layer.SentWidth(); sent > 0 {
		what := "rows of " + layer.Name
		fetched := steps
		if layer.Conv.Agg.Properties().NeedsSource && (c.Fetch == "sar" || c.Memory > 0) {
			fetched *= 2 // again for the gradient
		}
		l.Send(layer.Name, what, hops*(fetched+validations), sent, true, c.Rows)
		l.Return("gradients of "+layer.Name, "gradients of others' "+what, hops*steps, sent, c.Rows)
	}
}
