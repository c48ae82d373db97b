package retexo

import (
	"fmt"
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
)

// unevenToy is a graph whose first column of features is so small beside the others that every
// round rounds its weights' gradient to nothing.
func unevenToy(t *testing.T) *graph.Graph {
	g := toy{nodes: 60, features: 6}.graph(t)
	g.X.Dense = mat.Dense{Rows: g.X.Dense.Rows, Cols: 6, Stride: 6, Data: g.X.Dense.Clone().Data}
	for i := range g.X.Dense.Rows {
		g.X.Dense.Row(i)[0] *= 2e-3
	}
	return g
}

// moved returns how far the first layer's weights of the first feature and of the others went.
func moved(t *testing.T, g *graph.Graph, c Config) (first, others []float64) {
	m, err := c.NewModel()
	if err != nil {
		t.Fatal(err)
	}
	start := values(m.Layers[0].Params()[:1])
	for k, v := range values(mustTrain(t, c, cut(t, g, "random", 3), nil).models[0].Layers[0].Params()[:1]) {
		if d := float64(v) - float64(start[k]); k < c.Spec.Classes {
			first = append(first, d)
		} else {
			others = append(others, d)
		}
	}
	return first, others
}

// TestErrorFeedback: what rounding leaves out of an update is added to the next ones, so that
// parameters whose gradients are far below a step of the grid move as they do in float32.
func TestErrorFeedback(t *testing.T) {
	g := unevenToy(t)
	for i := range g.Split {
		if g.Split[i] == graph.Val {
			g.Split[i] = graph.None // no validation: the last state is taken
		}
	}
	for _, local := range []int{1, 4} {
		c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1})
		c.Optimizer, c.Rounds, c.LocalSteps = sgd, 60, local
		c.Optimizer.Momentum = 0
		want, wantOthers := moved(t, g, c)
		apart := func(got, want []float64) float64 {
			var d, n float64
			for k, v := range want {
				d, n = d+(v-got[k])*(v-got[k]), n+v*v
			}
			return math.Sqrt(d / n)
		}
		c.Updates = "int8"
		got, gotOthers := moved(t, g, c)
		if d := apart(got, want); !(d < 0.25) {
			t.Errorf("%d local steps: small weights must move as in float32, within a quarter (got %.3f)", local, d)
		}
		if d := apart(gotOthers, wantOthers); !(d < 0.02) {
			t.Errorf("%d local steps: large weights must move as in float32, within 2 %% (got %.3f)", local, d)
		}
		c.Updates = "int4" // weights a thousandth as large as others wait for longer than these rounds
		if _, gotOthers = moved(t, g, c); !(apart(gotOthers, wantOthers) < 0.06) {
			t.Errorf("%d local steps, int4: large weights must move as in float32, within 6 %% (got %.3f)", local,
				apart(gotOthers, wantOthers))
		}
	}
}

// TestResidualIsKept: a run that goes on from checkpoints ends with the bits of one that never
// stopped, residuals included, and refuses a checkpoint of another length.
func TestResidualIsKept(t *testing.T) {
	g := unevenToy(t)
	for local, updates := range map[int]string{1: "int8", 2: "int4", 3: "int8"} {
		for _, at := range []train.Position{{Stage: 1, Round: 0}, {Stage: 1, Round: 4}, {Stage: 2, Round: 5}} {
			t.Run(fmt.Sprintf("%d steps, stage %d, round %d", local, at.Stage, at.Round), func(t *testing.T) {
				c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 8,
					Hops: 1, Dropout: 0.3})
				c.LocalSteps, c.Updates, c.Checkpoint, c.Rounds = local, updates, 2, 8
				shards, dir := cut(t, g, "random", 3), t.TempDir()
				want := mustTrain(t, c, shards, nil)
				interrupted(t, c, shards, dir, at.Stage, at.Round)
				resumed := mustTrain(t, c, shards, stores(dir))
				sameModels(t, []*nn.Model{want.models[0], resumed.models[0]})
			})
		}
	}
}
