package linear

import (
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

func TestTargets(t *testing.T) {
	one := graph.Labels{Class: []int32{2, -1, 0}, Classes: 3}
	several := graph.Labels{Bits: []uint8{1, 0, 1, 0, 0, 0}, Classes: 3}
	for _, test := range []struct {
		name        string
		labels      graph.Labels
		classWeight []float32
		y, weight   []float32
	}{
		{"one class", one, nil, []float32{0, 0, 1, 0, 0, 0, 1, 0, 0}, []float32{1, 0, 1}},
		{"weighted", one, []float32{2, 3, 4}, []float32{0, 0, 1, 0, 0, 0, 1, 0, 0}, []float32{4, 0, 2}},
		{"several classes", several, []float32{2, 3, 4}, []float32{1, 0, 1, 0, 0, 0}, []float32{1, 1}},
	} {
		y, weight := Targets(test.labels, test.classWeight)
		if y.Cols != 3 || !slices.Equal(y.Data, test.y) || !slices.Equal(weight, test.weight) {
			t.Errorf("%s: must be %v and %v (got %v and %v)", test.name, test.y, test.weight, y.Data, weight)
		}
	}
}
