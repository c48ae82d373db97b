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
	equal(t, "test accuracy", tests[len(tests)-1], *result.Test)
	refuse(t, 2, []string{"is a directory"}, "train", "--data", sites(t), "--events", dir)
}

// TestSolvedRounds: a round in closed form has no loss, neither in the events nor in the results and the report.
func TestSolvedRounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "events.jsonl")
	mustTrain(t, dir, "--data", sites(t), "--method", "class-means", "--transport", "memory", "--events", file)
	if text := contents(t, file); !bytes.Contains(text, []byte(`"loss":null`)) ||
		bytes.Contains(text, []byte(`"loss":0`)) {
		t.Errorf("events:\n%s", text)
	}
	for _, loss := range figures(t, filepath.Join(dir, "result.json")).Loss {
		if loss != nil {
			t.Errorf("the loss of a round is %v", *loss)
		}
	}
	if bytes.Contains(contents(t, filepath.Join(dir, "report.html")), []byte("training loss")) {
		t.Error("the report has a training loss")
	}
}

// TestToStandardOutput: if the data go to standard output, nothing else does.
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

// TestResultsAreTheOwners: only the owner can read what a run and predict write about nodes.
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
