package traffic

import (
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/infer"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Inference returns what each peer sends when all compute predictions by m together. sparse says that nodes have
// sparse features.
func Inference(c infer.Config, m *nn.Model, sparse bool, members Members) List {
	l, s := begin(members), m.Spec
	if train, val := s.ReadsLabels(); train || val {
		l.labels(s.Kind(), s.Classes)
	}
	if s.Closed != nil {
		l.closedColumns(c, *s.Closed, s.Classes)
	} else {
		if s.Encoder.Classes != nil {
			l.closedColumns(c, *s.Encoder.Classes, s.Classes)
		}
		l.layerRows(c, m, sparse)
	}
	if k := s.CorrectSmooth; k != nil {
		l.rows("degrees of the nodes", 1, 1, false, exactly)
		l.rows("errors of the training nodes, and logits, to be smoothed", 2*int64(k.Steps), s.Classes, false, exactly)
		l.sum("scale of the errors", 2, 4, 0)
	}
	if m.Decoder != nil {
		l.ends(1)
		l.rows("rows of ends of links", 1, s.Classes, true, c.Rows)
		l.sum("types of the ends of links", 1, 0, int64(len(m.Decoder.Spec.Relations)*max(members.Types, 1)*max(members.Types, 1)))
		return l.List
	}
	none := graph.Labels{Classes: s.Classes}.None(s.Kind(), 0)
	l.sum("test metric", 1, 0, int64(eval.NewAccumulator(c.Metric, none, infer.Bins(s)).Size()))
	return l.List
}

// closedColumns adds the rows of a model in closed form, or of one that makes columns of classes.
func (l *sending) closedColumns(c infer.Config, spec closed.Layout, classes int) {
	if spec.Hops == 0 && spec.LogitHops == 0 {
		return
	}
	l.wanted(c.Exchange)
	for r := range spec.Rounds {
		wide := spec.Width(classes)
		l.columnRows(spec.HopsOf(r), 1, wide, c.Rows)
		l.logitRows(spec, r, 1, wide, c.Rows)
	}
}

// wanted adds how peers agree on what crosses in place of rows.
func (l *sending) wanted(exchange string) {
	if exchange != "halo" {
		l.add(Message{What: "which rows are wanted, and which as sums", Kind: Rows, Times: 1, Format: "float32", payload: 4, head: 8 * comm.HeaderLen})
	}
}

// layerRows adds the rows of a model of layers.
func (l *sending) layerRows(c infer.Config, m *nn.Model, sparse bool) {
	s := m.Spec
	degrees := s.Encoder.Hops > 0
	for k, layer := range m.Layers { // owners weigh rows that are their own inputs, unless these are sparse
		sparse := sparse && k == 0 && s.Encoder.Kind == "raw"
		degrees = degrees || layer.Edges == graph.GCN && (!c.Layerwise || sparse)
	}
	if degrees {
		l.rows("degrees of the nodes", 1, 1, false, exactly)
	}
	width := s.Features
	if s.Encoder.Labels > 0 {
		width += s.Classes
	}
	for hop := range s.Encoder.Hops {
		what := "features"
		if hop > 0 {
			what = "sums of features over hops"
		}
		l.rows(what, 1, width, hop == 0, c.Rows)
	}
	if slices.ContainsFunc(m.Layers, func(l *nn.Layer) bool { return l.Sums() }) {
		l.wanted(c.Exchange)
	}
	for k, layer := range m.Layers {
		sent := c.SentWidth(m, k, sparse)
		for hop := range max(layer.Spec.Hops, 1) {
			what := "rows of " + layer.Name
			if sent == 0 {
				break
			}
			if hop > 0 {
				what = "aggregates " + over(hop) + " for " + layer.Name
			}
			l.rows(what, 1, sent, hop == 0, c.Rows)
		}
	}
}
