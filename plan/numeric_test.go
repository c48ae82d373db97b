package plan

import (
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// TestNumericTargets: a model that is trained end to end ends in a linear layer for numbers and has their dropout and
// decay, unless others are set or edges are typed.
func TestNumericTargets(t *testing.T) {
	data := task{Kind: graph.Numbers, Features: 9, Classes: 2, Relations: 3}
	for _, test := range []struct {
		model          string
		kind           graph.TargetKind
		numbered       bool
		set            func(*Plan)
		dropout, decay float32
		head           bool
	}{
		{"sage", graph.Numbers, false, func(*Plan) {}, 0, 5e-3, true},
		{"sage", graph.Single, false, func(*Plan) {}, 0.5, 5e-4, false},
		{"sage", graph.Numbers, true, func(*Plan) {}, 0.5, 5e-4, true},
		{"gat", graph.Numbers, false, func(p *Plan) { p.Gradient().Dropout, p.Gradient().Decay = 0.2, 0.1 }, 0.2, 0.1,
			true},
		{"rsage", graph.Numbers, false, func(*Plan) {}, 0.5, 0.02, true},
		{"appnp", graph.Numbers, false, func(*Plan) {}, 0, 5e-3, false},
		{"mlp", graph.Numbers, false, func(*Plan) {}, 0, 5e-3, false},
	} {
		p, of := Defaults(FullBatch, test.model), data
		of.Kind, of.Numbered = test.kind, test.numbered
		test.set(&p)
		c, err := p.endToEndConfig(of)
		if err != nil {
			t.Fatal(err)
		}
		last := c.Spec.Layers[1]
		if last.Dropout != test.dropout || c.Optimizer.Decay != test.decay {
			t.Errorf("%s: dropout %g and decay %g, must be %g and %g", test.model, last.Dropout, c.Optimizer.Decay,
				test.dropout, test.decay)
		}
		if width, wide := last.Out, last.Out == p.Gradient().Hidden; wide != test.head ||
			slices.Equal(last.Head, []int{2}) != test.head {
			t.Errorf("%s: the last layer has %d columns and the head %v", test.model, width, last.Head)
		}
	}
}
