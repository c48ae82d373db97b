package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"
)

// TestMinibatch: all transports, numbers of processes, and sizes of groups and of the cache give the same bits. The
// curve equals the curve of one peer with the complete graph, and predict computes the model's predictions again.
func TestMinibatch(t *testing.T) {
	t.Parallel()
	settings := []string{"--method", "mini-batch", "--model", "sage", "--rounds", "30", "--batch-size", "32",
		"--fanouts", "4,5"}
	data, parts, dir := everyWay(t, settings, []string{"--feature-cache", "0"},
		slices.Concat(settings, []string{"--peers", "1"}), 1e-3)
	mustTrain(t, filepath.Join(dir, "groups"),
		slices.Concat(settings, []string{"--shards", parts, "--transport", "memory", "--group", "16"})...)

	tensors := func(name string) []byte { // the header has the plan in it
		b := contents(t, filepath.Join(dir, name, "model.safetensors"))
		return b[bytes.LastIndexByte(b, '}'):]
	}
	if !bytes.Equal(tensors("groups"), tensors("memory")) {
		t.Error("groups of 16 batches: other parameters than in groups that follow the latency")
	}
	if f := figures(t, filepath.Join(dir, "groups", "result.json")).Fetched; f == nil || f.Group != 16 ||
		f.Cached == 0 || f.HitRate != float64(f.Cached)/float64(f.Rows) {
		t.Errorf("%+v is how features were fetched, must be in groups of 16 and partly from the cache", f)
	}
	predicts(t, filepath.Join(dir, "alone"), "--data", data)
}

// TestMinibatchStay: a peer may fail.
func TestMinibatchStay(t *testing.T) {
	t.Parallel()
	stays(t, 2, "10", "--method", "mini-batch", "--rounds", "150", "--batch-size", "32")
}
