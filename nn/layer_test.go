package nn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/nntest"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

func layer(t testing.TB, spec nn.LayerSpec) *nn.Layer {
	t.Helper()
	l, err := nn.NewLayer("layer1", spec, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLayers holds every layer to the laws, in each form that changes the path its rows take:
// narrowing and widening (which decides whether GCN projects first), with and without dropout,
// norm, activation, residual and hops.
func TestLayers(t *testing.T) {
	forms := map[string]func(*nn.LayerSpec){
		"plain":    func(s *nn.LayerSpec) {},
		"wider":    func(s *nn.LayerSpec) { s.In, s.Out = 3, 8 },
		"full":     func(s *nn.LayerSpec) { s.Norm, s.Act, s.Residual, s.Dropout = true, "elu", true, 0.2 },
		"norm":     func(s *nn.LayerSpec) { s.Norm, s.Act = true, "relu" },
		"residual": func(s *nn.LayerSpec) { s.In, s.Residual, s.Act = 4, true, "relu" },
		"dropout":  func(s *nn.LayerSpec) { s.Dropout = 0.2 },
	}
	for _, conv := range []string{"gcn", "sage", "sage-sum", "sage-pool", "gat", "gatv2", "gine", "gatv2, edges", "gin",
		"rgcn", "rsage", "rgat", "mlp"} {
		for form, change := range forms {
			name, edges := strings.CutSuffix(conv, ", edges")
			spec := nn.LayerSpec{Conv: name, In: 6, Out: 4, Hops: 1}
			if edges || conv == "gine" {
				spec.EdgeColumns = 3
			}
			change(&spec)
			if c, _ := nn.ConvolutionNamed(spec.Conv); c.Heads {
				spec.Heads = 2
				if spec.Dropout > 0 {
					spec.AttentionDropout = 0.3
				}
			}
			if c, _ := nn.ConvolutionNamed(conv); c.Typed {
				spec.Relations, spec.Bases = 4, len(form)%2*3 // some forms have bases
			}
			t.Run(conv+"/"+form, func(t *testing.T) { nntest.Check(t, layer(t, spec)) })
		}
	}
	for _, conv := range []string{"gcn", "sage", "sage-sum", "sage-pool", "gin", "gine", "mlp", "sign", "rgcn", "rsage",
		"rgat", "gat", "gatv2"} {
		t.Run(conv+"/batch norm", func(t *testing.T) {
			spec := nn.LayerSpec{Conv: conv, In: 6, Out: 4, Hops: 1, BatchNorm: true, Act: "relu", Residual: true,
				Dropout: 0.2}
			c, _ := nn.ConvolutionNamed(conv)
			if c.Heads {
				spec.Heads = 2
			}
			if c.Typed {
				spec.Relations = 4
			}
			if conv == "gine" {
				spec.EdgeColumns = 2
			}
			nntest.Check(t, layer(t, spec))
		})
	}
	for _, conv := range []string{"gat", "gatv2", "rgat"} {
		t.Run(conv+"/average", func(t *testing.T) {
			spec := nn.LayerSpec{Conv: conv, In: 5, Out: 3, Hops: 1, Heads: 3, Average: true, AttentionDropout: 0.5}
			if c, _ := nn.ConvolutionNamed(conv); c.Typed {
				spec.Relations = 3
			}
			nntest.Check(t, layer(t, spec))
		})
	}
	for _, hops := range []int{1, 2, 5} {
		for name, change := range forms {
			spec := nn.LayerSpec{Conv: "appnp", In: 6, Out: 4, Hops: hops, Alpha: 0.3}
			change(&spec)
			t.Run(fmt.Sprintf("appnp/%d hops/%s", hops, name), func(t *testing.T) { nntest.Check(t, layer(t, spec)) })
		}
	}
	for name, change := range forms {
		spec := nn.LayerSpec{Conv: "sign", In: 6, Out: 9, Hops: 2}
		if change(&spec); spec.In == 4 {
			spec.In = 9 // a residual layer without a map
		}
		spec.Out = 9
		t.Run("sign/"+name, func(t *testing.T) { nntest.Check(t, layer(t, spec)) })
	}
	for _, conv := range []string{"gcn", "sage", "sage-sum", "gin"} {
		for _, in := range []int{2, 7} {
			t.Run(fmt.Sprintf("%s/3 hops from %d", conv, in), func(t *testing.T) {
				nntest.Check(t, layer(t, nn.LayerSpec{Conv: conv, In: in, Out: 4, Hops: 3}))
			})
		}
	}
}

func TestRows(t *testing.T) {
	key := rng.New(1)
	for name, op := range map[string]tape.Operator{
		"linear":       tape.NewLinear("a", 5, 3, true, key),
		"block linear": tape.NewBlockLinear("a", 6, 9, 3, true, key),
		"linear only":  tape.NewLinear("a", 5, 3, false, key),
		"relu":         tape.NewActivation("relu"),
		"elu":          tape.NewActivation("elu"),
		"dropout":      &tape.Dropout{Name: "a", P: 0.3},
		"head mean":    nn.HeadMean{Heads: 3, Dim: 2},
		"head":         tape.NewHead("head", 5, []int{4, 6, 3}, 0.3, key),
		"empty stack":  tape.Stack{},
	} {
		t.Run(name, func(t *testing.T) { nntest.CheckRows(t, op, 6) })
	}
}

// TestLayerDropsAggregateApart: where a node's row and its aggregate are the same numbers, they
// lose different ones.
func TestLayerDropsAggregateApart(t *testing.T) {
	l := layer(t, nn.LayerSpec{Conv: "sage", In: 64, Out: 1, Hops: 1, Dropout: 0.5})
	self, nbr := l.Conv.Self, l.Conv.Nbr
	x := mat.New(3, 64)
	for i := range x.Data {
		x.Data[i] = 1
	}
	for i := range 64 {
		self.W.Value.Data[i], nbr.W.Value.Data[i] = 1, -1
	}
	h := mat.New(3, 1)
	l.Forward(h, nn.Input{X: graph.Features{Dense: x}, Z: graph.Features{Dense: x}}, tape.New())
	if h.Data[0] == 0 && h.Data[1] == 0 && h.Data[2] == 0 {
		t.Error("x and its aggregate share a mask")
	}
}
