package heddle

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// together computes predictions by r's model at all peers of this process.
func together(t *testing.T, r *Result, shards []*shard.Shard) ([]*infer.Answer, []comm.Counts) {
	t.Helper()
	_, config, err := disclosure.Inference(r.Plan, r.Model, r.Card)
	if err != nil {
		t.Fatal(err)
	}
	all, sent := make([]*infer.Answer, len(shards)), make([]comm.Counts, len(shards))
	err = disclosure.Groups(t.Context(), r.Plan, len(shards), func(ctx context.Context, g *comm.Group) (err error) {
		all[g.Rank()], err = infer.Run(ctx, config, r.Model, shards[g.Rank()], g, g)
		sent[g.Rank()] = g.Bytes()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, sent
}

// apart returns the largest difference of two matrices relative to the largest value, and the fraction of rows that
// differ by more than a hundred thousandth of it.
func apart(got, want mat.Dense) (most, rows float64) {
	largest := 1e-30
	for _, v := range want.Data {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i := range want.Rows {
		off := 0.0
		for k, v := range want.Row(i) {
			off = max(off, math.Abs(float64(v-got.At(i, k)))/largest)
		}
		if off > 1e-5 {
			rows++
		}
		most = max(most, off)
	}
	return most, rows / float64(max(1, want.Rows))
}

// TestInferenceRepeatsTraining: on the data of a run, its peers compute together with its model what each of them
// predicted at its end. These are the same bits if layers are trained one after the other, else up to rounding. They
// agree with the model on the pooled graph, send no more bytes than was disclosed, and find the run's test metric. The
// long form tries all with 2, 3 and 4 peers.
func TestInferenceRepeatsTraining(t *testing.T) {
	g, every := dataset.Sites(dataset.SitesConfig{Nodes: 600, Columns: 300, Train: 0.12}, rng.New(1)),
		testenv.LongForm(t)
	// with about equally many training nodes of each class, the model file rounds a move of the logits differently
	for i, k := range g.Labels.Class {
		if k == 0 && i%4 > 0 && g.Split[i] == graph.Train {
			g.Split[i] = graph.None
		}
	}
	for k, c := range []struct {
		given string
		bits  bool    // the same bits
		rows  float64 // fraction of the rows that rounding to a grid may move by a step
		whole float64 // bound of the distance from the model on the pooled graph (0 = rows are rounded)
	}{
		{"method: layer-wise; model: gcn; encoder: pca:16; hidden: 12; rounds: 8; keep_last: true", true, 0, 1e-4},
		{"method: layer-wise; model: sage; encoder: raw; hidden: 12; rounds: 8; keep_last: true", true, 0, 1e-4},
		{"method: layer-wise; model: gin; encoder: mlp; hidden: 12; rounds: 8; hops: 2; layer_output: " +
			"logits; keep_last: true", true, 0, 1e-4},
		{"method: layer-wise; model: gat; encoder: pca:16; hidden: 12; heads: 2; rounds: 8; keep_last: true", true, 0,
			1e-4},
		{"method: layer-wise; model: gatv2; encoder: raw; hidden: 12; heads: 2; rounds: 4; keep_last: true", true, 0,
			1e-4},
		{"method: layer-wise; model: sage-pool; encoder: mlp; hidden: 12; rounds: 4; keep_last: true", true, 0, 1e-4},
		{"method: layer-wise; model: gcn; encoder: raw; hidden: 12; rounds: 8; exchange: cover; residual: " +
			"true; keep_last: true", true, 0, 1e-4},
		{"method: layer-wise; model: gcn; encoder: pca:16; hidden: 12; rounds: 8; rows: int8; keep_last: true", true, 0,
			0},
		{"method: layer-wise; model: gcn; encoder: pca:16; hidden: 12; rounds: 8; inductive: true", false, 0, 1e-4},
		{"class_target: labels; rows: float32; coarse_rows: false", false, 0, 1e-4},
		{"class_target: residual; rows: float32; coarse_rows: false", false, 0, 1e-4},
		{"class_target: labels", false, 0.2, 0},
		{"method: full-batch; model: gcn; hidden: 12; rounds: 8", false, 0, 1e-4},
		{"method: full-batch; model: sage; hidden: 12; rounds: 8; norm: batch", false, 0, 1e-4},
		{"method: full-batch; model: gat; heads: 2; hidden: 12; rounds: 8", false, 0, 1e-4},
		{"method: full-batch; model: gin; hidden: 12; rounds: 8; norm: layer", false, 0, 1e-4},
		{"method: full-batch; model: appnp; hidden: 12; hops: 4; alpha: 0.1; rounds: 8", false, 0, 1e-4},
		{"method: full-batch; model: sign; hidden: 12; hops: 2; rounds: 8; correct_smooth: 3", false, 0, 1e-4},
		{"method: full-batch; model: gcn; hidden: 12; rounds: 8; label_inputs: 0.5", false, 0, 1e-4},
	} {
		for peers := 2; peers <= 4; peers++ {
			if peers != 2+k%3 && !every {
				continue
			}
			p := read(t, strings.ReplaceAll(c.given, "; ", "\n")+"\npolicy: random\ntransport: memory")
			p.Peers = peers
			shards, err := Split(g, p)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Local{Plan: p, Shards: shards, Embed: true}.Train(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", c.given, err)
			}
			whole, err := Predict(r.Model, g)
			if err != nil {
				t.Fatal(err)
			}
			all, sent := together(t, r, shards)
			for rank, a := range all {
				most, rows := apart(a.Logits, r.Own[rank].Logits)
				if c.bits && most > 0 || rows > c.rows {
					t.Errorf("%s, %d peers: %.2g of the rows differ from those of training, by up to %.2g", c.given,
						peers, rows, most)
				}
				if c.rows == 0 && math.Abs(a.Test-r.Test) > 1e-9 {
					t.Errorf("%s, %d peers: the test metric is %v, the run's %v", c.given, peers, a.Test, r.Test)
				}
				most, rows = apart(a.Hidden, r.Hidden[rank])
				if a.Hidden.Rows != shards[rank].Owned || a.Hidden.Rows != r.Hidden[rank].Rows ||
					a.Hidden.Cols != r.Hidden[rank].Cols || c.bits && most > 0 || rows > c.rows {
					t.Errorf("%s, %d peers: %.2g of the hidden rows (%d×%d and %d×%d) differ from those of training, "+
						"by up to %.2g", c.given, peers, rows, a.Hidden.Rows, a.Hidden.Cols, r.Hidden[rank].Rows,
						r.Hidden[rank].Cols, most)
				}
				own := whole.Logits.Select(narrow(shards[rank]))
				if most, _ := apart(a.Logits, own); c.whole > 0 && most > c.whole {
					t.Errorf("%s, %d peers: logits differ from those on the pooled graph by %.2g", c.given, peers, most)
				}
				d, err := disclosure.OfModel(p, r.Model, r.Card, shards[rank])
				if err != nil {
					t.Fatal(err)
				}
				if bound := d.Bytes; sent[rank].Total() > bound || sent[rank].Halo == 0 {
					t.Errorf("%s, %d peers: peer %d sent %d bytes, of them rows %d; must be at most %d", c.given, peers,
						rank, sent[rank].Total(), sent[rank].Halo, bound)
				}
				for _, line := range d.Sends {
					if line.Kind == train.Errors || line.Kind == train.Sums && line.Times > 4 {
						t.Errorf("%s: predictions disclose %+v", c.given, line)
					}
				}
			}
		}
	}
}

// narrow returns the nodes of a shard as places in the whole graph.
func narrow(s *shard.Shard) (nodes []int32) {
	for _, id := range s.Global[:s.Owned] {
		nodes = append(nodes, int32(id))
	}
	return nodes
}

// TestInferenceOfNewNodes: a model predicts for an extract in which one site has a tenth more nodes, with their edges,
// as it does on that graph in one place.
func TestInferenceOfNewNodes(t *testing.T) {
	now := dataset.Sites(dataset.SitesConfig{Nodes: 660, Columns: 300, Train: 0.12}, rng.New(2))
	now.X = graph.Features{Dense: now.X.Sparse.Dense()} // sparse rows of the closed form are coarse
	owner, old := make([]int32, now.N()), make([]int32, 600)
	for i := range owner {
		if owner[i] = int32(i % 3); i >= len(old) {
			owner[i] = 2
		}
	}
	for i := range old {
		old[i] = int32(i)
	}
	to := append(slices.Clone(old), slices.Repeat([]int32{-1}, now.N()-len(old))...)
	before := &graph.Graph{Name: "before", Adj: *now.Adj.Relabel(old, to, len(old)), X: now.X.Select(old),
		Labels: now.Labels.Select(old), Split: now.Split[:600]}
	for _, given := range []string{"rows: float32", "method: layer-wise; model: gcn; encoder: pca:16; " +
		"hidden: 12; rounds: 8", "method: full-batch; model: gat; heads: 2; hidden: 12; rounds: 8"} {
		p := read(t, strings.ReplaceAll(given, "; ", "\n")+"\ntransport: memory")
		p.Peers = 3
		trained, err := shard.Cut(before, owner[:600], 3)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Local{Plan: p, Shards: trained}.Train(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		shards, err := shard.Cut(now, owner, 3)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Predict(r.Model, now)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := together(t, r, shards)
		for rank, a := range all {
			if most, _ := apart(a.Logits, want.Logits.Select(narrow(shards[rank]))); most > 1e-4 ||
				a.Logits.Rows != shards[rank].Owned {
				t.Errorf("%s: logits of site %d differ from those on the pooled graph by %.2g", given, rank, most)
			}
		}
	}
}

// TestSitesInfer: sites on a network compute what they predicted at the end of their run; sites with other models, and
// a site without the others, get an error.
func TestSitesInfer(t *testing.T) {
	l := ofSites(t, 3, "")
	l.Plan = read(t, "policy: random")
	j := newJoined(t, l)
	trained, errs := j.join(t.Context())
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	ask := func(change func(rank int, r Result) Result) ([]*Inference, []error) {
		all, errs := make([]*Inference, 3), make([]error, 3)
		var wait sync.WaitGroup
		for rank, s := range j.sites {
			s.State = ""
			wait.Go(func() {
				r := change(rank, *trained[rank])
				all[rank], errs[rank] = Infer(t.Context(), j.plan, s, r.Model, r.Card)
			})
		}
		wait.Wait()
		return all, errs
	}
	all, errs := ask(func(_ int, r Result) Result { return r })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for rank, a := range all {
		if _, rows := apart(a.Logits, trained[rank].Own[0].Logits); rows > 0.2 || a.Sent.Wire <= a.Sent.Halo ||
			a.Tested == 0 || math.Abs(a.Test-trained[rank].Test) > 0.02 {
			t.Errorf("site %d: %.2g of the rows differ; test %v of %d nodes, the run's %v; sent %+v", rank, rows,
				a.Test, a.Tested, trained[rank].Test, a.Sent)
		}
	}
	_, errs = ask(func(rank int, r Result) Result {
		if rank == 1 {
			r.Card.Dataset = "another"
		}
		return r
	})
	for rank, err := range errs {
		if mismatch := new(p2p.MemberMismatchError); !errors.As(err, &mismatch) ||
			!strings.Contains(err.Error(), "predict") {
			t.Errorf("site %d: %v; must be a difference of the models", rank, err)
		}
	}
	for _, c := range []struct {
		change func(s *Site, r *Result)
		want   string
	}{
		{func(s *Site, r *Result) { s.Shard = j.sites[1].Shard }, "the shard is part 1 of 3"},
		{func(s *Site, r *Result) { r.Card.Setting = []byte(`{"exchange":"pigeon"}`) }, "exchange must be one of"},
		{func(s *Site, r *Result) {
			one := *s.Shard
			one.Labels.Names = strings.Fields("a b c d e f g")
			s.Shard, r.Card.Classes = &one, strings.Fields("a b c d e g f")
		}, `class 5 must be "g", as in the model (got "f")`},
		{func(s *Site, r *Result) {
			one := *s.Shard
			one.Encoding = []byte(`{"columns":[{"name":"weight"}]}`)
			s.Shard, r.Card.Encoding = &one, []byte(`{"columns":[{"name":"age"}]}`)
		}, `column 1 must be "age", as in the model (got "weight")`},
	} {
		s, r := j.sites[0], *trained[0]
		c.change(&s, &r)
		_, err := Infer(t.Context(), j.plan, s, r.Model, r.Card)
		if bad := new(InputError); !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; must have %q", err, c.want)
		}
	}
}

// TestInferenceSendsAsDisclosed: what is sent was disclosed before, number by number, if rows are dense and all of them
// are sent.
func TestInferenceSendsAsDisclosed(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 600, Columns: 300, Train: 0.12}, rng.New(1))
	for given, numbers := range map[string]float64{
		"method: layer-wise; model: sage; encoder: pca:16; layers: 2; hidden: 12; rounds: 3; keep_last: true": 16 + 12,
		"method: layer-wise; model: gcn; encoder: mlp; layers: 1; hidden: 12; hops: 2; " +
			"rounds: 3; keep_last: true": 12 + 12,
		"method: layer-wise; model: gat; encoder: pca:16; layers: 1; hidden: 12; heads: 2; " +
			"rounds: 3; keep_last: true": 16,
		"method: full-batch; model: gat; heads: 2; hidden: 12; rounds: 3":                12 + 7,
		"method: full-batch; model: gcn; hidden: 12; rounds: 3":                          1 + 12 + 7,
		"method: full-batch; model: appnp; hidden: 12; hops: 4; alpha: 0.1; rounds: 3":   1 + 4*7,
		"method: full-batch; model: sage-pool; hidden: 12; rounds: 3; correct_smooth: 3": 12 + 7 + 1 + 6*7,
		"class_target: labels; rows: float32":                                            -1,
	} {
		p := read(t, strings.ReplaceAll(given, "; ", "\n")+"\nexchange: halo\npolicy: random\ntransport: memory")
		p.Peers = 3
		shards, err := Split(g, p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Local{Plan: p, Shards: shards}.Train(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, sent := together(t, r, shards)
		for rank, s := range shards {
			d, err := disclosure.OfModel(p, r.Model, r.Card, s)
			if err != nil {
				t.Fatal(err)
			}
			rows, gives := int64(0), int64(0)
			for _, line := range d.Sends {
				if line.Kind == train.Rows {
					rows += line.Sum
				}
			}
			for _, n := range d.Reads {
				gives += int64(n)
			}
			if sent[rank].Halo != 4*rows*gives || numbers > 0 && d.Node != numbers {
				t.Errorf("%s: site %d sent %d bytes of rows, must be those of %d numbers of %d nodes; "+
					"%v numbers of a node, must be %v", given, rank, sent[rank].Halo, rows, gives, d.Node, numbers)
			}
		}
	}
}
