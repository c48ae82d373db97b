package retexo

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// run is what one training over K peers in memory left.
type run struct {
	models []*nn.Model
	result []train.Result
	bytes  comm.Counts // all peers together
}

func cut(t testing.TB, g *graph.Graph, policy string, parts int) []*shard.Shard {
	t.Helper()
	p, err := partition.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := p.Assign(g, parts, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	shards, err := shard.Cut(g, owner, parts)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

func cora(t testing.TB) *graph.Graph {
	t.Helper()
	g, err := dataset.Read(testenv.DataDir(t, "cora"), 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func config(t testing.TB, g *graph.Graph, p Design) Config {
	t.Helper()
	spec, err := p.Spec("single", g.X.Cols(), g.Labels.Classes)
	if err != nil {
		t.Fatal(err)
	}
	return Defaults(spec)
}

// TestCora is the reference's own setting (§4 of the paper: two convolutions, 256 hidden units, 200 rounds a layer).
func TestCora(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	g := cora(t)
	c := config(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 256, Hops: 1,
		Dropout: 0.3})
	r, err := runAll(context.Background(), c, cut(t, g, "random", 4), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.result[0].Stages {
		t.Logf("stage %d: best round %d, val %.4f, test %.4f", s.Stage, s.BestRound, s.Val, s.Test)
	}
	t.Logf("bytes %+v", r.bytes)
	if acc := r.result[0].Final().Test; acc < 0.77 {
		t.Errorf("test accuracy %.3f, want what the reference reaches", acc)
	}
}

// TestSameForAnyPeers holds the loss curve to 1e-4 for 1, 2, 4 and 7 peers and unlike partitions, of which the long
// form tries both with each number of peers.
func TestSameForAnyPeers(t *testing.T) {
	g, every := cora(t), testenv.LongForm(t)
	for _, p := range []Design{
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 32, Hops: 1, Dropout: 0.3},
		{Model: "sage", Encoder: "pca", Components: 32, LayerOutput: "hidden", Layers: 2, Hidden: 32, Hops: 2,
			Dropout: 0.3},
		{Model: "gat", Encoder: "pca", Components: 32, LayerOutput: "hidden", Layers: 2, Hidden: 32, Heads: 4, Hops: 1,
			Dropout: 0.3, AttentionDropout: 0.3},
		{Model: "sage", Encoder: "mlp", LayerOutput: "logits", Layers: 1, Hidden: 32, Hops: 1, Dropout: 0.3},
	} {
		t.Run(p.Model+"-"+p.Encoder, func(t *testing.T) {
			c := config(t, g, p)
			c.Rounds, c.Optimizer.LR = 15, 0.003 // larger steps carry the rounding of sums further
			peers, policies := []int{1, 2, 4, 7}, []string{"random", "contiguous"}
			if testing.Short() {
				c.Rounds, peers, policies = 10, []int{1, 7}, policies[:1]
			}
			var first []train.Point
			for k, parts := range peers {
				for l, policy := range policies {
					if parts == 1 && first != nil {
						continue // there is only one way to cut a graph into one part
					}
					if !every && len(policies) > 1 && ((k+l)%2 != 0 || parts == 4) {
						continue
					}
					r, err := runAll(context.Background(), c, cut(t, g, policy, parts), nil)
					if err != nil {
						t.Fatal(err)
					}
					sameModels(t, r.models)
					if first == nil {
						first = r.result[0].Curve()
						continue
					}
					sameCurve(t, fmt.Sprintf("%s, %d parts", policy, parts), first, r.result[0].Curve(), 1e-4)
				}
			}
		})
	}
}

func sameCurve(t *testing.T, what string, want, got []train.Point, bound float64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d rounds, want %d", what, len(got), len(want))
	}
	worst := 0.0
	for i := range want {
		worst = max(worst, math.Abs(got[i].Loss-want[i].Loss)/want[i].Loss)
	}
	if !(worst <= bound) {
		t.Errorf("%s: losses differ by %.2g relative, want at most %g", what, worst, bound)
	}
}

// sameModels fails unless all peers hold the same bits.
func sameModels(t *testing.T, models []*nn.Model) {
	t.Helper()
	for r, m := range models {
		for i, p := range m.Params() {
			for k, v := range p.Value.Data {
				if w := models[0].Params()[i].Value.Data[k]; math.Float32bits(v) != math.Float32bits(w) {
					t.Fatalf("peer %d: %s[%d] = %v, peer 0 has %v", r, p.Name, k, v, w)
				}
			}
		}
	}
}

// TestResume kills a run and resumes it: it ends with the same bits as a run that was never stopped. The long form
// trains on Cora.
func TestResume(t *testing.T) {
	g := toy{features: 24, sparse: true}.graph(t)
	if testenv.LongForm(t) {
		g = cora(t)
	}
	for _, p := range []Design{
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 16, Hops: 1, Dropout: 0.3},
		{Model: "gat", Encoder: "pca", Components: 16, LayerOutput: "hidden", Layers: 2, Hidden: 16, Heads: 2, Hops: 1,
			Dropout: 0.3},
		{Model: "sage", Encoder: "mlp", LayerOutput: "logits", Layers: 2, Hidden: 16, Hops: 2, Dropout: 0.3},
	} {
		for _, local := range []int{1, 3} {
			if testing.Short() && local > 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s-%s-%d", p.Model, p.Encoder, local), func(t *testing.T) {
				c := config(t, g, p)
				c.Rounds, c.Checkpoint, c.LocalSteps, c.Inductive = 12, 5, local, p.Model == "gcn"
				shards := cut(t, g, "random", 3)
				whole, err := runAll(context.Background(), c, shards, nil)
				if err != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				for _, stopAt := range []int{3, 7, 15, 22} { // rounds of all stages together
					ctx, cancel := context.WithCancel(context.Background())
					rounds := 0
					_, err := runAll(ctx, c, shards, func(rank int, tr *Trainer) {
						tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d-%d", dir, stopAt, rank)}
						if rank == 0 {
							on(tr, train.RoundEnd, func(_ train.Event) {
								if rounds++; rounds == stopAt {
									cancel()
								}
							})
						}
					})
					if err == nil {
						t.Fatal("the run was not stopped")
					}
					var restored *train.Event
					again, err := runAll(context.Background(), c, shards, func(rank int, tr *Trainer) {
						tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d-%d", dir, stopAt, rank)}
						if rank == 0 {
							on(tr, train.Restored, func(p train.Event) { restored = &p })
						}
					})
					if err != nil {
						t.Fatal(err)
					}
					if restored == nil {
						t.Error("the run began anew instead of going on")
					}
					sameModels(t, append([]*nn.Model{whole.models[0]}, again.models...))
					sameCurve(t, "all that was measured", whole.result[0].Curve(), again.result[0].Curve(), 0)
					for i, s := range again.result[0].Stages {
						w := whole.result[0].Stages[i]
						if s.Sent.Halo < w.Sent.Halo || s.Sent.Reduce < w.Sent.Reduce {
							t.Errorf("stage %d: %+v sent, before the stop and after it, without a stop %+v", s.Stage,
								s.Sent, w.Sent)
						}
						s.Sent, s.Curve, w.Curve = w.Sent, nil, nil
						if !reflect.DeepEqual(s, w) {
							t.Errorf("%+v, without a stop %+v", s, w)
						}
					}
					if len(again.result[0].Stages) != len(whole.result[0].Stages) {
						t.Errorf("%d stages were reported, want %d", len(again.result[0].Stages),
							len(whole.result[0].Stages))
					}
					cancel()
				}
			})
		}
	}
}
