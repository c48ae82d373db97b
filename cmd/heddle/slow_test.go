package main

import (
	"path/filepath"
	"testing"
)

// TestLink: a slower network changes the duration of a run as predicted, and not its results.
func TestLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const tables = "../../examples/hospitals/"
	data, parts := filepath.Join(dir, "data"), filepath.Join(dir, "parts")
	must(t, "import", "--nodes", tables+"patients.csv", "--edges", tables+"contacts.csv", "--label-column",
		"readmitted", "--site-column", "hospital", "-o", data)
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	fast, slowly := filepath.Join(dir, "fast"), filepath.Join(dir, "slow")
	args := []string{"--shards", parts, "--method", "layer-wise", "--encoder", "raw", "--transport", "memory",
		"--rounds", "20", "-q"}
	must(t, append([]string{"train", "-o", fast}, args...)...)
	must(t, append([]string{"train", "-o", slowly, "--link", "latency=8ms,rate=100Mbit"}, args...)...)
	a, b := figures(t, filepath.Join(fast, "result.json")), figures(t, filepath.Join(slowly, "result.json"))
	if len(a.Links) != 3 || len(b.Links) != 4 {
		t.Fatalf("%d and %d predictions, must be those of three connections, and that of the fourth", len(a.Links),
			len(b.Links))
	}
	if *a.Test != *b.Test || *a.Loss[19] != *b.Loss[19] {
		t.Errorf("accuracy %v and loss %v, over a slower link %v and %v", *a.Test, *a.Loss[19], *b.Test, *b.Loss[19])
	}
	// 2 layers of 20 rounds, two messages each way that wait for one another.
	if own := b.Links[3]; own.Seconds < 0.64 || b.Seconds < 0.64 || own.Seconds > 1.5*b.Seconds {
		t.Errorf("predicted %.2f s for %s, took %.2f s, must be at least 0.64 s of waiting and the two alike",
			own.Seconds, own.Link, b.Seconds)
	}
}
