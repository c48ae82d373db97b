package nn

import (
	"fmt"

	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// newSIGN is SIGN's first layer, y = [x₀·W₀ | x₁·W₁ | …] + b: x R×In are the features' aggregates
// of 0 to Hops hops, which the encoder has put side by side, and y R×Out their products, likewise
// (Frasca et al., 2020, arXiv 2004.11198, eq. 4).
func newSIGN(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{Self: tape.NewBlockLinear(name+".self", s.In, s.Out, s.Hops+1, !s.BatchNorm, key)}
}

// arrangeSIGN puts that layer in front of others without edges; the hidden width is the width of
// one of its pieces.
func arrangeSIGN(s *Spec, a Architecture) {
	for k := range s.Layers {
		s.Layers[k].Conv = "mlp"
	}
	s.Encoder = EncoderSpec{Kind: "sign", Hops: a.Hops, Out: (a.Hops + 1) * a.Features}
	first := &s.Layers[0]
	first.Conv, first.Hops, first.In = a.Model, a.Hops, s.Encoder.Out
	if len(s.Layers) > 1 {
		first.Out = (a.Hops + 1) * a.Hidden
		s.Layers[1].In = first.Out
	}
}

// faultsOfSIGN returns the fault of widths that cannot be cut into one piece for each number of hops.
func faultsOfSIGN(s LayerSpec) []error {
	if s.Hops < 1 || s.In%(s.Hops+1) != 0 || s.Out%(s.Hops+1) != 0 {
		const must = "in and out must be multiples of hops + 1, and hops at least 1 (got %d, %d and %d)"
		return []error{fmt.Errorf(must, s.In, s.Out, s.Hops)}
	}
	return nil
}

func weightsOfSIGN(s LayerSpec, matrix func(rows, cols int)) { matrix(s.In, s.Out/(s.Hops+1)) }
