package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestJoinCompares: a site that joins by heddle compare --plan also trains by itself, and reports whether joining
// helped on its own test nodes. The figure of "together" is computed from the predictions which the run wrote, the
// figure of "alone" from the site's part. The other site sends nothing for it.
func TestJoinCompares(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	plan := c.plan(t, c.members, "--port", fmt.Sprint(testenv.FreePorts(t, 2)), "--rounds", "30")
	other := make(chan string, 1)
	go func() {
		exit, _, stderr := call(t.Context(), c.join(1, plan)...)
		other <- fmt.Sprintf("exit %d: %s", exit, stderr)
	}()
	text := must(t, append([]string{"compare"}, c.join(0, plan)[1:]...)...)
	if said := <-other; !strings.HasPrefix(said, "exit 0") {
		t.Errorf("the other peer: %s", said)
	}
	var got struct {
		Sentence string
		Nodes    int `json:"test_nodes"`
		Ways     []struct {
			Way, Fault string
			Test       float64
			Ahead      *struct{ Mean, Low, High float64 } `json:"together_ahead_by"`
		}
	}
	if err := json.Unmarshal(contents(t, filepath.Join(c.dir, "out-0", "compare.json")), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Ways) != 3 || got.Ways[0].Way != "alone" || got.Ways[1].Way != "features" ||
		got.Ways[2].Way != "together" || got.Nodes == 0 || !strings.Contains(text, got.Sentence) ||
		!strings.Contains(got.Sentence, "over this site alone") {
		t.Fatalf("compare.json has %+v, printed\n%s", got, text)
	}
	page := string(contents(t, filepath.Join(c.dir, "out-0", "compare.html")))
	for _, want := range []string{"did joining help ", got.Sentence, "<svg", "this site alone</th>",
		"heddle compare --plan", "rows of at most"} {
		if !strings.Contains(page, strings.ReplaceAll(want, "+", "&#43;")) {
			t.Errorf("compare.html must have %q", want)
		}
	}
	if strings.Contains(page, "Site by site") {
		t.Error("one site has no figures of others")
	}
	together := got.Ways[2].Test
	if want := fmt.Sprintf("accuracy %.2f %% of own test nodes (%d)", 100*together, got.Nodes); !strings.Contains(text,
		want) {
		t.Errorf("the run must say %q\n%s", want, text)
	}
	for _, way := range got.Ways[:2] {
		if way.Ahead == nil || way.Fault != "" || way.Ahead.Low > way.Ahead.Mean || way.Ahead.Mean > way.Ahead.High ||
			math.Abs(way.Ahead.Mean-(together-way.Test)) > 1e-9 {
			t.Errorf("together %g, %+v", together, way)
		}
	}
}

// TestCompareOverSitesRefuses: what heddle compare accepts with a plan, and without one.
func TestCompareOverSitesRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"--data d --shard s --identity k", "--identity, --shard: over real sites heddle compare requires --plan"},
		{"--plan p --shard s --rounds 3 --seeds 2", "(got --rounds, --seeds)"},
		{"--plan p", "--plan requires --shard"},
		{"--plan p --shard s --link fast", "--plan must be a plan"}, // the plan is read first
	} {
		refuse(t, 2, []string{c.want}, append([]string{"compare"}, strings.Fields(c.args)...)...)
	}
}
