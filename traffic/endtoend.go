package traffic

import (
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// EndToEnd returns what a run of such members by c sends, if rows that the gradient reads are fetched again, and whoever can be sampled is.
func EndToEnd(c fullbatch.Config, members Members) (List, error) {
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	l := begin(members)
	steps := int64(c.Rounds)
	if c.Links == nil {
		l.labels(c.Spec.Kind(), c.Spec.Classes)
	}
	views := int64(1)
	if c.Inductive {
		views = 2
		l.rows("whether a node is held out, and its degree without such nodes", 1, 2, false, exactly)
	} else if c.Boundary == 0 {
		views = 2
	}
	if weighs(m) {
		l.rows("degrees of the nodes", views, 1, false, exactly)
	}
	l.add(Message{What: "which rows are wanted, and which as sums", Kind: Rows, Times: int64(4 * (len(c.Spec.Layers) + 1)), Format: "float32",
		payload: 4, head: 8 * comm.HeaderLen})
	l.sum("counts of rows and edges", 8+2*int64(c.Spec.Encoder.Hops), 0, 1+int64(len(c.Spec.Layers)))
	width := c.Spec.Features
	if c.Spec.Encoder.Labels > 0 {
		width += c.Spec.Classes
	}
	for hop := range c.Spec.Encoder.Hops {
		what := "features"
		if hop > 0 {
			what = "sums of features over hops"
		}
		l.rows(what, views, width, hop == 0, c.Rows)
	}
	validations := (steps+int64(c.EvalEvery)-1)/int64(c.EvalEvery) + 2
	params := int64(0)
	if c.Links != nil {
		l.links(c.Config, steps, validations)
		if m.Decoder != nil {
			for _, p := range m.Decoder.Params() {
				params += int64(len(p.Value.Data))
			}
		}
	}
	for k, layer := range layersOf(m) {
		for _, p := range layer.Params() {
			params += int64(len(p.Value.Data))
		}
		if layer.Head != nil {
			for _, p := range layer.Head.Params() {
				params += int64(len(p.Value.Data))
			}
		}
		if layer.Spec.BatchNorm {
			l.sum("mean and variance of each hidden column", 2*steps, 4*int64(layer.Spec.Out)+2, 0)
		}
		if layer.Conv.Agg == nil {
			continue
		}
		l.hops(c, layer, k == 0, width, steps, validations, views)
	}
	l.sum("gradients of all layers", steps, params, eval.RealLen)
	l.add(Message{What: "gradients of all layers", Kind: Sums, Times: steps * int64(len(c.Spec.Layers)), Format: "float32", head: framesOfSum * comm.HeaderLen})
	if c.Links != nil {
		l.ranks(m, validations)
		return l.List, nil
	}
	metric, final, wide := accumulated(c.Metric, c.Spec.Kind(), c.Spec.Classes)
	l.counts("losses and validation counts", validations, metric, wide)
	l.counts("validation and test metrics", 1, 2*final, 2*wide)
	if s := c.Spec.CorrectSmooth; s != nil {
		l.rows("errors of the training nodes, and logits, to be smoothed", 2*int64(s.Steps)+2, c.Spec.Classes, false, exactly)
		l.sum("scale of the errors", 2, 4, 0)
	}
	l.figures(c.Spec.Kind(), c.Spec.Classes)
	return l.List, nil
}

// links adds what the two ends of links take, if each node is read at each step by each peer that may read it: those with
// edges from it or, where pairs are drawn from all nodes, all.
func (l *sending) links(c train.Config, steps, validations int64) {
	l.sum("counts of links", 1, 0, 3)
	l.ends(steps + 2)
	width := c.Spec.Classes
	l.rows("rows of ends of links", steps+validations+2, width, true, c.Rows)
	if steps == 0 {
		return
	}
	l.add(Message{What: "gradients of others' rows of ends of links", Kind: Errors, Times: steps, Numbers: int64(width), Format: formatOf(c.Rows),
		payload: int64(c.Rows.RowLen(width)), head: 2*comm.HeaderLen + 8})
}

// ranks adds the sums by which links that are held out are measured.
func (l *sending) ranks(m *nn.Model, validations int64) {
	l.sum("ranks of links that are held out", validations-1, 0, int64(len(eval.NewRanking(train.SelectionBins).Vector())))
	l.sum("ranks of links that are held out, at last", 2, 0, int64(len(m.Decoder.Spec.Relations)*len(eval.NewRanking(eval.DefaultBins).Vector())))
}

// ends adds how peers tell one another their nodes, and so often those that they read.
func (l *sending) ends(times int64) {
	l.add(Message{What: "ID and type of each node", Kind: Rows, Times: 1, Numbers: 2, Format: "int64", payload: 11, head: 2*comm.HeaderLen + 8})
	l.add(Message{What: "which ends of links are wanted", Kind: Rows, Times: times, Format: "float32", head: 2*comm.HeaderLen + 8 + 4*l.Nodes})
}

// weighs reports whether weights of edges are made of the degrees of both their ends.
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

// hops adds the rows that a layer aggregates, and the gradients of others' rows. The first layer's are features, of that
// width, which never change: they travel once where memory holds them and one hop reads them.
func (l *sending) hops(c fullbatch.Config, layer *nn.Layer, first bool, width int, steps, validations, views int64) {
	hops := int64(max(layer.Spec.Hops, 1))
	if first {
		once := views
		if c.Memory > 0 || hops > 1 {
			once = hops * (steps + validations + views)
		}
		l.rows("features", once, width, true, c.Rows)
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
		l.rows(what, hops*(fetched+validations), sent, true, c.Rows)
		l.add(Message{What: "gradients of others' " + what, Kind: Errors, Times: hops * steps, Numbers: int64(sent), Format: formatOf(c.Rows),
			payload: int64(c.Rows.RowLen(sent)), head: 2*comm.HeaderLen + 8})
	}
}
