package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Auto is the value of settings that are chosen by what else is known.
const Auto = "auto"

// The methods of training.
const (
	ClassMeans = "class-means"
	LayerWise  = "layer-wise"
	FullBatch  = "full-batch"
	MiniBatch  = "mini-batch"
)

// Methods returns the methods of training, the default first.
func Methods() []string { return []string{ClassMeans, LayerWise, FullBatch, MiniBatch} }

func knownMethod(method string) error {
	if !slices.Contains(Methods(), method) {
		return fmt.Errorf("method must be %s (got %q)", either(Methods()), method)
	}
	return nil
}

// sectionOf is the name of the section of a method's settings in a plan file.
func sectionOf(method string) string { return strings.ReplaceAll(method, "-", "_") }

// Federated reports whether p's method is made for sites that may not pool their data.
func (p Plan) Federated() bool { return p.Method == ClassMeans || p.Method == LayerWise }

// Gradient returns the settings of p's section that methods of trained layers share. With class means they are zero,
// and nothing reads them.
func (p *Plan) Gradient() *Gradient {
	if p.Method == LayerWise {
		return &p.LayerWise.Gradient
	}
	return &p.Joint().Gradient
}

// Joint returns the settings of p's section that full-batch and mini-batch share. With other methods they are zero.
func (p *Plan) Joint() *JointLayers {
	switch p.Method {
	case FullBatch:
		return &p.FullBatch.JointLayers
	case MiniBatch:
		return &p.MiniBatch.JointLayers
	}
	return new(JointLayers)
}

// Federation returns the settings of p's section that class-means and layer-wise share. With other methods they are
// zero.
func (p *Plan) Federation() *Federation {
	switch p.Method {
	case ClassMeans:
		return &p.ClassMeans.Federation
	case LayerWise:
		return &p.LayerWise.Federation
	}
	return new(Federation)
}

// Encoder returns the encoding of features by p's method.
func (p Plan) Encoder() Encoder {
	switch p.Method {
	case ClassMeans:
		return Encoder{Kind: "classes"}
	case LayerWise:
		return p.LayerWise.Encoder
	case FullBatch:
		return p.FullBatch.Encoder
	}
	return Encoder{Kind: "raw"}
}

// Hops returns how often p's method aggregates, before each of its layers.
func (p Plan) Hops() int {
	if p.Method == ClassMeans {
		return p.ClassMeans.Hops
	}
	return p.Gradient().Hops
}
