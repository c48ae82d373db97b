package train

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
)

// MostApart is the largest relative distance (Distance) between a peer's own numbers and those that it accepts from
// another peer. Rounding on another processor differs by far less; beyond it one of the two peers is at fault.
const MostApart = 1e-4

// Distance is ‖x − y‖ over the larger of ‖x‖ and ‖y‖; 0 if both are 0.
func Distance(x, y []float32) float64 {
	var apart, xx, yy float64
	for i, v := range x {
		d := float64(v) - float64(y[i])
		apart, xx, yy = apart+d*d, xx+float64(v)*float64(v), yy+float64(y[i])*float64(y[i])
	}
	if apart == 0 {
		return 0
	}
	return math.Sqrt(apart / max(xx, yy))
}

// TakeOfMost replaces the weights, which every peer has computed by itself, by the first ones with the most frequent
// digest. It returns the rank from which they come (−1 = all digests are the same) and the largest Distance to this
// peer's weights. Weights that differ by more than MostApart are a *comm.PeerError of that rank.
func TakeOfMost(ctx context.Context, g *comm.Group, digests [][]byte,
	weights [][]float32) (from int, distance float64, err error) {
	most := 0
	for q := range digests {
		votes := 0
		for _, d := range digests {
			if bytes.Equal(d, digests[q]) {
				votes++
			}
		}
		if votes > most {
			from, most = q, votes
		}
	}
	if most == len(digests) {
		return -1, 0, nil
	}
	for _, own := range weights {
		fetched := slices.Clone(own)
		if err := g.Broadcast(ctx, comm.Control, from, fetched); err != nil {
			return from, distance, err
		}
		apart := Distance(fetched, own)
		if !(apart <= MostApart) {
			return from, apart, &comm.PeerError{Rank: from, Op: "weights", Err: fmt.Errorf("its solution differs "+
				"from this peer's by %.2g of its length, more than the %g that rounding explains: the memory of one "+
				"is at fault, or it sends false ones", apart, MostApart)}
		}
		distance = max(distance, apart)
		copy(own, fetched)
	}
	return from, distance, nil
}
