package onnx

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn"
)

// convolutions write the convolution of a layer, by name.
var convolutions = map[string]func(e *exporter, name string, s nn.LayerSpec, x value) value{
	"gcn": func(e *exporter, name string, s nn.LayerSpec, x value) value { // (9)
		return e.linear(name+".nbr", e.aggregate(graph.GCN, x, max(s.Hops, 1)))
	},
	"sage": func(e *exporter, name string, s nn.LayerSpec, x value) value { // (10)
		return e.binary("Add", e.linear(name+".self", x), e.linear(name+".nbr", e.aggregate(graph.Mean, x, max(s.Hops, 1))))
	},
	"sage-pool": func(e *exporter, name string, _ nn.LayerSpec, x value) value { // (10b); what is pooled is not negative
		pooled := e.into(e.plain, e.rows(e.relu(e.linear(name+".pre", x)), e.plain.src), "max")
		return e.binary("Add", e.linear(name+".self", x), e.linear(name+".nbr", pooled))
	},
	"gin": func(e *exporter, name string, s nn.LayerSpec, x value) value { // (11)
		return e.linear(name+".post", e.relu(e.linear(name+".nbr", e.aggregate(graph.Loops, x, max(s.Hops, 1)))))
	},
	"gine": func(e *exporter, name string, s nn.LayerSpec, x value) value { // (11d)
		message := e.binary("Add", e.rows(e.linear(name+".pre", x), e.plain.src), e.param(name+".edge.bias"))
		if s.EdgeColumns > 0 {
			message = e.binary("Add", message, e.binary("MatMul", e.plain.columns, e.param(name+".edge.weight")))
		}
		h := e.binary("Add", e.linear(name+".self", x), e.into(e.plain, e.relu(message), "add"))
		return e.linear(name+".post", e.relu(e.linear(name+".nbr", h)))
	},
	"gat": func(e *exporter, name string, s nn.LayerSpec, x value) value { // (11b)
		z, of := e.linear(name+".pre", x), e.weights(graph.Loops)
		of3 := e.split(z, s.Heads)
		end := func(which string, at value) value {
			w := e.tensors[name+".attention."+which]
			v := e.binary("Mul", of3, e.parameter(name+".attention."+which, w, 1, w.Rows, w.Cols))
			return e.rows(e.add("ReduceSum", []value{v, e.ints(2)}, attribute{"keepdims", 0}), at)
		}
		logit := e.leaky(e.binary("Add", end("src", of.src), end("dst", of.dst)))
		return e.attend(name, s, of, e.rows(z, of.src), logit, "")
	},
	"gatv2": func(e *exporter, name string, s nn.LayerSpec, x value) value { // (11c)
		z, of := e.linear(name+".pre", x), e.weights(graph.Loops)
		both := e.binary("Add", e.rows(z, of.src), e.rows(e.linear(name+".dst", x), of.dst))
		if s.EdgeColumns > 0 {
			both = e.binary("Add", both, e.binary("MatMul", of.columns, e.param(name+".attention.edge")))
		}
		w := e.tensors[name+".attention.vector"]
		v := e.binary("Mul", e.leaky(e.split(both, s.Heads)), e.parameter(name+".attention.vector", w, 1, w.Rows, w.Cols))
		return e.attend(name, s, of, e.rows(z, of.src), e.add("ReduceSum", []value{v, e.ints(2)}, attribute{"keepdims", 0}), "")
	},
	"appnp": func(e *exporter, name string, s nn.LayerSpec, x value) value { // (13)
		first := e.linear(name+".pre", x)
		z, kept := first, e.binary("Mul", first, e.float(float64(s.Alpha)))
		for range max(s.Hops, 1) {
			z = e.binary("Add", e.binary("Mul", e.aggregate(graph.GCN, z, 1), e.float(1-float64(s.Alpha))), kept)
		}
		return z
	},
	"sign": func(e *exporter, name string, s nn.LayerSpec, x value) value { // (13b)
		width := s.In / (s.Hops + 1)
		w := e.tensors[name+".self.weight"]
		var all []value
		for k := range s.Hops + 1 {
			block := w.RowRange(k*width, (k+1)*width)
			all = append(all, e.binary("MatMul", e.columns(x, k*width, (k+1)*width),
				e.parameter(fmt.Sprintf("%s.self.weight.%d", name, k), block, block.Rows, block.Cols)))
		}
		y := e.concat(all...)
		if _, ok := e.tensors[name+".self.bias"]; ok {
			y = e.binary("Add", y, e.param(name+".self.bias"))
		}
		return y
	},
	"rgcn": (*exporter).rgcn, "rsage": (*exporter).rsage, "rgat": (*exporter).rgat,
	"mlp": func(e *exporter, name string, _ nn.LayerSpec, x value) value { return e.linear(name+".self", x) },
}

// slope is that of LeakyReLU in attention.
const slope = 0.2

func (e *exporter) leaky(x value) value {
	return e.add("LeakyRelu", []value{x}, attribute{"alpha", float32(slope)})
}

// split makes rows matrices of a row a head.
func (e *exporter) split(x value, heads int) value {
	return e.add("Reshape", []value{x, e.ints(0, int64(heads), -1)})
}

// attend returns the sums of rows [E, heads·dim], weighed by the softmax of logits [E, heads] over the edges of a target,
// and own [N, heads·dim], unless it is empty.
func (e *exporter) attend(name string, s nn.LayerSpec, of edges, rows, logits, own value) value {
	// The largest logit of a target is taken off; it is found from the least of all, below which none lies.
	least := e.add("ReduceMin", []value{logits}, attribute{"keepdims", 0})
	raised := e.binary("Sub", logits, least)
	top := e.into(of, raised, "max")
	w := e.add("Exp", []value{e.binary("Sub", raised, e.rows(top, of.dst))})
	alpha := e.binary("Div", w, e.rows(e.into(of, w, "add"), of.dst))
	weighed := e.binary("Mul", e.split(rows, s.Heads), e.add("Unsqueeze", []value{alpha, e.ints(2)}))
	h := e.into(of, e.add("Flatten", []value{weighed}, attribute{"axis", 1}), "add")
	if own != "" {
		h = e.binary("Add", h, own)
	}
	if s.Average {
		h = e.add("ReduceMean", []value{e.split(h, s.Heads), e.ints(1)}, attribute{"keepdims", 0})
	}
	if _, ok := e.tensors[name+".post.bias"]; ok {
		h = e.binary("Add", h, e.param(name+".post.bias"))
	}
	return h
}

// layers returns the logits of a model of layers.
func (e *exporter) layers() value {
	x := e.encode()
	logits := e.spec.LayerOutput == nn.Logits
	for k, s := range e.spec.Layers {
		name := fmt.Sprintf("layer%d", k+1)
		y := convolutions[s.Conv](e, name, s, x)
		switch {
		case s.Norm:
			y = e.layerNorm(name+".norm", y)
		case s.BatchNorm: // (15)
			scale := e.add("Sqrt", []value{e.binary("Add", e.param(name+".norm.variance"), e.float(1e-5))})
			y = e.binary("Div", e.binary("Sub", y, e.param(name+".norm.mean")), scale)
			y = e.binary("Add", e.binary("Mul", y, e.param(name+".norm.gain")), e.param(name+".norm.bias"))
		}
		switch s.Act {
		case "relu":
			y = e.relu(y)
		case "elu":
			y = e.add("Elu", []value{y})
		}
		if s.Residual {
			own := x
			if _, ok := e.tensors[name+".residual.weight"]; ok {
				own = e.linear(name+".residual", x)
			}
			y = e.binary("Add", y, own)
		}
		if logits || k == len(e.spec.Layers)-1 {
			y = e.head(name+".head", y)
		}
		x = y
	}
	if c := e.spec.CorrectSmooth; c != nil {
		x = e.correctAndSmooth(*c, x)
	}
	return x
}

func (e *exporter) layerNorm(name string, y value) value { // (14)
	mean := e.add("ReduceMean", []value{y, e.ints(1)})
	off := e.binary("Sub", y, mean)
	variance := e.add("ReduceMean", []value{e.binary("Mul", off, off), e.ints(1)})
	scaled := e.binary("Div", off, e.add("Sqrt", []value{e.binary("Add", variance, e.float(1e-5))}))
	return e.binary("Add", e.binary("Mul", scaled, e.param(name+".gain")), e.param(name+".bias"))
}

// encode returns what the first layer reads, (4) to (8).
func (e *exporter) encode() value {
	x, s := e.normed(), e.spec.Encoder
	switch s.Kind {
	case "pca":
		x = e.unit(e.binary("MatMul", x, e.param("encoder.proj.weight")))
		if s.Classes != nil {
			x = e.concat(x, e.binary("Mul", e.classMeans(*s.Classes), e.float(nn.ClassScale)))
		}
		return x
	case "mlp":
		x = e.relu(e.layerNorm("encoder.norm", e.linear("encoder.self", x)))
		if e.spec.LayerOutput == nn.Logits || len(e.spec.Layers) == 0 {
			x = e.head("encoder.head", x)
		}
		return x
	case "embedding":
		return e.linear("encoder.self", x)
	case "sign":
		all := []value{x}
		for range s.Hops {
			all = append(all, e.aggregate(graph.GCN, all[len(all)-1], 1))
		}
		return e.concat(all...)
	}
	if s.Labels > 0 {
		x = e.concat(x, "labels")
	}
	return x
}
