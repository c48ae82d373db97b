package nn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Model is an encoder and layers, or what stands in their place where it is solved in closed form.
type Model struct {
	Spec    Spec
	Encoder *Encoder
	Layers  []*Layer
	Closed  *closed.Form // nil: it has layers
	Decoder *Decoder     // of links; nil: what comes out are logits or numbers
}

// New returns the model that spec describes, its parameters drawn from key and their names; or all
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

// UpTo returns a model in closed form without the rounds after the first so many; the parameters are
// those of m.
func (m *Model) UpTo(rounds int) *Model {
	one := *m
	one.Closed = m.Closed.UpTo(rounds)
	one.Spec.Closed = &one.Closed.Spec
	return &one
}

// Params returns the parameters that inference reads, under unique names: of the encoder, of the
// layers, and of the heads that are kept (all of them where layers hand on logits, else the last one);
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

// Head returns the head whose output layer k hands on; nil: it hands on its rows.
func (m *Model) Head(k int) tape.Operator {
	if m.Spec.LayerOutput == Logits || k == len(m.Layers)-1 {
		return m.Layers[k].Head
	}
	return nil
}
