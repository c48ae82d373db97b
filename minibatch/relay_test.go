package minibatch

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/sample"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/rng"
)

// relayOf returns the relay of the first of two peers.
func relayOf(t *testing.T) *relay {
	t.Helper()
	g := toy(50)
	s := cut(t, g, 2)[0]
	d := &links.Directory{Peer: make([]uint16, 50), Local: make([]int32, 50)}
	for i := range d.Peer {
		d.Peer[i] = 1
	}
	for k, id := range s.Global[:s.Owned] {
		d.Peer[id], d.Local[id] = 0, int32(k)
	}
	d.Peer[49] = links.Nobody
	edges := sample.NewEdges(graph.Normalise(&s.Adj, nil, graph.Loops), s.Global, true, true)
	return &relay{shard: s, dir: d, hops: 2, edges: edges, builder: sample.NewBuilder(50, edges),
		sampler: sample.New(sample.Config{Kind: "neighbour", Fanouts: []int{2, 3}}, edges)}
}

// TestMessagesAreNotBelieved: whatever is cut off or out of bounds in what a peer sends is refused, and nothing panics.
func TestMessagesAreNotBelieved(t *testing.T) {
	r := relayOf(t)
	own := r.shard.Global[0]
	keys := []rng.Key{rng.New(1), rng.New(2)}
	request := appendIDs(appendIDs(nil, []int32{int32(own)}), nil)
	answer, err := r.serve(keys, 1, request)
	if err != nil {
		t.Fatal(err)
	}
	d, rest, err := r.readDrawn(answer, 1)
	if err != nil || len(rest) != 0 || len(d.Src) == 0 || len(d.Weight) != len(d.Src) || len(d.Loop) != 1 {
		t.Fatalf("%+v, %d bytes, %v", d, len(rest), err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, comm.ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range request {
		_, err := r.serve(keys, 1, request[:n])
		refused("request", err)
	}
	_, err = r.serve(keys, 1, append(request, 0))
	refused("a longer request", err)
	foreign := int32(0)
	for r.dir.Peer[foreign] != 1 {
		foreign++
	}
	_, err = r.serve(keys, 1, appendIDs(appendIDs(nil, []int32{foreign}), nil))
	refused("another peer's node", err)
	_, err = r.serve(keys, 1, appendIDs(appendIDs(nil, []int32{-1}), nil))
	refused("no node", err)
	for n := range answer {
		_, _, err := r.readDrawn(answer[:n], 1)
		refused("answer", err)
	}
	for at, b := range map[int][]byte{1: {49, 0, 0, 0}, len(answer) - 4: {0, 0, 0x80, 0x7f},
		len(answer) - 8: {0, 0, 0xc0, 0x7f}} {
		bad := append([]byte{}, answer...)
		copy(bad[at:], b)
		_, _, err := r.readDrawn(bad, 1)
		refused("a value", err)
	}
	_, _, err = r.readDrawn([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 1)
	refused("many edges", err)
}

// TestFailedPeer: the others name a peer whose connection ends in the midst of an epoch, and nothing hangs.
func TestFailedPeer(t *testing.T) {
	g := toy(160)
	c := of(t, "gcn", g)
	c.Rounds = 1000
	peers(t, c, cut(t, g, 3), func(tr *Trainer, group *comm.Group) error {
		steps := 0
		err := tr.Run(context.Background(), group,
			reducer(func(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
				if steps++; steps == 20 && tr.shard.Rank == 2 {
					group.Close()
				}
				return group.Reduce(ctx, c)
			}))
		at, ok := errors.AsType[*comm.PeerError](err)
		if tr.shard.Rank != 2 && (!ok || at.Rank != 2) {
			t.Errorf("peer %d: %v, must name peer 2", tr.shard.Rank, err)
		}
		if err == nil {
			t.Error("a run without a peer ended well")
		}
		return nil
	})
}

// TestValidate: all faults are reported, with their reasons.
func TestValidate(t *testing.T) {
	g := toy(50)
	good := of(t, "sage", g)
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, set := range map[string]func(c *Config){
		"batch_size must be at least 1": func(c *Config) { c.BatchSize = 0 },
		"group must be from 0":          func(c *Config) { c.Group = MostGroup + 1 },
		"for each of 2 layers (got 1)":  func(c *Config) { c.Sample.Fanouts = []int{3} },
		"norm must be none or layer": func(c *Config) {
			c.Spec.Layers[0].BatchNorm, c.Spec.Layers[0].Norm = true, false
		},
		"hops must be 1": func(c *Config) { c.Spec.Layers[0].Hops = 2 },
		"whose samples would be the whole": func(c *Config) {
			c.Spec.Layers[0].Conv, c.Spec.Layers[1].Conv = "appnp", "appnp"
		},
		"reads no edges":                     func(c *Config) { c.Spec.Layers[0].Conv = "mlp" },
		"must be of one convolution":         func(c *Config) { c.Spec.Layers[1].Conv = "gcn" },
		"encoder must be raw":                func(c *Config) { c.Spec.Encoder.Kind = "mlp" },
		"label_inputs must be 0":             func(c *Config) { c.Spec.Encoder.Labels = 0.5 },
		"fanouts must be -1 (all) or from 1": func(c *Config) { c.Sample.Fanouts = []int{0, 3} },
	} {
		c := of(t, "sage", g)
		set(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, must contain %q", err, want)
		}
	}
	for name, s := range map[string]func(s *shard.Shard){
		"must have 9 features": func(s *shard.Shard) { s.X.Dense.Cols = 4 },
	} {
		own := *shard.Whole(g)
		s(&own)
		m, err := good.NewModel()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(good, &own, m); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, must contain %q", err, name)
		}
	}
}

// TestDiverged: a loss that is not a number ends the run, and says what to do.
func TestDiverged(t *testing.T) {
	g := toy(50)
	g.X.Dense.Set(0, 0, float32(math.Inf(1)))
	c := of(t, "gcn", g)
	peers(t, c, cut(t, g, 1), func(tr *Trainer, group *comm.Group) error {
		if err := tr.Run(context.Background(), group, group); err == nil ||
			!strings.Contains(err.Error(), "lower the learning rate") {
			t.Errorf("%v, must say that training has diverged", err)
		}
		return nil
	})
}

// refusedBy fails unless err says that what that peer has sent is refused.
func refusedBy(t *testing.T, err error, peer int) {
	t.Helper()
	at, ok := errors.AsType[*comm.PeerError](err)
	if !ok || at.Rank != peer || !errors.Is(err, comm.ErrRefused) {
		t.Errorf("%v, must say that a message of peer %d is refused", err, peer)
	}
}
