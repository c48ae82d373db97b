package heddle

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// again returns p for training that starts from r's model.
func again(t *testing.T, p Plan, r *Result) (Plan, *Initial) {
	t.Helper()
	init := &Initial{Model: r.Model, Card: r.Card}
	var err error
	if p.Gradient().Init, err = init.Fingerprint(); err != nil {
		t.Fatal(err)
	}
	return p, init
}

// TestInit: training that starts from a model begins with the loss of that model on the training nodes, has the same
// curve for any number of peers, and does not end worse than it began.
func TestInit(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 600, Columns: 300, Train: 0.12, Val: 0.1}, rng.New(1))
	for _, c := range []struct {
		given string
		exact bool // the first loss is the model's: no layer before the last is trained again
	}{
		{"method: full-batch; model: gcn; hidden: 12; rounds: 4; dropout: 0", true},
		{"method: full-batch; model: gat; heads: 2; hidden: 12; rounds: 4; dropout: 0; attention_dropout: 0; " +
			"norm: layer", true},
		{"method: full-batch; model: sage; hidden: 12; rounds: 4; dropout: 0; label_inputs: 0", true},
		{"method: layer-wise; model: gcn; encoder: pca:16; layers: 1; rounds: 4; dropout: 0", true},
		{"method: layer-wise; model: sage; encoder: raw; layers: 1; rounds: 4; dropout: 0; keep_last: true", true},
		{"method: layer-wise; model: gcn; encoder: pca:16+classes; layers: 1; rounds: 4; dropout: 0; min_class: 1",
			true},
		{"method: layer-wise; model: gcn; encoder: pca:16; layers: 2; hidden: 12; rounds: 4; " +
			"dropout: 0; keep_last: true", false},
		{"method: layer-wise; model: gcn; encoder: mlp; layers: 2; hidden: 12; rounds: 4; dropout: 0; layer_output: " +
			"logits; keep_last: true", false},
	} {
		p := read(t, strings.ReplaceAll(c.given, "; ", "\n")+"\npolicy: random\ntransport: memory")
		run := func(p Plan, init *Initial, peers int) *Result {
			p.Peers = peers
			shards, err := Split(g, p)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Local{Plan: p, Shards: shards, Init: init}.Train(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", c.given, err)
			}
			return r
		}
		old := run(p, nil, 2)
		logits, err := Predict(old.Model, g)
		if err != nil {
			t.Fatal(err)
		}
		rows := g.InSplit(graph.Train)
		sum, count := nn.Loss(mat.Dense{}, logits.Logits.Select(rows), g.Labels.Select(rows), nil)
		next, init := again(t, p, old)
		var first *Result
		for _, peers := range []int{2, 4} {
			r := run(next, init, peers)
			if first == nil {
				first = r
			}
			curve := r.Result.Curve()
			for k, point := range curve {
				if want := first.Result.Curve()[k].Loss; !(math.Abs(point.Loss-want) <= 1e-4*want) {
					t.Fatalf("%s: the loss of round %d with %d peers is %v, with 2 %v", c.given, k, peers, point.Loss,
						want)
				}
			}
			if loss := curve[0].Loss; c.exact && !(math.Abs(loss-sum/count) <= 1e-4*loss) {
				t.Errorf("%s, %d peers: the first loss is %v, the model's %v", c.given, peers, loss, sum/count)
			}
			if c.exact && r.Val < old.Val-1e-9 {
				t.Errorf("%s, %d peers: validation %v after %v", c.given, peers, r.Val, old.Val)
			}
		}
	}
}

// TestInitRefused: what does not fit is refused before a round, and the error names the first difference.
func TestInitRefused(t *testing.T) {
	p := read(t, "method: full-batch\nmodel: gcn\nhidden: 12\nrounds: 2\npolicy: random\ntransport: memory")
	p.Peers = 2
	shards, err := Split(dataset.Sites(dataset.SitesConfig{Nodes: 300, Columns: 60}, rng.New(1)), p)
	if err != nil {
		t.Fatal(err)
	}
	old, err := Local{Plan: p, Shards: shards}.Train(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	encoding :=
		`{"columns":[{"name":"age","kind":"numeric","mean":1},{"name":"sex","kind":"categorical","values":["f","m"]}]}`
	for _, c := range []struct {
		change func(l *Local, r *Result)
		want   string
	}{
		{func(l *Local, _ *Result) { l.Plan.Gradient().Hidden = 16 }, "model.layers[0].out must be 16 (got 12)"},
		{func(l *Local, _ *Result) { l.Plan.Gradient().Model = "sage" }, "model.layers[0].conv must be sage (got gcn)"},
		{func(l *Local, _ *Result) { l.Plan.Gradient().Layers = 3 }, "model.layers must have 3 entries (got 2)"},
		{func(l *Local, _ *Result) { l.Init = nil }, "must be given"},
		{func(l *Local, _ *Result) { l.Plan.Gradient().Init = "" }, "the plan must name the model file"},
		{func(l *Local, _ *Result) { l.Plan.Gradient().Init = strings.Repeat("0", 64) },
			"must have SHA-256 000000"},
		{func(l *Local, _ *Result) { l.Plan.Gradient().Init = "model.safetensors" }, "64 hexadecimal digits"},
		{func(_ *Local, r *Result) {
			r.Card.Encoding = []byte(encoding)
			shards[0].Encoding = []byte(strings.Replace(encoding, "sex", "side", 1))
		}, `column 2 must be "sex", as in the model (got "side")`},
		{func(_ *Local, r *Result) {
			r.Card.Encoding = []byte(encoding)
			shards[0].Encoding = []byte(strings.Replace(encoding, `"mean":1`, `"mean":2`, 1))
		}, `column "age" must become features as in the model`},
		{func(_ *Local, r *Result) {
			r.Card.Encoding = []byte(encoding)
			shards[0].Encoding = []byte(`{"columns":[{"name":"age","kind":"numeric","mean":1}]}`)
		}, `column 2 must be "sex", as in the model (got no more columns)`},
	} {
		r := *old
		l := Local{Plan: p, Shards: shards}
		c.change(&l, &r)
		if l.Plan.Gradient().Init == "" && !strings.Contains(c.want, "must name") {
			init := l.Init
			l.Plan, l.Init = again(t, l.Plan, &r)
			if strings.Contains(c.want, "must be given") {
				l.Init = init
			}
		} else {
			_, l.Init = again(t, l.Plan, &r)
		}
		_, err := l.Train(t.Context())
		if bad := new(InputError); !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; must have %q", err, c.want)
		}
		shards[0].Encoding = nil
	}
	for text, want := range map[string]string{
		"": "init: unknown setting of class-means; it belongs to layer-wise, full-batch and mini-batch",
	} {
		q, err := asked(text + "\ninit: " + strings.Repeat("ab", 32))
		if err == nil {
			err = errors.Join(q.Validate(), q.Check(shards))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; must have %q", text, err, want)
		}
	}
}

// TestInitClassColumns: a model whose layers see columns of classes is a start for data of the same columns and classes
// by name; a plan with other columns behind the encoder is refused.
func TestInitClassColumns(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Columns: 60, Train: 0.2}, rng.New(1))
	encoding :=
		`{"columns":[{"name":"age","kind":"numeric","mean":1},{"name":"sex","kind":"categorical","values":["f","m"]}]}`
	names := make([]string, g.Labels.Classes)
	for k := range names {
		names[k] = string(rune('a' + k))
	}
	settings := "method: layer-wise\nmodel: gcn\nhidden: 8\nrounds: 1\nkeep_last: true\npolicy: random\n" +
		"transport: memory\nencoder: "
	for _, c := range []struct {
		file, plan string // their encoders
		change     func(s *shard.Shard)
		must       string
	}{
		{"pca:8+classes", "pca:8+classes", func(*shard.Shard) {}, ""},
		{"pca:8+classes", "pca:8+classes",
			func(s *shard.Shard) { s.Encoding = []byte(strings.Replace(encoding, "sex", "side", 1)) },
			`column 2 must be "sex", as in the model (got "side")`},
		{"pca:8+classes", "pca:8+classes", func(s *shard.Shard) {
			s.Labels.Names = slices.Clone(names)
			slices.Reverse(s.Labels.Names)
		}, `class 0 must be "a", as in the model`},
		{"pca:8", "pca:8+classes", func(*shard.Shard) {}, "model.encoder.classes.all_hops must be true"},
		{"pca:8+classes", "pca:8", func(*shard.Shard) {}, "model.encoder.classes must be"},
	} {
		p := read(t, settings+c.file)
		p.Peers = 2
		shards, err := Split(g, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range shards {
			s.Encoding, s.Labels.Names = []byte(encoding), names
		}
		old, err := Local{Plan: p, Shards: shards}.Train(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.change(shards[0])
		next, init := again(t, read(t, settings+c.plan), old)
		next.Peers = 2
		_, err = Local{Plan: next, Shards: shards, Init: init}.Train(t.Context())
		if bad := new(InputError); err != nil && !errors.As(err, &bad) || (err == nil) != (c.must == "") ||
			err != nil && !strings.Contains(err.Error(), c.must) {
			t.Errorf("from %s to %s: error is %v, must have %q", c.file, c.plan, err, c.must)
		}
	}
}
