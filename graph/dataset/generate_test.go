package dataset

import (
	"encoding/binary"
	"flag"
	"hash/fnv"
	"math"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

func TestSites(t *testing.T) {
	c := SitesConfig{}.withDefaults()
	for seed := range uint64(3) {
		g := Sites(SitesConfig{}, rng.New(seed))
		if err := g.Valid(); err != nil {
			t.Fatal(err)
		}
		near := func(what string, got, want, tolerance float64) {
			t.Helper()
			if math.Abs(got-want) > tolerance {
				t.Errorf("seed %d: %s is %.4g, want %.4g ± %g", seed, what, got, want, tolerance)
			}
		}
		n := float64(g.N())
		alike, cross, most := 0, 0, 0
		for i := range g.N() {
			col, _ := g.Adj.Row(i)
			most = max(most, len(col))
			for _, j := range col {
				if g.Labels.Class[i] == g.Labels.Class[j] {
					alike++
				}
				if g.Site[i] != g.Site[j] {
					cross++
				}
			}
		}
		e := float64(g.Adj.NumEdges())
		near("mean degree", e/n, c.Degree, 0.8)
		near("homophily", float64(alike)/e, homophily, 0.02)
		near("share of cross-site edges", float64(cross)/e, crossing, 0.02)
		near("mean words", float64(g.X.Sparse.NNZ())/n, c.Words, 1)
		if float64(most) < 15*c.Degree {
			t.Errorf("seed %d: largest degree %d: no heavy tail", seed, most)
		}
		mix, sizes, split := make([][]float64, c.Sites), make([]float64, c.Sites), [4]float64{}
		classes := make([]float64, c.Classes)
		for s := range mix {
			mix[s] = make([]float64, c.Classes)
		}
		for i, s := range g.Site {
			sizes[s]++
			mix[s][g.Labels.Class[i]]++
			classes[g.Labels.Class[i]]++
			split[g.Split[i]]++
		}
		near("largest over smallest site", sizes[0]/sizes[c.Sites-1], 2, 0.02)
		near("train", split[graph.Train]/n, c.Train, 0.001)
		near("val", split[graph.Val]/n, c.Val, 0.001)
		near("test", split[graph.Test]/n, 1-c.Train-c.Val, 0.002)
		skew := 0.0 // mean total variation between a site's mix and everybody's
		for s := range mix {
			for k := range classes {
				skew += math.Abs(mix[s][k]/sizes[s]-classes[k]/n) / 2 / float64(c.Sites)
			}
		}
		near("distance of the sites' class mixes", skew, 0.25, 0.1)
		for k := range classes {
			near("share of a class", classes[k]/n, 1/float64(c.Classes), 0.07)
		}
	}
}

var sitesDir = flag.String("sites", "", "folder to write the graphs of TestSitesHonest to, for testdata/sites.py")

// TestSitesHonest checks with the simplest learner there is, nearest class mean, that structure
// matters, and that neither a site's own part nor the features alone are enough.
func TestSitesHonest(t *testing.T) {
	for seed := range uint64(2) {
		g := Sites(SitesConfig{}, rng.New(seed))
		if *sitesDir != "" {
			if err := Write(filepath.Join(*sitesDir, strconv.FormatUint(seed, 10)), g); err != nil {
				t.Fatal(err)
			}
		}
		all := func(i, j int32) bool { return true }
		own := func(i, j int32) bool { return g.Site[i] == g.Site[j] }
		x := g.X.Sparse.Dense()
		features := nearestMean(g, x, all)
		pooled := nearestMean(g, smooth(g, smooth(g, x, all), all), all)
		alone := nearestMean(g, smooth(g, smooth(g, x, own), own), own)
		t.Logf("seed %d: features %.3f, alone %.3f, pooled %.3f", seed, features, alone, pooled)
		if features < 0.4 || features > 0.7 || pooled < features+0.15 || pooled < alone+0.08 {
			t.Errorf("seed %d: features %.3f, alone %.3f, pooled %.3f", seed, features, alone, pooled)
		}
	}
}

// smooth returns the mean of each row and its neighbours' along the edges that see allows.
func smooth(g *graph.Graph, x mat.Dense, see func(i, j int32) bool) mat.Dense {
	y := x.Clone()
	for i := range g.N() {
		row, n := y.Row(i), float32(1)
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			if see(int32(i), j) {
				n++
				for k, v := range x.Row(int(j)) {
					row[k] += v
				}
			}
		}
		for k := range row {
			row[k] /= n
		}
	}
	return y
}

// nearestMean returns the test accuracy of choosing the class whose mean training row is nearest by
// angle. A node sees the training rows that see allows it; those of one site see the same.
func nearestMean(g *graph.Graph, x mat.Dense, see func(i, j int32) bool) float64 {
	right, tested := 0, 0
	type means [][]float64
	seen := map[int32]means{}
	for i, s := range g.Split {
		if s != graph.Test {
			continue
		}
		m := seen[g.Site[i]]
		if m == nil {
			m = make(means, g.Labels.Classes)
			for c := range m {
				m[c] = make([]float64, x.Cols)
			}
			for j, s := range g.Split {
				if s == graph.Train && see(int32(i), int32(j)) {
					for k, v := range x.Row(j) {
						m[g.Labels.Class[j]][k] += float64(v)
					}
				}
			}
			for _, row := range m {
				norm := 1e-12
				for _, v := range row {
					norm += v * v
				}
				for k := range row {
					row[k] /= math.Sqrt(norm)
				}
			}
			seen[g.Site[i]] = m
		}
		best, most := 0, -1.0
		for c, row := range m {
			dot := 0.0
			for k, v := range x.Row(i) {
				dot += float64(v) * row[k]
			}
			if dot > most {
				best, most = c, dot
			}
		}
		tested++
		if best == int(g.Labels.Class[i]) {
			right++
		}
	}
	return float64(right) / float64(tested)
}

// TestSitesFrozen holds the generator to the graph that it has always made: results are compared
// over years.
func TestSitesFrozen(t *testing.T) {
	g := Sites(SitesConfig{Nodes: 500}, rng.New(1))
	if again := Sites(SitesConfig{Nodes: 500}, rng.New(1)); !reflect.DeepEqual(again, g) {
		t.Error("the same key gave another graph")
	}
	if other := Sites(SitesConfig{Nodes: 500}, rng.New(2)); reflect.DeepEqual(other.Adj, g.Adj) {
		t.Error("another key gave the same graph")
	}
	h := fnv.New64a()
	for _, v := range []any{g.Adj.RowPtr, g.Adj.Col, g.X.Sparse.RowPtr, g.X.Sparse.Col, g.Labels.Class, g.Site,
		g.Split} {
		if err := binary.Write(h, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := h.Sum64(), uint64(0xc746c9e7dc65d8); got != want {
		t.Errorf("hash %#x, want %#x", got, want)
	}
}

func TestSitesConfig(t *testing.T) {
	graphtest.Refused(t, SitesConfig{Nodes: 30, Classes: 1, Columns: -3, Degree: -1, Words: -1, Train: 0.5,
		Val: 0.5}.Validate(),
		"sites: Nodes must be at least 10 a site, at most 2²⁸ (got 30)",
		"sites: Classes must be at least 2 (got 1)",
		"sites: Columns must be at least one a class (got -3)", "sites: Degree must be above 0, "+
			"below a quarter of Nodes (got -1)", "sites: Words must be above 0, below Columns (got -1)",
		"sites: Train, Val must be above 0, their sum below 1 (got [0.5 0.5])")
	for _, c := range []SitesConfig{{}, {Sites: 1}, {Nodes: 40, Degree: 3},
		{Sites: 50, Nodes: 500, Classes: 2, Columns: 30}} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		g := Sites(c, rng.New(7))
		if err := g.Valid(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
