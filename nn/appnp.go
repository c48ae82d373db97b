package nn

import (
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// newAPPNP is y = Z⁽ᴷ⁾ with Z⁽⁰⁾ = x·W + b and Z⁽ᵏ⁺¹⁾ = (1−α)·Â·Z⁽ᵏ⁾ + α·Z⁽⁰⁾ over a graph
// normalised by graph.GCN, K the hops and α the restart probability: personalised PageRank by power
// iteration. x R×In, y R×Out (Klicpera, Bojchevski and Günnemann, ICLR 2019, eqs. 5 and 6). It
// keeps its bias before a BatchNorm too: what that adds does not reach all rows alike.
func newAPPNP(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{Pre: tape.NewLinear(name+".pre", s.In, s.Out, true, key), Agg: aggregate.Sum{}, Alpha: s.Alpha}
}

// arrangeAPPNP makes the last of several layers without edges propagate its output.
func arrangeAPPNP(s *Spec, a Architecture) {
	for k := range s.Layers {
		s.Layers[k].Conv = "mlp"
	}
	last := &s.Layers[len(s.Layers)-1]
	last.Conv, last.Hops, last.Alpha = a.Model, a.Hops, a.Alpha
}
