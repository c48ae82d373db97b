package fullbatch

import (
	"context"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

func trainAlone(t testing.TB, c Config, s *shard.Shard) (*nn.Model, train.StageResult) {
	t.Helper()
	m, err := nn.New(c.Spec, rng.New(c.Seed).FoldString("init"))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(c, s, m)
	if err != nil {
		t.Fatal(err)
	}
	g := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
	defer g.Close()
	if err := tr.Run(context.Background(), g, g); err != nil {
		t.Fatal(err)
	}
	return m, tr.Result().Final()
}

// TestCora holds the published accuracies of the public split within what one seed varies.
func TestCora(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	g, err := dataset.Read(testenv.DataDir(t, "cora"), 0)
	if err != nil {
		t.Fatal(err)
	}
	s := shard.Whole(g)
	for _, k := range []struct {
		model  string
		hidden int
		lr     float32
		least  float64
	}{{"gcn", 16, 0.01, 0.80}, {"sage", 16, 0.01, 0.78}, {"gat", 64, 0.005, 0.80}} {
		t.Run(k.model, func(t *testing.T) {
			spec, err := nn.Preset(k.model, "single", g.X.Cols(), g.Labels.Classes, k.hidden, 2)
			if err != nil {
				t.Fatal(err)
			}
			c := Defaults(spec)
			c.Optimizer = optim.Config{Name: "adam", LR: k.lr, Decay: 5e-4}
			_, r := trainAlone(t, c, s)
			t.Logf("best epoch %d: val %.4f, test %.4f", r.BestRound, r.Val, r.Test)
			if r.Test < k.least {
				t.Errorf("test accuracy %.4f, want at least %.2f", r.Test, k.least)
			}
		})
	}
}
