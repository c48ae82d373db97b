package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition/external"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestPartitionTogether: three peers partition a stored graph over real connections, each its
// slice, and their parts form one partition that trains.
func TestPartitionTogether(t *testing.T) {
	t.Parallel()
	g := dataset.Sites(dataset.SitesConfig{Nodes: 600, Sites: 3, Classes: 4, Columns: 80, Train: 0.1, Val: 0.1},
		rng.New(3))
	dir := t.TempDir()
	at := func(name string, more ...any) string { return filepath.Join(dir, fmt.Sprintf(name, more...)) }
	if err := external.WriteGraph(at("web.graph"), g); err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c"}
	args := []string{"plan", "-o", at("plan.yaml"), "--port", fmt.Sprint(testenv.FreePorts(t, 3))}
	for _, name := range names {
		args = append(args, name+"="+strings.TrimSpace(must(t, "init", "--identity", at("%s.key", name)))+"@127.0.0.1")
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
				e.exit, e.out, e.errors = call(t.Context(), append([]string{"partition", "--data", at("web.graph"),
					"--plan", at("plan.yaml"), "--identity", at("%s.key", name), "--policy", "restream:2", "--rounds",
					"20", "--wait", "30s", "--out", at("%s-%s", out, name), "-q"}, more(name)...)...)
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
	must(t, "train", "--shards", at("parts"), "--transport", "memory", "--seed", "1", "-q", "--out", at("run"),
		"--json", at("run/result.json"))
	if r := figures(t, at("run/result.json")); !(*r.Test > 0.5) {
		t.Errorf("accuracy %v", *r.Test)
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
		"stored graph":                      {"--data", "x.npz"},
		"each peer of the plan gets a part": {"--parts", "3"},
		"at least 1":                        {"--rounds", "0"},
	} {
		exit, _, errors := call(t.Context(),
			append([]string{"partition", "--data", at("web.graph"), "--plan", at("plan.yaml"), "--out", at("no")},
				args...)...)
		if exit != 2 || !strings.Contains(errors, text) {
			t.Errorf("%v: exit %d, %s, must be %q", args, exit, errors, text)
		}
	}
}

// TestRecommendPlan: two sites train a model of links and recommend new ones together, between their own nodes and each
// other's; a plan without links, and data of one owner beside a plan, are refused.
func TestRecommendPlan(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	plan := c.plan(t, c.members, "--port", fmt.Sprint(testenv.FreePorts(t, 2)), "--method", "full-batch", "--task",
		"links")
	both := func(args func(r int) []string) (said [2]string) {
		done := make(chan func(), 2)
		for r := range 2 {
			go func() {
				exit, stdout, stderr := call(t.Context(), args(r)...)
				done <- func() {
					if said[r] = stdout; exit != 0 {
						t.Errorf("site %d ends with %d, must with 0: %s", r, exit, stderr)
					}
				}
			}()
		}
		for range 2 {
			(<-done)()
		}
		return said
	}
	both(func(r int) []string { return c.join(r, plan) })
	model := filepath.Join(c.dir, "out-0", "model.safetensors")
	recommend := func(r int, plan string) []string {
		return []string{"recommend", "--plan", plan, "--model", model, "--shard", filepath.Join(c.parts,
			fmt.Sprintf("part-%d", r)), "--identity", c.key(r), "--wait", "20s", "--k", fmt.Sprint(4 * (1 - r))}
	}
	said := both(func(r int) []string { return recommend(r, plan) })
	lines := strings.Split(strings.TrimSpace(said[0]), "\n")
	if len(lines) < 5 || lines[0] != "node,relation,rank,other,score,site" || !strings.Contains(lines[1], ",,1,") ||
		!strings.Contains(said[0], ",site-0\n") || !strings.Contains(said[0], ",site-1\n") {
		t.Errorf("site 0 is recommended %d lines, %.200s, must be links of its own nodes with those of both sites",
			len(lines), said[0])
	}
	if said[1] != "node,relation,rank,other,score,site\n" {
		t.Errorf("site 1 wants nothing and is recommended %.200s", said[1])
	}
	other := c.plan(t, c.members, "--port", fmt.Sprint(testenv.FreePorts(t, 2)))
	refuse(t, 2, []string{"the plan must be of task links"}, recommend(0, other)...)
	refuse(t, 2, []string{"give --shard"}, append(recommend(0, plan), "--data", sites(t))...)
}
