package nn

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Until returns the model that ends with m's layer k, 0 being the encoder mlp, with copies of m's
// parameters. Where rows travel between m's layers (LayerOutput Hidden), head holds the parameters of
// the head over that layer's rows, the matrix before the bias; where logits do it is empty, and m's
// own heads stay.
func (m *Model) Until(k int, head []float32) (*Model, error) {
	spec := m.Spec
	spec.Layers = slices.Clone(spec.Layers[:k])
	if k > 0 && spec.LayerOutput == Hidden && len(spec.Layers[k-1].Head) == 0 {
		spec.Layers[k-1].Head = []int{spec.Classes}
	}
	short, err := New(spec, rng.New(0))
	if err != nil {
		return nil, err
	}
	copyParams(short.Encoder.Params(), m.Encoder.Params())
	for i, l := range short.Layers {
		copyParams(l.Params(), m.Layers[i].Params())
		copyParams(l.Running(), m.Layers[i].Running())
		if spec.LayerOutput == Logits {
			copyParams(l.Head.Params(), m.Layers[i].Head.Params())
		}
	}
	if spec.LayerOutput == Logits {
		return short, nil
	}
	last := short.Encoder.Layer
	if k > 0 {
		last = short.Layers[k-1]
	}
	for _, p := range last.Head.Params() {
		n := p.Value.Rows * p.Value.Cols
		if n > len(head) {
			return nil, fmt.Errorf("nn: the head of layer %d has %d values too few", k, n-len(head))
		}
		head = head[copy(p.Value.Data, head[:n]):]
	}
	return short, nil
}

// copyParams copies the values of one list of parameters to another of the same shapes.
func copyParams(to, from []*tape.Param) {
	for i, p := range to {
		p.Value.CopyFrom(from[i].Value)
	}
}
