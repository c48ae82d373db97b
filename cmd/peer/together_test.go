package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/ingest"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// TestPartitionTogether: three peers partition a stored graph over real connections, each its
// slice, and their parts form one partition that trains.
func TestPartitionTogether(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 600, Sites: 3, Classes: 4, Columns: 80, Train: 0.1, Val: 0.1}, rng.New(3))
	dir := t.TempDir()
	at := func(name string, more ...any) string { return filepath.Join(dir, fmt.Sprintf(name, more...)) }
	if err := ingest.WriteGraph(at("web.graph"), g); err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c"}
	args := []string{"plan", "-o", at("plan.yaml"), "--port", freePorts(t, 3)}
	for _, name := range names {
		args = append(args, name+"="+strings.TrimSpace(must(t, "id", "--identity", at("%s.key", name)))+"@127.0.0.1")
	}
	must(t, args...)
	type end struct {
		exit        int
		out, errors string
	}
	all := func(out string, more func(name string) []string) (ends []end) {
		ends = make([]end, len(names))
		done := make(chan func(), len(names))
		for k, name := range names {
			go func() {
				var e end
				e.exit, e.out, e.errors = call(t.Context(), append([]string{"partition", "--data", at("web.graph"), "--plan", at("plan.yaml"), "--identity", at("%s.key", name),
					"--policy", "restream:2", "--rounds", "20", "--wait", "30s", "--out", at("%s-%s", out, name), "-q"}, more(name)...)...)
				done <- func() { ends[k] = e }
			}()
		}
		for range names {
			(<-done)()
		}
		return ends
	}
	for k, e := range all("part", func(string) []string { return nil }) {
		if e.exit != 0 || !strings.Contains(e.out, "600 nodes") {
			t.Fatalf("%s: exit %d\n%s%s", names[k], e.exit, e.out, e.errors)
		}
	}
	gather(t, at("parts"), at("part-%s", names[0]), at("part-%s", names[1]), at("part-%s", names[2]))
	must(t, "train", "--shards", at("parts"), "--transport", "memory", "--preset", "frugal", "--seed", "1", "-q", "--out", at("run"), "--json", at("run/result.json"))
	if r := figures(t, at("run/result.json")); !(*r.TestAccuracy > 0.5) {
		t.Errorf("accuracy %v", *r.TestAccuracy)
	}

	for k, e := range all("other", func(name string) []string {
		if name == "b" {
			return []string{"--policy", "fennel"}
		}
		return nil
	}) {
		if e.exit == 0 || !strings.Contains(e.errors, "another graph, policy") {
			t.Errorf("%s, of peers with unlike policies: exit %d, %s", names[k], e.exit, e.errors)
		}
	}
	for text, args := range map[string][]string{
		"stored graph":                      {"--data", "x.u32"},
		"each peer of the plan gets a part": {"--parts", "3"},
		"at least 1":                        {"--rounds", "0"},
	} {
		exit, _, errors := call(t.Context(), append([]string{"partition", "--data", at("web.graph"), "--plan", at("plan.yaml"), "--out", at("no")}, args...)...)
		if exit != 2 || !strings.Contains(errors, text) {
			t.Errorf("%v: exit %d, %s, must be %q", args, exit, errors, text)
		}
	}
}
