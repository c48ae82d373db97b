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
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/train/traintest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// linkedToy returns a graph so dense that the halo of each of up to four parts is all nodes of the others: what is near
// is all.
func linkedToy() *graph.Graph {
	g := graphtest.Communities(50, 5, 30, 0.4, rng.New(1))
	g.X = graph.Features{Dense: mat.New(g.N(), 9)}
	for k := range g.X.Dense.Data {
		g.X.Dense.Data[k] = float32(rng.New(2).Normal(uint64(k)))
	}
	return g
}

func linkedParts(t *testing.T, g *graph.Graph, parts int) []*shard.Shard {
	t.Helper()
	if parts == 1 {
		return []*shard.Shard{shard.Whole(g)}
	}
	owner := make([]int32, g.N())
	for i := range owner {
		owner[i] = int32(rng.New(3).Uint64(uint64(i)) % uint64(parts))
	}
	all, err := shard.Cut(g, owner, parts)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// linkConfig returns the configuration of a small model of g.
func linkConfig(t *testing.T, model, decoder string, g *graph.Graph, set func(d *Design)) LinkConfig {
	t.Helper()
	d := Design{Model: model, Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 1, Dropout: 0.2}
	if set != nil {
		set(&d)
	}
	spec, err := d.Spec("links", g.X.Cols(), 8)
	if err != nil {
		t.Fatal(err)
	}
	traintest.Linked(&spec, decoder, "")
	return LinkConfig{
		Config: train.Config{Seed: 1, Spec: spec, Rounds: 10, EvalEvery: 3, Metric: "mrr",
			Optimizer: optim.Config{Name: "adam", LR: 0.02, Decay: 1e-3}, Schedule: optim.Schedule{Kind: "constant"},
			Exchange: "auto"},
		Links: train.LinkTask{HeldOut: [2]float64{0.1, 0.1}, Negatives: 2, Near: true}, PCAPasses: 1,
	}
}

func linkPeers(t *testing.T, c LinkConfig, shards []*shard.Shard,
	f func(tr *LinkTrainer, g *comm.Group) error) []*LinkTrainer {
	t.Helper()
	return traintest.Run(t, shards, func(s *shard.Shard) (*LinkTrainer, error) {
		m, err := c.NewModel()
		if err != nil {
			return nil, err
		}
		return NewLinks(c, s, m)
	}, f)
}

func linksTrained(t *testing.T, c LinkConfig, shards []*shard.Shard) []*LinkTrainer {
	t.Helper()
	return linkPeers(t, c, shards,
		func(tr *LinkTrainer, g *comm.Group) error { return tr.Run(context.Background(), g, g) })
}

// TestLinksAtPeersTrainOneModel: where all nodes are near, losses and ranks agree for 1, 2 and 4 peers; own rows are
// those that the model has on the whole graph, and so are the rows of the halo, which no peer was sent.
func TestLinksAtPeersTrainOneModel(t *testing.T) {
	g := linkedToy()
	for _, k := range []struct {
		name, model, decoder string
		g                    *graph.Graph
		set                  func(d *Design)
	}{
		{"gcn, dot", "gcn", "dot", g, nil},
		{"sage, mlp, sparse", "sage", "mlp", traintest.Sparsed(g), nil},
		{"gcn, distmult, two hops, components", "gcn", "distmult", g,
			func(d *Design) { d.Hops, d.Encoder, d.Components = 2, "pca", 4 }},
		{"gin, dot, residual", "gin", "dot", g, func(d *Design) { d.Residual = true }},
	} {
		t.Run(k.name, func(t *testing.T) {
			c := linkConfig(t, k.model, k.decoder, k.g, k.set)
			one := linksTrained(t, c, linkedParts(t, k.g, 1))[0]
			must := one.Result().Final()
			ranks, ok := one.Links[graph.Test]
			if n := len(must.Curve); n != 20 || !ok || ranks.All.Links == 0 ||
				!(must.Curve[9].Loss < must.Curve[0].Loss && must.Curve[19].Loss < must.Curve[10].Loss) {
				t.Fatalf("%d rounds, %d links are ranked (%t), losses are %+v", n, ranks.All.Links, ok, must.Curve)
			}
			whole, rows := one.shard, one.Logits()
			traintest.Run(t, []*shard.Shard{whole}, func(*shard.Shard) (int, error) { return 0, nil }, func(_ int,
				group *comm.Group) error {
				z, _, err := infer.Logits(t.Context(), infer.Config{Exchange: "halo", Layerwise: true}, one.Model,
					whole, group)
				if err != nil {
					return err
				}
				for i, v := range z.Data {
					if w := rows.Data[i]; math.Abs(float64(v-w)) > 1e-5*(1+math.Abs(float64(v))) {
						return fmt.Errorf("value %d of the rows is %v, must be %v, as predictions compute it", i, w, v)
					}
				}
				return nil
			})
			for _, parts := range []int{2, 4} {
				shards := linkedParts(t, k.g, parts)
				for r, s := range shards {
					if len(s.Global) != k.g.N() {
						t.Fatalf("%d nodes are near to peer %d of %d, must be all %d", len(s.Global), r, parts, k.g.N())
					}
				}
				for r, tr := range linksTrained(t, c, shards) {
					is := tr.Result().Final()
					for i, w := range must.Curve {
						if math.Abs(is.Curve[i].Loss-w.Loss) > 1e-4 {
							t.Errorf("peer %d of %d, round %d: the loss is %v, must be %v", r, parts, i,
								is.Curve[i].Loss, w.Loss)
						}
					}
					theirs := tr.Links[graph.Test]
					if theirs.All.Links != ranks.All.Links || math.Abs(theirs.All.MRR-ranks.All.MRR) > 1e-3 {
						t.Errorf("peer %d of %d: MRR is %v of %d links, must be %v of %d", r, parts, theirs.All.MRR,
							theirs.All.Links, ranks.All.MRR, ranks.All.Links)
					}
					for i, id := range tr.shard.Global {
						row := tr.Far()
						at := i - tr.shard.Owned
						if at < 0 {
							row, at = tr.Logits(), i
						}
						for col, v := range row.Row(at) {
							if w := rows.Row(int(id))[col]; math.Abs(float64(v-w)) > 1e-3*(1+math.Abs(float64(w))) {
								t.Fatalf("peer %d of %d: column %d of node %d is %v, must be %v", r, parts, col, id, v,
									w)
							}
						}
					}
				}
			}
		})
	}
}

// TestLinksRowsAreSentOnceALayer: more rounds send no more rows.
func TestLinksRowsAreSentOnceALayer(t *testing.T) {
	g := linkedToy()
	var sent []int64
	for _, rounds := range []int{2, 8} {
		c := linkConfig(t, "sage", "mlp", g, nil)
		c.Rounds = rounds
		sent = append(sent, linksTrained(t, c, linkedParts(t, g, 3))[1].Result().Sent.Halo)
	}
	if sent[0] != sent[1] || sent[0] == 0 {
		t.Errorf("2 rounds send %d bytes of rows and 8 rounds %d, must be the same", sent[0], sent[1])
	}
}

// TestLinksInterrupted: a run that is cut off in its second layer and goes on, one peer without its checkpoints, ends
// with the same bits as one that was not.
func TestLinksInterrupted(t *testing.T) {
	g := linkedToy()
	c := linkConfig(t, "gcn", "mlp", g, func(d *Design) { d.Encoder, d.Components = "pca", 4 })
	c.Checkpoint = 2
	shards := linkedParts(t, g, 3)
	whole := linksTrained(t, c, shards)[0]
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	store := func(tr *LinkTrainer, name string) {
		tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%s%d", dir, name, tr.shard.Rank)}
	}
	linkPeers(t, c, shards, func(tr *LinkTrainer, group *comm.Group) error {
		store(tr, "")
		tr.OnEvent = func(e train.Event) {
			if e.Kind == train.RoundEnd && e.Round == 15 && tr.shard.Rank == 1 {
				cancel()
			}
		}
		if tr.Run(ctx, group, group) == nil {
			return errors.New("it was not interrupted")
		}
		return nil
	})
	for r, tr := range linkPeers(t, c, shards, func(tr *LinkTrainer, group *comm.Group) error {
		store(tr, map[bool]string{true: "new"}[tr.shard.Rank == 2])
		return tr.Run(context.Background(), group, group)
	}) {
		if is, must := tr.Result().Final(), whole.Result().Final(); !slices.Equal(tr.Params.Value,
			whole.Params.Value) || is.Test != must.Test || len(is.Curve) != len(must.Curve) {
			t.Errorf("peer %d has another model or result: %+v, must be %+v", r, is, must)
		}
	}
	m, err := c.NewModel()
	if err != nil {
		t.Fatal(err)
	}
	again, err := NewLinks(c, shards[0], m)
	if err != nil {
		t.Fatal(err)
	}
	store(again, "")
	if done, err := again.Resume(again); err != nil || !done || again.Logits().Rows != shards[0].Owned {
		t.Errorf("a final model is not taken up: %t, %v", done, err)
	}
}

// TestLinksRefused: what cannot be trained layer by layer is named.
func TestLinksRefused(t *testing.T) {
	g := linkedToy()
	for must, set := range map[string]func(c *LinkConfig){
		"negatives_from must be near":              func(c *LinkConfig) { c.Links.Near = false },
		"encoder must be raw or pca":               func(c *LinkConfig) { c.Spec.Encoder.Kind = "mlp" },
		"model must be gcn, sage, sage-sum or gin": func(c *LinkConfig) { c.Spec.Layers[1].Conv = "gat" },
		"exchange must be halo or auto":            func(c *LinkConfig) { c.Exchange = "cover" },
		"pca_passes must be at least 1":            func(c *LinkConfig) { c.Spec.Encoder.Kind, c.PCAPasses = "pca", 0 },
		"inductive must be false":                  func(c *LinkConfig) { c.Inductive = true },
		"layers must be at least 1":                func(c *LinkConfig) { c.Spec.Layers = nil },
		"layer_output must be hidden":              func(c *LinkConfig) { c.Spec.LayerOutput = "logits" },
		"sums must be auto, int16, int8":           func(c *LinkConfig) { c.Sums = "int3" },
		"links and a decoder must be given ":       func(c *LinkConfig) { c.Spec.Decoder = nil },
	} {
		c := linkConfig(t, "sage", "dot", g, nil)
		c.Spec.Layers = slices.Clone(c.Spec.Layers)
		set(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), must) {
			t.Errorf("the error is %v, must contain %q", err, must)
		}
	}
	bare := *g
	bare.X = graph.Features{}
	numbered := bare.Numbered()
	c := linkConfig(t, "sage", "dot", numbered, nil)
	m, err := c.NewModel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewLinks(c, linkedParts(t, numbered, 2)[0], m); err == nil ||
		!strings.Contains(err.Error(), "must have features") {
		t.Errorf("the error is %v, must say that nodes must have features", err)
	}
}
