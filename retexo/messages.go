package retexo

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// Messages returns what a run of these members sends.
func (c Config) Messages(members train.Members) ([]*train.Messages, error) {
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	metric, final, wide := train.Accumulated(c.Metric, c.Spec.Kind(), c.Spec.Classes)
	l := train.NewMessages(members)
	updates := train.FormatOf(c.UpdateBits(members.Peers))
	l.AddLabels(c.Spec.Kind(), c.Spec.Classes)
	l.AddView(c.Inductive)
	if c.Exchange != "halo" {
		l.AddCovers("covers of rows", 1)
	}
	first := 1
	switch enc := c.Spec.Encoder; enc.Kind {
	case "pca":
		if of := c.Classes; of != nil {
			of.AddRounds(l, of.ClassRounds)
		}
		if c.Init == "" {
			columns := linear.SumColumns(c.Spec.Features, enc.Components(c.Spec.Classes))
			l.AddComponents(ofProducts, c.PCAPasses, c.Spec.Features, columns, c.Sums)
			l.Sum(ofComponents, "agreement on the components", 1, 0, 0)
		}
	case "mlp":
		first = 0
	}
	for k := first; k <= len(c.Spec.Layers); k++ {
		c.addStage(l, m, k, metric, wide, updates)
		l.Count(ofStage, "validation and test metrics", 1, 2*final, 2*wide)
	}
	// the second sum is sent if all classes have equally many training nodes
	if first, second, sites, likelihoods := c.ShareCounts(); first > 0 {
		l.AddShares(int64(first), int64(second), int64(sites), int64(likelihoods))
		l.Count(ofMoved, "validation and test metrics of the moved logits", 1, 2*final, 2*wide)
	}
	figures.AddMessages(l, c.Spec.Kind(), c.Spec.Classes)
	return []*train.Messages{l}, nil
}

// addStage adds what stage k sends during training. Its updates have the given format; a validation has some counts,
// including wide ones.
func (c Config) addStage(l *train.Messages, m *nn.Model, k int, metric, wide int64, updates string) {
	layer, classes := m.Encoder.Layer, int64(c.Spec.Classes)
	name := train.StageName(k)
	if k > 0 {
		spec := c.Spec.Layers[k-1]
		layer = m.Layers[k-1]
		// Sparse rows are sent as they are, with the degrees of both views.
		degrees := spec.Conv == "gcn" && k == 1 && c.Spec.Encoder.Kind == "raw"
		if c.Inductive && k == 1 && spec.Conv == "gcn" { // not for sparse rows
			l.SendExact("degrees of other edges", "degrees of the nodes without those that are held out", 1, 1, false)
		}
		for hop := range max(spec.Hops, 1) {
			if degrees {
				l.AddDegrees(2)
			}
			what, times := "input of "+name, int64(1)
			if hop > 0 {
				what = "aggregates " + train.OverHops(hop) + " for " + name
			}
			if c.Inductive && k+hop > 1 { // training reads other rows
				times = 2
			}
			l.Send(fmt.Sprintf("rows of stage %d, hop %d", k, hop), what, times, spec.In, hop == 0, c.Rows)
		}
	}
	params, trained := int64(0), layer.Params()
	if layer.Head != nil {
		trained = append(trained, layer.Head.Params()...)
	} else if k < len(c.Spec.Layers) { // the stage's own head during training
		params = int64(layer.Spec.Out+1) * classes
	}
	params += train.NumbersOf(trained)
	what := "gradients of " + name
	if c.LocalSteps > 1 {
		what = fmt.Sprintf("changes of %s over %d steps", name, c.LocalSteps)
	}
	l.Fixed(ofRound, what+", losses and validation counts", int64(c.Rounds), params, int64(len(trained)+2),
		2*eval.RealLen+metric, 2*eval.RealLen+wide, updates)
	l.Count(ofValidation, "losses and validation counts", 1, metric, wide)
}

// Messages returns what a run of these members sends.
func (c LinkConfig) Messages(members train.Members) ([]*train.Messages, error) {
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	l := train.NewMessages(members)
	l.Sum(ofLinks, "counts of links", 1, 0, 3)
	links.AddTypes(l)
	if enc := c.Spec.Encoder; enc.Kind == "pca" && c.Init == "" {
		l.AddComponents(ofProducts, c.PCAPasses, c.Spec.Features, linear.SumColumns(c.Spec.Features, enc.Out), c.Sums)
	}
	if m.Layers[0].Edges == graph.GCN {
		l.AddDegrees(1)
	}
	decoder := train.NumbersOf(m.Decoder.Params())
	for k, layer := range m.Layers {
		name, params := train.StageName(k+1), decoder
		l.Send(fmt.Sprintf("rows of layer %d", k+1), "input of "+name, 1, layer.Spec.In, true, c.Rows)
		for hop := range max(layer.Spec.Hops, 1) {
			l.Send(fmt.Sprintf("aggregates of layer %d, hop %d", k+1, hop+1), "aggregates "+train.OverHops(hop+1)+
				" for "+name, 1,
				layer.Spec.In, true, c.Rows)
		}
		params += train.NumbersOf(layer.Params())
		if k < len(m.Layers)-1 { // the layer's own head during training
			params += int64((layer.Spec.Out + 1) * c.Spec.Classes)
		}
		l.Sum(ofGradient, "gradients of "+name, int64(c.Rounds), params, 2*eval.RealLen)
	}
	validations := int64((c.Rounds+c.EvalEvery-1)/c.EvalEvery+1) * int64(len(m.Layers))
	links.AddRanks(l, m, validations+1)
	return []*train.Messages{l}, nil
}
