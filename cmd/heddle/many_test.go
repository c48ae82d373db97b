package main

import (
	"math"
	"path/filepath"
	"testing"
)

// TestTwentyFourPeers: 24 peers on one machine, each with a host and a connection to every other,
// have the losses of the same run in memory.
func TestTwentyFourPeers(t *testing.T) {
	if testing.Short() {
		t.Skip("276 handshakes")
	}
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	net, memory := filepath.Join(dir, "net"), filepath.Join(dir, "memory")
	mustTrain(t, net, "--data", data, "--peers", "24", "--rounds", "3", "--carrier", "tcp")
	mustTrain(t, memory, "--data", data, "--peers", "24", "--rounds", "3", "--transport", "memory")
	a, b := figures(t, filepath.Join(net, "result.json")), figures(t, filepath.Join(memory, "result.json"))
	if a.Peers != 24 || len(a.Loss) == 0 || len(a.Loss) != len(b.Loss) {
		t.Fatalf("%d peers, %d and %d losses", a.Peers, len(a.Loss), len(b.Loss))
	}
	for i := range a.Loss {
		if math.Abs(*a.Loss[i]-*b.Loss[i]) > 1e-6 {
			t.Fatalf("round %d: loss %v, in memory %v", i, *a.Loss[i], *b.Loss[i])
		}
	}
}
