package shares

import "slices"

const (
	// shareSteps is how many steps of estimation are made, more than it takes.
	shareSteps = 200
	// sharePrior is how many nodes, as a part of those without a label, count as being of all classes alike.
	sharePrior = 0.1
)

// shifted returns the most likely shares of the classes of nodes to which a model gave classes so many times, where
// confusion[k] is how many times it gave each class to nodes of class k: by expectation and maximisation, from equal shares.
func shifted(confusion [][]float64, given []float64) []float64 {
	classes, nodes := len(given), 0.0
	chance := make([][]float64, classes) // of each class given to a node of class k
	for k, row := range confusion {
		n := 0.5
		for _, v := range row {
			n += v
		}
		for _, v := range row {
			chance[k] = append(chance[k], (v+0.5/float64(classes))/n)
		}
		nodes += given[k]
	}
	shares := slices.Repeat([]float64{1 / float64(classes)}, classes)
	for range shareSteps {
		next := slices.Repeat([]float64{sharePrior * nodes / float64(classes)}, classes)
		for j, n := range given {
			sum := 0.0
			for k, q := range shares {
				sum += float64(q * chance[k][j])
			}
			for k, q := range shares {
				next[k] += float64(n * q * chance[k][j] / sum)
			}
		}
		for k := range next {
			next[k] /= (1 + sharePrior) * max(nodes, 1)
		}
		if nodes > 0 {
			shares = next
		}
	}
	return shares
}
