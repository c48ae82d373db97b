package heddle

import (
	"fmt"
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// TestMovedLayers: if training nodes were sampled by class, the logits of trained layers move to the shares of the
// classes, alike for any number of peers and with secure sums. The predictions of all peers, and those of the model
// alone, have the accuracy that the result states.
func TestMovedLayers(t *testing.T) {
	for _, drawn := range []bool{false, true} {
		g := graphtest.Skewed(drawn)
		var one *Result
		run := func(settings string) *Result {
			p := read(t, "method: layer-wise\nmodel: gcn\nencoder: raw\nlayers: 1\nhidden: 8\nrounds: 60\nlr: 0.03\n"+
				"updates: float32\ntransport: memory\n"+settings)
			shards, err := Split(g, p)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Local{Plan: p, Shards: shards}.Train(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			right, all := 0, 0
			for q, s := range shards {
				d, err := disclosure.Of(p, s)
				if err != nil {
					t.Fatal(err)
				}
				if sent, most := r.Peers[q].Total(), d.Bytes; sent > most {
					t.Errorf("%s, drawn %v: peer %d sent %d bytes, must be at most %d", settings, drawn, q, sent, most)
				}
				for i := range s.Owned {
					if s.Split[i] != graph.Test {
						continue
					}
					row, first := r.Own[q].Logits.Row(i), one
					if all++; argMax(row) == int(s.Labels.Class[i]) {
						right++
					}
					if first == nil {
						continue
					}
					for k, v := range first.Own[0].Logits.Row(int(s.Global[i])) {
						if math.Abs(float64(v-row[k])) > 0.01 {
							t.Fatalf("%s, drawn %v: node %d has a logit of %g, must be %g", settings, drawn,
								s.Global[i], row[k], v)
						}
					}
				}
			}
			if got := float64(right) / float64(all); got != r.Test {
				t.Errorf("%s, drawn %v: the predictions of all peers have accuracy %.4f, must be %.4f", settings, drawn,
					got, r.Test)
			}
			alone, err := Predict(r.Model, g)
			if err != nil {
				t.Fatal(err)
			}
			right = 0
			for _, i := range g.InSplit(graph.Test) {
				if argMax(alone.Logits.Row(int(i))) == int(g.Labels.Class[i]) {
					right++
				}
			}
			if got := float64(right) / float64(all); math.Abs(got-r.Test) > 1e-3 {
				t.Errorf("%s, drawn %v: predictions of the model have accuracy %.4f, must be %.4f", settings, drawn,
					got, r.Test)
			}
			return r
		}
		before := run("peers: 1\nclass_weights: [0=1]")
		one = run("peers: 1")
		if one.Test < before.Test+0.02 {
			t.Errorf("drawn %v: accuracy is %.4f after the move, must be 2 points above %.4f", drawn, one.Test,
				before.Test)
		}
		for _, peers := range []int{2, 7} {
			run(fmt.Sprintf("peers: %d\nsecure_sums: off", peers))
		}
		run("peers: 7\nsecure_sums: on")
	}
}

// argMax returns the index of the largest number of row, the first of equals.
func argMax(row []float32) (at int) {
	for k, v := range row {
		if v > row[at] {
			at = k
		}
	}
	return at
}
