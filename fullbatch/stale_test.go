package fullbatch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

// TestStaleIsOneStepOld holds the rows that a step computes with, and the gradients that it adds, to those of the step
// before, weighed as the boundary says; the first step has its own.
func TestStaleIsOneStepOld(t *testing.T) {
	const d = 3
	g := toy(rng.New(8), 40, 9)
	for i := range g.Split {
		g.Split[i] = graph.Train
	}
	value := func(step int, node int64, k int) float32 { return float32(1000*step + 10*int(node) + k) }
	for _, gamma := range []float32{0, 0.25} {
		c := Defaults(models(9)["gcn"])
		c.Boundary, c.Exchange = fmt.Sprintf("stale:1:%g", gamma), "halo"
		readers := make([]int, g.N()) // workers that read a node's row
		shards := cut(t, g, "uneven", 3)
		for _, s := range shards {
			for _, i := range s.Global[s.Owned:] {
				readers[i]++
			}
		}
		workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
			ctx := context.Background()
			tr.line = &line{ctx: ctx, group: g, coder: new(wire.Coder)}
			if err := tr.begin(ctx, g); err != nil {
				return err
			}
			far := tr.train.parts[1].far
			n := tr.shard.Owned
			old := func(step int, of func(step int) float32) float32 { // what is known of a number in a step
				known := of(0)
				for s := 1; s < step; s++ {
					known = gamma*known + (1-gamma)*of(s)
				}
				return known
			}
			for step := range 4 {
				z, dz := mat.New(n, d), mat.New(n, d)
				for i := range n {
					for k := range d {
						z.Set(i, k, value(step, far.nodes[i], k))
					}
				}
				rows := 0
				far.Add(z, func() {}, func(_ *graph.CSR, nodes []int64, z mat.Dense) {
					for i, node := range nodes {
						for k := range d {
							want := old(step, func(s int) float32 { return value(s, node, k) })
							if got := z.At(i, k); math.Abs(float64(got-want)) > 1e-3 {
								t.Errorf("step %d, node %d: computed with %g, want %g", step, node, got, want)
							}
						}
						rows++
					}
				})
				if rows != tr.shard.Halo() {
					return fmt.Errorf("%d rows, want %d", rows, tr.shard.Halo())
				}
				far.AddGrad(dz, z, true, func() {}, func(_ *graph.CSR, nodes []int64, dz, z mat.Dense) {
					for i, node := range nodes {
						for k := range d {
							dz.Set(i, k, value(step, node, k))
						}
					}
				})
				for i := range n {
					node := tr.shard.Global[i]
					for k := range d {
						want := float32(readers[node]) * old(step, func(s int) float32 { return value(s, node, k) })
						if got := dz.At(i, k); math.Abs(float64(got-want)) > 1e-2 {
							t.Errorf("step %d, node %d: gradient %g, want %g", step, node, got, want)
						}
					}
				}
				far.settle(step == 0)
			}
			return tr.line.err
		})
	}
}

// TestStaleMeetsExact: where the parameters hardly move, what is a step old becomes what is exact.
func TestStaleMeetsExact(t *testing.T) {
	g := toy(rng.New(6), 120, 9)
	for _, model := range []string{"gcn", "gat"} {
		spec := models(9)[model]
		spec.Layers = slices.Clone(spec.Layers)
		for k := range spec.Layers {
			spec.Layers[k].Dropout, spec.Layers[k].AttentionDropout = 0, 0
		}
		c := Defaults(spec)
		c.Epochs, c.EvalEvery, c.Optimizer.LR = 8, 100, 1e-12
		shards := cut(t, g, "uneven", 3)
		exact := trained(t, c, shards)[0].slab.Grad
		c.Boundary = "stale:1"
		near(t, model+": gradients of the parameters", trained(t, c, shards)[0].slab.Grad, exact)
	}
}

// TestStaleRuns: what is stale learns, sends what exact training sends of rows that are kept, and repeats its bits.
func TestStaleRuns(t *testing.T) {
	g := toy(rng.New(4), 150, 9)
	for i := range g.Split {
		g.Split[i] = graph.Train
	}
	shards := cut(t, g, "uneven", 3)
	for model, values := range map[string]int{"gcn": 2*8 + 2*3, "gat": 2*12 + 2*6} {
		c := Defaults(models(9)[model])
		c.Epochs, c.EvalEvery, c.Boundary, c.Fetch, c.Exchange = 30, 1000, "stale:1:0.5", "sar", "halo"
		all := trained(t, c, shards)
		var sent int64
		halo := 0
		for r, tr := range all {
			e := tr.Result().Epochs
			sent += e[4].Bytes.Halo - e[3].Bytes.Halo
			halo += shards[r].Halo()
		}
		if want := int64(4 * halo * values); sent != want {
			t.Errorf("%s: an epoch sent %d bytes of rows and gradients, want %d", model, sent, want)
		}
		if e := all[0].Result().Epochs; e[len(e)-1].Loss >= e[0].Loss {
			t.Errorf("%s: the loss is %g at first and %g at last", model, e[0].Loss, e[len(e)-1].Loss)
		}
		if again := trained(t, c, shards); !slices.Equal(again[2].slab.Value, all[0].slab.Value) {
			t.Errorf("%s: another run gave other bits", model)
		}
	}
}
