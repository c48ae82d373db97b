package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestPrivateEdges: a run with epsilon reports what it kept private, on screen, in result and model, and spends from
// the ledger, until a run is refused.
func TestPrivateEdges(t *testing.T) {
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	train := []string{"train", "--data", data, "--transport", "memory", "-q", "-o", at("run"), "--epsilon", "4",
		"--privacy-ledger", at("ledger"), "--privacy-budget", "6"}
	out := must(t, train...)
	for _, want := range []string{"privacy: edges, ε 4 at δ 1e-05: 2 sums over neighbours with discrete Gaussian " +
		"noise of deviation 2.16", "1 runs have spent ε 4 at δ 1e-05 of 6"} {
		if !strings.Contains(out, want) {
			t.Errorf("train says %q, must contain %q", out, want)
		}
	}
	r := figures(t, at("run/result.json"))
	if r.Privacy == nil || r.Privacy.Unit != "edge" || r.Privacy.Epsilon != 4 || r.Privacy.Releases != 2 ||
		r.Method != "class-means" || !(*r.Test > 0.4) {
		t.Errorf("%+v, %+v", r, r.Privacy)
	}
	if out := must(t, "inspect", at("run/model.safetensors")); !strings.Contains(out,
		"keeps private: edges, ε 4 at δ 1e-05") {
		t.Errorf("inspect says %q", out)
	}
	if page := contents(t, at("run/report.html")); !bytes.Contains(page, []byte("kept private")) {
		t.Error("the report does not say what is kept private")
	}
	must(t, train...)
	ledger := contents(t, at("ledger"))
	refuse(t, 2, []string{"the runs so far have spent ε 5.99", "7.63, of a budget of 6"}, train...)
	without := train[:8:8]
	refuse(t, 2, []string{"epsilon must be above 0 with a privacy budget"},
		append(without, "--privacy-ledger", at("ledger"), "--privacy-budget", "6")...)
	refuse(t, 2, []string{"a privacy budget needs a privacy ledger"},
		append(without, "--epsilon", "1", "--privacy-budget", "6")...)
	refuse(t, 2, []string{"epsilon: unknown setting of layer-wise; it belongs to class-means"},
		append(without, "--epsilon", "1", "--method", "layer-wise")...)
	refuse(t, 2, []string{"delta applies only with epsilon"}, append(without, "--delta", "0.001")...)
	if !bytes.Equal(contents(t, at("ledger")), ledger) {
		t.Error("what was refused has an entry in the ledger")
	}
	if err := os.WriteFile(at("ledger"), ledger[:len(ledger)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	refuse(t, 2, []string{at("ledger"), "records are missing or were changed"}, train...)
}

// TestPrivateEdgesOfSites: each site has its ledger, and the others learn when one is used up.
func TestPrivateEdgesOfSites(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	plan := filepath.Join(c.dir, "plan.yaml")
	must(t, "plan", "-o", plan, "--epsilon", "2", "--port", fmt.Sprint(testenv.FreePorts(t, 2)),
		c.members[0]+"@127.0.0.1", c.members[1]+"@127.0.0.1")
	ledger := func(r int) string { return filepath.Join(c.dir, "ledger-"+string(rune('0'+r))) }
	for round := range 2 {
		said := make(chan string, 2)
		for r := range 2 {
			go func() {
				exit, stdout, stderr := call(t.Context(),
					c.join(r, plan, "--privacy-ledger", ledger(r), "--privacy-budget", "3")...)
				if exit != 0 {
					stdout = stderr
				}
				said <- stdout
			}()
		}
		for range 2 {
			want := []string{"1 runs have spent ε 2 at δ 1e-05 of 3", "2 runs have spent ε 2.95"}[round]
			if out := <-said; !strings.Contains(out, want) {
				t.Errorf("join says %q, must contain %q", out, want)
			}
		}
	}
	refuse(t, 2, []string{ledger(1), "of a budget of 3"},
		c.join(1, plan, "--privacy-ledger", ledger(1), "--privacy-budget", "3")...)
}
