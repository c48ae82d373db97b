package layer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// joint is the message w·ReLU(z∘gain + r), gain a learned row and r the row of the destination: it joins a neighbour
// and the node.
func joint(name string, width int) *aggregate.EdgeMessages {
	gain := tape.NewParam(name+".gain", 1, width, 1)
	return &aggregate.EdgeMessages{
		Reduce: aggregate.SumOf, ReadsDst: true, Parameters: []*tape.Param{gain},
		Message: func(b *aggregate.EdgeBatch) {
			a := gain.Value.Row(0)
			for k := range b.M.Rows {
				m, r := b.M.Row(k), b.Dst.Row(k)
				for c, z := range b.Src.Row(k) {
					m[c] = float32(a[c]*z) + r[c]
				}
			}
			kernels.ReLU(b.M.Data, b.M.Data)
			for k, w := range b.Weight {
				kernels.Scale(w, b.M.Row(k))
			}
		},
		Gradient: func(b *aggregate.EdgeBatch) {
			a, da := gain.Value.Row(0), b.Grads[0].Row(0)
			for k, w := range b.Weight {
				m, dm, z, dz, dr := b.M.Row(k), b.DM.Row(k), b.Src.Row(k), b.DSrc.Row(k), b.DDst.Row(k)
				for c, open := range m {
					if open > 0 {
						d := float32(w * dm[c])
						dz[c] += float32(d * a[c])
						dr[c] += d
						da[c] += float32(d * z[c])
					}
				}
			}
		},
	}
}

// init registers GraphSAGE that aggregates joint messages instead of the mean: from then on it is a model by that name.
func init() {
	nn.Register(nn.Convolution{
		Name: "joint", Edges: graph.Mean, Traits: nn.Traits{Aggregates: true, NeedsSource: true, LayerWise: true},
	}, func(name string, s nn.LayerSpec, key nn.Key) nn.Conv {
		return nn.Conv{
			Pre:  tape.NewLinear(name+".pre", s.In, s.Out, false, key),
			Self: tape.NewLinear(name+".self", s.In, s.Out, true, key),
			Agg:  joint(name, s.Out),
		}
	})
}

// plan returns the plan of some settings, each name=value.
func plan(settings string) heddle.Plan {
	given := map[string]string{"model": "joint", "hidden": "16", "transport": "memory"}
	for one := range strings.FieldsSeq(settings) {
		name, value, _ := strings.Cut(one, "=")
		given[name] = value
	}
	p, err := heddle.ReadPlan(nil, given, nil)
	if err != nil {
		panic(err)
	}
	return *p
}

// data returns a graph that no file has.
func data() *graph.Graph {
	return dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 3, Classes: 3, Columns: 30, Train: 0.2, Val: 0.2},
		rng.New(1))
}

func Example() {
	g := data()
	one, err1 := heddle.Train(context.Background(), g, plan("method=full-batch rounds=30 peers=1"))
	three, err3 := heddle.Train(context.Background(), g, plan("method=full-batch rounds=30 peers=3"))
	if err := errors.Join(err1, err3); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("better than chance:", one.Test > 0.5, "as good over three peers:",
		math.Abs(one.Test-three.Test) < 0.01)

	file := filepath.Join(os.TempDir(), fmt.Sprintf("joint-%d.safetensors", os.Getpid()))
	defer os.Remove(file)
	if err := three.Save(file); err != nil {
		fmt.Println(err)
		return
	}
	model, card, err := modelfile.Read(file) // by a program that registers the layer, too
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("read again:", model.Spec.Layers[0].Conv, card.Method)
	// Output:
	// better than chance: true as good over three peers: true
	// read again: joint full-batch
}
