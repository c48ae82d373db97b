package sim_test

import (
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/commtest"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestConformance(t *testing.T) {
	for name, cfg := range map[string]sim.Config{
		"fast":  {},
		"tight": {Queue: 1},
		"slow":  {Seed: 1, MaxLatency: 100 * time.Microsecond, Bandwidth: 4e9, Loss: 0.01, Retransmit: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			commtest.Conformance(t, func(t *testing.T, size int) []comm.Transport {
				return sim.New(size, cfg).Transports()
			})
		})
	}
}
