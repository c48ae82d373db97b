package onnx

import (
	"cmp"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/nn/closed"
)

// closed returns the layout of the model's rounds of class means, or of those whose logits its layers see; nil: it has none.
func (e *exporter) closed() *closed.Layout { return cmp.Or(e.spec.Closed, e.spec.Encoder.Classes) }

// classMeans returns the logits of rounds of class means, (19) to (24).
func (e *exporter) classMeans(s closed.Layout) value {
	x, width, norm := e.normed(), s.Width(e.spec.Classes), s.Edges()
	var grids value
	if s.Rounded() {
		grids = e.grids(s, x)
	}
	var own ownPart
	if s.LeaveOut {
		own = e.ownPart(x)
	}
	var columns []value
	logits := e.zeros(e.add("Concat", []value{e.nodes, e.ints(int64(e.spec.Classes))}, attribute{"axis", 0}))
	for r := range s.Rounds {
		at := fmt.Sprintf("round%d", r+1)
		z := e.binary("MatMul", x, e.param(at+".means"))
		if s.LeaveOut {
			z = e.leaveOut(s, own, r, z, logits)
		}
		own := z
		if s.CoarseIn(r) {
			z = e.coarse(z, grids, 1, 0)
		}
		if r > 0 {
			before := e.columns(logits, 0, width)
			for range s.LogitHopsOf(r) {
				before = e.aggregate(norm, before, 1)
				columns = append(columns, before)
			}
		} else if s.Components > 0 {
			z = e.concat(e.binary("MatMul", x, e.param("encoder.proj.weight")), z)
		}
		hops := s.HopsOf(r)
		if !s.OwnExact {
			own = z
		}
		for k := range hops + 1 {
			kept := own
			if k > 0 {
				z = e.aggregate(norm, z, 1)
				kept = z
			}
			if s.AllHops || k == hops {
				columns = append(columns, kept)
			}
		}
		if r == 0 && s.Degree {
			columns = append(columns, e.add("Log", []value{e.binary("Add", e.column(e.degree), e.float(1))}))
		}
		if r == 0 && s.OwnFeatures > 0 {
			own := e.tensors["encoder.own"]
			columns = append(columns, e.binary("Mul", e.binary("Sub", x, e.floats(own.Row(0))), e.floats(own.Row(1))))
		}
		if s.Sums(r) {
			columns = append(columns, e.sums(s, grids, logits)...)
		}
		logits = e.roundLogits(at, s.Random, e.concat(columns...))
	}
	return logits
}

// roundLogits returns (23) and (24).
func (e *exporter) roundLogits(at string, random int, columns value) value {
	if random > 0 {
		scaled := e.binary("Mul", e.binary("Sub", columns, e.param(at+".mean")), e.param(at+".scale"))
		angle := e.binary("Add", e.binary("MatMul", scaled, e.param(at+".frequency")), e.param(at+".phase"))
		columns = e.concat(columns, e.binary("Mul", e.add("Cos", []value{angle}), e.float(math.Sqrt2)))
	}
	return e.binary("Add", e.binary("MatMul", columns, e.param(at+".weight")), e.param(at+".bias"))
}

// ownPart is what leaving out a node's own part needs of it, [N, 1] each.
type ownPart struct {
	quad, shift value // x·D⁻¹x and x·D⁻¹t/N
	train, rest value // bool: training nodes, and the others that training sees
}

func (e *exporter) ownPart(x value) ownPart {
	inverse := e.param("encoder.inverse")
	o := ownPart{train: e.column("train_mask")}
	o.quad = e.sumRows(e.binary("Mul", e.binary("Mul", x, x), inverse))
	o.shift = e.sumRows(e.binary("Mul", e.binary("Mul", x, e.param("encoder.centre")), inverse))
	o.rest = e.add("Not", []value{o.train})
	if e.closed().Inductive {
		o.rest = e.binary("And", o.rest, e.column(e.add("Not", []value{"held_out"})))
	}
	return o
}

// leaveOut returns (21). Where no node is one of training, nothing is left out.
func (e *exporter) leaveOut(s closed.Layout, o ownPart, r int, z, logits value) value {
	counts := fmt.Sprintf("round%d.counts", r+1)
	of := e.tensors[counts]
	n, scale := e.floats(of.Row(0)), e.floats(of.Row(1))
	width := s.Width(e.spec.Classes)
	given := e.columns("labels", 0, width)
	if s.Numbers {
		given = e.binary("Div", e.binary("Sub", given, e.units(mean)), e.units(deviation))
	}
	half := e.float(0)
	if s.Multi {
		half = e.float(closed.Half)
	}
	if s.Residual {
		if r == 0 && !s.Numbers {
			logits = e.binary("Sub", e.floats(e.tensors["round1.counts"].Row(0)), half)
		} else {
			logits = e.columns(logits, 0, width)
		}
		left := e.binary("Sub", e.binary("Sub", given, logits), half)
		left = e.add("Clip", []value{left, e.float(-closed.MaxResidual), e.float(closed.MaxResidual)})
		target := e.add("Where", []value{o.train, left, e.float(0)})
		return e.binary("Sub", z, e.binary("Mul", e.binary("Mul", target, o.quad), scale))
	}
	target := e.add("Where", []value{o.train, given, e.float(0)})
	if r > 0 {
		someTrain := e.add("ReduceMax", []value{e.add("Cast", []value{o.train}, attribute{"to", typeFloat})}, attribute{"keepdims", 0})
		soft := e.binary("Mul", e.softmax(e.binary("Mul", logits, e.float(closed.Sharpness))), someTrain)
		target = e.add("Where", []value{o.train, given, e.add("Where", []value{o.rest, soft, e.float(0)})})
	}
	rest := e.binary("Sub", n, target)
	large := e.binary("Greater", rest, target)
	part := e.add("Where", []value{large, e.binary("Div", target, e.add("Where", []value{large, rest, e.float(1)})), e.float(1)})
	added := e.binary("Mul", part, e.binary("Add", z, e.binary("Mul", scale, e.binary("Sub", o.shift, o.quad))))
	if s.TrainLead && r > 0 {
		added = e.binary("Sub", added, e.add("Where", []value{o.train, e.floats(of.Row(2)), e.float(0)}))
	}
	counted := e.binary("And", e.binary("Greater", target, e.float(0)), e.binary("Greater", n, e.float(0)))
	return e.binary("Add", z, e.add("Where", []value{counted, added, e.float(0)}))
}

// grids returns the step to which the columns of each node are rounded, [N, 1]; 0: they are not.
func (e *exporter) grids(s closed.Layout, x value) value {
	steps := make([]float32, e.spec.Features+1)
	for values := range steps {
		steps[values] = float32(s.Grid(e.spec.Features, values))
	}
	present := e.add("Cast", []value{e.add("Not", []value{e.binary("Equal", x, e.float(0))})}, attribute{"to", typeFloat})
	count := e.add("Cast", []value{e.sumRows(present)}, attribute{"to", typeInt})
	return e.add("Gather", []value{e.floats(steps), count}, attribute{"axis", 0})
}

// coarse rounds rows of that deviation, where features are sparse, to no finer grid than fine.
func (e *exporter) coarse(z, grids value, deviation, fine float64) value {
	grid := grids
	if fine > 0 {
		grid = e.add("Max", []value{grid, e.float(fine)})
	}
	if deviation != 1 {
		grid = e.binary("Mul", grid, e.float(deviation))
	}
	used := e.binary("And", e.binary("Greater", grid, e.float(0)), "sparse")
	step := e.add("Where", []value{used, grid, e.float(1)})
	rounded := e.binary("Mul", e.add("Round", []value{e.binary("Div", z, step)}), step)
	return e.add("Where", []value{used, rounded, z})
}

// sums returns the columns of a round that sums the class rows of neighbours.
func (e *exporter) sums(s closed.Layout, grids, logits value) []value {
	soft := e.softmax(e.binary("Mul", logits, e.float(closed.Sharpness)))
	rows := e.unit(e.binary("Sub", soft, e.float(1/float64(e.spec.Classes))))
	if s.Rounded() {
		rows = e.coarse(rows, grids, 1/math.Sqrt(float64(e.spec.Classes)), 1.0/64)
	}
	sum := e.into(e.plain, e.rows(rows, e.plain.src), "add")
	return []value{sum, e.unit(sum), logits}
}
