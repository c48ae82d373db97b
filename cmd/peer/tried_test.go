package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTried: class-means says what it tried, and the plan that it chose gives the same model without the others.
func TestTried(t *testing.T) {
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	args := []string{"--data", data, "--policy", "by-column", "--transport", "memory", "--budget", "2", "-q"}
	text := must(t, slices.Concat([]string{"train", "-o", at("auto"), "--plan-out", at("plan.yaml"), "--json", at("auto.json"), "--events", at("events")}, args)...)
	for _, want := range []string{"own-rows", "chosen", "rows of several plans tell too much of 80 features", "all plans together sent"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
	r := figures(t, at("auto.json"))
	var sent int64
	chosen := slices.IndexFunc(r.Tried, func(a tried) bool { return a.Chosen })
	for _, a := range r.Tried {
		sent += a.Bytes
	}
	// A round of a closed form validates as its solutions do on average, which the model is the mean of.
	if chosen < 0 || math.Abs(*r.Tried[chosen].Val-*r.Val) > 0.001 || r.Method != "class-means" || sent == 0 || sent > 2e6 {
		t.Errorf("%d bytes; %+v", sent, r.Tried)
	}
	if sum := r.Bytes.Halo + r.Bytes.Reduce + r.Bytes.Control; sum != r.Tried[chosen].Bytes {
		t.Errorf("the chosen plan sent %d bytes, and %d among those tried", sum, r.Tried[chosen].Bytes)
	}
	events := string(contents(t, at("events")))
	if begun, ended := strings.Count(events, `"candidate"`+`,"stage"`), strings.Count(events, `"candidate_end"`); begun == 0 || begun != ended {
		t.Errorf("%d candidates began, %d ended:\n%s", begun, ended, events)
	}
	if page := string(contents(t, at("auto", "report.html"))); !strings.Contains(page, "Plans that were tried") || !strings.Contains(page, "best for its bytes") {
		t.Error("the report does not show what was tried")
	}
	if _, err := os.Stat(at("auto", "checkpoints")); !os.IsNotExist(err) {
		t.Errorf("checkpoints are left: %v", err)
	}
	must(t, "train", "--data", data, "--config", at("plan.yaml"), "-o", at("again"), "-q")
	must(t, slices.Concat([]string{"train", "--method", "class-means", "-o", at("preset")}, args)...)
	written := must(t, "plan", "--budget", "2", "a=12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo@127.0.0.1", "b=12D3KooWPjceQrSwdWXPyLLeABRXmuqt69Rg3sBYbU1Nft9HyQ6X")
	for _, want := range []string{"method: class-means\n", "at most 2 MB:\n", "#   own-rows: class_target=labels hops=0\n", "#   residual-wide: ", "# own-rows is tried without class_target=labels where"} {
		if !strings.Contains(written, want) {
			t.Errorf("a plan of class-means must say %q (got\n%s)", want, written)
		}
	}
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", at("parts"))
	processes(t, at("parts"), 3, at("join"), "--method", "class-means", "--budget", "2")
	for k, a := range figures(t, at("join-2", "result.json")).Tried {
		if want := r.Tried[k]; a.Name != want.Name || a.Bytes != want.Bytes || a.Chosen != want.Chosen || a.Ended != want.Ended {
			t.Errorf("a process of three tried %+v, one process %+v", a, want)
		}
	}
	for _, name := range []string{"again", "preset", "join-0", "join-1", "join-2"} {
		if !bytes.Equal(contents(t, at(name, "model.safetensors")), contents(t, at("auto", "model.safetensors"))) {
			t.Errorf("%s: another model than that of the contest", name)
		}
	}
	less := must(t, slices.Concat([]string{"train", "-o", at("less")}, args, []string{"--budget", "0.2"})...)
	if !strings.Contains(less, "over the budget") {
		t.Errorf("of 0.2 MB the table has no plan over the budget:\n%s", less)
	}
	refuse(t, 2, []string{"hidden applies only to method layer-wise, full-batch or mini-batch (got method class-means)"}, "train", "--method", "class-means", "--hidden", "8", "--data", data)
}
