package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// together runs the command at site 0 of two, while site 1 joins, and returns what site 0 printed.
func (c *crew) together(t *testing.T, plan, command string) string {
	t.Helper()
	other := make(chan string, 1)
	go func() {
		exit, _, stderr := call(t.Context(), c.join(1, plan, "--state", filepath.Join(c.dir, "state-1"))...)
		other <- fmt.Sprintf("exit %d: %s", exit, stderr)
	}()
	args := c.join(0, plan, "--state", filepath.Join(c.dir, "state-0"))
	args[0] = command
	text := must(t, args...)
	if said := <-other; !strings.HasPrefix(said, "exit 0") {
		t.Fatalf("the other peer: %s", said)
	}
	return text
}

// TestJoinSeeds: a plan of several runs needs one approval and one command. Each run equals the run of a plan with its
// seed, all sites keep the model that validates best, and repeating the command reads the runs from their checkpoints.
func TestJoinSeeds(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	settings := []string{"--port", fmt.Sprint(testenv.FreePorts(t, 2)), "--rounds", "12"}
	plan := c.plan(t, c.members, append(settings, "--seed", "4", "--seeds", "2")...)
	text := c.together(t, plan, "compare")
	all := figures(t, filepath.Join(c.dir, "out-0", "result.json"))
	if len(all.Runs) != 2 || all.Runs[0].Seed != 4 || all.Runs[1].Seed != 5 ||
		all.Runs[0].Chosen == all.Runs[1].Chosen {
		t.Fatalf("runs are %+v", all.Runs)
	}
	if mean := (*all.Runs[0].Test + *all.Runs[1].Test) / 2; math.Abs(*all.TestRuns.Mean-mean) > 1e-12 ||
		!strings.Contains(text, "mean ± deviation") {
		t.Errorf("mean is %v, must be %v, and printed:\n%s", *all.TestRuns.Mean, mean, text)
	}
	chosen := all.Runs[0]
	if all.Runs[1].Chosen {
		chosen = all.Runs[1]
	}
	if *all.Test != *chosen.Test || all.Seed != chosen.Seed || max(*all.Runs[0].Val, *all.Runs[1].Val) != *chosen.Val {
		t.Errorf("test is %v of seed %d, must be that of %+v", *all.Test, all.Seed, chosen)
	}
	model := contents(t, filepath.Join(c.dir, "out-0", "model.safetensors"))
	if !bytes.Equal(model, contents(t, filepath.Join(c.dir, "out-1", "model.safetensors"))) {
		t.Error("both sites must have the same model")
	}
	var paid struct{ Runs int }
	if err := json.Unmarshal(contents(t, filepath.Join(c.dir, "out-0", "compare.json")), &paid); err != nil ||
		paid.Runs != 2 || !strings.Contains(text, "2 runs, ") {
		t.Errorf("the comparison is over %d runs, must be 2 (%v)\n%s", paid.Runs, err, text)
	}
	c.together(t, plan, "join")
	if !bytes.Equal(model, contents(t, filepath.Join(c.dir, "out-0", "model.safetensors"))) {
		t.Error("repeating the command must give the model of the checkpoints")
	}
	for r := range 2 { // of another run
		if err := os.RemoveAll(filepath.Join(c.dir, fmt.Sprintf("state-%d", r))); err != nil {
			t.Fatal(err)
		}
	}
	c.together(t, c.plan(t, c.members, append(settings, "--seed", fmt.Sprint(chosen.Seed))...), "join")
	if !bytes.Equal(model, contents(t, filepath.Join(c.dir, "out-0", "model.safetensors"))) {
		t.Error("the model must be that of a plan with the chosen seed")
	}
	page := must(t, "check", "--plan", plan, "--shard", filepath.Join(c.parts, "part-0"))
	for _, text := range []string{"2, one after the other, by seeds 4 to 5", "runs: 2"} {
		if !strings.Contains(page, text) {
			t.Errorf("check must say %q:\n%s", text, page)
		}
	}
}
