package onnx

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/smooth"
)

// correctAndSmooth returns (16). Without a training node there are no errors, and the labels in place of logits are none.
func (e *exporter) correctAndSmooth(c smooth.CorrectSmooth, logits value) value {
	p := e.softmax(logits)
	known := e.binary("Greater", e.sumRows("labels"), e.float(0))
	wrong := e.add("Where", []value{known, e.binary("Sub", "labels", p), e.float(0)})
	count := e.add("ReduceSum", []value{e.add("Cast", []value{known}, attribute{"to", typeFloat})}, attribute{"keepdims", 0})
	size := e.binary("Div", e.add("ReduceSum", []value{e.add("Abs", []value{wrong})}, attribute{"keepdims", 0}), count)
	far := e.spread(wrong, c.Correct, c.Steps, -1)
	scale := e.binary("Div", size, e.sumRows(e.add("Abs", []value{far})))
	near := e.binary("LessOrEqual", scale, e.float(smooth.MostScale)) // not so where next to no error has come
	scale = e.add("Where", []value{near, scale, e.float(1)})
	p = e.add("Where", []value{known, "labels", e.binary("Add", p, e.binary("Mul", scale, far))})
	p = e.add("Max", []value{e.spread(p, c.Smooth, c.Steps, 0), e.float(smooth.LeastShare)})
	return e.add("Log", []value{e.binary("Div", p, e.sumRows(p))})
}

// spread returns first after some steps of mixing with the neighbours' rows, each bounded to [low, 1].
func (e *exporter) spread(first value, alpha float32, steps int, low float64) value {
	z, kept := first, e.binary("Mul", first, e.float(1-float64(alpha)))
	for range steps {
		z = e.binary("Add", e.binary("Mul", e.aggregate(graph.Symmetric, z, 1), e.float(float64(alpha))), kept)
		z = e.add("Clip", []value{z, e.float(low), e.float(1)})
	}
	return z
}
