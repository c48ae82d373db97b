package tape

import (
	"math"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// Param is one tensor that training changes. Grad has Value's shape; backward passes add to it.
type Param struct {
	Name        string // unique in its model: "layer1.nbr.weight"
	Value, Grad mat.Dense
	Running     bool // no gradient: a statistic that inference reads, and that a BatchNorm's Settle moves
}

// FlatParams is the parameters of a model in one flat buffer each for values and gradients, in the
// order of Params: what an optimiser steps over and a reducer sums.
type FlatParams struct {
	Value, Grad []float32
	Params      []*Param
	Trained     int // values that an optimizer changes: those before the Running ones
}

// NewFlatParams moves params into one buffer, keeping their values; their matrices become compact
// views of it. Gradients start at zero. What is Running comes last.
func NewFlatParams(params []*Param) *FlatParams {
	n := 0
	for _, p := range params {
		n += p.Value.Rows * p.Value.Cols
	}
	s := &FlatParams{Value: make([]float32, n), Grad: make([]float32, n), Params: params}
	n = 0
	for _, p := range params {
		rows, cols := p.Value.Rows, p.Value.Cols
		value := mat.View(rows, cols, s.Value[n:n+rows*cols:n+rows*cols])
		value.CopyFrom(p.Value)
		p.Value, p.Grad = value, mat.View(rows, cols, s.Grad[n:n+rows*cols:n+rows*cols])
		n += rows * cols
		if !p.Running {
			s.Trained = n
		}
	}
	return s
}

// ZeroGrad sets every gradient to 0.
func (s *FlatParams) ZeroGrad() { clear(s.Grad) }

// NewParam returns a parameter whose values are all fill.
func NewParam(name string, rows, cols int, fill float32) *Param {
	p := &Param{Name: name, Value: mat.New(rows, cols), Grad: mat.New(rows, cols)}
	for i := range p.Value.Data {
		p.Value.Data[i] = fill
	}
	return p
}

// Glorot returns a parameter uniform in ±√(6/(in+out)) (Glorot and Bengio, AISTATS 2010, eq. 16),
// keyed by its name.
func Glorot(name string, rows, cols, in, out int, key rng.Key) *Param {
	p := NewParam(name, rows, cols, 0)
	k := key.FoldString(name)
	limit := math.Sqrt(6 / float64(in+out))
	for i := range p.Value.Data {
		p.Value.Data[i] = float32((2*k.Float64(uint64(i)) - 1) * limit)
	}
	return p
}
