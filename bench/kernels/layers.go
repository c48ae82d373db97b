package kernels

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// layers are built-in layers of width 64 and, next to them, layers of messages that do the same.
func layers() (all []measure.Case) {
	for _, g := range []*measure.Graph{measure.Uniform(18_333, 9), measure.Uniform(13_752, 36)} {
		for _, one := range []struct {
			name, conv string
			own        aggregate.Aggregator
		}{
			{"gin", "gin", nil}, {"sum of messages", "gin", ownMessages(aggregate.SumOf, false)},
			{"sage-pool", "sage-pool", nil}, {"maximum of messages", "sage-pool", ownMessages(aggregate.MaxOf, false)},
			{"gatv2", "gatv2", nil}, {"mean of gated messages", "gin", ownMessages(aggregate.MeanOf, true)},
			{"gine", "gine", nil},
		} {
			all = append(all, layerOf(g, one.name, one.conv, one.own))
		}
	}
	return all
}

// ownMessages are the sources' rows, or gated: these times the ReLU of their sums with the destinations' rows.
func ownMessages(how aggregate.Reduction, gated bool) *aggregate.EdgeMessages {
	f := &aggregate.EdgeMessages{
		Reduce: how, ReadsDst: gated, Linear: !gated,
		Message:  func(b *aggregate.EdgeBatch) { b.M.CopyFrom(b.Src) },
		Gradient: func(b *aggregate.EdgeBatch) { b.DSrc.CopyFrom(b.DM) },
	}
	if gated {
		f.Message = func(b *aggregate.EdgeBatch) {
			b.M.CopyFrom(b.Dst)
			kernels.Add(b.Src.Data, b.M.Data)
			kernels.ReLU(b.M.Data, b.M.Data)
			for k, z := range b.Src.Data {
				b.M.Data[k] *= z
			}
		}
		f.Gradient = func(b *aggregate.EdgeBatch) {
			for k, z := range b.Src.Data {
				if open := z + b.Dst.Data[k]; open > 0 {
					d := b.DM.Data[k]
					b.DSrc.Data[k] += float32(d * (open + z))
					b.DDst.Data[k] += float32(d * z)
				}
			}
		}
	}
	return f
}

// layerOf is both passes of a layer on rows of 64; own, if there is one, replaces its aggregator.
func layerOf(g *measure.Graph, name, conv string, own aggregate.Aggregator) measure.Case {
	const width = 64
	return measure.Case{
		Name: fmt.Sprintf("layer %s, %s", g.Name, name), Unit: "Medge/s", Work: 1e3 * float64(len(g.Col)),
		Prepare: func() func() {
			spec := nn.LayerSpec{Conv: conv, In: width, Out: width}
			if c, _ := nn.ConvolutionNamed(conv); c.Heads {
				spec.Heads = 8
			}
			layer, err := nn.NewLayer(name, spec, rng.New(1))
			if err != nil {
				panic(err) // the widths above are valid
			}
			if own != nil {
				layer.Conv.Agg = own
			}
			csr := &graph.CSR{NumDst: g.Nodes, NumSrc: g.Nodes, RowPtr: g.RowPtr, Col: g.Col}
			x := mat.View(g.Nodes, width, measure.Values(g.Nodes*width))
			y, dx, dy := mat.New(g.Nodes, width), mat.New(g.Nodes, width), mat.New(g.Nodes, width)
			t := tape.New()
			return func() {
				t.Reset()
				layer.Forward(y, nn.Input{G: csr, X: graph.Features{Dense: x}}, t)
				for i := range dy.Data {
					dy.Data[i] = 1
				}
				layer.Backward(dx, dy, t)
			}
		},
	}
}
