package pairs

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Groups are known pairs, each followed by Negatives drawn ones that are taken for none: 1+Negatives pairs a group.
type Groups struct {
	Pairs     []Pair
	Negatives int
}

// Len returns the number of groups.
func (g Groups) Len() int { return len(g.Pairs) / (1 + g.Negatives) }

// Loss returns the binary cross-entropy of scores, [P], summed over the groups: −ln σ(s₀) − Σ_k w·ln σ(−s_k), w = 1/Negatives.
// ds, unless it is nil, gets its gradient.
func (g Groups) Loss(ds, scores []float32) (loss float64) {
	n := 1 + g.Negatives
	if len(scores) != len(g.Pairs) || len(scores)%n != 0 {
		panic(fmt.Sprintf("pairs: there must be a score for each of %d pairs in groups of %d (got %d)", len(g.Pairs), n, len(scores)))
	}
	weight := 1 / float64(g.Negatives)
	for lo := 0; lo < len(scores); lo += n {
		of := scores[lo : lo+n]
		for k, v := range of {
			s, w := -float64(v), 1.0
			if k > 0 {
				s, w = -s, weight
			}
			small := math.Exp(-math.Abs(s)) // −ln σ(−s) = max(s, 0) + ln(1+e^−|s|)
			loss += float64(w * (max(s, 0) + math.Log1p(small)))
			if ds == nil {
				continue
			}
			p := 1 / (1 + small)
			if s < 0 {
				p = small / (1 + small)
			}
			if k == 0 {
				p = -p
			}
			ds[lo+k] = float32(w * p)
		}
	}
	return loss
}

// Learn returns the loss of groups of pairs of rows of z, and adds its gradient to dz, of z's shape, and to those of the
// parameters.
func (d *Decoder) Learn(dz, z mat.Dense, of Groups) (loss float64) {
	n := 1 + of.Negatives
	size := max(block/n, 1) * n
	memory := tape.New()
	ds, scores := make([]float32, min(size, len(of.Pairs))), make([]float32, min(size, len(of.Pairs)))
	for lo := 0; lo < len(of.Pairs); lo += size {
		memory.Reset()
		some := of
		some.Pairs = of.Pairs[lo:min(lo+size, len(of.Pairs))]
		s := scores[:len(some.Pairs)]
		d.forward(s, z, some.Pairs, memory)
		loss += some.Loss(ds[:len(s)], s)
		d.backward(dz, ds[:len(s)], z, some.Pairs, memory)
	}
	return loss
}
