package optim

// descend is one step of gradient descent: w ← w − lr·(g + decay·w).
func descend(w, g []float32, lr, decay float32) {
	g = g[:len(w)]
	for i, wi := range w {
		w[i] = wi - float32(lr*(g[i]+float32(decay*wi)))
	}
}

// descendMomentum is one step with heavy-ball momentum (Polyak 1964; Sutskever et al., ICML 2013,
// as PyTorch scales it): m ← mu·m + (g + decay·w), w ← w − lr·m.
func descendMomentum(w, g, m []float32, lr, mu, decay float32) {
	g, m = g[:len(w)], m[:len(w)]
	for i, wi := range w {
		mi := float32(mu*m[i]) + (g[i] + float32(decay*wi))
		m[i] = mi
		w[i] = wi - float32(lr*mi)
	}
}
