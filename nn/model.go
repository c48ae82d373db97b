package nn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// Model is an encoder and layers, or a closed form instead of layers.
type Model struct {
	Spec    Spec
	Encoder *Encoder
	Layers  []*Layer
	Closed  *closed.Form // nil if it has layers
	Decoder *Decoder     // of links; nil if the output is logits or numbers
}

// New returns the model that spec describes, with random parameters by key and their names, or all
// that is wrong with spec.
func New(spec Spec, key rng.Key) (*Model, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	enc, err := newEncoder(spec, key)
	if err != nil {
		return nil, err
	}
	m := &Model{Spec: spec, Encoder: enc}
	if spec.Closed != nil {
		m.Closed = closed.New(*spec.Closed, spec.Features, spec.Classes, key)
	}
	for k, s := range spec.Layers {
		l, err := NewLayer(fmt.Sprintf("layer%d", k+1), s, key)
		if err != nil {
			return nil, err
		}
		m.Layers = append(m.Layers, l)
	}
	if spec.Decoder != nil {
		if m.Decoder, err = NewDecoder(*spec.Decoder, key); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Whole returns an error unless m has all parts of its specification, as New makes them.
func (m *Model) Whole() error {
	if m == nil || m.Encoder == nil || len(m.Layers) != len(m.Spec.Layers) || slices.Contains(m.Layers, nil) ||
		(m.Closed == nil) != (m.Spec.Closed == nil) || (m.Decoder == nil) != (m.Spec.Decoder == nil) {
		return errors.New("there must be a model with all parts of its specification (got nil, or a part is missing)")
	}
	return nil
}

// UpTo returns a model in closed form with only the first rounds; its parameters are m's.
func (m *Model) UpTo(rounds int) *Model {
	one := *m
	one.Closed = m.Closed.UpTo(rounds)
	one.Spec.Closed = &one.Closed.Spec
	return &one
}

// Params returns the parameters that inference reads, under unique names: of the encoder, of the
// layers, and of the heads that are kept (all of them if layers hand on logits, else the last one);
// then running statistics.
func (m *Model) Params() []*tape.Param {
	if m.Closed != nil {
		return m.Closed.Params()
	}
	all := m.Encoder.Params()
	if len(m.Layers) == 0 && !m.Encoder.logits {
		all = append(all, m.Encoder.Layer.Head.Params()...)
	}
	for k, l := range m.Layers {
		all = append(all, l.Params()...)
		if head := m.Head(k); head != nil {
			all = append(all, head.Params()...)
		}
	}
	if m.Decoder != nil {
		all = append(all, m.Decoder.Params()...)
	}
	for _, l := range m.Layers {
		all = append(all, l.Running()...)
	}
	return all
}

// Head returns the head whose output layer k hands on, or nil if the layer hands on its rows.
func (m *Model) Head(k int) tape.Operator {
	if m.Spec.LayerOutput == Logits || k == len(m.Layers)-1 {
		return m.Layers[k].Head
	}
	return nil
}

// Until returns the model that ends with m's layer k, 0 being the encoder mlp, with copies of m's
// parameters. If m's layers send rows (LayerOutput Hidden), head has the parameters of the head over
// that layer's rows, the matrix before the bias. If they send logits, head is empty, and m's own
// heads stay.
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
			return nil, fmt.Errorf("the head of layer %d has %d values too few", k, n-len(head))
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
