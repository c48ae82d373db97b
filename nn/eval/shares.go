package eval

import (
	"math"

	"github.com/heddle-gnn/heddle/mat"
)

// Shares moves the logits of a site's nodes to the shares that the classes have at the site. How frequent they are
// there is in its data, not in the model: h counts the classes of its labelled validation nodes, g the probabilities
// that logits give them.
type Shares struct {
	Scale       float64 `json:"scale"`       // ln(h/g) is multiplied by it
	Temperature float64 `json:"temperature"` // logits are divided by it for probabilities
}

// MostShares bounds both numbers: beyond it a site gives nearly all nodes its most frequent class.
const MostShares = 64

// Valid reports whether s can be made.
func (s Shares) Valid() bool {
	return s.Scale > 0 && s.Scale <= MostShares && s.Temperature > 0 && s.Temperature <= MostShares
}

// Apply moves the logits of a site's nodes. class is the class of each labelled validation node, −1 for all others.
// Such a node is moved as all others are: no logit depends on the node's own label. A site without such nodes keeps
// its logits, and so do all sites if s is nil.
func (s *Shares) Apply(logits mat.Dense, class []int32) {
	if s == nil {
		return
	}
	nodes, has, given := 0, make([]float64, logits.Cols), make([]float64, logits.Cols)
	soft, by := make([]float64, logits.Cols), make([]float64, logits.Cols)
	for i, c := range class {
		if c >= 0 {
			nodes++
			has[c]++
			Probabilities(soft, logits.Row(i), false, Temperatures{Shared: s.Temperature})
			for k, p := range soft {
				given[k] += p
			}
		}
	}
	if nodes == 0 {
		return
	}
	clear(soft)
	others := s.without(by, has, given, -1, soft)
	for i, c := range class {
		move := others
		if c >= 0 {
			Probabilities(soft, logits.Row(i), false, Temperatures{Shared: s.Temperature})
			move = s.without(by, has, given, c, soft)
		}
		for k, v := range move {
			logits.Row(i)[k] += v
		}
	}
}

// without returns the move without a node of class c, which has the given probabilities. by is overwritten.
func (s *Shares) without(by, has, given []float64, c int32, soft []float64) []float32 {
	for k := range by {
		h, g := has[k]+1, given[k]+1-soft[k] // one more node of each class, as a prior
		if k == int(c) {
			h--
		}
		by[k] = math.Log(h / g)
	}
	return Move(by, s.Scale)
}

// Move returns part of what moves the logits of each class, in units of 1/4096: what processors round apart is far
// less.
func Move(by []float64, part float64) []float32 {
	const grid = 1.0 / 4096
	to := make([]float32, len(by))
	for k, v := range by {
		to[k] = float32(grid * math.RoundToEven(part*v/grid))
	}
	return to
}
