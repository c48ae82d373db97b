// Package onnx writes trained models in the format of ONNX, operator set 18, for programs that know nothing of Heddle.
//
// N nodes, E edges, F features, C classes. Inputs:
//
//	x            float [N, F]  features as in training
//	edge_index   int64 [2, E]  sources and targets; edges are made undirected, loops dropped, as everywhere
//	edge_weight  float [E]     above 0; ones for a graph without weights
//	edge_type    int64 [E]     relations, from 0, where a layer reads them
//	edge_attr    float [E, G]  columns of edges, where a layer reads them
//
// What reads no edges has x alone. Models of class means whose rows leave out a node's own part, label augmentation, and
// Correct & Smooth also have
//
//	labels       float [N, C]  rows of zeros and ones of the nodes that the model was trained on, else zeros
//	train_mask   bool  [N]     with class means: which nodes these are
//	held_out     bool  [N]     with inductive: validation and test nodes of the training graph
//	sparse       bool  []      with class means: whether the training features were sparse, so that rows are rounded
//
// Outputs are logits [N, C] and probabilities [N, C], or of a regression prediction [N, C], whose labels are numbers. The
// equations are those of docs/reference/model-file.md.
package onnx

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// Write writes m with the temperatures, classes and figures of its card. What has no form in ONNX is refused: nodes
// without features, links.
func Write(w io.Writer, m *nn.Model, card modelfile.Card) error {
	if err := refusal(m.Spec); err != nil {
		return err
	}
	e := &exporter{builder: builder{held: map[string]value{}}, spec: m.Spec, tensors: map[string]mat.Dense{}, weighed: map[graph.Norm]edges{}}
	for _, p := range m.Params() {
		e.tensors[p.Name] = p.Value
	}
	e.inputs()
	var logits value
	if m.Spec.Closed != nil {
		logits = e.classMeans(*m.Spec.Closed)
	} else {
		logits = e.layers()
	}
	e.outputs(logits, card)
	text, err := json.Marshal(card)
	if err != nil {
		return err
	}
	classes, err := json.Marshal(card.Classes)
	if err != nil {
		return err
	}
	_, err = w.Write(e.file(card.Dataset, []string{"card", string(text), "classes", string(classes)}))
	return err
}

// refusal says why s has no form in ONNX; nil: it has one.
func refusal(s nn.Spec) error {
	for k, l := range s.Layers {
		if convolutions[l.Conv] == nil {
			return fmt.Errorf("onnx: layer %d must be of a convolution that ONNX can express (got %s)", k+1, l.Conv)
		}
	}
	switch {
	case s.Decoder != nil:
		return fmt.Errorf("onnx: a model of links scores pairs of nodes and is not exported")
	case s.Closed != nil && s.Closed.Adjacent > 0:
		return fmt.Errorf("onnx: a model of nodes without features tells them by hashed neighbours and is not exported")
	}
	return nil
}

// exporter writes one model.
type exporter struct {
	builder
	spec    nn.Spec
	tensors map[string]mat.Dense // parameters by name
	plain   edges                // without loops and repetitions
	degree  value                // [N] weighted in-degree
	nodes   value                // [1] N
	typed   typedEdges           // of a model that reads relations
	weighed map[graph.Norm]edges
}

// edges are in-edges: sources, targets [E], weights [E, 1] and, where they have any, columns [E, G].
type edges struct{ src, dst, weight, columns value }

// edgeColumns returns how many columns of edges the model reads.
func (e *exporter) edgeColumns() (width int) {
	for _, l := range e.spec.Layers {
		width = max(width, l.EdgeColumns)
	}
	return width
}

func (e *exporter) inputs() {
	e.declare(11, "x", typeFloat, "N", e.spec.Features)
	if e.spec.ReadsEdges() || e.spec.Encoder.Hops > 0 {
		e.declare(11, "edge_index", typeInt, 2, "E")
		e.declare(11, "edge_weight", typeFloat, "E")
	}
	relations := 0
	for _, l := range e.spec.Layers {
		relations = max(relations, l.Relations)
	}
	if relations > 0 {
		e.declare(11, "edge_type", typeInt, "E")
	}
	if width := e.edgeColumns(); width > 0 {
		e.declare(11, "edge_attr", typeFloat, "E", width)
	}
	closed := e.closed()
	if e.spec.Encoder.Labels > 0 || e.spec.CorrectSmooth != nil || closed != nil && closed.LeaveOut {
		e.declare(11, "labels", typeFloat, "N", e.spec.Classes)
	}
	if closed != nil && closed.LeaveOut {
		e.declare(11, "train_mask", typeBool, "N")
		if closed.Inductive {
			e.declare(11, "held_out", typeBool, "N")
		}
	}
	if closed != nil && closed.Rounded() {
		e.declare(11, "sparse", typeBool)
	}
	e.nodes = e.add("Shape", []value{"x"}, attribute{"end", 1})
	if e.spec.ReadsEdges() || e.spec.Encoder.Hops > 0 {
		e.readEdges()
	}
	if relations > 0 {
		e.readTyped(relations)
	}
}

// units returns one figure of each column of numbers, [C].
func (e *exporter) units(of func(target.Unit) float64) value {
	var all []float32
	for _, u := range e.spec.Units {
		all = append(all, float32(of(u)))
	}
	return e.floats(all)
}

func mean(u target.Unit) float64      { return u.Mean }
func deviation(u target.Unit) float64 { return u.Deviation }

// output names a value as an output of the graph.
func (e *exporter) output(name string, of value) {
	var node message
	node.text(1, string(of))
	node.text(2, name)
	node.text(4, "Identity")
	e.graph.bytes(1, node)
	e.declare(12, name, typeFloat, "N", e.spec.Classes)
}

func (e *exporter) outputs(logits value, card modelfile.Card) {
	if e.spec.Kind() == target.Numbers {
		e.output("prediction", e.binary("Add", e.binary("Mul", logits, e.units(deviation)), e.units(mean)))
		return
	}
	scaled := logits
	if temperatures := card.Calibration(); temperatures.Classes != nil {
		all := make([]float32, e.spec.Classes)
		for k := range all {
			all[k] = float32(temperatures.Of(k))
		}
		scaled = e.binary("Div", logits, e.floats(all))
	} else if t := temperatures.Of(0); t != 1 {
		scaled = e.binary("Div", logits, e.float(t))
	}
	p := e.softmax(scaled)
	if e.spec.Kind() == target.Several {
		p = e.add("Sigmoid", []value{scaled})
	}
	e.output("logits", logits)
	e.output("probabilities", p)
}

func (e *exporter) binary(kind string, a, b value) value { return e.add(kind, []value{a, b}) }
func (e *exporter) softmax(x value) value {
	return e.add("Softmax", []value{x}, attribute{"axis", 1})
}
func (e *exporter) relu(x value) value { return e.add("Relu", []value{x}) }

// sumRows returns the sums of the rows of x, [N, 1].
func (e *exporter) sumRows(x value) value { return e.add("ReduceSum", []value{x, e.ints(1)}) }

// concat joins columns.
func (e *exporter) concat(all ...value) value {
	if len(all) == 1 {
		return all[0]
	}
	return e.add("Concat", all, attribute{"axis", 1})
}

// columns returns columns lo to hi of x.
func (e *exporter) columns(x value, lo, hi int) value {
	return e.add("Slice", []value{x, e.ints(int64(lo)), e.ints(int64(hi)), e.ints(1)})
}

// param returns a parameter as the matrix that it is.
func (e *exporter) param(name string) value {
	m := e.tensors[name]
	return e.parameter(name, m, m.Rows, m.Cols)
}

// linear returns x·W, plus b where the model has one.
func (e *exporter) linear(name string, x value) value {
	y := e.binary("MatMul", x, e.param(name+".weight"))
	if _, ok := e.tensors[name+".bias"]; ok {
		y = e.binary("Add", y, e.param(name+".bias"))
	}
	return y
}

// head returns Linear, then ReLU and Linear for each further matrix.
func (e *exporter) head(name string, x value) value {
	for k := 0; ; k++ {
		at := fmt.Sprintf("%s.%d", name, k)
		if _, ok := e.tensors[at+".weight"]; !ok {
			return x
		}
		if k > 0 {
			x = e.relu(x)
		}
		x = e.linear(at, x)
	}
}

// over divides rows by sizes [N, 1]; rows of size 0 stay.
func (e *exporter) over(x, size value) value {
	ones := e.add("Where", []value{e.binary("Greater", size, e.float(0)), size, e.float(1)})
	return e.binary("Div", x, ones)
}

// unit divides rows by their lengths.
func (e *exporter) unit(x value) value {
	return e.over(x, e.add("Sqrt", []value{e.sumRows(e.binary("Mul", x, x))}))
}

// normed returns the features as the encoder first sees them, (4) and (19).
func (e *exporter) normed() value {
	switch {
	case e.spec.Encoder.L1Norm:
		return e.over("x", e.sumRows(e.add("Abs", []value{"x"})))
	case e.spec.Encoder.L2Norm:
		return e.unit("x")
	}
	return "x"
}
