package nn

import (
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// Encoder, stage 0, computes the rows that the first layer reads, and that peers send, from a node's own features.
type Encoder struct {
	Spec EncoderSpec
	Proj *tape.Linear // pca: the F×K leading components, without bias; zero until computed. Else nil
	// mlp: Linear, norm, ReLU and a head, trained as a layer without edges; embedding: only Linear. Else nil
	Layer *Layer

	// pca: computes the columns of classes, with which WithClasses completes the rows of Encode; nil if rows have only
	// components.
	Classes *closed.Form

	logits bool // the output of mlp is its head's logits
}

// newEncoder returns the encoder of a model that spec describes.
func newEncoder(spec Spec, key rng.Key) (*Encoder, error) {
	e := &Encoder{Spec: spec.Encoder, logits: spec.LayerOutput == Logits}
	switch e.Spec.Kind {
	case "pca":
		e.Proj = tape.NewProjection("encoder.proj", spec.Features, e.Spec.Components(spec.Classes))
		if c := e.Spec.Classes; c != nil {
			e.Classes = closed.New(*c, spec.Features, spec.Classes, key)
		}
	case "mlp":
		layer, err := NewLayer("encoder", LayerSpec{
			Conv: "mlp", In: spec.Features, Out: e.Spec.Hidden, Hops: 1,
			Norm: true, Act: "relu", Dropout: e.Spec.Dropout,
		}, key)
		if err != nil {
			return nil, err
		}
		layer.Head = tape.Stack{
			&tape.Dropout{Name: "encoder.head.dropout", P: e.Spec.Dropout},
			tape.NewLinear("encoder.head.0", e.Spec.Hidden, spec.Classes, true, key),
		}
		e.Layer = layer
	case "embedding":
		layer, err := NewLayer("encoder", LayerSpec{Conv: "mlp", In: spec.Features, Out: e.Spec.Hidden, Hops: 1}, key)
		if err != nil {
			return nil, err
		}
		e.Layer = layer
	}
	return e, nil
}

// Components returns how many components an encoder pca keeps in a model of the given number of classes.
func (s EncoderSpec) Components(classes int) int {
	if s.Classes != nil {
		return s.Out - classes
	}
	return s.Out
}

// Params returns the components and the parameters of the columns of classes, or the hidden layer and, if the output is
// logits, the head.
func (e *Encoder) Params() []*tape.Param {
	switch {
	case e.Classes != nil:
		return append(e.Proj.Params(), e.Classes.Params()...)
	case e.Proj != nil:
		return e.Proj.Params()
	case e.Layer != nil && e.logits:
		return append(e.Layer.Params(), e.Layer.Head.Params()...)
	case e.Layer != nil:
		return e.Layer.Params()
	}
	return nil
}

// Reads returns the features that a model of s reads. It is x, or for encoder embedding one column of zeros if the
// model is for nodes without features and x is their numbers (graph.Identity).
func (s Spec) Reads(x graph.Features) graph.Features {
	if s.Encoder.Kind != "embedding" || s.Features != 1 || x.Cols() == 1 {
		return x
	}
	if _, ok := x.Numbers(); !ok {
		return x
	}
	return graph.Features{Dense: mat.New(x.Rows(), 1)}
}

// Input returns the features as every kind of encoder reads them: x or, if the spec asks for it, x with each row
// divided by the sum of its magnitudes (Kipf and Welling, ICLR 2017, §5.2) or by its length.
func (e *Encoder) Input(x graph.Features) graph.Features {
	scale := scaleL1
	switch {
	case e.Spec.L2Norm:
		scale = scaleL2
	case !e.Spec.L1Norm:
		return x
	}
	if s := x.Sparse; s != nil {
		scaled := *s
		scaled.Val = slices.Clone(s.Val)
		for i := range s.Rows {
			_, val := scaled.Row(i)
			scale(val)
		}
		return graph.Features{Sparse: &scaled}
	}
	d := x.Dense.Clone()
	for i := range d.Rows {
		scale(d.Row(i))
	}
	return graph.Features{Dense: d}
}

// scaleL1 divides a row by the sum of its magnitudes, unless that is 0.
func scaleL1(row []float32) {
	var sum float64
	for _, v := range row {
		sum += math.Abs(float64(v))
	}
	if sum > 0 {
		kernels.Scale(float32(1/sum), row)
	}
}

// Encode returns the encoder's output for the rows x. For raw it is x itself. For pca it is x·Proj with each row scaled
// to length 1 (a row of zeros stays zero), without the columns of classes, which depend on other nodes. For mlp it is
// the hidden rows or logits, and for embedding the linear layer's rows, as for nodes whose owner has no learned row.
func (e *Encoder) Encode(x graph.Features) graph.Features {
	x = e.Input(x)
	switch {
	case e.Proj != nil:
		y := mat.New(x.Rows(), e.Proj.W.Value.Cols)
		tape.Forward(e.Proj, y, x, nil)
		for i := range y.Rows {
			scaleL2(y.Row(i))
		}
		return graph.Features{Dense: y}
	case e.Layer != nil:
		h := mat.New(x.Rows(), e.Spec.Hidden)
		e.Layer.Forward(h, Input{X: x}, nil)
		if e.logits {
			h = HeadLogits(e.Layer.Head, h)
		}
		return graph.Features{Dense: h}
	}
	return x
}

// classScale scales logits of a closed form, between about 0 and 1: validation prefers this scale next to components in
// rows of length 1 (docs/adr/0075-trained-layers-see-classes.md).
const classScale = 4

// WithClasses returns the first layer's input: rows of Encode, and next to them the logits of Classes for the same
// nodes.
func (e *Encoder) WithClasses(rows graph.Features, logits mat.Dense) graph.Features {
	scaled := logits.Clone()
	kernels.Scale(classScale, scaled.Data)
	return graph.Columns([]graph.Features{rows, {Dense: scaled}})
}

// scaleL2 divides a row by its length, unless that is 0.
func scaleL2(row []float32) {
	var sq float64
	for _, v := range row {
		sq += float64(float64(v) * float64(v))
	}
	if sq > 0 {
		kernels.Scale(float32(1/math.Sqrt(sq)), row)
	}
}

// HeadLogits returns the output of a head for rows h.
func HeadLogits(head tape.Operator, h mat.Dense) mat.Dense {
	s := mat.New(h.Rows, tape.OutWidth(head, h.Cols))
	head.Forward(s, h, nil)
	return s
}
