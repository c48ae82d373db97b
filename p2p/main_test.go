package p2p

import (
	"flag"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// Every goroutine of a host has ended when Close returns, libp2p's included: there is no exception
// to make.
func TestMain(m *testing.M) {
	// Most of the tests that run side by side wait for each other's peers and limits.
	flag.Set("test.parallel", "16")
	testenv.MainWithoutLeaks(m)
}
