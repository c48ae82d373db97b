package graphs

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
)

// rows is a graph of n nodes without edges; classes take turns, and all nodes train.
func rows(n, classes int) *graph.Graph {
	adj, err := graph.FromEdges(n, nil, nil, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	g := &graph.Graph{Name: "rows", Adj: adj, Split: make([]graph.Split, n),
		Labels: graph.Labels{Classes: classes, Class: make([]int32, n)}}
	for v := range n {
		g.Split[v], g.Labels.Class[v] = graph.Train, int32(v%classes)
	}
	return g
}

// Mean and variance of a gamma distribution are its shape; a Dirichlet share has mean 1/n and variance
// (n-1)/(n²(nα+1)).
func TestGammaAndDirichlet(t *testing.T) {
	const draws = 40000
	moments := func(draw func(rng.Key) float64) (mean, variance float64) {
		sum, squares := 0.0, 0.0
		for i := range draws {
			x := draw(rng.New(7).Fold(uint64(i)))
			sum, squares = sum+x, squares+x*x
		}
		mean = sum / draws
		return mean, squares/draws - mean*mean
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 0.05*want {
			t.Errorf("%s must be about %.4f (got %.4f)", what, want, got)
		}
	}
	for _, shape := range []float64{0.3, 1, 2.5} {
		mean, variance := moments(func(k rng.Key) float64 { return gamma(k, shape) })
		near("mean of gamma", mean, shape)
		near("variance of gamma", variance, shape)
	}
	mean, variance := moments(func(k rng.Key) float64 { return dirichlet(k, 4, 0.3)[2] })
	near("mean of a share", mean, 0.25)
	near("variance of a share", variance, 3.0/16/(4*0.3+1))
}

// Sites of skewed labels have all nodes between them, classes in unequal shares, and the same nodes
// for the same seed.
func TestSkewed(t *testing.T) {
	g := rows(4000, 5)
	a, b := Skewed(g, 4, 0.3, 1), Skewed(g, 4, 0.3, 1)
	if c := Skewed(g, 4, 0.3, 2); siteOf(a, 0, 100) == siteOf(c, 0, 100) {
		t.Error("another seed must give other sites")
	}
	if siteOf(a, 0, 4000) != siteOf(b, 0, 4000) {
		t.Error("the same seed must give the same sites")
	}
	if g.Site != nil || len(a.Sites) != 4 {
		t.Errorf("sites %q, of the graph given %v", a.Sites, g.Site)
	}
	spread := func(alpha float64) float64 { // of the shares of the classes at the sites
		var squares float64
		count := map[[2]int32]float64{}
		s := Skewed(g, 4, alpha, 1)
		for v := range g.N() {
			count[[2]int32{s.Site[v], g.Labels.Class[v]}]++
		}
		for _, n := range count {
			squares += n * n
		}
		return squares / (20 * 200 * 200) // 1 where all are the same
	}
	if skew, even := spread(0.3), spread(1000); even > 1.05 || skew < 1.3 {
		t.Errorf("shares spread by %.2f with 0.3, by %.2f with 1000", skew, even)
	}
}

func siteOf(g *graph.Graph, from, to int) (text string) {
	for _, s := range g.Site[from:to] {
		text += string(rune('a' + s))
	}
	return text
}
