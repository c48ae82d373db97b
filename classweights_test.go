package heddle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// TestClassWeights: with every method, given weights that equal the balanced ones give the same model, and others
// another one.
func TestClassWeights(t *testing.T) {
	g := priced(t, 300, false)
	for i, v := range g.Labels.Values { // two classes, one of them rare
		class := int32(0)
		if v != v {
			class = -1
		} else if v > 5200 {
			class = 1
		}
		g.Labels.Class = append(g.Labels.Class, class)
		if class < 0 {
			g.Split[i] = graph.None
		}
	}
	g.Labels.Values, g.Labels.Classes, g.Labels.Names = nil, 2, []string{"usual", "dear"}
	shards := dealt(t, g, 2)
	counts := g.Labels.Select(g.InSplit(graph.Train)).Count()
	total := counts[0] + counts[1]
	same := fmt.Sprintf("class_weights: [usual=%.9g, dear=%.9g]", total/2/counts[0], total/2/counts[1])
	for _, settings := range []string{
		"method: full-batch\nmodel: gcn\nrounds: 5", "method: full-batch\npeers: 1\nmodel: gcn\nrounds: 5",
		"method: layer-wise\nencoder: raw\nrounds: 5", "method: mini-batch\nmodel: sage\nrounds: 3", "min_class: 1",
	} {
		t.Run(strings.ReplaceAll(settings, "\n", " "), func(t *testing.T) {
			t.Parallel()
			var logits [3][]float32
			for k, weights := range []string{"class_weights: [balanced]", same, "class_weights: [dear=50]"} {
				parts := shards
				if strings.Contains(settings, "peers: 1") {
					parts = dealt(t, g, 1)
				}
				r, err := Local{Plan: read(t, settings+"\n"+weights+"\ntransport: memory\npolicy: random"),
					Shards: parts}.Train(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				logits[k] = byNode(r, parts, g.N()).Data
			}
			if !slices.Equal(logits[0], logits[1]) {
				t.Error("weights as balanced has them give another model")
			}
			if slices.Equal(logits[0], logits[2]) {
				t.Error("other weights give the same model")
			}
		})
	}
}
