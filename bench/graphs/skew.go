package graphs

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
)

// leastNodes is the least number of nodes of a site with skewed labels: shares are sampled again until all sites have
// this many.
const leastNodes = 10

// Skewed returns g at sites whose labels differ: of each class, the sites' shares follow Dirichlet's distribution of
// parameter alpha (Hsu, Qi and Brown, arXiv 1909.06335). Nodes without a label count as one more class.
func Skewed(g *graph.Graph, sites int, alpha float64, seed uint64) *graph.Graph {
	key := rng.New(seed).FoldString("bench/skew")
	byClass := make([][]int32, g.Labels.Classes+1)
	for _, v := range key.FoldString("order").Perm(g.N()) {
		c := g.Labels.Class[v]
		if c < 0 {
			c = int32(g.Labels.Classes)
		}
		byClass[c] = append(byClass[c], v)
	}
	to := *g
	to.Site, to.Sites = make([]int32, g.N()), make([]string, sites)
	for s := range sites {
		to.Sites[s] = fmt.Sprintf("site %d", s)
	}
	for try := uint64(0); ; try++ {
		count := make([]int, sites)
		for c, nodes := range byClass {
			share := dirichlet(key.Fold(try).Fold(uint64(c)), sites, alpha)
			at, sum := 0, 0.0
			for s := range sites {
				sum += share[s]
				end := min(len(nodes), int(math.Round(sum*float64(len(nodes)))))
				if s == sites-1 {
					end = len(nodes)
				}
				for ; at < end; at++ {
					to.Site[nodes[at]] = int32(s)
					count[s]++
				}
			}
		}
		fewest := g.N()
		for _, n := range count {
			fewest = min(fewest, n)
		}
		if fewest >= min(leastNodes, g.N()/sites) {
			return &to
		}
	}
}

// dirichlet samples n shares, which sum to 1.
func dirichlet(key rng.Key, n int, alpha float64) []float64 {
	x, sum := make([]float64, n), 0.0
	for i := range x {
		x[i] = gamma(key.Fold(uint64(i)), alpha)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
	return x
}

// gamma samples from the gamma distribution of that shape and scale 1 (Marsaglia and Tsang, ACM TOMS 26, 2000).
func gamma(key rng.Key, shape float64) float64 {
	if shape < 1 {
		return gamma(key.FoldString("above 1"), shape+1) * math.Pow(1-key.Float64(0), 1/shape)
	}
	d := shape - 1.0/3
	for i := uint64(0); ; i++ {
		x, u := key.Fold(i).Normal(0), 1-key.Fold(i).FoldString("uniform").Float64(0)
		v := 1 + x/math.Sqrt(9*d)
		if v = v * v * v; v > 0 && math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
