package classmeans

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
)

// TestRealGraphs holds accuracy and bytes of four real graphs to bounds: at least so much of the test
// nodes with at most so many bytes of all peers.
func TestRealGraphs(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	for _, test := range []struct {
		name  string
		set   func(*Config)
		least float64
		most  float64 // MB
	}{
		{"cora", func(*Config) {}, 0.82, 1.1},
		{"citeseer", func(*Config) {}, 0.705, 1.3},
		{"github-web-ml", func(c *Config) { c.ClassRounds, c.Random = 3, 0 }, 0.866, 2.2},
		{"facebook-pages", func(*Config) {}, 0.94, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.name == "facebook-pages" { // has 22,470 nodes
				testenv.OnlyLong(t)
			}
			g, err := dataset.Read(testenv.DataDir(t, test.name), 0)
			if err != nil {
				t.Fatal(err)
			}
			c := narrowed(g)
			c.Lambdas = Lambdas()
			test.set(&c)
			r := mustRun(t, c, cut(t, g, 4), options{})
			if v := r.trainers[0].Result().Final(); v.Test < test.least {
				t.Errorf("test accuracy %.4f, want at least %g", v.Test, test.least)
			}
			if mb := float64(r.sent().Total()) / 1e6; mb > test.most {
				t.Errorf("%.3f MB were sent, want at most %g", mb, test.most)
			}
		})
	}
}

// TestRowsHideLabels: the largest number of a row that travels tells the class of a training node
// hardly better than that of a test node; with its own part of the means in, it tells nearly all of
// them.
func TestRowsHideLabels(t *testing.T) {
	for _, name := range []string{"cora", "citeseer"} {
		g, err := dataset.Read(testenv.DataDir(t, name), 0)
		if err != nil {
			t.Fatal(err)
		}
		r := mustRun(t, narrowed(g), cut(t, g, 4), options{})
		m := r.trainers[0].Model()
		x := m.Encoder.Input(g.X)
		read := func(out bool, of graph.Split) (right float64) {
			z := mat.New(g.N(), g.Labels.Classes)
			z.CopyFrom(closed.Times(x, m.Closed.Means[0].Value))
			if out {
				m.Closed.LeaveOwn(0, x, z, g.Labels.Rows(g.InSplit(graph.Train)))
			}
			nodes := g.InSplit(of)
			for _, i := range nodes {
				best, top := 0, math.Inf(-1)
				for k, v := range z.Row(int(i)) {
					if float64(v) > top {
						best, top = k, float64(v)
					}
				}
				if int32(best) == g.Labels.Class[i] {
					right += 100 / float64(len(nodes))
				}
			}
			return right
		}
		train, test, kept := read(true, graph.Train), read(true, graph.Test), read(false, graph.Train)
		t.Logf("%s: classes of training nodes %.0f %%, of test nodes %.0f %%; own part kept %.0f %%", name, train, test,
			kept)
		if train > test+10 {
			t.Errorf("%s: rows tell the class of %.0f %% of the training nodes, of test nodes %.0f %%", name, train,
				test)
		}
		if kept < 95 {
			t.Errorf("%s: with own parts in, rows tell the class of %.0f %% of the training nodes: "+
				"this test sees nothing", name, kept)
		}
	}
}
