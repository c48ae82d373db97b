package closed

import (
	"math"

	"github.com/heddle-gnn/heddle/mat"
)

// Leads sums, over the given nodes of each class, by how much the column of a node's class in z exceeds the largest
// other one, and counts the nodes. class has the class of each node, or −1.
func Leads(z mat.Dense, class, nodes []int32) (sums []float32, counts []int64) {
	all := make([]float64, z.Cols)
	counts = make([]int64, z.Cols)
	for _, i := range nodes {
		own := class[i]
		if own < 0 {
			continue
		}
		next := math.Inf(-1)
		for c, v := range z.Row(int(i)) {
			if c != int(own) {
				next = max(next, float64(v))
			}
		}
		counts[own]++
		all[own] += float64(z.At(int(i), int(own))) - next
	}
	for _, v := range all {
		sums = append(sums, float32(v))
	}
	return sums, counts
}

// mostLead bounds what is subtracted from a training node's column, in its deviations. leadGrid is its unit, which is
// larger than the processors' differences in rounding.
const (
	mostLead = 4
	leadGrid = 1.0 / 256
)

// TrainLead returns by how much more training nodes lead than validation nodes of the same classes, at least 0. sums
// and counts are the Leads of both, training nodes first.
func TrainLead(sums []float32, counts []int64) float32 {
	above, nodes, k := 0.0, 0.0, len(sums)/2 // over training nodes of classes with validation nodes
	for c := range k {
		if train, val := float64(counts[c]), float64(counts[k+c]); val > 0 {
			above += float64(sums[c]) - float64(train*float64(sums[k+c])/val)
			nodes += train
		}
	}
	if nodes == 0 {
		return 0
	}
	return float32(math.RoundToEven(min(max(above/nodes, 0), mostLead)/leadGrid) * leadGrid)
}

// SetLead sets by how much training nodes lead in round r, and returns it.
func (m *Form) SetLead(r int, lead float32) float32 {
	for c := 0; m.Spec.TrainLead && c < m.Counts[r].Value.Cols; c++ {
		m.Counts[r].Value.Set(2, c, lead)
	}
	return lead
}

// Lead returns what is subtracted from the column of class c in round r for a node with weight w in it: only training
// nodes have weight 1. Nodes similar to a training node have soft labels like its own. A regression on this label
// computed them, so that the node's row still reveals the label after its own part is removed.
func (m *Form) Lead(r, c int, w float32) float32 {
	if !m.Spec.TrainLead || w != 1 {
		return 0
	}
	return m.Counts[r].Value.At(2, c)
}
