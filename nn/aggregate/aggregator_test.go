package aggregate_test

import (
	"fmt"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/nntest"
	"github.com/heddle-gnn/heddle/nn/tape"
)

func TestAggregators(t *testing.T) {
	for name, agg := range map[string]aggregate.Aggregator{
		"sum":               aggregate.Sum{},
		"max":               aggregate.Max{},
		"attention":         aggregate.NewAttention("att", 2, 3, 0, rng.New(1)),
		"messages":          squares(),
		"of one's own":      doubled{},
		"dynamic attention": aggregate.NewDynamicAttention("att", 2, 3, 0.3, rng.New(1)),
		"attention dropout": aggregate.NewAttention("att", 3, 2, 0.4, rng.New(1)),
	} {
		t.Run(name, func(t *testing.T) { nntest.CheckAggregator(t, agg, 6, 0) })
	}
}

// squares is the message gain·w·z².
func squares() aggregate.Aggregator {
	gain := &tape.Param{Name: "gain", Value: mat.New(1, 1), Grad: mat.New(1, 1)}
	gain.Value.Set(0, 0, 0.7)
	return &aggregate.Messages{
		Parameters: []*tape.Param{gain},
		Message: func(m, z []float32, w float32) {
			for c, v := range z {
				m[c] = gain.Value.At(0, 0) * w * v * v
			}
		},
		Gradient: func(dz, dm, z []float32, w float32) {
			for c, v := range z {
				dz[c] += dm[c] * gain.Value.At(0, 0) * w * 2 * v
				gain.Grad.Row(0)[0] += dm[c] * w * v * v
			}
		},
	}
}

// doubled is 2·Σ_j z_j: an Aggregator with nothing of the package but the interface, which keeps its
// sums in Acc.State.
type doubled struct{}

func (doubled) Params() []*tape.Param                                         { return nil }
func (doubled) Dims() (in, out int)                                           { return 0, 0 }
func (doubled) Properties() aggregate.Properties                              { return aggregate.Properties{} }
func (doubled) Begin(acc *aggregate.Acc, z mat.Dense)                         { acc.State = mat.New(z.Rows, z.Cols) }
func (doubled) End(h mat.Dense, acc *aggregate.Acc)                           { h.CopyFrom(acc.State.(mat.Dense)) }
func (doubled) EndGrad(dacc *aggregate.Acc, dh mat.Dense, acc *aggregate.Acc) { dacc.State = dh }
func (doubled) BeginGrad(dz, z mat.Dense, acc, dacc *aggregate.Acc)           {}

func (doubled) Add(acc *aggregate.Acc, g *graph.CSR, z mat.Dense) {
	sum := acc.State.(mat.Dense)
	for i := range g.NumDst {
		col, _ := g.Row(i)
		for _, j := range col {
			for c, v := range z.Row(int(j)) {
				sum.Row(i)[c] += 2 * v
			}
		}
	}
}

func (doubled) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *aggregate.Acc) {
	for i := range g.NumDst {
		col, _ := g.Row(i)
		for _, j := range col {
			for c, v := range dacc.State.(mat.Dense).Row(i) {
				dz.Row(int(j))[c] += 2 * v
			}
		}
	}
}

func TestRelational(t *testing.T) {
	for _, s := range []aggregate.Sharing{{}, {Bases: 2}, {Blocks: 2}} {
		agg := aggregate.NewRelational("rel", 6, 4, 3, s, rng.New(1))
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) { nntest.CheckAggregator(t, agg, 6, 3) })
	}
}

func TestRelationalAttention(t *testing.T) {
	for _, s := range []aggregate.Sharing{{}, {Bases: 2}} {
		for _, dropout := range []float32{0, 0.4} {
			agg := aggregate.NewRelationalAttention("rel", 6, 3, 2, 3, s, dropout, rng.New(1))
			t.Run(fmt.Sprintf("%+v, dropout %g", s, dropout), func(t *testing.T) { nntest.CheckAggregator(t, agg, 6, 3) })
		}
	}
}
