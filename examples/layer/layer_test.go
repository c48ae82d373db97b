package layer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/train"
)

// reread writes a model, reads it again and returns what it predicts; its own parameter must be in the file and
// trained.
func reread(t *testing.T, m *nn.Model, card modelfile.Card, g *graph.Graph) (want, got []float32) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := modelfile.Write(path, m, card); err != nil {
		t.Fatal(err)
	}
	again, _, err := modelfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err1 := heddle.Predict(m, g)
	b, err2 := heddle.Predict(again, g)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, p := range again.Params() {
		if strings.HasSuffix(p.Name, ".gain") &&
			slices.ContainsFunc(p.Value.Data, func(v float32) bool { return v != 1 }) {
			own++
		}
	}
	if own == 0 {
		t.Errorf("%s: no own parameter is trained and read", card.Method)
	}
	return a.Logits.Data, b.Logits.Data
}

// TestOwnLayer: each method trains a registered layer; its file is read as the same model, and a run continues from a
// checkpoint to the same bits.
func TestOwnLayer(t *testing.T) {
	g := data()
	for _, settings := range []string{"method=full-batch rounds=8",
		"method=layer-wise encoder=raw rounds=8 keep_last=true", "method=mini-batch rounds=30"} {
		p := plan(settings + " peers=2 checkpoint_every=1")
		shards, err := heddle.Split(g, p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := heddle.Local{Plan: p, Shards: shards}.Train(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", settings, err)
		}
		want, got := reread(t, r.Model, modelfile.Card{Method: settings}, g)
		if !slices.Equal(want, got) {
			t.Errorf("%s: a model that was written and read predicts otherwise", settings)
		}
		ctx, stop := context.WithCancel(t.Context())
		local := heddle.Local{Plan: p, Shards: shards, State: t.TempDir(), OnEvent: func(e heddle.Event) {
			if e.Kind == train.RoundEnd && e.Done == 4 {
				stop()
			}
		}}
		if _, err := local.Train(ctx); err == nil {
			t.Fatalf("%s: the run is not stopped", settings)
		}
		local.OnEvent = nil
		if r, err = local.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again, err := heddle.Predict(r.Model, g); err != nil || !slices.Equal(want, again.Logits.Data) {
			t.Errorf("%s: a run that continues predicts otherwise (%v)", settings, err)
		}
	}
}

// TestOwnLayerJoins: three sites train a registered layer together, by name, and a site that starts again has the same
// model.
func TestOwnLayerJoins(t *testing.T) {
	g, p := data(), plan("method=full-batch rounds=8 peers=3")
	shards, err := heddle.Split(g, p)
	if err != nil {
		t.Fatal(err)
	}
	var members []string
	sites := make([]heddle.Site, 3)
	for r := range sites {
		id, err := identity.New()
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, fmt.Sprintf("site-%d=%s@127.0.0.1", r, id.PeerID()))
		sites[r] = heddle.Site{Identity: id, Shard: shards[r], Wait: time.Minute,
			Rejoin: time.Minute, State: filepath.Join(t.TempDir(), "state")}
	}
	if err := p.AddMembers(members, testenv.FreePorts(t, len(members))); err != nil {
		t.Fatal(err)
	}
	join := func() (params []string) {
		results, errs := make([]*heddle.Result, 3), make([]error, 3)
		var wait sync.WaitGroup
		for r, s := range sites {
			wait.Go(func() { results[r], errs[r] = heddle.Join(t.Context(), p, s) })
		}
		wait.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			params = append(params, fmt.Sprint(r.Model.Params()[0].Value.Data, r.Model.Params()[2].Value.Data))
		}
		return params
	}
	first := join()
	if second := join(); first[0] != first[1] || !slices.Equal(first, second) {
		t.Error("sites that start again must have the same model, each")
	}
}

// TestReplacedAggregator: a layer whose aggregator or edge weights were replaced is not written as another model.
func TestReplacedAggregator(t *testing.T) {
	r, err := heddle.Train(t.Context(), data(), plan("method=full-batch rounds=1 peers=1"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	for _, change := range []func(l *nn.Layer){
		func(l *nn.Layer) { l.Edges = graph.GCN }, func(l *nn.Layer) { l.Conv.Agg = joint(l.Name, l.Spec.In) },
		func(l *nn.Layer) { l.Conv.Agg = nil },
	} {
		l := r.Model.Layers[1]
		conv, edges := l.Conv, l.Edges
		change(l)
		if err := modelfile.Write(path, r.Model, modelfile.Card{}); err == nil ||
			!strings.Contains(err.Error(), "nn.Register") {
			t.Errorf("the error must name nn.Register (got %v)", err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("a file is written")
		}
		l.Conv, l.Edges = conv, edges
	}
}
