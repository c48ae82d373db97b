package infer

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// Messages returns what each peer sends when all peers compute predictions with m together. sparse reports that nodes
// have sparse features.
func (c Config) Messages(m *nn.Model, sparse bool, members train.Members) *train.Messages {
	l, s := train.NewMessages(members), m.Spec
	if readsLabels(s) {
		l.AddLabels(s.Kind(), s.Classes)
	}
	if s.Closed != nil {
		c.addClosed(l, *s.Closed, s.Classes)
	} else {
		if s.Encoder.Classes != nil {
			c.addClosed(l, *s.Encoder.Classes, s.Classes)
		}
		c.addLayers(l, m, sparse)
	}
	if k := s.CorrectSmooth; k != nil {
		l.AddDegrees(1)
		l.SendExact("logits to smooth", "errors of the training nodes, and logits, to be smoothed", 2*int64(k.Steps),
			s.Classes, false)
		l.Sum("scale of the errors", "scale of the errors", 2, 4, 0)
	}
	if m.Decoder != nil {
		l.AddOwners()
		l.Ask("nodes of ends of new links", "which ends of links are wanted", 1)
		l.Send("ends of new links", "rows of ends of links", 1, s.Classes, true, c.Rows)
		types := max(members.Types, 1)
		l.Sum("types of ends", "types of the ends of links", 1, 0, int64(len(m.Decoder.Spec.Relations)*types*types))
		return l
	}
	none := graph.Labels{Classes: s.Classes}.None(s.Kind(), 0)
	l.Sum("test metric", "test metric", 1, 0, int64(eval.NewAccumulator(c.Metric, none, Bins(s)).Size()))
	return l
}

// addClosed adds the rows of a model in closed form, or of one that makes columns of classes.
func (c Config) addClosed(l *train.Messages, spec closed.Layout, classes int) {
	if spec.Hops == 0 && spec.LogitHops == 0 {
		return
	}
	c.addCovers(l)
	for r := range spec.Rounds {
		l.AddClassRows(spec, r, 1, classes, c.Rows)
	}
}

// addCovers adds how peers agree on sums that are sent instead of rows.
func (c Config) addCovers(l *train.Messages) {
	if c.Exchange != "halo" {
		l.AddCovers("covers of rows", 1)
	}
}

// addLayers adds the rows of a model of layers.
func (c Config) addLayers(l *train.Messages, m *nn.Model, sparse bool) {
	s := m.Spec
	degrees := s.Encoder.Hops > 0
	for k, layer := range m.Layers { // owners weigh rows that are their own inputs, unless these are sparse
		sparse := sparse && k == 0 && s.Encoder.Kind == "raw"
		degrees = degrees || layer.Edges == graph.GCN && (!c.Layerwise || sparse)
	}
	if degrees {
		l.AddDegrees(1)
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
		l.Send(fmt.Sprintf("features, hop %d", hop), what, 1, width, hop == 0, c.Rows)
	}
	if slices.ContainsFunc(m.Layers, func(l *nn.Layer) bool { return l.Sums() }) {
		c.addCovers(l)
	}
	for k, layer := range m.Layers {
		sent := c.SentWidth(m, k, sparse)
		for hop := range max(layer.Spec.Hops, 1) {
			what := "rows of " + layer.Name
			if sent == 0 {
				break
			}
			if hop > 0 {
				what = "aggregates " + train.OverHops(hop) + " for " + layer.Name
			}
			l.Send(RowsName(m, k, hop), what, 1, sent, hop == 0, c.Rows)
		}
	}
}
