package heddle_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// TestSitesAreThePeers: a graph that has the site of each node is partitioned by it, unless the plan sets another
// policy; a note reports what becomes of the sites.
func TestSitesAreThePeers(t *testing.T) {
	const sites = 3
	g := dataset.Sites(dataset.SitesConfig{Nodes: 90, Sites: sites}, rng.New(1))
	plain := *g
	plain.Site, plain.Sites = nil, nil
	for _, c := range []struct {
		name       string
		method     string
		policy     string
		peers      int
		plain      bool
		wantPolicy string
		wantParts  int
		wantKind   train.EventKind // (empty = there is no note)
		wantText   string
	}{
		{name: "nothing asked", policy: "auto", peers: plan.AutoPeers, wantPolicy: "by-column", wantParts: sites,
			wantKind: train.Note, wantText: "each of the 3 sites"},
		{name: "as many peers", policy: "auto", peers: sites, wantPolicy: "by-column", wantParts: sites,
			wantKind: train.Note, wantText: "policy by-column"},
		{name: "fewer peers", policy: "auto", peers: 2, wantPolicy: "random", wantParts: 2, wantKind: train.Warning,
			wantText: "3 sites, but 2 peers"},
		{name: "random asked", policy: "random", peers: sites, wantPolicy: "random", wantParts: sites},
		{name: "one peer", policy: "auto", peers: 1, wantPolicy: "random", wantParts: 1},
		{name: "one peer of a cluster", method: plan.FullBatch, policy: "auto", peers: 1, wantPolicy: "multilevel",
			wantParts: 1},
		{name: "no sites", policy: "auto", peers: plan.AutoPeers, plain: true, wantPolicy: "random", wantParts: 4},
	} {
		p := heddle.Defaults(c.method, "")
		if p.Policy != "auto" {
			t.Fatalf("the default policy is %s", p.Policy)
		}
		p.Policy, p.Peers = c.policy, c.peers
		of := g
		if c.plain {
			of = &plain
		}
		q, said := p.ForGraph(of)
		if q.Policy != c.wantPolicy {
			t.Errorf("%s: policy %s, must be %s", c.name, q.Policy, c.wantPolicy)
		}
		if len(said) > 1 || (len(said) == 1) != (c.wantKind != "") ||
			len(said) == 1 && (said[0].Kind != c.wantKind || !strings.Contains(said[0].Text, c.wantText)) {
			t.Errorf("%s: said %v, must be a %q with %q", c.name, said, c.wantKind, c.wantText)
		}
		shards, err := heddle.Split(of, p)
		if err != nil || len(shards) != c.wantParts {
			t.Errorf("%s: %d parts, %v, must be %d", c.name, len(shards), err, c.wantParts)
		}
		if c.wantPolicy == "by-column" {
			for r, s := range shards {
				checkSite(t, s, of.Site, int32(r))
			}
		}
	}
}

// checkSite fails unless all nodes of s are of that site.
func checkSite(t *testing.T, s *shard.Shard, site []int32, want int32) {
	t.Helper()
	for _, v := range s.Global[:s.Owned] {
		if site[v] != want {
			t.Errorf("node %d of site %d is at peer %d", v, site[v], want)
		}
	}
}

// TestManySites: a column with a value for each node is no partition that one process could run.
func TestManySites(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 90}, rng.New(1))
	g.Sites = make([]string, g.N())
	for i := range g.Site {
		g.Site[i] = int32(i)
	}
	p, said := heddle.Defaults("", "").ForGraph(g)
	if p.Policy != "random" || len(said) != 1 || said[0].Kind != train.Warning ||
		!strings.Contains(said[0].Text, "90 sites, more than 64") {
		t.Errorf("policy %s, said %v", p.Policy, said)
	}
}

// TestLast: a run that is ended after round 5 equals the run of a plan with that number of rounds, to the bit, even if
// it was interrupted before.
func TestLast(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 1400, Sites: 3}, rng.New(1))
	const rounds = 6
	for _, c := range []struct{ method, model string }{
		{plan.LayerWise, "sage"}, {plan.FullBatch, "gcn"}, {plan.MiniBatch, "sage"}, {plan.ClassMeans, ""},
	} {
		t.Run(c.method, func(t *testing.T) {
			p := heddle.Defaults(c.method, c.model)
			p.Transport = "memory"
			if c.model != "" {
				p.Gradient().Rounds, p.Gradient().CheckpointEvery = rounds, 2
			}
			if c.method == plan.FullBatch { // else no two runs have the same bits
				p.FullBatch.Order, p.FullBatch.Exchange = "fixed", "halo"
			}
			shards, err := heddle.Split(g, p)
			if err != nil {
				t.Fatal(err)
			}
			want, err := heddle.Local{Plan: p, Shards: shards}.Train(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if c.model != "" {
				p.Gradient().Rounds = 10 * rounds
			}
			round, state := 0, t.TempDir()
			run := func(ctx context.Context, last func() bool) (*heddle.Result, error) {
				return heddle.Local{Plan: p, Shards: shards, State: state, Last: last,
					OnEvent: func(e heddle.Event) {
						if e.Kind == train.RoundEnd {
							round = e.Round
						}
					}}.Train(ctx)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := run(ctx, func() bool {
				if round == rounds/2 {
					cancel()
				}
				return round == 0 && c.model == ""
			}); c.model != "" && !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted: %v", err)
			}
			got, err := run(t.Context(), func() bool { return round == rounds-1 })
			if err != nil {
				t.Fatal(err)
			}
			if c.model == "" { // ended after its first round
				if n := len(got.Model.Closed.Heads); n != 1 {
					t.Errorf("class means have %d rounds, must have 1", n)
				}
				return
			}
			for i, q := range got.Model.Params() {
				if !slices.Equal(q.Value.Data, want.Model.Params()[i].Value.Data) {
					t.Errorf("%s differs", q.Name)
				}
			}
			if len(got.Curve()) != len(want.Curve()) || got.Test != want.Test {
				t.Errorf("%d rounds, test %v, must be %d, %v", len(got.Curve()), got.Test, len(want.Curve()), want.Test)
			}
		})
	}
}
