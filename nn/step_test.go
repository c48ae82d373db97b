package nn_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// synthetic returns a random symmetric graph of n nodes, degree in-edges each about, with rows of
// nnz non-zeros among features columns.
func synthetic(n, degree, features, nnz, classes int) *graph.Graph {
	key := rng.New(5)
	rows := make([][]int32, n)
	for i := range n {
		for k := range degree / 2 {
			j := int(key.Uint64(uint64(i*degree+k)) % uint64(n))
			if i != j {
				rows[i], rows[j] = append(rows[i], int32(j)), append(rows[j], int32(i))
			}
		}
	}
	adj := graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}
	x := &mat.Sparse{Rows: n, Cols: features, RowPtr: make([]int64, n+1)}
	g := &graph.Graph{Labels: graph.Labels{Classes: classes}}
	for i, r := range rows {
		slices.Sort(r)
		adj.Col = append(adj.Col, slices.Compact(r)...)
		adj.RowPtr[i+1] = int64(len(adj.Col))
		var cols []int32
		for k := range nnz {
			cols = append(cols, int32(key.Fold(1).Uint64(uint64(i*nnz+k))%uint64(features)))
		}
		slices.Sort(cols)
		x.Col = append(x.Col, slices.Compact(cols)...)
		x.RowPtr[i+1] = int64(len(x.Col))
		g.Labels.Class = append(g.Labels.Class, int32(i%classes))
	}
	for range x.Col {
		x.Val = append(x.Val, 1)
	}
	g.Adj, g.X = adj, graph.Features{Sparse: x}
	return g
}

// stepper makes training steps over a whole graph.
type stepper struct {
	model *nn.Model
	slab  *tape.FlatParams
	g     *graph.Graph
	adj   []*graph.CSR
	tape  *tape.Tape
	epoch uint64
	rows  []mat.Dense
}

func newStepper(tb testing.TB, spec nn.Spec, g *graph.Graph) *stepper {
	tb.Helper()
	m, err := nn.New(spec, rng.New(1))
	if err != nil {
		tb.Fatal(err)
	}
	s := &stepper{model: m, slab: tape.NewFlatParams(m.Params()), g: g, tape: tape.New(),
		rows: make([]mat.Dense, len(m.Layers))}
	for _, l := range m.Layers {
		s.adj = append(s.adj, graph.Normalise(&g.Adj, g.Adj.Degrees(), l.Edges))
		s.adj[len(s.adj)-1] = sameEdges(s.adj)
	}
	return s
}

// sameEdges returns the last adjacency, or the one before it where layers share it.
func sameEdges(adj []*graph.CSR) *graph.CSR {
	last := adj[len(adj)-1]
	if len(adj) > 1 && slices.Equal(adj[len(adj)-2].Col, last.Col) {
		return adj[len(adj)-2]
	}
	return last
}

func (s *stepper) step() float64 {
	t := s.tape
	t.Reset()
	s.epoch++
	t.Key = rng.New(s.epoch)
	s.slab.ZeroGrad()
	x := s.g.X
	for k, l := range s.model.Layers {
		h := t.Scratch(s.g.N(), l.Spec.Out)
		l.Forward(h, nn.Input{G: s.adj[k], X: x}, t)
		s.rows[k], x = h, graph.Features{Dense: h}
	}
	d := t.Scratch(x.Rows(), x.Cols())
	loss, _ := nn.Loss(d, x.Dense, s.g.Labels, nil)
	for k := len(s.rows) - 1; k >= 0; k-- {
		var dx mat.Dense
		if k > 0 {
			dx = t.Scratch(s.g.N(), s.rows[k-1].Cols)
		}
		s.model.Layers[k].Backward(dx, d, t)
		s.model.Layers[k].Settle()
		d = dx
	}
	return loss
}

// TestStepAllocatesNothing is decision 7 of the design: from the second step on, all memory is the
// tape's.
func TestStepAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes sync.Pool forget")
	}
	for _, sparse := range []bool{false, true} {
		g := synthetic(60, 4, 20, 5, 3)
		if !sparse {
			g.X = graph.Features{Dense: g.X.Sparse.Dense()}
		}
		for _, model := range []string{"gcn", "sage", "sage-pool", "gat", "gatv2", "gin"} {
			spec, err := nn.Preset(model, "single", 20, 3, 16, 3)
			if err != nil {
				t.Fatal(err)
			}
			spec.Layers[0].BatchNorm = true
			spec.Layers[1].Norm, spec.Layers[1].Residual, spec.Layers[2].Residual = true, true, true
			s := newStepper(t, spec, g)
			s.step()
			least := math.Inf(1) // of a few tries: the runtime's own are counted as well
			for range 5 {
				least = min(least, testing.AllocsPerRun(20, func() { s.step() }))
			}
			if least > 0 {
				t.Errorf("%s, sparse %t: %v allocations a step", model, sparse, least)
			}
		}
	}
}

// BenchmarkStep is an epoch of ordinary training, without the optimiser, on a graph of
// coauthor-cs's shape.
func BenchmarkStep(b *testing.B) {
	g := synthetic(18333, 9, 6805, 60, 15)
	for _, c := range []struct {
		model  string
		hidden int
	}{{"gcn", 64}, {"gcn", 256}, {"sage", 64}, {"sage-pool", 64}, {"gat", 64}, {"gin", 64}} {
		b.Run(fmt.Sprintf("%s-%d", c.model, c.hidden), func(b *testing.B) {
			spec, err := nn.Preset(c.model, "single", 6805, 15, c.hidden, 2)
			if err != nil {
				b.Fatal(err)
			}
			s := newStepper(b, spec, g)
			s.step()
			b.ReportAllocs()
			for b.Loop() {
				s.step()
			}
		})
	}
}
