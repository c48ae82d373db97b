package retexo

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// These tests hold the trainer to what Kolluri, Choudhary, Hooi and Saxena (arXiv 2302.13053) and their implementation
// say of layer-wise training, claim by claim. Each runs over every kind of stage.

func eachPlan(t *testing.T, test func(t *testing.T, p Design, g *graph.Graph)) {
	for i, p := range everyPlan() {
		t.Run(p.name(), func(t *testing.T) { test(t, p, toy{sparse: i%2 == 0}.graph(t)) })
	}
}

// "Boundary rows cross the network once a layer" (and hop), before its rounds: while a stage trains, no frame leaves by
// the door of rows, and all that did before is one message to a peer for each exchange.
func TestRowsTravelOnceALayer(t *testing.T) {
	eachPlan(t, func(t *testing.T, p Design, g *graph.Graph) {
		c := configOf(t, g, p)
		shards := cut(t, g, "random", 3)
		all, transports := spies(3)
		_, errs := trainOver(context.Background(), func(int) Config { return c }, shards, transports, func(rank int,
			tr *Trainer) {
			last, seen := -1, int64(0)
			on(tr, train.RoundEnd, func(info train.Event) {
				now := all[rank].frames[comm.Halo].Load()
				if info.Stage != last {
					want := int64(2 * exchanges(tr.model, info.Stage))
					if c.Spec.Layers[max(info.Stage, 1)-1].Conv == "gcn" && info.Stage == 1 &&
						tr.shard.X.Sparse != nil && p.Encoder == "raw" {
						want *= 2 // degrees beside sparse rows
					}
					if now-seen != want { // to two peers; every message fits a frame
						t.Errorf("peer %d: %d messages of rows before stage %d, want %d", rank, now-seen, info.Stage,
							want)
					}
				} else if now != seen {
					t.Errorf("peer %d: rows travelled in stage %d, round %d", rank, info.Stage, info.Round)
				}
				last, seen = info.Stage, now
			})
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	})
}

// exchanges is how often rows travel before a stage trains.
func exchanges(m *nn.Model, stage int) int {
	switch {
	case stage == 0:
		return 0
	case m.Layers[stage-1].Frozen():
		return m.Spec.Layers[stage-1].Hops
	}
	return 1
}

// "After that only model updates travel": of a round all peers together send 2·(W−1) times |θ_k| floats and the counts
// by the door of updates, and by the others nothing but each one's statement and frame headers.
func TestRoundsSendOnlyUpdates(t *testing.T) {
	eachPlan(t, func(t *testing.T, p Design, g *graph.Graph) {
		c := configOf(t, g, p)
		const peers = 3
		r := mustTrain(t, c, cut(t, g, "random", peers), nil)
		for i := 1; i < len(r.result[0].Curve()); i++ {
			before, info := r.result[0].Curve()[i-1], r.result[0].Curve()[i]
			if before.Stage != info.Stage {
				continue
			}
			var halo, reduce, control int64
			for _, res := range r.result {
				a, b := res.Curve()[i-1].Sent, res.Curve()[i].Sent
				halo, reduce, control = halo+b.Halo-a.Halo, reduce+b.Reduce-a.Reduce, control+b.Control-a.Control
			}
			want := int64(2 * (peers - 1) * (4*parameters(c.Spec, info.Stage) + 2*5*8 + metricBytes(c.Spec.Classes)))
			// Update and counts each go to the one owner of short vectors and back; statements from each to each.
			small := int64(2*2*(peers-1)*comm.HeaderLen + peers*(peers-1)*(comm.HeaderLen+statementLen))
			if halo != 0 || reduce != want || control != small {
				t.Fatalf("stage %d, round %d: %d bytes of rows, %d of updates, %d of control; want 0, %d and %d",
					info.Stage, info.Round, halo, reduce, control, want, small)
			}
		}
	})
}

// "Earlier layers are frozen": once a stage has ended, nothing changes its parameters; and before a stage begins,
// nothing has changed them from their initial values.
func TestFinishedStagesStayFrozen(t *testing.T) {
	eachPlan(t, func(t *testing.T, p Design, g *graph.Graph) {
		c := configOf(t, g, p)
		mustTrain(t, c, cut(t, g, "random", 2), func(rank int, tr *Trainer) {
			fresh, err := nn.New(c.Spec, rng.New(c.Seed).FoldString("init"))
			if err != nil {
				t.Error(err)
				return
			}
			want := make([][]float32, c.Stages())
			for k := range want {
				want[k] = values(stageParams(fresh, k))
			}
			on(tr, train.StageEnd,
				func(info train.Event) { want[info.Stage] = values(stageParams(tr.model, info.Stage)) })
			on(tr, train.RoundEnd, func(info train.Event) {
				for k := range want {
					if k == 0 && p.Encoder == "pca" {
						continue // found, not trained: in one piece before stage 1
					}
					if got := values(stageParams(tr.model, k)); k != info.Stage && !equalBits(got, want[k]) {
						t.Errorf("peer %d: training stage %d changed stage %d", rank, info.Stage, k)
					}
				}
			})
		})
	})
}

// stageParams are the parameters of stage k that the finished model keeps.
func stageParams(m *nn.Model, k int) []*tape.Param {
	prefix := "encoder."
	if k > 0 {
		prefix = fmt.Sprintf("layer%d.", k)
	}
	var all []*tape.Param
	for _, p := range m.Params() {
		if strings.HasPrefix(p.Name, prefix) {
			all = append(all, p)
		}
	}
	return all
}

func values(params []*tape.Param) (all []float32) {
	for _, p := range params {
		all = append(all, p.Value.Data...)
	}
	return all
}

func equalBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// "Aggregation of a frozen input is a constant": from its first round to its end a stage touches no edge, so that a run
// whose edges are scribbled over in the last stage's rounds ends with the same bits. Attention alone aggregates anew.
func TestFrozenAggregateIsComputedOnce(t *testing.T) {
	eachPlan(t, func(t *testing.T, p Design, g *graph.Graph) {
		c := configOf(t, g, p)
		want := mustTrain(t, c, cut(t, g, "random", 2), nil)
		aggregates := !(p.Model == "gat" || p.Model == "gatv2" || p.Model == "sage-pool")
		got := mustTrain(t, c, cut(t, g, "random", 2), func(rank int, tr *Trainer) {
			on(tr, train.RoundEnd, func(info train.Event) {
				if info.Stage == 0 {
					return
				}
				if once := tr.stage.train.in.G == nil; once != aggregates {
					t.Errorf("stage %d: the aggregate is computed once: %t, want %t", info.Stage, once, aggregates)
				}
				if aggregates && info.Stage == len(c.Spec.Layers) {
					clear(tr.shard.Adj.Col)
					clear(tr.shard.Adj.RowPtr)
				}
			})
		})
		sameModels(t, []*nn.Model{want.models[0], got.models[0]})
	})
}

// "Heads are thrown away" where hidden rows travel, but for that of the last stage, and kept where class scores do;
// what remains is the whole model: on the whole graph it has the accuracy that the run reported, to the last bit of it.
func TestModelIsWhatWasReported(t *testing.T) {
	eachPlan(t, func(t *testing.T, p Design, g *graph.Graph) {
		c := configOf(t, g, p)
		r := mustTrain(t, c, cut(t, g, "random", 3), nil)
		heads, early := 0, r.result[0].Ends < p.Layers
		for _, q := range r.models[0].Params() {
			if strings.Contains(q.Name, "head") {
				heads++
			}
		}
		if want := p.LayerOutput == "logits" || early; heads > 0 != want {
			t.Errorf("%d parameters of heads in a model whose layers put out %s", heads, p.LayerOutput)
		}
		scores, err := infer.Graph(r.models[0], g)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.Metric.Pooled(eval.Scored{Scores: scores, Labels: g.Labels, Rows: g.InSplit(graph.Test)}),
			r.result[0].Final().Test; got != want {
			t.Errorf("the model has test accuracy %v, the run reported %v", got, want)
		}
	})
}

// "What travels between stages is the hidden representation after norm and activation" or the class scores: the halo
// rows that stage 2 sees are what the first layer of the model puts out for those nodes on the whole graph.
func TestWhatTravels(t *testing.T) {
	for _, output := range []string{"hidden", "logits"} {
		g := toy{}.graph(t)
		c := configOf(t, g, Design{Model: "sage", Encoder: "raw", LayerOutput: output, Layers: 2, Hidden: 8, Hops: 1})
		mustTrain(t, c, cut(t, g, "random", 3), func(rank int, tr *Trainer) {
			on(tr, train.RoundEnd, func(info train.Event) {
				if info.Stage != 2 || info.Round > 0 {
					return
				}
				first := nn.Spec{Task: "single", Features: c.Spec.Features, Classes: c.Spec.Classes,
					Encoder: c.Spec.Encoder, Layers: c.Spec.Layers[:1], LayerOutput: c.Spec.LayerOutput}
				if output == "hidden" {
					first.Classes = 8 // its hidden rows are what the truncated model puts out
				}
				m, err := nn.New(first, 1)
				if err != nil {
					t.Error(err)
					return
				}
				for i, q := range m.Params() {
					q.Value.CopyFrom(tr.model.Params()[i].Value)
				}
				want, err := infer.Graph(m, g)
				if err != nil {
					t.Error(err)
					return
				}
				for k, node := range tr.shard.Global {
					for j, v := range tr.full.src.Dense.Row(k) {
						if w := want.At(int(node), j); math.Abs(float64(v-w)) > 1e-5*(1+math.Abs(float64(w))) {
							t.Errorf("layer output %s: peer %d, node %d, column %d: %v travelled, want %v", output,
								rank, node, j, v, w)
							return
						}
					}
				}
			})
		})
	}
}

// "Best validation accuracy per stage": the parameters that a stage ends with are those of the round that validated
// best, the loss deciding among equals.
func TestBestStateIsTaken(t *testing.T) {
	total := 0
	eachPlan(t, func(t *testing.T, p Design, g *graph.Graph) {
		c := configOf(t, g, p)
		c.Rounds, c.Optimizer.LR = 25, 0.2 // too large: the last state is not the best one
		early := 0                         // states
		r := mustTrain(t, c, cut(t, g, "random", 2), func(rank int, tr *Trainer) {
			var at []train.Event
			var states [][]float32
			on(tr, train.RoundEnd, func(info train.Event) {
				if len(at) > 0 && at[0].Stage != info.Stage {
					at, states = nil, nil
				}
				at, states = append(at, info), append(states, values(stageParams(tr.model, info.Stage)))
			})
			on(tr, train.StageEnd, func(info train.Event) {
				best := 0
				for i, a := range at {
					if a.Val > at[best].Val || a.Val == at[best].Val && a.ValLoss < at[best].ValLoss {
						best = i
					}
				}
				if info.BestRound == c.Rounds { // the last state, after the last round's step
					if info.Val < at[best].Val {
						t.Errorf("stage %d ends with validation metric %v, round %d had %v", info.Stage, info.Val, best,
							at[best].Val)
					}
					return
				}
				if rank == 0 {
					early++
				}
				if info.BestRound != best || info.Val != at[best].Val ||
					!equalBits(values(stageParams(tr.model, info.Stage)), states[best]) {
					t.Errorf("stage %d took round %d (%v), want the state of round %d (%v)", info.Stage, info.BestRound,
						info.Val, best, at[best].Val)
				}
			})
		})
		t.Logf("%d of %d stages ended with an earlier state than the last", early, len(r.result[0].Stages))
		total += early
	})
	if total < 5 {
		t.Errorf("%d stages ended with an earlier state than the last: the test shows nothing", total)
	}
}

// "Each peer's mean gradient × (its train nodes / all train nodes)": who holds the training nodes does not matter, be
// they spread out, all with one peer, or with all but one.
func TestUpdatesAreWeightedByTrainingNodes(t *testing.T) {
	eachPlan(t, func(t *testing.T, p Design, g *graph.Graph) {
		c := configOf(t, g, p)
		c.Optimizer = sgd // Adam makes much of the rounding of gradients near zero
		want := mustTrain(t, c, cut(t, g, "random", 1), nil).result[0].Curve()
		owner := func(of func(i int) int32) []*shard.Shard {
			all := make([]int32, g.N())
			for i := range all {
				all[i] = of(i)
			}
			shards, err := shard.Cut(g, all, 3)
			if err != nil {
				t.Fatal(err)
			}
			return shards
		}
		for name, shards := range map[string][]*shard.Shard{
			"spread out": cut(t, g, "random", 3),
			"with one peer": owner(func(i int) int32 {
				if g.Split[i] == graph.Train {
					return 1
				}
				return int32(i % 3)
			}),
			"with all but one": owner(func(i int) int32 {
				if g.Split[i] == graph.Train {
					return int32(1 + i%2)
				}
				return int32(i % 3)
			}),
			"a peer without nodes": owner(func(i int) int32 { return int32(i % 2) }),
		} {
			got := mustTrain(t, c, shards, nil)
			sameCurve(t, name, want, got.result[0].Curve(), 1e-4)
		}
	})
}

var sgd = optim.Config{Name: "sgd", LR: 0.1, Momentum: 0.9, Decay: 5e-4}

// "Raw features never leave" where stage 0 is an encoder: nothing travels by the door of rows until it is done, and
// then rows as wide as what it puts out, C class scores, H hidden units or K components.
func TestRawFeaturesStayHome(t *testing.T) {
	g := toy{features: 40}.graph(t)
	for _, test := range []struct {
		encoder, output string
		width           int
	}{{"mlp", "hidden", 8}, {"mlp", "logits", 3}, {"pca", "hidden", 5}, {"pca", "logits", 5}} {
		t.Run(test.encoder+"-"+test.output, func(t *testing.T) {
			c := configOf(t, g, Design{Model: "gcn", Encoder: test.encoder, Components: 5, LayerOutput: test.output,
				Layers: 1, Hidden: 8, Hops: 2})
			shards := cut(t, g, "random", 3)
			all, transports := spies(3)
			for rank, s := range all {
				s.see = func(to int, door comm.Door, payload []byte) {
					if door == comm.Halo && len(payload) != 4*test.width*len(shards[rank].Boundary[to]) {
						t.Errorf("%d bytes of rows from %d to %d, want %d rows of %d columns", len(payload), rank, to,
							len(shards[rank].Boundary[to]), test.width)
					}
				}
			}
			r, errs := trainOver(context.Background(), func(int) Config { return c }, shards, transports, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for _, info := range r.result[0].Curve() {
				if info.Stage == 0 && info.Sent.Halo > 0 {
					t.Fatalf("%d bytes of rows had travelled in stage 0", info.Sent.Halo)
				}
			}
		})
	}
}
