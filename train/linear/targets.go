package linear

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	hmat "github.com/heddle-gnn/heddle/mat"
)

// Targets returns the labels of N nodes as rows of numbers, or of zeros and ones, N×C, and how much each node
// counts: its class's weight where there are weights (nil: 1), nothing without a label. A node of
// several classes counts once, whatever they weigh: a class's own weight would only scale its
// penalty.
func Targets(labels graph.Labels, classWeight []float32) (y hmat.Dense, weight []float32) {
	c := labels.Classes
	if labels.Kind() == target.Numbers {
		y, weight = hmat.New(len(labels.Values)/c, c), make([]float32, len(labels.Values)/c)
		for i := range weight {
			if labels.Has(i) {
				weight[i] = 1
				copy(y.Row(i), labels.Values[i*c:])
			}
		}
		return y, weight
	}
	if labels.Multi() {
		y = hmat.New(len(labels.Bits)/c, c)
		for i, b := range labels.Bits {
			y.Data[i] = float32(b)
		}
		weight = make([]float32, y.Rows)
		for i := range weight {
			weight[i] = 1
		}
		return y, weight
	}
	y, weight = hmat.New(len(labels.Class), c), make([]float32, len(labels.Class))
	for i, k := range labels.Class {
		if k < 0 {
			continue
		}
		y.Set(i, int(k), 1)
		if weight[i] = 1; classWeight != nil {
			weight[i] = classWeight[k]
		}
	}
	return y, weight
}
