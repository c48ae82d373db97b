package retexo

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// atRound returns a trainer of one peer at a round of the given stage, and that round's work.
func atRound(t testing.TB, c Config, g *graph.Graph, stage int) (*Trainer, work) {
	t.Helper()
	m, err := nn.New(c.Spec, rng.New(c.Seed).FoldString("init"))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(c, cut(t, g, "random", 1)[0], m)
	if err != nil {
		t.Fatal(err)
	}
	group := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
	tr.join(group, group)
	for {
		ready, ok := tr.machine.Ready()
		if !ok || ready.Work.Kind == doFinish {
			t.Fatal("no such round")
		}
		if ready.Work.Kind == doRound && ready.Work.Stage == stage {
			return tr, ready.Work
		}
		e, err := tr.do(context.Background(), ready.Work)
		if err := errors.Join(err, tr.machine.Step(e)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRoundsTakeNoMemory holds a round in steady state, with validation, to what counting a metric and reporting take:
// nothing that grows with nodes, edges or widths. (comm allocates beside it; there is one peer here.)
func TestRoundsTakeNoMemory(t *testing.T) {
	if raceDetector {
		t.Skip("SKIPPED: under the race detector memory is not measured")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the kernels' own buffers are given back to it
	for _, p := range everyPlan() {
		for _, local := range []int{1, 2} {
			g := toy{nodes: 1500, features: 64, sparse: p.Encoder == "raw"}.graph(t)
			p.Hidden = 64
			c := configOf(t, g, p)
			c.Rounds, c.LocalSteps = 2, local
			stages := []int{len(c.Spec.Layers)}
			if p.Encoder == "mlp" {
				stages = append(stages, 0)
			}
			for _, stage := range stages {
				tr, w := atRound(t, c, g, stage)
				cycle := func() {
					var e event
					if err := tr.round(context.Background(), w, &e); err != nil {
						t.Fatal(err)
					}
					tr.apply(work{Kind: doApply, Stage: stage, Keep: true})
				}
				cycle()
				cycle()
				const runs = 10
				n, size := math.Inf(1), math.Inf(1)
				for range 3 { // the least: a helper of the kernels' pool that starts or ends takes memory of its own
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					n = min(n, testing.AllocsPerRun(runs-1, cycle))
					runtime.ReadMemStats(&after)
					size = min(size, float64(after.TotalAlloc-before.TotalAlloc)/runs)
				}
				t.Logf("%s, stage %d, %d steps: %g allocations, %.0f bytes", p.name(), stage, local, n, size)
				if n > 8 || size > 2048 {
					t.Errorf("%s, stage %d, %d local steps: %g allocations of %.0f bytes a round", p.name(), stage,
						local, n, size)
				}
			}
		}
	}
}

// TestInferenceIsTheLayer holds what validates to the layer it stands for, dropout aside.
func TestInferenceIsTheLayer(t *testing.T) {
	for _, p := range everyPlan() {
		g := toy{sparse: p.Encoder == "raw"}.graph(t)
		c := configOf(t, g, p)
		for stage := range c.Stages() {
			if stage == 0 && p.Encoder != "mlp" {
				continue
			}
			tr, _ := atRound(t, c, g, stage)
			if err := tr.enter(stage); err != nil {
				t.Fatal(err)
			}
			st := tr.stage
			for _, b := range []batch{st.val, st.test, st.val} {
				_, want := st.rows(b.in, b.rows, nil)
				got := st.forward(b)
				for i, v := range got.Data {
					if math.Abs(float64(v-want.Data[i])) > 1e-6 {
						t.Fatalf("%s, stage %d: score %d is %v, want %v", p.name(), stage, i, v, want.Data[i])
					}
				}
			}
		}
	}
}

// BenchmarkRound is a round of the reference's own setting: Cora, 1433 raw columns, 256 hidden units, in memory.
func BenchmarkRound(b *testing.B) {
	g := cora(b)
	for _, peers := range []int{1, 4} {
		for _, eval := range []int{1, 1 << 20} {
			b.Run(map[int]string{1: "1peer",
				4: "4peers"}[peers]+map[bool]string{true: "/validated"}[eval == 1], func(b *testing.B) {
				c := config(b, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 256,
					Hops: 1, Dropout: 0.3})
				c.Rounds, c.EvalEvery = b.N+1, eval
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				b.ReportAllocs()
				_, err := runAll(ctx, c, cut(b, g, "random", peers), func(rank int, tr *Trainer) {
					on(tr, train.RoundEnd, func(info train.Event) {
						switch {
						case rank == 0 && info.Round == 0:
							b.ResetTimer()
						case rank == 0 && info.Round == b.N:
							b.StopTimer()
							cancel()
						}
					})
				})
				if !errors.Is(err, context.Canceled) {
					b.Fatal(err)
				}
			})
		}
	}
}
