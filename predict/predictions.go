package predict

import (
	"errors"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/train"
)

// Predictions are a model's predictions for the nodes of a graph.
type Predictions struct {
	Logits mat.Dense // nodes × classes; for regression nodes × targets, in the units of the data

	Warning string // names inputs of the model that the nodes lack (nn.Spec.Unlabelled), or is empty

	kind         graph.TargetKind
	temperatures eval.Temperatures // temperatures that divide the logits
	ordered      bool              // the median of the probabilities is predicted
	first        bool              // class 0 is the positive class of two
	cuts         eval.Cuts         // thresholds of the classes
}

// By returns p with the temperatures and the thresholds of a model's card.
func (p Predictions) By(card modelfile.Card) Predictions {
	p.temperatures, p.cuts, p.ordered, p.first = card.Calibration(), card.Cuts(), card.Ordered, card.First()
	return p
}

// Of(m) is p as predictions of m. p needs only its Logits.
func (p Predictions) Of(m *nn.Model) Predictions {
	p.kind = m.Spec.Kind()
	return p
}

// PredictionsOf returns m's predictions for its output logits, in the units of the data.
func PredictionsOf(m *nn.Model, logits mat.Dense) Predictions {
	if !logits.Empty() {
		logits = graph.Restored(logits, m.Spec.Units)
	}
	return Predictions{Logits: logits, kind: m.Spec.Kind()}
}

// Classes returns the most probable class of node i (the first of several), or class 1 from a threshold on, or the
// median of ordered classes (eval.Median). If a node may have several classes, it returns all whose probability is
// above 0.5, or above their own threshold, possibly none. Numbers have no classes.
func (p Predictions) Classes(i int) (classes []int) {
	if p.kind == graph.Numbers || p.kind == graph.Links {
		return nil
	}
	best, row := 0, p.Logits.Row(i)
	if (p.kind == graph.Several || len(row) == 2) && len(p.cuts) > 0 {
		for k := range row {
			if p.cuts.Of(row, k, p.temperatures) {
				classes = append(classes, k)
			}
		}
		return classes
	}
	if p.ordered && p.kind == graph.Single {
		return []int{eval.Median(row)}
	}
	for k, x := range row {
		if p.kind == graph.Several && x > 0 {
			classes = append(classes, k)
		}
		if x > row[best] {
			best = k
		}
	}
	if p.kind == graph.Several {
		return classes
	}
	return []int{best}
}

// Probabilities returns the probability of each class for node i, [C], with the card's temperatures: the softmax, or
// the sigmoid if a node may have several classes.
func (p Predictions) Probabilities(i int) []float64 {
	row := p.Logits.Row(i)
	out := make([]float64, len(row))
	eval.Probabilities(out, row, p.kind == graph.Several, p.temperatures)
	return out
}

// Kind returns the kind of target. For graph.Numbers the Logits are the predictions, and there are no classes.
func (p Predictions) Kind() graph.TargetKind { return p.kind }

// Score returns a metric over the test nodes of g and the number of these nodes. The metric is NaN and the number 0 if
// g has no test nodes or other classes than the model. An unknown metric is an *InputError.
func (p Predictions) Score(metric eval.Metric, g *graph.Graph) (x float64, nodes int, err error) {
	if g == nil {
		return math.NaN(), 0, train.Input(errors.New("there must be a graph (got nil)"))
	}
	rows := g.InSplit(graph.Test)
	if len(rows) == 0 || g.Labels.Classes != p.Logits.Cols || g.Labels.Kind() != p.kind {
		return math.NaN(), 0, nil
	}
	if err := metric.Fits(p.kind); err != nil {
		return math.NaN(), 0, train.Input(err)
	}
	logits := p.Logits
	if !metric.Ranks() {
		logits = p.cuts.Decided(logits, p.temperatures)
	}
	labels := g.Labels
	labels.Ordered, labels.First = p.ordered, p.first
	return metric.Pooled(eval.Scored{Scores: logits, Labels: labels, Rows: rows}), len(rows), nil
}
