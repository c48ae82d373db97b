package heddle

import (
	"math"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// staged is priced with five stages instead of the numbers: how many of four bounds a node's number exceeds.
func staged(t *testing.T, n int) *graph.Graph {
	t.Helper()
	g := priced(t, n, false)
	l := graph.Labels{Classes: 5, Names: []string{"none", "low", "some", "high", "all"}}
	for _, v := range g.Labels.Values {
		stage := int32(-1)
		if v == v {
			stage = 0
			for _, bound := range []float32{4500, 4850, 5100, 5500} {
				if v > bound {
					stage++
				}
			}
		}
		l.Class = append(l.Class, stage)
	}
	g.Labels = l
	return g
}

// TestOrderedClasses: every method learns classes in order, the figures are those of the predicted medians, and the
// model file predicts the same ranks. Predictions are fewer ranks off than the median class is.
func TestOrderedClasses(t *testing.T) {
	g := staged(t, 500)
	test := g.InSplit(graph.Test)
	for settings, most := range map[string]float64{
		"method: full-batch\npeers: 1\nmodel: sage\nrounds: 60\ndropout: 0\nmetric: rank-mae":                    0.5,
		"method: full-batch\nmodel: sage\nrounds: 60\ndropout: 0\nmetric: qwk":                                   0.5,
		"method: layer-wise\nmodel: sage\nencoder: raw\nrounds: 30\ndropout: 0\nmetric: rank-mae":                0.5,
		"method: mini-batch\nmodel: sage\nrounds: 8\nbatch_size: 64\nfanouts: [-1]\nlr: 0.005\nmetric: rank-mae": 0.6,
		"metric: rank-mae\nclass_rounds: 2":                                                                      0.9,
	} {
		t.Run(strings.ReplaceAll(settings, "\n", " "), func(t *testing.T) {
			t.Parallel()
			p := read(t, settings+"\ntransport: memory\npolicy: random")
			peers := 3
			if p.Peers == 1 {
				peers = 1
			}
			shards := dealt(t, g, peers)
			r, err := Local{Plan: p, Shards: shards}.Train(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all := byNode(r, shards, g.N())
			off, right := 0.0, 0.0
			for _, i := range test {
				d := math.Abs(float64(g.Labels.Class[i]) - float64(eval.Median(all.Row(int(i)))))
				if off += d / float64(len(test)); d == 0 {
					right += 1 / float64(len(test))
				}
			}
			f := r.Figures.Test
			if f.RankMAE == nil || f.QWK == nil {
				t.Fatalf("the figures of classes in order are %+v", f)
			}
			if math.Abs(float64(*f.RankMAE)-off) > 1e-9 || math.Abs(float64(f.Accuracy)-right) > 1e-9 {
				t.Errorf("the figures have %v ranks off and accuracy %v, must be %v and %v of the predictions",
					*f.RankMAE, f.Accuracy, off, right)
			}
			if want := map[eval.Metric]float64{"rank-mae": float64(*f.RankMAE),
				"qwk": float64(*f.QWK)}[r.Metric]; r.Test != want {
				t.Errorf("test %s is %v, must be that of the figures, %v", r.Metric, r.Test, want)
			}
			if !(off < most) || !(float64(*f.QWK) > 1-most) {
				t.Errorf("predictions are %v ranks off, kappa %v; must be below %v, and above %v", off, *f.QWK, most,
					1-most)
			}
			if !r.Card.Ordered || r.Own[0].Classes(0)[0] != eval.Median(r.Own[0].Logits.Row(0)) {
				t.Error("the model's card must say that classes are in order, and the median be predicted")
			}
			again, err := Predict(r.Model, g)
			if err != nil {
				t.Fatal(err)
			}
			if x, _, err := again.By(r.Card).Score("rank-mae", g); err != nil || math.Abs(x-off) > 0.02 {
				t.Errorf("the saved model is %v ranks off, must be %v (%v)", x, off, err)
			}
		})
	}
}

// TestOrderedRefused: what has no order, or no median, is refused by name.
func TestOrderedRefused(t *testing.T) {
	g := staged(t, 100)
	for settings, want := range map[string]string{
		"metric: qwk\nmethod: full-batch\npeers: 1\nthreshold: f1": "threshold must be empty",
	} {
		p := read(t, settings+"\ntransport: memory")
		if err := p.Check(dealt(t, g, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, must have %q", settings, err, want)
		}
	}
	p := read(t, "method: full-batch\npeers: 1\nmetric: qwk")
	if err := p.Check(dealt(t, priced(t, 100, false), 1)); err == nil ||
		!strings.Contains(err.Error(), "metric must be r2") {
		t.Errorf("metric qwk of numbers: the error is %v, must name the metric", err)
	}
}
