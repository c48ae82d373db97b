package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
)

// TestEvents: the file of events has a line for each round and stage, which agree with the figures
// of the run.
func TestEvents(t *testing.T) {
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
