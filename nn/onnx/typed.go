package onnx

import (
	"github.com/heddle-gnn/heddle/nn"
)

func (e *exporter) rgcn(name string, s nn.LayerSpec, x value) value { // (12)
	z := e.binary("MatMul", x, e.matrices(name+".nbr", s, s.Relations))
	return e.binary("Add", e.linear(name+".self", x), e.intoNodes(z))
}

func (e *exporter) rsage(name string, s nn.LayerSpec, x value) value { // (12b)
	relations := int64(s.Relations)
	z := e.binary("MatMul", x, e.matrices(name+".nbr", s, 2*s.Relations))
	half := func(lo, hi int64) value { return e.add("Slice", []value{z, e.ints(lo), e.ints(hi), e.ints(0)}) }
	reached := e.add("Reshape", []value{e.typed.reached, e.ints(relations, -1, 1)})
	own := e.add("Where", []value{reached, half(relations, 2*relations), e.float(0)})
	own = e.add("ReduceSum", []value{own, e.ints(0)}, attribute{"keepdims", 0})
	return e.binary("Add", e.binary("Add", e.linear(name+".self", x), e.intoNodes(half(0, relations))), own)
}

func (e *exporter) rgat(name string, s nn.LayerSpec, x value) value { // (12c)
	z := e.binary("MatMul", x, e.matrices(name+".attention", s, s.Relations))
	heads, dim := int64(s.Heads), e.tensors[name+".attention.src"].Cols
	split := e.add("Reshape", []value{z, e.ints(int64(s.Relations), -1, heads, int64(dim))})
	end := func(which string, at value) value {
		w := e.parameter(name+".attention."+which, e.tensors[name+".attention."+which], s.Relations, 1, s.Heads, dim)
		v := e.add("ReduceSum", []value{e.binary("Mul", split, w), e.ints(3)}, attribute{"keepdims", 0})
		return e.rows(e.add("Reshape", []value{v, e.ints(-1, heads)}), at)
	}
	logits := e.leaky(e.binary("Add", end("dst", e.typed.to), end("src", e.typed.from)))
	rows := e.rows(e.add("Reshape", []value{z, e.ints(-1, heads*int64(dim))}), e.typed.from)
	return e.attend(name, s, e.typed.edges, rows, logits, e.linear(name+".self", x))
}

// typedEdges are the edges of all relations, with the weights of (2), and what they say of nodes within relations: node i of
// relation r has the number r·N + i.
type typedEdges struct {
	edges
	from, to value // [E] sources and targets within their relations
	reached  value // [R·N] whether the relation reaches the node
}

// readTyped reads edge_type. Where no edge is of the latter half of so many relations, these are the reverses of the others,
// as in training.
func (e *exporter) readTyped(relations int) {
	join := func(a, b value) value { return e.add("Concat", []value{a, b}, attribute{"axis", 0}) }
	n := e.add("Squeeze", []value{e.nodes, e.ints(0)})
	src, dst, weight, kind := e.end(0), e.end(1), value("edge_weight"), value("edge_type")
	proper := e.add("Not", []value{e.binary("Equal", src, dst)})
	if relations%2 == 0 {
		half := e.scalar(int64(relations / 2))
		top := e.add("ReduceMax", []value{join(kind, e.ints(-1)), e.ints(0)}, attribute{"keepdims", 0})
		lack := e.binary("And", proper, e.binary("Less", top, half))
		src, dst, weight = join(src, dst), join(dst, src), join(weight, weight)
		kind, proper = join(kind, e.binary("Add", kind, half)), join(proper, lack)
	}
	keep := func(x value) value { return e.add("Compress", []value{x, proper}, attribute{"axis", 0}) }
	to := e.binary("Add", e.binary("Mul", keep(kind), n), keep(dst))
	unique := e.several("Unique", 4, []value{e.binary("Add", e.binary("Mul", to, n), keep(src))}, attribute{"axis", 0})
	largest := e.add("ScatterElements", []value{e.zeros(e.add("Shape", []value{unique[0]})), unique[2], keep(weight)},
		attribute{"axis", 0}, attribute{"reduction", "max"})
	t := &e.typed
	t.to, t.src = e.binary("Div", unique[0], n), e.binary("Mod", unique[0], n)
	t.dst = e.binary("Mod", t.to, n)
	t.from = e.binary("Add", e.binary("Sub", t.to, t.dst), t.src)
	every := e.zeros(e.binary("Mul", e.nodes, e.ints(int64(relations))))
	degree := e.add("ScatterElements", []value{every, t.to, largest}, attribute{"axis", 0}, attribute{"reduction", "add"})
	t.reached = e.binary("Greater", degree, e.float(0))
	t.weight = e.column(e.binary("Div", largest, e.rows(degree, t.to)))
}

// matrices returns so many matrices of relations, [count, in, width].
func (e *exporter) matrices(name string, s nn.LayerSpec, count int) value {
	in := s.In
	if bases, ok := e.tensors[name+".bases"]; ok {
		flat := e.parameter(name+".bases", bases, bases.Rows/in, in*bases.Cols)
		return e.add("Reshape", []value{e.binary("MatMul", e.param(name+".coefficients"), flat), e.ints(int64(count), int64(in), int64(bases.Cols))})
	}
	w := e.tensors[name+".weight"]
	return e.parameter(name+".weight", w, count, in, w.Cols)
}

// intoNodes returns the sum over relations of the means over in-neighbours of rows z, [R, N, D].
func (e *exporter) intoNodes(z value) value {
	shape := e.add("Shape", []value{z}, attribute{"start", 2})
	flat := e.add("Reshape", []value{z, e.add("Concat", []value{e.ints(-1), shape}, attribute{"axis", 0})})
	return e.into(e.typed.edges, e.binary("Mul", e.rows(flat, e.typed.from), e.typed.weight), "add")
}
