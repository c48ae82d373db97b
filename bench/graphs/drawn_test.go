package graphs

import (
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// TestDrawUnlike: graphs are sound, the same for the same seed, and of the kind that their names say.
func TestDrawUnlike(t *testing.T) {
	for name, like := range map[string][2]float64{"drawn-dense": {0.5, 0.6}, "drawn-text": {0.55, 0.65},
		"drawn-binary": {0, 0.15}} {
		g, err := DrawUnlike(name, 7)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := DrawUnlike(name, 7)
		other, _ := DrawUnlike(name, 8)
		at := func(g *graph.Graph) int32 { return g.Adj.Col[len(g.Adj.Col)/2] }
		if at(again) != at(g) || len(g.Adj.Col) == len(other.Adj.Col) {
			t.Errorf("%s: seed 7 must give the same graph again, and seed 8 another", name)
		}
		if err := g.Valid(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		same, across := 0.0, 0
		for i := range g.N() {
			for _, j := range g.Adj.Col[g.Adj.RowPtr[i]:g.Adj.RowPtr[i+1]] {
				if g.Labels.Class[i] == g.Labels.Class[j] {
					same += 1 / float64(len(g.Adj.Col))
				}
				if g.Site != nil && g.Site[i] != g.Site[j] {
					across++
				}
			}
		}
		if same < like[0] || same > like[1] || across > 0 {
			t.Errorf("%s: %.2f of the edges join nodes of one class, must be %g to %g; %d join two sites", name, same,
				like[0], like[1], across)
		}
	}
	if _, err := DrawUnlike("cora", 1); err == nil || !strings.Contains(err.Error(), `(got "cora")`) {
		t.Errorf("cora is drawn: %v", err)
	}
}
