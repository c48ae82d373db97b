package traffic

import (
	"fmt"

	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/train"
)

// exactly is the coding of numbers that are sent as they are.
var exactly = wire.Coding{}

// accumulated returns how many counts a metric has while it selects and at the end, of which so many are wide.
func accumulated(metric eval.Metric, k target.Kind, classes int) (selecting, final, wide int64) {
	none := graph.Labels{Classes: classes}.None(k, 0)
	a := eval.NewAccumulator(metric, none, train.SelectionBins)
	for i := range a.Size() {
		if a.Wide(i) {
			wide++
		}
	}
	return int64(a.Size()), int64(eval.NewAccumulator(metric, none, eval.DefaultBins).Size()), wide
}

// Layerwise returns what a run of such members by c sends.
func Layerwise(c retexo.Config, members Members) (List, error) {
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	metric, final, wide := accumulated(c.Metric, c.Spec.Kind(), c.Spec.Classes)
	l := begin(members)
	updates := formats[c.UpdateBits(members.Peers)]
	l.labels(c.Spec.Kind(), c.Spec.Classes)
	if c.Inductive {
		l.rows("whether a node is held out, and its degree without such nodes", 1, 2, false, exactly)
	}
	first := 1
	switch enc := c.Spec.Encoder; enc.Kind {
	case "pca":
		if of := c.Classes; of != nil {
			l.classRounds(*of, of.ClassRounds)
		}
		if c.Init == "" {
			l.components(int64(c.PCAPasses), int64(c.Spec.Features), int64(enc.Components(c.Spec.Classes)), c.Sums)
			l.sum("agreement on the components", 1, 0, 0)
		}
	case "mlp":
		first = 0
	}
	for k := first; k <= len(c.Spec.Layers); k++ {
		l.stage(c, m, k, metric, wide, updates)
		l.counts("validation and test metrics", 1, 2*final, 2*wide)
	}
	// the second if as many training nodes are of each class
	if first, second, sites, likelihoods := c.ShareCounts(); first > 0 {
		l.moves(int64(first), int64(second), int64(sites), int64(likelihoods))
		l.counts("validation and test metrics of the moved logits", 1, 2*final, 2*wide)
	}
	l.figures(c.Spec.Kind(), c.Spec.Classes)
	return l.List, nil
}

// Linkwise returns what a run of such members by c sends, where links are learned layer by layer.
func Linkwise(c retexo.LinkConfig, members Members) (List, error) {
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	l := begin(members)
	l.sum("counts of links", 1, 0, 3)
	if members.Types > 1 {
		l.rows("type of the node", 1, 1, false, exactly)
	}
	if enc := c.Spec.Encoder; enc.Kind == "pca" && c.Init == "" {
		l.components(int64(c.PCAPasses), int64(c.Spec.Features), int64(enc.Out), c.Sums)
	}
	if m.Layers[0].Edges == graph.GCN {
		l.rows("degrees of the nodes", 1, 1, false, exactly)
	}
	decoder := int64(0)
	for _, p := range m.Decoder.Params() {
		decoder += int64(len(p.Value.Data))
	}
	for k, layer := range m.Layers {
		name, params := train.StageName(k+1), decoder
		l.rows("input of "+name, 1, layer.Spec.In, true, c.Rows)
		for hop := range max(layer.Spec.Hops, 1) {
			l.rows("aggregates "+over(hop+1)+" for "+name, 1, layer.Spec.In, true, c.Rows)
		}
		for _, p := range layer.Params() {
			params += int64(len(p.Value.Data))
		}
		if k < len(m.Layers)-1 { // a head of its own while it trains
			params += int64((layer.Spec.Out + 1) * c.Spec.Classes)
		}
		l.sum("gradients of "+name, int64(c.Rounds), params, eval.RealLen)
	}
	validations := int64((c.Rounds+c.EvalEvery-1)/c.EvalEvery+1) * int64(len(m.Layers))
	l.ranks(m, validations+1)
	return l.List, nil
}

// components adds the sums that find K principal components of F features.
func (l *sending) components(passes, features, k int64, format string) {
	w := min(k+oversample, features)
	l.parts("XᵀXQ, from which components are found", passes, features*w, w, format)
	l.parts("second moments of the components", 1, w*w, w, format)
}

// stage adds what stage k of a run by c sends while it is trained, its updates in that format; a validation of it has so
// many counts, and wide ones among them.
func (l *sending) stage(c retexo.Config, m *nn.Model, k int, metric, wide int64, updates string) {
	layer, classes := m.Encoder.Layer, int64(c.Spec.Classes)
	name := train.StageName(k)
	if k > 0 {
		spec := c.Spec.Layers[k-1]
		layer = m.Layers[k-1]
		// Sparse rows cross as they are, and the degrees of both views beside them.
		degrees := spec.Conv == "gcn" && k == 1 && c.Spec.Encoder.Kind == "raw"
		for hop := range max(spec.Hops, 1) {
			if degrees {
				l.rows("degrees of the nodes", 1, 2, false, exactly)
			}
			what, times := "input of "+name, int64(1)
			if hop > 0 {
				what = "aggregates " + over(hop) + " for " + name
			}
			if c.Inductive && k+hop > 1 { // training sees other rows
				times = 2
			}
			l.rows(what, times, spec.In, hop == 0, c.Rows)
		}
	}
	params, trained := int64(0), layer.Params()
	if layer.Head != nil {
		trained = append(trained, layer.Head.Params()...)
	} else if k < len(c.Spec.Layers) { // a head of its own while it trains
		params = int64(layer.Spec.Out+1) * classes
	}
	for _, p := range trained {
		params += int64(len(p.Value.Data))
	}
	what := "gradients of " + name
	if c.LocalSteps > 1 {
		what = fmt.Sprintf("changes of %s over %d steps", name, c.LocalSteps)
	}
	l.parts(what, int64(c.Rounds), params, int64(len(trained)+2), updates)
	l.counts("losses and validation counts", int64(c.Rounds), 2*eval.RealLen+metric, 2*eval.RealLen+wide)
	l.counts("losses and validation counts", 1, metric, wide)
}
