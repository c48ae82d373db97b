package federation

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// TestPageCountsRuns: from the second run on the page has one sentence with the figures of the privacy page.
func TestPageCountsRuns(t *testing.T) {
	for before, want := range []int{0, 1, 1} {
		var b strings.Builder
		sends := &disclosure.Disclosure{Nodes: 1, Stored: []int{1}, Fresh: 3}
		page{Disclosure: sends, own: &shard.Shard{}, before: dp.LedgerSum{Runs: before, Numbers: 6}}.printNode(&b)
		if got := strings.Count(b.String(), addsUp); got != want {
			t.Errorf("after %d runs %d sentences, must be %d:\n%s", before, got, want, b.String())
		}
		if got := strings.Count(b.String(), "With this one 9 numbers"); got != want {
			t.Errorf("after %d runs the numbers of all of them are %d times on the page, must be %d:\n%s", before, got,
				want, b.String())
		}
	}
	text, err := os.ReadFile("../../../docs/explanation/privacy.md")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "), addsUp) {
		t.Errorf("the privacy page must have %q (%v)", addsUp, err)
	}
}

// TestPageShowsEverySetting: whatever a run by a plan reads is on the page, and every setting is read by some plan that
// peers join by.
func TestPageShowsEverySetting(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 120, Sites: 2, Classes: 3, Columns: 60, Train: 0.3, Val: 0.2},
		rng.New(1))
	shown := map[string]bool{}
	for _, text := range []string{
		"method: class-means", "phones: 40", "phones: 40\nleaf_edges: true", "secure_sums: off", "epsilon: 4",
		"method: layer-wise\nmodel: gat", "method: layer-wise\nmodel: gcn\nsolver: sgd",
		"method: layer-wise\nmodel: sage\nhops: 2", "method: full-batch\nmodel: appnp\ncorrect_smooth: 2",
		"method: full-batch\nmodel: gat", "method: full-batch\nmodel: rgcn", "method: mini-batch\nmodel: sage",
		"method: mini-batch\nmodel: rgcn", "method: full-batch\ntask: links",
		"method: layer-wise\ntask: links\nmodel: sage", "method: mini-batch\ntask: links\nround_steps: 3",
		"method: layer-wise\nmodel: gcn\nrelays: [/ip4/10.0.0.9/tcp/1/p2p/12D3KooWpost]",
	} {
		given := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			given[name] = strings.Trim(value, "[]")
		}
		p, err := heddle.ReadPlan(nil, given, nil)
		if err != nil {
			t.Fatal(err)
		}
		split := *p
		split.Policy = "by-column"
		shards, err := heddle.Split(g, split)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"north", "south"} {
			p.Members = append(p.Members,
				plan.Member{Name: name, ID: "12D3" + name, Addresses: []string{"/dns/" + name + "/tcp/1"}})
		}
		sends, err := disclosure.Of(*p, shards[1])
		if p.Gradient().Model == "rgcn" { // the graph has no typed edges, and the settings are shown all the same
			sends, err = &disclosure.Disclosure{Plan: *p, Reads: make([]int, 2)}, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		page{Disclosure: sends, own: shards[1], fingerprint: "0123"}.print(&b)
		said := b.String()
		if alongEdges := strings.Contains(said, "table edges"); alongEdges != p.ClassMeans.LeafEdges {
			t.Errorf("%q: that sums leave along the table edges is said: %t, must be %t:\n%s", text, alongEdges,
				p.ClassMeans.LeafEdges, said)
		}
		for _, m := range p.Members {
			if !strings.Contains(said, m.ID) || !strings.Contains(said, m.Addresses[0]) {
				t.Errorf("%q: the page lacks member %s:\n%s", text, m.Name, said)
			}
		}
		for _, s := range p.Shown() {
			shown[s.Name] = true
			value := s.Name + ": " + cmp.Or(p.Get(s), "none")
			if !strings.Contains(said, " "+value+" ") && !strings.Contains(said, " "+value+";") {
				t.Errorf("%q: the page lacks %q:\n%s", text, value, said)
			}
		}
	}
	for _, s := range plan.Settings("") {
		if s.Only != "train" && !shown[s.Name] {
			t.Errorf("no page has %s: a plan must be added that reads it, or it must be shown", s.Name)
		}
	}
}
