package heddle

import (
	"context"
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// TestClipNormOfAllPeers: the gradient is clipped when it has been summed, so that any number of peers follows one curve,
// which is not that of training without a limit.
func TestClipNormOfAllPeers(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 200, Sites: 2, Classes: 3, Columns: 30, Train: 0.2, Val: 0.1}, rng.New(1))
	losses := func(mode string, peers int, clip float32) (all []float64) {
		p := Defaults(Plan{Mode: mode, Solver: "sgd"})
		p.Encoder, p.Dropout, p.Hidden, p.Rounds, p.LR, p.ClipNorm, p.Transport = Encoder{Kind: "raw"}, 0, 8, 10, 1, clip, "memory"
		if p.Peers = peers; mode == "retexo" {
			p.Layers = 1
		}
		r, err := Train(context.Background(), g, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range r.Curve() {
			all = append(all, q.Loss)
		}
		return all
	}
	for _, mode := range []string{"retexo", "fullbatch"} {
		one, three, free := losses(mode, 1, 0.05), losses(mode, 3, 0.05), losses(mode, 1, 0)
		far := 0.0
		for i := range one {
			if d := math.Abs(one[i] - three[i]); d > 1e-4*one[i] {
				t.Errorf("%s, round %d: loss %v of one peer, %v of three", mode, i, one[i], three[i])
			}
			far = max(far, math.Abs(one[i]-free[i]))
		}
		if far < 0.01 {
			t.Errorf("%s: losses %v with a limit, %v without", mode, one, free)
		}
	}
}
