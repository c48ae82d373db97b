package shares

import "slices"

const (
	// shareSteps is how many steps of estimation are made, more than it takes.
	shareSteps = 200
	// leastPrior is how many nodes, as a part of those without a label, count at least as being of all classes alike.
	leastPrior = 0.1
	// priorNodes over the number of validation nodes of a class is that part for a model without mistakes.
	priorNodes = 2
	// leastTold is how well a model is taken to tell the classes apart at least.
	leastTold = 0.01
)

// prior returns how many nodes, as a part of those without a label, count as being of all classes alike. The shares are
// estimated from which classes the model mistakes for which, and few validation nodes tell that: the fewer they are, and the less
// the model tells the classes apart, the larger is the prior. told is 0 for a guess and 1 without mistakes.
func prior(confusion [][]float64) float64 {
	classes := float64(len(confusion))
	right, validating := 0.0, 0.0 // parts of a class, and nodes of one, means over the classes
	for k, row := range confusion {
		n := 0.0
		for _, v := range row {
			n += v
		}
		right += row[k] / max(n, 1) / classes
		validating += n / classes
	}
	told := (right - 1/classes) / (1 - 1/classes)
	return max(leastPrior, priorNodes/(max(validating, 1)*max(told, leastTold)))
}

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
	alike := prior(confusion)
	shares := slices.Repeat([]float64{1 / float64(classes)}, classes)
	for range shareSteps {
		next := slices.Repeat([]float64{alike * nodes / float64(classes)}, classes)
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
			next[k] /= (1 + alike) * max(nodes, 1)
		}
		if nodes > 0 {
			shares = next
		}
	}
	return shares
}
