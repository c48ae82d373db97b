package heddle

import (
	"cmp"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// Predictions are a model's predictions for the nodes of a graph.
type Predictions struct {
	Logits mat.Dense // nodes × classes

	several     bool     // a node may have several classes
	temperature float64  // that divides logits for probabilities; 0: 1
	threshold   *float64 // calibrated log-odds from which on class 1, of two, is predicted; nil: the larger logit decides
}

// By returns p with the temperature and the threshold of a model's card.
func (p Predictions) By(card modelfile.Card) Predictions {
	p.temperature, p.threshold = card.Temperature, card.Threshold
	return p
}

// Predict applies m to g. If they do not fit, as in the number of features, the error is an
// *InputError.
func Predict(m *nn.Model, g *graph.Graph) (Predictions, error) {
	logits, err := m.Infer(g.Numbered())
	if err != nil {
		return Predictions{}, input(fmt.Errorf("the model does not fit %s: %w", g.Name, err))
	}
	return Predictions{Logits: logits, several: m.Spec.Task == "multi"}, nil
}

// Classes returns the most probable class of node i, the first of several, or by a threshold class 1 from there on. If a node may have several classes, it
// returns all whose probability is above 0.5, possibly none.
func (p Predictions) Classes(i int) (classes []int) {
	best, row := 0, p.Logits.Row(i)
	if p.threshold != nil && len(row) == 2 {
		if eval.LogOdds(row, p.heat()) >= *p.threshold {
			best = 1
		}
		return []int{best}
	}
	for k, x := range row {
		if p.several && x > 0 {
			classes = append(classes, k)
		}
		if x > row[best] {
			best = k
		}
	}
	if p.several {
		return classes
	}
	return []int{best}
}

// Probabilities returns that of each class for node i, [C], calibrated by the card's temperature: by softmax, or, if a node may have several classes, by the
// sigmoid.
func (p Predictions) Probabilities(i int) []float64 {
	row := p.Logits.Row(i)
	out := make([]float64, len(row))
	eval.Probabilities(out, row, p.several, p.heat())
	return out
}

// Several reports whether a node may have several classes.
func (p Predictions) Several() bool { return p.several }

// heat is the temperature.
func (p Predictions) heat() float64 { return cmp.Or(p.temperature, 1) }

// Score returns a metric, in [0, 1], over the test nodes of g and the number of these nodes. The
// metric is NaN and the number 0 if g has none or if its classes are not the model's. An unknown
// metric is an *InputError.
func (p Predictions) Score(metric eval.Metric, g *graph.Graph) (x float64, nodes int, err error) {
	rows := g.InSplit(graph.Test)
	if len(rows) == 0 || g.Labels.Classes != p.Logits.Cols || g.Labels.Multi() != p.several {
		return math.NaN(), 0, nil
	}
	if err := metric.Validate(); err != nil {
		return math.NaN(), 0, input(err)
	}
	logits := p.Logits
	if p.threshold != nil && !metric.Ranks() {
		logits = eval.Decided(logits, p.heat(), *p.threshold)
	}
	counts := metric.Count(logits, g.Labels, rows)
	return metric.Of(&counts), len(rows), nil
}
