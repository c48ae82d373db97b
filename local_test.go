package heddle_test

import (
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// TestSitesAreThePeers: a graph that says which site each node belongs to is partitioned by that, unless the plan says
// otherwise; what becomes of the sites is said.
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
		wantKind   train.EventKind // empty: nothing is said
		wantText   string
	}{
		{name: "nothing asked", policy: "auto", peers: heddle.Auto, wantPolicy: "by-column", wantParts: sites,
			wantKind: train.Note, wantText: "each of the 3 sites"},
		{name: "as many peers", policy: "auto", peers: sites, wantPolicy: "by-column", wantParts: sites,
			wantKind: train.Note, wantText: "policy by-column"},
		{name: "fewer peers", policy: "auto", peers: 2, wantPolicy: "random", wantParts: 2, wantKind: train.Warning,
			wantText: "3 sites, but 2 peers"},
		{name: "random asked", policy: "random", peers: sites, wantPolicy: "random", wantParts: sites},
		{name: "one peer", policy: "auto", peers: 1, wantPolicy: "random", wantParts: 1},
		{name: "one peer of a cluster", method: plan.FullBatch, policy: "auto", peers: 1, wantPolicy: "multilevel",
			wantParts: 1},
		{name: "no sites", policy: "auto", peers: heddle.Auto, plain: true, wantPolicy: "random", wantParts: 4},
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
