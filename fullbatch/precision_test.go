package fullbatch

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/train/joint/jointtest"
)

// TestBF16 trains every kind of model in bfloat16: its loss stays close to that of float32, and is not the same; over 3
// workers it is that of one worker up to what rounding may turn, which a bfloat16 unit of a few values is; all workers
// end with the same bits, and so does another run with as many workers and other threads.
func TestBF16(t *testing.T) {
	g := toy(rng.New(2), 120, 70)
	for _, model := range []string{"gcn", "sage", "gat", "gin", "rgcn"} {
		t.Run(model, func(t *testing.T) {
			c := Defaults(models(70)[model])
			for k := range c.Spec.Layers {
				l := &c.Spec.Layers[k]
				l.Dropout, l.AttentionDropout = 0, 0
				if k > 0 {
					l.In = 72
				}
				if k+1 < len(c.Spec.Layers) {
					l.Out = 72
				}
			}
			c.Rounds, c.EvalEvery, c.Order, c.Optimizer.LR = 8, 4, "fixed", 1e-3
			of := g
			if model == "rgcn" {
				of = jointtest.Typed(g)
			}
			loss := func(tr *Trainer) float64 { return tr.Result().Curve()[c.Rounds-1].Loss }
			exact := trained(t, c, cut(t, of, "uneven", 1))[0]
			c.Precision = tape.BF16
			one := trained(t, c, cut(t, of, "uneven", 1))[0]
			several := trained(t, c, cut(t, of, "uneven", 3))
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			again := trained(t, c, cut(t, of, "uneven", 3))
			if a, b := loss(one), loss(exact); math.Abs(a-b) > 0.01*b || a == b {
				t.Errorf("loss is %g in bfloat16 and %g in float32, must differ by 1 %% at most", a, b)
			}
			if a, b := loss(several[1]), loss(one); math.Abs(a-b) > 5e-3*b {
				t.Errorf("loss is %g over 3 workers and %g over one, must differ by 0.5 %% at most", a, b)
			}
			for r, tr := range several {
				if !slices.Equal(tr.slab.Value, several[0].slab.Value) || !slices.Equal(tr.slab.Value, again[r].slab.Value) {
					t.Errorf("worker %d has other bits than worker 0 or than in another run", r)
				}
			}
		})
	}
}
