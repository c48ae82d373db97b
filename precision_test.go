package heddle_test

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/train"
)

// TestPrecision trains in each mode over 2 peers in bfloat16: another loss than in float32, by little, and a model that is
// as good.
func TestPrecision(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 600}, rng.New(1))
	for _, mode := range []string{"fullbatch", "minibatch", "retexo"} {
		t.Run(mode, func(t *testing.T) {
			run := func(precision string) (loss, test float64) {
				p := heddle.Defaults(heddle.Plan{Mode: mode, Preset: map[bool]string{true: "retexo"}[mode == "retexo"]})
				p.Transport, p.Policy, p.Peers, p.Hidden, p.Rounds, p.Dropout, p.Precision = "memory", "random", 2, 64, 20, 0, precision
				r, err := heddle.Train(t.Context(), g, p)
				if err != nil {
					t.Fatal(err)
				}
				first := slices.IndexFunc(r.Stages, func(s train.StageResult) bool { return len(s.Curve) > 0 })
				curve := r.Stages[first].Curve // of later layers other rounds may be the best
				return curve[len(curve)-1].Loss, r.Test
			}
			loss, test := run("float32")
			half, halfTest := run("bf16")
			if half == loss || math.Abs(half-loss) > 0.1*loss {
				t.Errorf("loss is %g in bfloat16 and %g in float32, must differ by 10 %% at most", half, loss)
			}
			if math.Abs(halfTest-test) > 0.03 {
				t.Errorf("test accuracy is %g in bfloat16 and %g in float32, must differ by 0.03 at most", halfTest, test)
			}
		})
	}
}
