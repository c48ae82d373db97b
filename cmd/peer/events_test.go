package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestEvents: the file of events has a line for each round and stage, which agree with the figures
// of the run.
func TestEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "logs", "events.jsonl"), filepath.Join(dir, "out")
	mustTrain(t, out, "--data", sites(t), "--peers", "2", "--transport", "memory", "--events", file)
	result := figures(t, filepath.Join(out, "result.json"))
	var losses []float64
	var tests []float64
	for line := range bytes.Lines(contents(t, file)) {
		var e struct {
			Kind string
			Loss *float64
			Test *float64
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch e.Kind {
		case "round":
			losses = append(losses, *e.Loss)
		case "stage":
			if e.Test != nil {
				tests = append(tests, *e.Test)
			}
		}
	}
	equal(t, "rounds", len(losses), len(result.Loss))
	for i, loss := range losses {
		equal(t, "loss", loss, *result.Loss[i])
	}
	equal(t, "test accuracy", tests[len(tests)-1], *result.TestAccuracy)
	refuse(t, 2, []string{"is a directory"}, "train", "--data", sites(t), "--events", dir)
}

// TestToStandardOutput: where the data go to standard output, nothing else does.
func TestToStandardOutput(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	text := must(t, "train", "--data", sites(t), "--peers", "2", "--transport", "memory", "--out", out, "--json", "-")
	if text != string(contents(t, filepath.Join(out, "result.json"))) {
		t.Errorf("standard output must be result.json (got %s)", text)
	}
	file := filepath.Join(out, "p.csv")
	ask := []string{"predict", "--model", filepath.Join(out, "model.safetensors"), "--data", sites(t), "-o"}
	must(t, append(ask, file)...)
	if text := must(t, append(ask, "-")...); text != string(contents(t, file)) {
		t.Errorf("standard output must be the predictions (got %s)", text)
	}
}

// TestResultsAreTheOwners: nobody but the owner can read what a run and predict write about nodes.
func TestResultsAreTheOwners(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: Windows has access lists in place of modes")
	}
	t.Parallel()
	dir := t.TempDir()
	out, predictions := filepath.Join(dir, "out"), filepath.Join(dir, "p.csv")
	mustTrain(t, out, "--data", sites(t), "--peers", "2", "--transport", "memory")
	must(t, "predict", "--model", filepath.Join(out, "model.safetensors"), "--data", sites(t), "-o", predictions)
	for _, file := range []string{filepath.Join(out, "result.json"), filepath.Join(out, "report.html"), predictions} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, must be 600", filepath.Base(file), mode)
		}
	}
}
