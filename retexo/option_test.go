package retexo

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// TestSeveralLabels trains on nodes that have any number of classes: the same for any number of peers, better than
// giving every node no class or all of them, and as reported on the whole graph.
func TestSeveralLabels(t *testing.T) {
	for _, p := range []Design{
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 16, Hops: 1},
		{Model: "sage", Encoder: "mlp", LayerOutput: "logits", Layers: 1, Hidden: 16, Hops: 1},
		{Model: "gat", Encoder: "pca", Components: 8, LayerOutput: "hidden", Layers: 1, Hidden: 16, Heads: 2, Hops: 1},
	} {
		for _, metric := range []eval.Metric{"micro-f1", "auc"} {
			t.Run(p.name()+"-"+string(metric), func(t *testing.T) {
				g := toy{multi: true, nodes: 400, features: 24, classes: 4, degree: 5}.graph(t)
				c := configOf(t, g, p)
				c.Rounds, c.Optimizer = 80, optim.Config{Name: "sgd", LR: 0.3, Momentum: 0.9}
				c.EvalEvery = 1000 // the choice of a state among near equals would part the curves
				c.Metric = metric
				one, four := mustTrain(t, c, cut(t, g, "random", 1), nil), mustTrain(t, c, cut(t, g, "random", 4), nil)
				sameCurve(t, "4 peers", one.result[0].Curve(), four.result[0].Curve(), 1e-3)
				scores, err := infer.Graph(four.models[0], g)
				if err != nil {
					t.Fatal(err)
				}
				got, reported := c.Metric.Pooled(eval.Scored{Scores: scores, Labels: g.Labels,
					Rows: g.InSplit(graph.Test)}), four.result[0].Final().Test
				if math.Abs(got-reported) > map[eval.Metric]float64{"micro-f1": 0, "auc": 1e-3}[metric] {
					t.Errorf("the model has %v, the run reported %v", got, reported)
				}
				// all classes for everybody: 0.57, 0.5
				if least := map[eval.Metric]float64{"micro-f1": 0.62, "auc": 0.75}[metric]; reported < least {
					t.Errorf("%s %v on an easy graph, want %v at least", metric, reported, least)
				}
			})
		}
	}
}

// TestInductiveSeesNoHeldOutNode changes the features and the edges of all held-out nodes: no loss of training changes
// by a bit, in any stage. Nothing is validated, since that would choose states by held-out nodes, as it should.
func TestInductiveSeesNoHeldOutNode(t *testing.T) {
	for _, p := range everyPlan() {
		for _, parts := range []int{1, 3} {
			curve := func(inductive, changed bool) (losses []float64) {
				g := toy{}.graph(t)
				for i, s := range g.Split {
					if s == graph.Val {
						g.Split[i] = graph.None // takes part in message passing
					}
				}
				if changed {
					alter(t, g)
				}
				c := configOf(t, g, p)
				c.Inductive, c.Rounds = inductive, 4
				for _, info := range mustTrain(t, c, cut(t, g, "contiguous", parts), nil).result[0].Curve() {
					losses = append(losses, info.Loss)
				}
				return losses
			}
			if a, b := curve(true, false), curve(true, true); !slices.Equal(a, b) {
				t.Errorf("%s, %d parts: losses %v; after held-out nodes changed %v", p.name(), parts, a, b)
			}
			if a, b := curve(false, false), curve(false, true); slices.Equal(a, b) {
				t.Errorf("%s, %d parts: the change does not show in transductive training: the test shows nothing",
					p.name(), parts)
			}
		}
	}
}

// alter gives all test nodes other features and other neighbours.
func alter(t *testing.T, g *graph.Graph) {
	t.Helper()
	var src, dst []int32
	for i := range g.N() {
		if g.Split[i] == graph.Test {
			for j := range g.X.Dense.Row(i) {
				g.X.Dense.Row(i)[j] = float32((i*j)%7) - 3
			}
			src, dst = append(src, int32(i)), append(dst, int32((i+31)%g.N()))
			continue
		}
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			if g.Split[j] != graph.Test {
				src, dst = append(src, int32(i)), append(dst, j)
			}
		}
	}
	var err error
	if g.Adj, err = graph.FromEdges(g.N(), src, dst, nil, graph.Build{}); err != nil {
		t.Fatal(err)
	}
}

// TestLocalStepsAverage holds a round of several local steps to its definition, with peers of unlike size: the mean of
// the parameters that each peer reaches alone on its own training nodes, weighted by their number.
func TestLocalStepsAverage(t *testing.T) {
	for _, opt := range []optim.Config{{Name: "sgd", LR: 0.3}, sgd, {Name: "adam", LR: 0.05}} {
		for _, model := range []string{"gcn", "sage", "gat"} {
			g := toy{nodes: 60}.graph(t)
			owner := make([]int32, g.N())
			for i := range owner {
				owner[i] = int32(min(i%5, 2)) // a fifth, a fifth and three fifths
				if g.Split[i] != graph.Train {
					g.Split[i] = graph.None // no validation: the last state is taken
				}
			}
			shards, err := shard.Cut(g, owner, 3)
			if err != nil {
				t.Fatal(err)
			}
			p := Design{Model: model, Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1}
			if model == "gat" {
				p.Heads = 1
			}
			c := configOf(t, g, p)
			c.Optimizer, c.Seed = opt, nobodyValidates(t, g)
			const steps = 4

			var want []float64
			total := 0.0
			for rank := range 3 {
				alone := *g
				alone.Split = slices.Clone(g.Split)
				n := 0.0
				for i := range alone.Split {
					if int(owner[i]) != rank {
						alone.Split[i] = graph.None
					} else if alone.Split[i] == graph.Train {
						n++
					}
				}
				one := c
				one.Rounds = steps
				for k, v := range values(mustTrain(t, one, cut(t, &alone, "random", 1), nil).models[0].Params()) {
					if rank == 0 && k >= len(want) {
						want = append(want, 0)
					}
					want[k] += n * float64(v)
				}
				total += n
			}
			c.Rounds, c.LocalSteps = 1, steps
			for k, v := range values(mustTrain(t, c, shards, nil).models[0].Params()) {
				if w := want[k] / total; math.Abs(float64(v)-w) > 2e-5*(1+math.Abs(w)) {
					t.Fatalf("%s, %s: parameter %d is %v, want the weighted mean %v", opt.Name, model, k, v, w)
				}
			}
		}
	}
}

// nobodyValidates returns a seed that draws none of g's training nodes for validation.
func nobodyValidates(t *testing.T, g *graph.Graph) uint64 {
	t.Helper()
	for seed := range uint64(1000) {
		if counts, err := train.CountLabels(t.Context(), alone{}, comm.ReduceID{}, shard.Whole(g),
			train.Draw{Seed: seed}); err == nil && counts.HeldOut == 0 {
			return seed
		}
	}
	t.Fatal("every seed draws some node for validation")
	return 0
}

// TestLastRoundIsBest: a run in which a stage validated best after its last round says so once; a lower loss alone is
// not better.
func TestLastRoundIsBest(t *testing.T) {
	g := toy{}.graph(t)
	runs := map[int]int{}
	for rounds := 1; rounds <= 12; rounds++ {
		c := unmoved(configOf(t, g, Design{Model: "gcn", Encoder: "mlp", LayerOutput: "hidden", Layers: 2, Hidden: 8,
			Hops: 1}))
		c.Rounds = rounds
		said, want := 0, 0
		r := mustTrain(t, c, cut(t, g, "random", 2), func(rank int, tr *Trainer) {
			on(tr, train.Warning, func(e train.Event) {
				if rank == 0 && strings.Contains(e.Text, "the best round is the last") {
					said++
				}
			})
		})
		for _, s := range r.result[0].Stages {
			if !slices.ContainsFunc(s.Curve, func(p train.Point) bool { return p.Val >= s.Val }) {
				want = 1
			}
		}
		if runs[want]++; said != want {
			t.Errorf("%d rounds: said %d times, want %d", rounds, said, want)
		}
	}
	if len(runs) < 2 {
		t.Errorf("runs by what they say: %v, want some of each kind", runs)
	}
}

// TestPatience ends a stage at the first look at the validation nodes that finds the best state too many rounds back,
// never between two looks, and takes that best state.
func TestPatience(t *testing.T) {
	g := toy{}.graph(t)
	for _, test := range []struct{ patience, every int }{{1, 1}, {3, 1}, {3, 5}, {4, 2}} {
		c := configOf(t, g, Design{Model: "gcn", Encoder: "mlp", LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 1})
		c.Rounds, c.Optimizer.LR, c.Patience, c.EvalEvery = 60, 0.3, test.patience, test.every
		r := mustTrain(t, c, cut(t, g, "random", 2), nil).result[0]
		for _, stage := range r.Stages {
			best, bestAt := train.Point{Val: -1}, 0
			var last train.Point
			for _, info := range r.Curve() {
				if info.Stage != stage.Stage {
					continue
				}
				last = info
				if info.Round%test.every != 0 {
					if info.Val == info.Val {
						t.Errorf("%+v: round %d was validated", test, info.Round)
					}
					continue
				}
				if info.Val > best.Val || info.Val == best.Val && info.ValLoss < best.ValLoss {
					best, bestAt = info, info.Round
				} else if info.Round-bestAt >= test.patience {
					break
				}
			}
			if last.Round+1 == c.Rounds {
				t.Logf("%+v: stage %d ran all rounds", test, stage.Stage)
				continue
			}
			if last.Round%test.every != 0 || last.Round-bestAt < test.patience || stage.BestRound != bestAt ||
				stage.Val != best.Val {
				t.Errorf("%+v: stage %d ended after round %d, its best is round %d, taken was %d", test, stage.Stage,
					last.Round, bestAt, stage.BestRound)
			}
			count := 0
			for _, info := range r.Curve() {
				if info.Stage == stage.Stage {
					count++
				}
			}
			if count != last.Round+1 {
				t.Errorf("%+v: stage %d went on after patience had ended: %d rounds, want %d", test, stage.Stage, count,
					last.Round+1)
			}
		}
	}
}

// TestBalancedLoss holds the loss of a balanced run to Σ w(y)·ℓ / Σ w(y), w the inverse share of each class over the
// training nodes of all peers, computed here from the initial model on the whole graph.
func TestBalancedLoss(t *testing.T) {
	g := toy{nodes: 120}.graph(t)
	for i := range g.Split {
		if g.Labels.Class[i] == 2 && i%9 != 2 && g.Split[i] == graph.Train {
			g.Split[i] = graph.None // a rare class
		}
	}
	p := Design{Model: "sage", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1}
	for _, balanced := range []bool{false, true} {
		c := configOf(t, g, p)
		c.Balanced, c.Rounds = balanced, 1
		m, err := nn.New(c.Spec, rng.New(c.Seed).FoldString("init"))
		if err != nil {
			t.Fatal(err)
		}
		scores, err := infer.Graph(m, g)
		if err != nil {
			t.Fatal(err)
		}
		count, n := make([]float64, 3), 0.0
		for i, s := range g.Split {
			if s == graph.Train {
				count[g.Labels.Class[i]]++
				n++
			}
		}
		sum, weight := 0.0, 0.0
		for i, s := range g.Split {
			if s != graph.Train {
				continue
			}
			y, z := g.Labels.Class[i], 0.0
			for _, v := range scores.Row(i) {
				z += math.Exp(float64(v))
			}
			w := 1.0
			if balanced {
				w = n / (3 * count[y])
			}
			sum, weight = sum+w*(math.Log(z)-float64(scores.At(i, int(y)))), weight+w
		}
		for _, parts := range []int{1, 3} {
			if got := mustTrain(t, c, cut(t, g, "random", parts),
				nil).result[0].Curve()[0].Loss; math.Abs(got-sum/weight) > 1e-5 {
				t.Errorf("balanced %t, %d parts: loss %v, want %v", balanced, parts, got, sum/weight)
			}
		}
	}
}
