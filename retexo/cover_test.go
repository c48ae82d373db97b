package retexo

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train"
)

// TestCoverIsRows holds what is trained by covers to what is trained by rows, over random graphs of every kind and 1 to
// 7 peers, and the bytes of rows to one row for each message of a least cover.
func TestCoverIsRows(t *testing.T) {
	plans := []Design{
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 1, Dropout: 0.3},
		{Model: "gcn", Encoder: "pca", Components: 4, LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 2},
		{Model: "sage", Encoder: "raw", LayerOutput: "logits", Layers: 2, Hidden: 8, Hops: 2, Residual: true},
		{Model: "gin", Encoder: "mlp", LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 1, Dropout: 0.3},
		{Model: "sage-pool", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 8, Hops: 1},
	}
	for i, p := range plans {
		for peers := 1 + i%2; peers <= 7; peers += 2 {
			o := toy{seed: uint64(i*7 + peers), degree: 2 + i%3, directed: peers%2 == 1, hasWeights: i%2 == 0,
				sparse: peers%3 == 0, values: i%2 == 1}
			t.Run(fmt.Sprintf("%s-%d", p.name(), peers), func(t *testing.T) {
				t.Parallel()
				g := o.graph(t)
				shards := cut(t, g, []string{"random", "contiguous", "fennel"}[peers%3], peers)
				c := configOf(t, g, p)
				c.Rounds, c.Exchange = 5, "halo"
				want := mustTrain(t, c, shards, nil)
				c.Exchange = "cover"
				got := mustTrain(t, c, shards, nil)
				sameCurve(t, "losses", want.result[0].Curve(), got.result[0].Curve(), 1e-4)
				if a, b := got.result[0].Final().TestLoss, want.result[0].Final().TestLoss; !(math.Abs(a-b) <= 1e-4*b) {
					t.Errorf("test loss %g, by rows %g", a, b)
				}
				if again := mustTrain(t, c, shards, nil); again.bytes != got.bytes ||
					train.Digest(again.models[0].Params()[0].Value.Data) != train.Digest(
						got.models[0].Params()[0].Value.Data) {
					t.Error("trained again it is not the same")
				}
				if o.sparse && p.Encoder == "raw" || p.Model == "sage-pool" {
					return // sums of sparse rows are fuller than they; a maximum takes rows
				}
				agreed, saved := covered(shards)
				bytes := int64(agreed)
				for _, l := range c.Spec.Layers {
					bytes -= int64(max(l.Hops, 1) * 4 * l.In * saved)
				}
				if got.bytes.Halo-want.bytes.Halo != bytes {
					t.Errorf("%d bytes of rows, by rows %d: want %d fewer", got.bytes.Halo, want.bytes.Halo, -bytes)
				}
			})
		}
	}
}

// covered is the bytes of agreeing on every cover that saves a message, and the messages that they save.
func covered(shards []*shard.Shard) (agreed, saved int) {
	for _, s := range shards {
		for q := range shards {
			c := shard.NewCover(s.From(&s.Adj, q))
			if n := s.HaloPtr[q+1] - s.HaloPtr[q] - c.Len(); n > 0 {
				agreed, saved = agreed+len(c.Append(nil)), saved+n
			}
		}
	}
	return agreed, saved
}

// hub is a graph in which every part has one node that has an edge from most nodes of the other: what a sum is for.
func hub(t *testing.T, o toy) (*graph.Graph, []*shard.Shard) {
	g := o.graph(t)
	n := g.N()
	var src, dst []int32
	owner := make([]int32, n)
	for i := range int32(n) {
		owner[i] = i % 2
		if i > 3 {
			src, dst = append(src, i, i), append(dst, 1-i%2, i%2)
		}
	}
	var err error
	if g.Adj, err = graph.FromEdges(n, src, dst, nil, graph.Build{Directed: true}); err != nil {
		t.Fatal(err)
	}
	shards, err := shard.Cut(g, owner, 2)
	if err != nil {
		t.Fatal(err)
	}
	return g, shards
}

// TestAutoWeighsBytes: auto agrees on covers where that takes fewer bytes, and on each exchange of sparse rows by what
// they and their sums take.
func TestAutoWeighsBytes(t *testing.T) {
	bytes := func(c Config, shards []*shard.Shard, how string) comm.Counts {
		c.Exchange = how
		return mustTrain(t, c, shards, nil).bytes
	}
	// One sum in place of some forty rows.
	g, shards := hub(t, toy{})
	wide := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1})
	if auto, cover, halo := bytes(wide, shards, "auto"), bytes(wide, shards, "cover"),
		bytes(wide, shards, "halo"); auto != cover || 10*auto.Halo > halo.Halo {
		t.Errorf("auto %d bytes, cover %d, halo %d: want those of cover, a tenth of halo", auto.Halo, cover.Halo,
			halo.Halo)
	}
	// Three nodes of 20 words each have edges into the same two: two sums of 60 words and their values in place of
	// three rows, which all have the same value.
	g = bags(t)
	shards, err := shard.Cut(g, []int32{0, 0, 0, 1, 1, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	agreed, _ := covered(shards)
	raw := configOf(t, g, Design{Model: "sage", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1})
	if auto, cover, halo := bytes(raw, shards, "auto"), bytes(raw, shards, "cover"),
		bytes(raw, shards, "halo"); auto.Halo != halo.Halo+int64(agreed) || cover.Halo < halo.Halo+100 {
		t.Errorf("bags of words: auto %d bytes, cover %d, halo %d: want auto to keep to rows, but for having agreed",
			auto.Halo, cover.Halo, halo.Halo)
	}
	// Validation nodes absent from training: two views, whose rows are the same.
	inductive := wide
	inductive.Inductive = true
	_, shards = hub(t, toy{})
	if auto, halo := bytes(inductive, shards, "auto"), bytes(inductive, shards, "halo"); auto != halo {
		t.Errorf("inductive: auto %v, halo %v", auto, halo)
	}
	inductive.Exchange = "cover"
	if err := inductive.Validate(); err == nil {
		t.Error("cover of two views is not refused")
	}
}

// bags is six nodes with features of 20 words: three have edges into the same two.
func bags(t *testing.T) *graph.Graph {
	g := &graph.Graph{Name: "bags", Labels: graph.Labels{Classes: 2, Class: []int32{0, 1, 0, 1, 0, 1}},
		Split: make([]graph.Split, 6)}
	for i := range g.Split {
		g.Split[i] = []graph.Split{graph.Train, graph.Val, graph.Test}[i%3]
	}
	x := mat.New(6, 120)
	for i := range 6 {
		for k := range 20 {
			x.Set(i, 20*i+k, 1)
		}
	}
	g.X = graph.Features{Sparse: sparseOf(x)}
	var err error
	if g.Adj, err = graph.FromEdges(6, []int32{0, 1, 2, 0, 1, 2}, []int32{3, 3, 3, 4, 4, 4}, nil,
		graph.Build{Directed: true}); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestCoverNamesTheLiar: a peer that answers nonsense where rows or sums are chosen is named.
func TestCoverNamesTheLiar(t *testing.T) {
	g, shards := hub(t, toy{sparse: true})
	c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1})
	c.Exchange = "auto"
	_, transports := spies(2)
	transports[1] = forger{transports[1]}
	_, errs := trainOver(context.Background(), func(int) Config { return c }, shards, transports, nil)
	if errs[0] == nil {
		t.Fatal("nobody noticed")
	}
	t.Log(errs[0])
}

// forger says 7 where a message is one byte long.
type forger struct{ comm.Transport }

func (f forger) Send(ctx context.Context, to int, head, body []byte) error {
	if len(body) == 1 {
		body = []byte{7}
	}
	return f.Transport.Send(ctx, to, head, body)
}
