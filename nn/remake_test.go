package nn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// TestRowsMadeAgain trains chains of layers twice, with rows that stay and with rows that give
// their memory to the next ones and are made again: scores and gradients are the same up to the
// order of sums.
func TestRowsMadeAgain(t *testing.T) {
	g := synthetic(60, 6, 10, 4, 3)
	x := graph.Features{Dense: g.X.Sparse.Dense()}
	chain := func(conv string, set func(l *nn.LayerSpec)) []*nn.Layer {
		var all []*nn.Layer
		in := 10
		for k, out := range []int{12, 8, 16, 3} {
			s := nn.LayerSpec{Conv: conv, In: in, Out: out, Hops: 1, Act: []string{"relu", "elu", "", "relu"}[k],
				Norm: k < 3}
			if c, _ := nn.ConvolutionNamed(conv); c.Heads {
				s.Heads = max(out/4, 1)
			}
			if conv == "appnp" {
				s.Hops, s.Alpha = 2, 0.2
			}
			if conv == "rgcn" {
				s.Relations = 1
			}
			if k == 2 {
				set(&s)
			}
			l, err := nn.NewLayer(fmt.Sprintf("layer%d", k), s, rng.New(4))
			if err != nil {
				t.Fatal(err)
			}
			in, all = out, append(all, l)
		}
		return all
	}
	run := func(layers []*nn.Layer, shared bool) (scores mat.Dense, grads []mat.Dense) {
		tape := tape.New()
		tape.Key = rng.New(8)
		room, made := mat.New(60, 16), 0
		x, in := x, make([]nn.Input, len(layers))
		for k, l := range layers {
			in[k] = nn.Input{X: x}
			if l.Conv.Agg != nil {
				in[k].G = graph.Normalise(&g.Adj, g.Adj.Degrees(), l.Edges)
			}
			if shared && k > 0 {
				in[k].Again = layers[k-1].Again(tape)
			}
			h := mat.New(60, l.Spec.Out)
			if shared && l.Remakes() && k < len(layers)-1 {
				h, made = mat.View(60, l.Spec.Out, room.Data), made+1
			}
			l.Forward(h, in[k], tape)
			x = graph.Features{Dense: h}
		}
		scores = x.Dense.Clone()
		d := mat.New(60, 3)
		for i := range d.Data {
			d.Data[i] = float32(rng.New(2).Normal(uint64(i)))
		}
		for k := len(layers) - 1; k >= 0; k-- {
			var dx mat.Dense
			switch {
			case in[k].Again.Possible():
				dx = in[k].X.Dense
			case k > 0:
				dx = mat.New(60, layers[k].Spec.In)
			}
			for _, p := range layers[k].Params() {
				p.Grad.Zero()
			}
			layers[k].Backward(dx, d, tape)
			for _, p := range layers[k].Params() {
				grads = append(grads, p.Grad.Clone())
			}
			d = dx
		}
		if shared && made < 2 {
			t.Fatalf("%d layers share their memory, want 2 at least", made)
		}
		return scores, grads
	}
	for _, conv := range []string{"gcn", "sage", "sage-sum", "sage-pool", "gat", "gatv2", "gin", "rgcn", "appnp",
		"mlp"} {
		for what, set := range map[string]func(*nn.LayerSpec){
			"plain":                 func(*nn.LayerSpec) {},
			"dropout":               func(s *nn.LayerSpec) { s.Dropout = 0.3 },
			"residual":              func(s *nn.LayerSpec) { s.Residual = true },
			"residual with dropout": func(s *nn.LayerSpec) { s.Residual, s.Dropout = true, 0.3 },
			"without norm":          func(s *nn.LayerSpec) { s.Norm = false },
			"batch norm":            func(s *nn.LayerSpec) { s.Norm, s.BatchNorm = false, true },
			"batch norm, residual":  func(s *nn.LayerSpec) { s.Norm, s.BatchNorm, s.Residual = false, true, true },
		} {
			layers := chain(conv, set)
			want, wantGrads := run(layers, false)
			got, grads := run(layers, true)
			close(t, conv+", "+what+": scores", got, want)
			for k := range grads {
				close(t, fmt.Sprintf("%s, %s: gradient %d", conv, what, k), grads[k], wantGrads[k])
			}
		}
	}
}

// close fails unless got is within 1e-5 of want, of the largest magnitude.
func close(t *testing.T, what string, got, want mat.Dense) {
	t.Helper()
	top := 0.0
	for _, v := range want.Data {
		top = max(top, math.Abs(float64(v)))
	}
	for i, v := range want.Data {
		if off := math.Abs(float64(got.Data[i]) - float64(v)); !(off <= 1e-5*top) {
			t.Fatalf("%s: value %d is %g, want %g, of at most %g", what, i, got.Data[i], v, top)
		}
	}
}
