package nntest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// worker is one of several that compute a layer together, phase by phase: it has the rows of its
// own nodes.
type worker struct {
	layer  *nn.Layer
	tape   *tape.Tape
	own    []int32
	nodes  []int64      // own, as keys of dropout
	blocks []*graph.CSR // [worker] edges from its nodes to this one's
	h, dx  mat.Dense
	f      nn.Forward
	b      nn.Backward
}

// checkWorkers compares the rows and gradients of a layer over three workers with one worker that
// has the whole graph: h, dx and params.
func checkWorkers(t *testing.T, l *nn.Layer, whole problem, h, dx mat.Dense, params []mat.Dense) {
	t.Helper()
	relations := max(l.Conv.Relations, 1)
	all := deal(t, l, whole, relations)
	zeroGrad(l.Params())
	for r, w := range all {
		zeroGrad(w.layer.Params())
		x := graph.Features{Dense: whole.in.X.Dense.Select(w.own)}
		in := nn.Input{G: w.blocks[r], Remote: true, EdgeX: whole.in.EdgeX, X: x, Nodes: w.nodes}
		w.f.Begin(w.layer, w.h, in, w.tape)
	}
	forward(all)
	for _, w := range all {
		w.dx = mat.New(len(w.own), l.Spec.In)
		w.b.Begin(w.layer, w.dx, whole.weight.Select(w.own), w.tape)
	}
	backward(all)
	for r, w := range all {
		near(t, fmt.Sprintf("rows of worker %d", r), w.h, h.Select(w.own), rounding)
		near(t, fmt.Sprintf("dx of worker %d", r), w.dx, dx.Select(w.own), rounding)
	}
	for k, p := range l.Params() {
		sum := mat.New(p.Grad.Rows, p.Grad.Cols)
		for r, w := range all {
			if r > 0 && w.layer == all[0].layer {
				continue
			}
			tape.AddTo(sum, w.layer.Params()[k].Grad)
		}
		near(t, p.Name, sum, params[k], rounding)
	}
}

// deal gives every third node to each of three workers. They share the layer, but for a BatchNorm,
// which has a state.
func deal(t *testing.T, l *nn.Layer, whole problem, relations int) []*worker {
	t.Helper()
	const workers = 3
	g, n := whole.in.G, whole.in.X.Rows()
	all := make([]*worker, workers)
	for r := range all {
		w := &worker{layer: l, tape: tape.New()}
		w.tape.Key = whole.key
		if l.Spec.BatchNorm {
			var err error
			if w.layer, err = nn.NewLayer(l.Name, l.Spec, rng.New(1)); err != nil {
				t.Fatal(err)
			}
			for k, p := range l.Params() {
				w.layer.Params()[k].Value.CopyFrom(p.Value)
			}
		}
		for i := r; i < n; i += workers {
			w.own, w.nodes = append(w.own, int32(i)), append(w.nodes, int64(i))
		}
		w.h = mat.New(len(w.own), l.Spec.Out)
		all[r] = w
	}
	for _, w := range all {
		for _, from := range all {
			name := slices.Repeat([]int32{-1}, n)
			for k, j := range from.own {
				name[j] = int32(k)
			}
			w.blocks = append(w.blocks, g.Relabel(graph.StackedRows(w.own, n, relations), name, len(from.own)))
		}
	}
	return all
}

func forward(all []*worker) {
	for {
		hops := make([]*aggregate.Hop, len(all))
		for r, w := range all {
			hops[r] = w.f.Hop()
		}
		if hops[0] == nil {
			break
		}
		for r, w := range all {
			hops[r].Near()
			for q, from := range all {
				if q != r {
					hops[r].Add(w.blocks[q], from.nodes, hops[q].Rows)
				}
			}
		}
	}
	addUp(all, func(r int, w *worker) []float32 { return w.f.Statistics(r, len(all)) })
	for _, w := range all {
		w.f.End()
	}
}

func backward(all []*worker) {
	addUp(all, func(_ int, w *worker) []float32 { return w.b.Statistics(len(all)) })
	for {
		hops := make([]*aggregate.HopGrad, len(all))
		for r, w := range all {
			hops[r] = w.b.Hop()
		}
		if hops[0] == nil {
			break
		}
		for _, hop := range hops {
			hop.Near()
		}
		for r, w := range all {
			for q, from := range all {
				if q == r {
					continue
				}
				var z mat.Dense
				if hops[r].NeedsSource() {
					z = hops[q].Rows
				}
				dz := mat.New(len(from.own), hops[q].Grad.Cols)
				hops[r].Add(w.blocks[q], from.nodes, dz, z)
				tape.AddTo(hops[q].Grad.RowRange(0, dz.Rows), dz)
			}
		}
	}
	for _, w := range all {
		w.b.End()
	}
}

// addUp replaces what each worker contributes by the sum of all.
func addUp(all []*worker, contribution func(r int, w *worker) []float32) {
	parts := make([][]float32, len(all))
	for r, w := range all {
		parts[r] = contribution(r, w)
	}
	sum := make([]float32, len(parts[0]))
	for _, p := range parts {
		for i, v := range p {
			sum[i] += v
		}
	}
	for _, p := range parts {
		copy(p, sum)
	}
}
