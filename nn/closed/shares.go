package closed

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Move returns part of what moves the logits of each class, in units of 1/4096: what processors round apart is far less.
func Move(by []float64, part float64) []float32 {
	const grid = 1.0 / 4096
	to := make([]float32, len(by))
	for k, v := range by {
		to[k] = float32(grid * math.RoundToEven(part*v/grid))
	}
	return to
}

// MostSiteShares bounds Layout.SiteShares: with more, a site gives nearly all nodes its most frequent class.
const MostSiteShares = 64

// ToSiteShares adds to the logits of a site's nodes so many times the move from the shares that they give the classes at its
// labelled validation nodes to the shares that the classes have there (Layout.SiteShares). Of such a node its own label and
// logits are left out: no logit depends on the node's own label. A site without such nodes keeps its logits.
func ToSiteShares(times float64, labels graph.Labels, split []graph.Split, logits mat.Dense) {
	if times == 0 {
		return
	}
	classes := logits.Cols
	n, has, given := 0, make([]float64, classes), make([]float64, classes)
	soft := make([]float32, classes)
	validates := func(i int) bool { return i < len(split) && split[i] == graph.Val && labels.Has(i) }
	for i := range logits.Rows {
		if validates(i) {
			n++
			has[labels.Class[i]]++
			softmax(soft, logits.Row(i))
			for k, v := range soft {
				given[k] += float64(v)
			}
		}
	}
	if n == 0 {
		return
	}
	by := make([]float64, classes)
	// without returns the move without a node of class c and the given soft labels; −1: with all nodes.
	without := func(c int, soft []float32) []float32 {
		for k := range by {
			h, g := has[k]+1, given[k]+1 // one more node of each class, as a prior
			if c >= 0 {
				g -= float64(soft[k])
			}
			if k == c {
				h--
			}
			by[k] = math.Log(h/g) / Sharpness
		}
		return Move(by, times)
	}
	others := without(-1, nil)
	for i := range logits.Rows {
		move := others
		if validates(i) {
			softmax(soft, logits.Row(i))
			move = without(int(labels.Class[i]), soft)
		}
		for k, v := range move {
			logits.Row(i)[k] += v
		}
	}
}
