package heddle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// TestOwnPredictions: the sites' predictions for their own nodes at the end of a run, computed with neighbours at other
// sites, have the test accuracy that the run reports. A site that is done has the same predictions when it starts
// again.
func TestOwnPredictions(t *testing.T) {
	for _, settings := range []string{
		"", "method: layer-wise\nmodel: gcn\nrounds: 4", "method: layer-wise\nencoder: mlp\nlayers: 1\nrounds: 4",
		"method: full-batch\nrounds: 4", "method: layer-wise\nmodel: sage\nrounds: 4",
	} {
		p := read(t, settings+"\npolicy: random\ntransport: memory")
		p.Peers = 3
		shards, err := Split(dataset.Sites(dataset.SitesConfig{Nodes: 900}, rng.New(1)), p)
		if err != nil {
			t.Fatal(err)
		}
		j := newJoined(t, Local{Plan: p, Shards: shards})
		results, errs := j.join(t.Context())
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%q: %v", settings, err)
		}
		right, nodes := 0.0, 0
		for r, got := range results {
			accuracy, n, err := got.Own[0].Score(got.Metric, shards[r].Alone())
			if err != nil || n == 0 || got.Own[0].Logits.Rows != shards[r].Owned {
				t.Fatalf("%q, site %d: %d rows, %d test nodes, %v", settings, r, got.Own[0].Logits.Rows, n, err)
			}
			right, nodes = right+accuracy*float64(n), nodes+n
		}
		if sum := right / float64(nodes); math.Abs(sum-results[0].Test) > 1e-9 {
			t.Errorf("%q: the sites' own predictions are right in %v, the run reports %v", settings, sum,
				results[0].Test)
		}
		dir := j.sites[1].State
		at := &session.Session{Place: train.Place{Checkpoints: &checkpoint.Store{Dir: dir}}, Event: func(Event) {}}
		one := &peer{plan: results[1].Plan, shard: shards[1], at: at}
		done, err := one.connected(t.Context(), at)
		if err != nil || done == nil {
			t.Fatalf("%q: the checkpoints must hold a finished run (%v)", settings, err)
		}
		again, err := one.result(done, session.Usage{})
		if err != nil {
			t.Fatalf("%q: %v", settings, err)
		}
		if a, b := fmt.Sprint(again.Own[0].Logits.Data), fmt.Sprint(results[1].Own[0].Logits.Clone().Data); a != b ||
			!slices.Equal(parametersOf(again), parametersOf(results[1])) {
			t.Errorf("%q: a site that starts again must have the same predictions", settings)
		}
	}
}
