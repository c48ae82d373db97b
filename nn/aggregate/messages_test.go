package aggregate_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/nntest"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// hubs is a graph of n nodes in which the first few have edges from all and the others from some.
func hubs(n int) *graph.CSR {
	g := &graph.CSR{NumDst: n, NumSrc: n, RowPtr: []int64{0}}
	for i := range n {
		for j := range n {
			if i < 3 || i%7 > 0 && rng.New(3).Fold(uint64(i)).Uint64(uint64(j))%uint64(n) < 8 {
				g.Col = append(g.Col, int32(j))
				g.Weight = append(g.Weight, float32(1+j%3))
			}
		}
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
	}
	return g
}

// weighed is the message w·z, whose sum is Sum.
func weighed(how aggregate.Reduction) *aggregate.EdgeMessages {
	times := func(to, x mat.Dense, weight []float32) {
		for k, w := range weight {
			kernels.Axpy(w, x.Row(k), to.Row(k))
		}
	}
	return &aggregate.EdgeMessages{
		Reduce: how, Linear: true,
		Message:  func(b *aggregate.EdgeBatch) { b.M.Zero(); times(b.M, b.Src, b.Weight) },
		Gradient: func(b *aggregate.EdgeBatch) { times(b.DSrc, b.DM, b.Weight) },
	}
}

// passes returns the aggregate of rows z over g, and their gradient where that of the aggregate is dh.
func passes(agg aggregate.Aggregator, g *graph.CSR, z, dh mat.Dense) (h, dz mat.Dense) {
	return passesOn(tape.New(), agg, g, z, dh)
}

func passesOn(t *tape.Tape, agg aggregate.Aggregator, g *graph.CSR, z, dh mat.Dense) (h, dz mat.Dense) {
	t.Reset()
	h, dz = mat.New(g.NumDst, dh.Cols), mat.New(z.Rows, z.Cols)
	hop := aggregate.Hop{Agg: agg, G: g, Rows: z, H: h}
	hop.Begin(t)
	hop.Near()
	hop.End()
	back := aggregate.HopGrad{Agg: agg, G: g, DH: dh, Grad: dz}
	back.Begin(t)
	back.Near()
	back.End()
	return h, dz
}

// TestMessagesOfManyBatches: where edges fill several rounds of batches and a destination's lie in
// many, the reduction of messages is that of all edges at once.
func TestMessagesOfManyBatches(t *testing.T) {
	g := hubs(1500)
	n := g.NumDst
	z, dh := nntest.Random(rng.New(1), n, 64), nntest.Random(rng.New(2), n, 64)
	near := func(what string, got, want mat.Dense) {
		t.Helper()
		for i, v := range want.Data {
			if d := math.Abs(float64(got.Data[i] - v)); !(d <= 1e-4*max(1, math.Abs(float64(v)))) {
				t.Fatalf("%s: value %d must be %g (got %g)", what, i, v, got.Data[i])
			}
		}
	}
	h, dz := passes(weighed(aggregate.SumOf), g, z, dh)
	sum, dsum := passes(aggregate.Sum{}, g, z, dh)
	near("sum", h, sum)
	near("gradient of the sum", dz, dsum)

	h, dz = passes(weighed(aggregate.MeanOf), g, z, dh)
	shared := dh.Clone()
	for i := range n {
		if d := float32(g.RowPtr[i+1] - g.RowPtr[i]); d > 0 {
			kernels.Scale(1/d, sum.Row(i))
			kernels.Scale(1/d, shared.Row(i))
		}
	}
	_, dsum = passes(aggregate.Sum{}, g, z, shared)
	near("mean", h, sum)
	near("gradient of the mean", dz, dsum)

	plain := *g
	plain.Weight = slices.Repeat([]float32{1}, len(g.Col))
	h, dz = passes(weighed(aggregate.MaxOf), &plain, z, dh)
	most, dmost := passes(aggregate.Max{}, &plain, z, dh)
	near("maximum", h, most)
	near("gradient of the maximum", dz, dmost)
}

// TestMessagesBits: the number of cores changes no bit.
func TestMessagesBits(t *testing.T) {
	g := hubs(900)
	z, dh := nntest.Random(rng.New(1), g.NumDst, 6), nntest.Random(rng.New(2), g.NumDst, 5)
	g.Edge = make([]int32, len(g.Col))
	run := func(cores int) (all []float32) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		agg := projected(aggregate.MeanOf)
		t := tape.New()
		hop := aggregate.Hop{Agg: agg, G: g, Rows: z, H: mat.New(g.NumDst, 5), EdgeX: nntest.Random(rng.New(5), 1, 3)}
		hop.Begin(t)
		hop.Near()
		hop.End()
		back := aggregate.HopGrad{Agg: agg, G: g, DH: dh, Grad: mat.New(z.Rows, z.Cols)}
		p := agg.Params()[0]
		p.Grad = mat.New(p.Value.Rows, p.Value.Cols)
		back.Begin(t)
		back.Near()
		back.End()
		return slices.Concat(hop.H.Data, back.Grad.Data, p.Grad.Data)
	}
	want := run(1)
	for range 5 {
		if !slices.Equal(run(4), want) {
			t.Fatal("four cores must compute the same bits as one")
		}
	}
}

// BenchmarkMessages compares layers of one's own with built-in ones: a sum of weighted rows with Sum, a maximum with
// Max.
func BenchmarkMessages(b *testing.B) {
	g := hubs(3000)
	z, dh := nntest.Random(rng.New(1), g.NumDst, 64), nntest.Random(rng.New(2), g.NumDst, 64)
	for _, one := range []struct {
		name string
		agg  aggregate.Aggregator
	}{
		{"sum", aggregate.Sum{}}, {"own sum", weighed(aggregate.SumOf)}, {"max", aggregate.Max{}},
		{"own max", weighed(aggregate.MaxOf)},
	} {
		b.Run(fmt.Sprintf("%s of %d edges", one.name, len(g.Col)), func(b *testing.B) {
			t := tape.New()
			for b.Loop() {
				passesOn(t, one.agg, g, z, dh)
			}
		})
	}
}
