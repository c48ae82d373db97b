package onnx

import "github.com/heddle-gnn/heddle/graph"

// readEdges makes edge_index undirected, drops loops, and keeps the largest weight of repeated edges.
func (e *exporter) readEdges() {
	join := func(a, b value) value { return e.add("Concat", []value{a, b}, attribute{"axis", 0}) }
	from, to := e.end(0), e.end(1)
	src, dst, weight := join(from, to), join(to, from), join("edge_weight", "edge_weight")
	proper := e.add("Not", []value{e.binary("Equal", src, dst)})
	keep := func(x value) value { return e.add("Compress", []value{x, proper}, attribute{"axis", 0}) }
	n := e.add("Squeeze", []value{e.nodes, e.ints(0)})
	pair := e.binary("Add", e.binary("Mul", keep(dst), n), keep(src))
	unique := e.several("Unique", 4, []value{pair}, attribute{"axis", 0})
	e.plain = edges{src: e.binary("Mod", unique[0], n), dst: e.binary("Div", unique[0], n)}
	zeros := e.zeros(e.add("Shape", []value{unique[0]}))
	largest := e.add("ScatterElements", []value{zeros, unique[2], keep(weight)}, attribute{"axis", 0}, attribute{"reduction", "max"})
	e.plain.weight = e.column(largest)
	if e.edgeColumns() > 0 { // of repeated edges, those of the first
		count := e.add("Shape", []value{"edge_weight"})
		every := e.add("Range", []value{e.scalar(0), e.add("Squeeze", []value{count, e.ints(0)}), e.scalar(1)})
		last := e.add("Expand", []value{count, e.add("Shape", []value{unique[0]})})
		first := e.add("ScatterElements", []value{last, unique[2], keep(join(every, every))}, attribute{"axis", 0}, attribute{"reduction", "min"})
		e.plain.columns = e.rows("edge_attr", first)
	}
	sum := e.add("ScatterElements", []value{e.zeros(e.nodes), e.plain.dst, largest}, attribute{"axis", 0}, attribute{"reduction", "add"})
	e.degree = sum
}

// end returns a row of edge_index.
func (e *exporter) end(row int64) value {
	return e.add("Squeeze", []value{e.add("Slice", []value{"edge_index", e.ints(row), e.ints(row + 1), e.ints(0)}), e.ints(0)})
}

// zeros returns a tensor of zeros of a shape.
func (e *exporter) zeros(shape value) value { return e.add("Expand", []value{e.float(0), shape}) }

// column makes a vector a matrix of one column.
func (e *exporter) column(x value) value { return e.add("Unsqueeze", []value{x, e.ints(1)}) }

// rows returns the rows of x that at names.
func (e *exporter) rows(x, at value) value {
	return e.add("Gather", []value{x, at}, attribute{"axis", 0})
}

// weights returns the edges with the weights of a convolution, (1) to (3).
func (e *exporter) weights(norm graph.Norm) edges {
	if w, ok := e.weighed[norm]; ok {
		return w
	}
	out := e.plain
	if norm == graph.GCN || norm == graph.Loops {
		n := e.add("Squeeze", []value{e.nodes, e.ints(0)})
		every := e.add("Range", []value{e.scalar(0), n, e.scalar(1)})
		ones := e.add("Expand", []value{e.float(1), e.add("Concat", []value{e.nodes, e.ints(1)}, attribute{"axis", 0})})
		join := func(a, b value) value { return e.add("Concat", []value{a, b}, attribute{"axis", 0}) }
		out = edges{src: join(out.src, every), dst: join(out.dst, every), weight: join(out.weight, ones)}
		if width := e.edgeColumns(); width > 0 {
			none := e.zeros(e.add("Concat", []value{e.nodes, e.ints(int64(width))}, attribute{"axis", 0}))
			out.columns = join(e.plain.columns, none)
		}
	}
	switch norm {
	case graph.GCN, graph.Symmetric:
		d := e.column(e.degree)
		if norm == graph.GCN {
			d = e.binary("Add", d, e.float(1))
		}
		both := e.binary("Mul", e.rows(d, out.dst), e.rows(d, out.src))
		out.weight = e.binary("Div", out.weight, e.add("Sqrt", []value{both}))
	case graph.Mean:
		out.weight = e.binary("Div", out.weight, e.rows(e.column(e.degree), out.dst))
	}
	e.weighed[norm] = out
	return out
}

// into reduces rows, [E, D], by the targets of edges, [N, D]; the start is zero.
func (e *exporter) into(of edges, rows value, reduction string) value {
	shape := e.add("Shape", []value{rows})
	width := e.add("Slice", []value{shape, e.ints(1), e.ints(2), e.ints(0)})
	start := e.zeros(e.add("Concat", []value{e.nodes, width}, attribute{"axis", 0}))
	at := e.add("Expand", []value{e.column(of.dst), shape})
	return e.add("ScatterElements", []value{start, at, rows}, attribute{"axis", 0}, attribute{"reduction", reduction})
}

// aggregate returns the weighted sums over in-edges of the rows of x, so many times.
func (e *exporter) aggregate(norm graph.Norm, x value, hops int) value {
	of := e.weights(norm)
	for range hops {
		x = e.into(of, e.binary("Mul", e.rows(x, of.src), of.weight), "add")
	}
	return x
}
