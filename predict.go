package heddle

import (
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Predictions are a model's predictions for the nodes of a graph.
type Predictions struct {
	Logits mat.Dense // nodes × classes

	several bool // a node may have several classes
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

// Classes returns the most probable class of node i, the first of several. If a node may have several classes, it
// returns all whose probability is above 0.5, possibly none.
func (p Predictions) Classes(i int) (classes []int) {
	best, row := 0, p.Logits.Row(i)
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

// Probabilities returns that of each class for node i, [C]: by softmax, or, if a node may have several classes, by the
// sigmoid.
func (p Predictions) Probabilities(i int) []float64 {
	row := p.Logits.Row(i)
	out, top, sum := make([]float64, len(row)), float64(slices.Max(row)), 0.0
	for k, x := range row {
		if p.several {
			out[k] = 1 / (1 + math.Exp(-float64(x)))
			continue
		}
		out[k] = math.Exp(float64(x) - top)
		sum += out[k]
	}
	if !p.several {
		for k := range out {
			out[k] /= sum
		}
	}
	return out
}

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
	counts := metric.Count(p.Logits, g.Labels, rows)
	return metric.Of(&counts), len(rows), nil
}
