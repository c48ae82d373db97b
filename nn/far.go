package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Far is the sources of a layer whose rows are elsewhere, with other workers. They come in blocks beside the near one,
// Input.G, and their rows are those that the aggregator reads: after dropout, Pre and projection, which whoever has
// the node computes. Every worker makes the same calls in the same order, whatever rows it has.
type Far interface {
	// Add calls near, then add for every block: its edges, the global IDs of its sources and their rows. z are the near
	// rows, some of which others wait for.
	Add(z mat.Dense, near func(), add func(g *graph.CSR, nodes []int64, z mat.Dense))
	// AddGrad calls near, then grad for every block of Add, which adds to dz, at first zeros. What it leaves there goes
	// to where the sources are; what others found of the near rows z is added to their gradient, dzNear. reads says
	// whether grad reads the block's z; else that is empty.
	AddGrad(dzNear, z mat.Dense, reads bool, near func(), grad func(g *graph.CSR, nodes []int64, dz, z mat.Dense))
}

// sumOver writes to h, or adds, the weighted sums over all near and far sources.
func sumOver(h mat.Dense, g *graph.CSR, far Far, z mat.Dense, add bool) {
	if far == nil {
		sumInto(h, g, z, add)
		return
	}
	sumFar(h, g, far, z, add)
}

func sumFar(h mat.Dense, g *graph.CSR, far Far, z mat.Dense, add bool) {
	far.Add(z, func() { sumInto(h, g, z, add) }, func(g *graph.CSR, _ []int64, z mat.Dense) { sumInto(h, g, z, true) })
}

// sumOverGrad adds to dz, unless it is not wanted, the gradient of sumOver's z.
func sumOverGrad(dz mat.Dense, g *graph.CSR, far Far, dh mat.Dense, t *Tape) {
	switch {
	case dz.Cols == 0:
	case far == nil:
		sumGrad(dz, g, dh, &t.trans)
	default:
		sumFarGrad(dz, g, far, dh, t)
	}
}

func sumFarGrad(dz mat.Dense, g *graph.CSR, far Far, dh mat.Dense, t *Tape) {
	far.AddGrad(dz, mat.Dense{}, false, func() { sumGrad(dz, g, dh, &t.trans) },
		func(g *graph.CSR, _ []int64, dz, _ mat.Dense) { sumGrad(dz, g, dh, &t.trans) })
}

// addFar is Add of near and far sources.
func addFar(agg Aggregator, acc *Acc, in Input, z mat.Dense) {
	in.Far.Add(z, func() { agg.Add(acc, in.G, z) }, func(g *graph.CSR, nodes []int64, z mat.Dense) {
		acc.Src = nodes
		agg.Add(acc, g, z)
	})
}

// addFarGrad is AddGrad of near and far sources; near is the near block, nodes its sources.
func addFarGrad(agg Aggregator, dz mat.Dense, near *graph.CSR, nodes []int64, far Far, z mat.Dense, acc, dacc *Acc) {
	acc.Src = nodes
	far.AddGrad(dz, z, agg.NeedsSource(), func() { agg.AddGrad(dz, near, z, acc, dacc) },
		func(g *graph.CSR, nodes []int64, dz, z mat.Dense) {
			acc.Src = nodes
			agg.AddGrad(dz, g, z, acc, dacc)
		})
}
