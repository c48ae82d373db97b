package nn_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// readGolden returns the matrices of a file that testdata/gen_golden.py wrote: "name rows cols",
// then the rows.
func readGolden(t *testing.T, path string) map[string]mat.Dense {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]mat.Dense{}
	for s := bufio.NewScanner(f); s.Scan(); {
		words := strings.Fields(s.Text())
		n := len(words)
		rows, err1 := strconv.Atoi(words[n-2])
		cols, err2 := strconv.Atoi(words[n-1])
		if err1 != nil || err2 != nil {
			t.Fatalf("%s: bad header %q", path, s.Text())
		}
		m := mat.New(rows, cols)
		for i := range rows {
			s.Scan()
			for c, w := range strings.Fields(s.Text()) {
				v, err := strconv.ParseFloat(w, 32)
				if err != nil {
					t.Fatal(err)
				}
				m.Set(i, c, float32(v))
			}
		}
		all[strings.Join(words[:n-2], " ")] = m
	}
	return all
}

// golden is a model of PyTorch Geometric's layers, made again from its parameters.
type golden struct {
	want   map[string]mat.Dense
	g      *graph.Graph
	model  *nn.Model
	slab   *tape.FlatParams
	weight []float32
	hops   graph.Features // of sign
}

func newGolden(t *testing.T, name string, sparse bool) *golden {
	t.Helper()
	want := readGolden(t, "testdata/"+name+".golden")
	x := want["x"]
	n := x.Rows
	adj := graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}
	for k, i := range want["edges"].Row(0) { // rows ascending; symmetric, so direction does not matter
		adj.RowPtr[int(i)+1]++
		adj.Col = append(adj.Col, int32(want["edges"].At(1, k)))
	}
	for i := range n {
		adj.RowPtr[i+1] += adj.RowPtr[i]
	}
	if err := adj.Valid(); err != nil {
		t.Fatal(err)
	}
	classes := want["class weights"].Cols
	layers := 2
	if name == "sage-pool" {
		layers = 1
	}
	preset := name
	conv := strings.TrimSuffix(name, "-batch")
	if name != conv || name == "mlp" || name == "sign" || name == "appnp" || want["typed edges"].Rows > 0 {
		preset = "gcn"
	}
	spec, err := nn.Preset(preset, "single", x.Cols, classes, 8, layers)
	if err != nil {
		t.Fatal(err)
	}
	for k := range spec.Layers {
		l := &spec.Layers[k]
		l.Conv, l.Dropout, l.AttentionDropout = conv, 0, 0
		if k < layers-1 {
			l.Norm, l.BatchNorm = name == conv, name != conv
			l.Out, spec.Layers[k+1].In = 6, 6
		}
		if c, _ := nn.ConvolutionNamed(name); c.Heads {
			l.Heads = 2 + k
		}
		switch {
		case name == "appnp":
			l.Hops, l.Alpha = 3, 0.2
		case name == "sign" && k == 0:
			spec.Encoder = nn.EncoderSpec{Kind: "sign", Hops: 2, Out: 18}
			l.Hops, l.In = 2, 18
		case name == "sign":
			l.Conv = "mlp"
		case want["typed edges"].Rows > 0:
			l.Conv, l.Relations, l.Norm, l.BatchNorm = strings.Split(name, "-")[0], 3, k < layers-1, false
			switch name {
			case "rgcn-bases":
				l.Bases = 2
			case "rgat":
				l.Act = map[bool]string{true: "elu"}[k < layers-1]
				l.Heads, l.Average = 2+k, k == layers-1
			}
		}
	}
	gold := &golden{want: want, weight: want["class weights"].Row(0)}
	gold.g = &graph.Graph{Adj: adj, X: graph.Features{Dense: x}, Labels: graph.Labels{Classes: classes}}
	if e := want["typed edges"]; e.Rows > 0 {
		gold.g.Typed = typed(e, n)
	}
	for _, v := range want["labels"].Row(0) {
		gold.g.Labels.Class = append(gold.g.Labels.Class, int32(v))
	}
	if sparse {
		gold.g.X = graph.Features{Sparse: sparsify(x)}
	}
	gold.model, err = nn.New(spec, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	gold.slab = tape.NewFlatParams(gold.model.Params())
	gold.restart(t)
	return gold
}

// typed returns relations of the rows kind, destination, source, which ascend.
func typed(e mat.Dense, n int) graph.Relations {
	t := graph.Relations{Names: []string{"first", "second", "third"}}
	t.Adj = graph.CSR{NumDst: 3 * n, NumSrc: n, RowPtr: make([]int64, 3*n+1)}
	for k, r := range e.Row(0) {
		t.Adj.RowPtr[int(r)*n+int(e.At(1, k))+1]++
		t.Adj.Col = append(t.Adj.Col, int32(e.At(2, k)))
	}
	for i := range 3 * n {
		t.Adj.RowPtr[i+1] += t.Adj.RowPtr[i]
	}
	return t
}

func sparsify(x mat.Dense) *mat.Sparse {
	s := &mat.Sparse{Rows: x.Rows, Cols: x.Cols, RowPtr: make([]int64, x.Rows+1)}
	for i := range x.Rows {
		for c, v := range x.Row(i) {
			if v != 0 {
				s.Col, s.Val = append(s.Col, int32(c)), append(s.Val, v)
			}
		}
		s.RowPtr[i+1] = int64(len(s.Col))
	}
	return s
}

func (g *golden) restart(t *testing.T) {
	t.Helper()
	for _, p := range g.slab.Params {
		v, ok := g.want["value "+p.Name]
		if !ok {
			t.Fatalf("no golden parameter %q", p.Name)
		}
		p.Value.CopyFrom(v)
	}
}

// step computes scores, mean loss and gradients.
func (g *golden) step(tape *tape.Tape) (scores mat.Dense, loss float64) {
	tape.Reset()
	g.slab.ZeroGrad()
	x := g.g.X
	if hops := g.model.Spec.Encoder.Hops; hops > 0 {
		if g.hops.Rows() == 0 { // constant: a tape knows what it has seen by its memory
			list, edges := []graph.Features{x}, graph.Normalise(&g.g.Adj, g.g.Adj.Degrees(), graph.GCN)
			for k := range hops {
				list = append(list, aggregate.Features(aggregate.Sum{}, edges, list[k]))
			}
			g.hops = graph.Columns(list)
		}
		x = g.hops
	}
	rows := make([]mat.Dense, len(g.model.Layers))
	for k, l := range g.model.Layers {
		rows[k] = tape.Scratch(g.g.N(), l.Spec.Out)
		adj := graph.Normalise(&g.g.Adj, g.g.Adj.Degrees(), l.Edges)
		if l.Conv.Relations > 0 {
			adj = l.Typed(&g.g.Typed.Adj, g.g.N())
		}
		l.Forward(rows[k], nn.Input{G: adj, X: x}, tape)
		x = graph.Features{Dense: rows[k]}
	}
	d := tape.Scratch(g.g.N(), x.Cols())
	loss, count := nn.Loss(d, x.Dense, g.g.Labels, g.weight)
	for i := range d.Data {
		d.Data[i] /= float32(count)
	}
	for k := len(rows) - 1; k >= 0; k-- {
		var dx mat.Dense
		if k > 0 {
			dx = tape.Scratch(g.g.N(), rows[k-1].Cols)
		}
		g.model.Layers[k].Backward(dx, d, tape)
		g.model.Layers[k].Settle()
		d = dx
	}
	return x.Dense, loss / count
}

// The golden runs are in float64; ours differ by rounding, a few ε times the terms summed.
const goldenTolerance = 1e-5

func compare(t *testing.T, what string, got, want mat.Dense) {
	t.Helper()
	if got.Rows != want.Rows || got.Cols != want.Cols {
		t.Fatalf("%s is %d×%d, want %d×%d", what, got.Rows, got.Cols, want.Rows, want.Cols)
	}
	for i := range want.Rows {
		for c, w := range want.Row(i) {
			if d := math.Abs(float64(got.At(i, c) - w)); !(d <= goldenTolerance*max(1, math.Abs(float64(w)))) {
				t.Errorf("%s (%d, %d) is %v, want %v", what, i, c, got.At(i, c), w)
			}
		}
	}
}

// TestGolden compares scores, every gradient and five optimiser steps with PyTorch Geometric's.
func TestGolden(t *testing.T) {
	for _, name := range []string{"gcn", "sage", "sage-sum", "sage-pool", "gat", "gatv2", "gin", "rgcn", "rgcn-bases",
		"rsage", "rgat", "appnp", "sign", "mlp", "gcn-batch"} {
		for _, sparse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sparse=%v", name, sparse), func(t *testing.T) {
				g := newGolden(t, name, sparse)
				tape := tape.New()
				scores, _ := g.step(tape)
				compare(t, "scores", scores, g.want["scores"])
				inferred, err := infer.Graph(g.model, g.g)
				if err != nil {
					t.Fatal(err)
				}
				if want, ok := g.want["inferred"]; ok {
					compare(t, "inferred scores", inferred, want)
				} else {
					compare(t, "inferred scores", inferred, g.want["scores"])
				}
				for _, p := range g.slab.Params {
					if p.Running {
						compare(t, p.Name+" after a step", p.Value, g.want["settled "+p.Name])
						continue
					}
					compare(t, p.Name+" gradient", p.Grad, g.want["grad "+p.Name])
				}
				for _, cfg := range []optim.Config{
					{Name: "adam", LR: 0.01, Decay: 5e-4},
					{Name: "sgd", LR: 0.1, Momentum: 0.9, Decay: 5e-4},
				} {
					g.restart(t)
					n := g.slab.Trained
					opt, err := optim.New(cfg, n)
					if err != nil {
						t.Fatal(err)
					}
					losses := mat.New(1, 6)
					for k := range losses.Cols {
						_, loss := g.step(tape)
						losses.Data[k] = float32(loss)
						if k < 5 {
							opt.Step(g.slab.Value[:n], g.slab.Grad[:n], cfg.LR)
						}
					}
					compare(t, cfg.Name+" loss", losses, g.want["loss "+cfg.Name])
					if cfg.Name == "adam" {
						for _, p := range g.slab.Params {
							compare(t, p.Name+" after Adam", p.Value, g.want["after "+p.Name])
						}
					}
				}
			})
		}
	}
}

// TestCorrectSmoothGolden compares with PyTorch Geometric's CorrectAndSmooth.
func TestCorrectSmoothGolden(t *testing.T) {
	want := readGolden(t, "testdata/correct_smooth.golden")
	n := want["scores"].Rows
	var src, dst []int32
	for k, i := range want["edges"].Row(0) {
		src, dst = append(src, int32(i)), append(dst, int32(want["edges"].At(1, k)))
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	var class []int32
	for _, y := range want["class"].Row(0) {
		class = append(class, int32(y))
	}
	before := want["scores"].Clone()
	norm := graph.Normalise(&adj, adj.Degrees(), graph.Symmetric)
	got, err := nn.CorrectSmooth{Steps: 6, Correct: 0.9, Smooth: 0.7}.Apply(want["scores"], class, nn.Spread{
		Hop: func(x mat.Dense) (mat.Dense, error) {
			return aggregate.Features(aggregate.Sum{}, norm, graph.Features{Dense: x}).Dense, nil
		},
		Sum: func([]float64) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "logarithms of shares", got, want["shares"])
	compare(t, "scores, which are not written", want["scores"], before)
}
