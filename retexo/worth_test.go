package retexo

import (
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// TestWorthOfTheLost measures what it costs to lose one of four sites for good, at a round of the second layer that is drawn:
// by how much the test accuracy over all nodes, also the lost site's, falls short of the undisturbed run's on the same
// data, and how much two undisturbed runs differ that have other seeds. HEDDLE_SEEDS says on how many data sets of 4,000 nodes.
func TestWorthOfTheLost(t *testing.T) {
	env := os.Getenv("HEDDLE_SEEDS")
	if env == "" {
		t.Skip("SKIPPED: a measurement; HEDDLE_SEEDS=20 runs it on 20 data sets")
	}
	for _, layers := range []int{2, 3} { // with the third, rows of the lost are wanted once more
		t.Run(fmt.Sprintf("%d layers", layers), func(t *testing.T) { worth(t, layers, integer(t, env)) })
	}
}

func worth(t *testing.T, layers, sets int) {
	differences := map[string][]float64{}
	for seed := range sets {
		g := dataset.Sites(dataset.SitesConfig{Nodes: 4000, Sites: 4, Classes: 4, Columns: 60, Train: 0.4, Val: 0.1}, rng.New(uint64(seed)))
		c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: layers, Hidden: 16, Hops: 1, Dropout: 0.3})
		c.Rounds, c.Optimizer.LR = 100, 0.01
		shards := cut(t, g, "by-column", 4)
		draw := rng.New(uint64(seed)).FoldString("worth")
		victim, round := int(draw.Uint64(1)%4), int(draw.Uint64(2)%100)
		accuracy := func(rows string, model uint64) float64 {
			c := c
			c.Seed = model
			if rows == "" {
				return rightOf(t, mustTrain(t, c, shards, nil).models[0], g)
			}
			c.Survival = recovery.Survival{MinPeers: 3, FailedRows: rows}
			all := trainersOf(t, c, shards)
			network := netsim.New(4, netsim.Config{})
			all[victim].busy = func(int) {
				if at := all[victim].machine.at; at.Stage == 2 && at.Round == round {
					network.Lose(victim)
				}
			}
			done := make(chan error)
			for r, tr := range all {
				go func() {
					group := comm.NewGroup(network.Transport(r), r, 4)
					err := group.Agree(t.Context(), []bool{true, true, true, true}, nil, 3, 0)
					if err == nil {
						err = tr.Run(t.Context(), group, group)
					}
					group.Close()
					done <- err
				}()
			}
			for range all {
				if _, lost := errors.AsType[*comm.PeerError](<-done); !lost {
					t.Fatal("want a PeerError of each")
				}
			}
			all[victim] = nil
			if err := errors.Join(together(t, all, 3, -1, nil)...); err != nil {
				t.Fatal(err)
			}
			return rightOf(t, all[(victim+1)%4].model, g)
		}
		undisturbed := accuracy("", 1)
		for name, other := range map[string]float64{"another seed": accuracy("", 2), "drop": accuracy("drop", 1), "previous": accuracy("previous", 1)} {
			differences[name] = append(differences[name], 100*(other-undisturbed))
		}
	}
	for name, d := range differences {
		mean, square, far := 0.0, 0.0, 0
		for _, x := range d {
			mean += x / float64(len(d))
			if x < -0.5 {
				far++
			}
		}
		for _, x := range d {
			square += (x - mean) * (x - mean)
		}
		sd := math.Sqrt(square / float64(len(d)-1))
		t.Logf("%s: %+.2f ± %.2f points (95 %%, mean of %d), standard deviation %.2f; %d more than 0.5 points worse", name, mean, 1.96*sd/math.Sqrt(float64(len(d))), len(d), sd, far)
	}
}

// rightOf is the share of g's test nodes whose class m finds.
func rightOf(t *testing.T, m *nn.Model, g *graph.Graph) float64 {
	t.Helper()
	scores, err := m.Infer(g)
	if err != nil {
		t.Fatal(err)
	}
	return eval.Metric("accuracy").Exact(scores, g.Labels, g.InSplit(graph.Test))
}
