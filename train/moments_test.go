package train

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
)

// priced is labelled with two columns of numbers instead of classes: one far from 0, one near it.
func priced(t *testing.T) *graph.Graph {
	t.Helper()
	g := labelled(t, false)
	class := g.Labels.Class
	g.Labels = graph.Labels{Classes: 2, Names: []string{"time", "share"}}
	for i, c := range class {
		row := []float32{float32(math.NaN()), float32(math.NaN())}
		if c >= 0 {
			row = []float32{float32(1.7e9 + 1e6*rng.New(1).Normal(uint64(i))),
				float32(-0.01 * rng.New(2).Float64(uint64(i)))}
		}
		g.Labels.Values = append(g.Labels.Values, row...)
	}
	return g
}

// TestUnits: mean and deviation of the training nodes are the same for any peers, are computed from the nodes that
// learn if some are held out, and make the targets that are learned standardised.
func TestUnits(t *testing.T) {
	for _, validation := range []bool{false, true} {
		g := priced(t)
		if validation {
			g.Split[200] = graph.Val
		}
		var one LabelCounts
		for _, peers := range []int{1, 2, 7} {
			held, counts := validating(t, g, peers, 4)
			if counts.Fault(g.Labels.Names) != nil || len(counts.Units) != 2 || counts.Classes[1] != counts.Labelled {
				t.Fatalf("%+v", counts)
			}
			if validation == (counts.HeldOut > 0) || !validation && int(counts.HeldOut) != len(held) {
				t.Errorf("%g of %v are held out", counts.HeldOut, held)
			}
			if peers == 1 {
				one = counts
			}
			for c, u := range counts.Units {
				mean, n := 0.0, 0.0
				learns := func(i int) bool {
					return g.Split[i] == graph.Train && g.Labels.Has(i) &&
						(validation || !slices.Contains(held, int64(i)))
				}
				for i := range g.N() {
					if learns(i) {
						mean, n = mean+float64(g.Labels.Values[2*i+c]), n+1
					}
				}
				mean /= n
				square := 0.0
				for i := range g.N() {
					if learns(i) {
						square += math.Pow(float64(g.Labels.Values[2*i+c])-mean, 2) / n
					}
				}
				if math.Abs(u.Mean-mean) > 1e-9*math.Abs(mean) || math.Abs(u.Deviation/math.Sqrt(square)-1) > 1e-6 ||
					counts.Labelled != n {
					t.Errorf("%d peers, column %d: %+v of %g nodes, must be %v and %v of %v", peers, c, u,
						counts.Labelled, mean, math.Sqrt(square), n)
				}
				if math.Abs(u.Mean-one.Units[c].Mean) > 1e-12*math.Abs(u.Mean) ||
					math.Abs(u.Deviation/one.Units[c].Deviation-1) > 1e-8 {
					t.Errorf("%d peers, column %d: %+v, with one peer %+v", peers, c, u, one.Units[c])
				}
			}
		}
	}
}

// TestUnitFaults: targets that all nodes share, or too small or large to be summed, are refused by name.
func TestUnitFaults(t *testing.T) {
	for text, value := range map[string]func(i int) float64{
		"target share must differ":               func(int) float64 { return 7 },
		"by more than 1e-05 (got a standard":     func(i int) float64 { return 1e-7 * float64(i%2) },
		"target share is too large to be summed": func(i int) float64 { return 1e20 * float64(i%2) },
	} {
		g := priced(t)
		for i := range g.N() {
			if g.Labels.Has(i) {
				g.Labels.Values[2*i+1] = float32(value(i))
			}
		}
		_, counts := validating(t, g, 2, 4)
		if err := counts.Fault(g.Labels.Names); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, must say %q", err, text)
		}
	}
}
