package main

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"testing"
)

// TestFullbatch: in a fixed order the transport and the number of processes change no bit; and the curve is that of one
// peer with the whole graph.
func TestFullbatch(t *testing.T) {
	data, dir := sites(t), t.TempDir()
	parts := filepath.Join(dir, "parts")
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	settings := []string{"--mode", "fullbatch", "--encoder", "raw", "--model", "gat", "--order", "fixed"}
	train(t, filepath.Join(dir, "memory"), slices.Concat(settings, []string{"--shards", parts, "--transport", "memory", "--fetch", "sar"})...)
	train(t, filepath.Join(dir, "quic"), slices.Concat(settings, []string{"--shards", parts, "--fetch", "sar", "--prefetch", "0"})...)
	processes(t, parts, 3, filepath.Join(dir, "join"), slices.Concat(settings, []string{"--fetch", "sar"})...)
	train(t, filepath.Join(dir, "alone"), "--mode", "standalone", "--encoder", "raw", "--model", "gat", "--data", data)

	want, first := contents(t, filepath.Join(dir, "memory", "model.safetensors")), figures(t, filepath.Join(dir, "memory", "result.json"))
	alone := figures(t, filepath.Join(dir, "alone", "result.json"))
	for _, name := range []string{"quic", "join-0", "join-1", "join-2"} {
		if !bytes.Equal(contents(t, filepath.Join(dir, name, "model.safetensors")), want) {
			t.Errorf("%s: another model than in memory", name)
		}
	}
	equal(t, "epochs", len(first.Loss), len(alone.Loss))
	for i, loss := range first.Loss {
		if d := math.Abs(*loss - *alone.Loss[i]); d > 1e-4**loss {
			t.Errorf("epoch %d: loss %v, of one peer %v", i, *loss, *alone.Loss[i])
		}
	}
	equal(t, "test accuracy", *first.TestAccuracy, *alone.TestAccuracy)
	if first.Bytes.Halo == 0 || first.Bytes.Reduce == 0 {
		t.Errorf("%d bytes of rows and %d of sums were counted", first.Bytes.Halo, first.Bytes.Reduce)
	}
	predicts(t, filepath.Join(dir, "memory"), "--data", data)
}
